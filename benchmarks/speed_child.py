"""Fit one method in a process of its own, and print time and memory as JSON.

    python benchmarks/speed_child.py METHOD N P REPEATS GIB

The code is loaded first, compiled loops too, by a fit of a few features; then X is
made; what the resident size then rises by during one fit is the method's own. The
process may not grow beyond GIB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings

from speed_data import data, peak_resident
from speed_methods import METHODS


def load_code(name: str) -> None:
    fit = METHODS[name].fit
    fit(*data(12, 40))
    if METHODS[name].kind in ("ours", "floor") and name != "X.sum()":
        from ebda.sizes import override

        with override(compiled_elements=1, compiled_features=1):
            fit(*data(12, 2000))


def main() -> None:
    name, n, p, repeats, gib = sys.argv[1], *map(int, sys.argv[2:6])
    warnings.simplefilter("ignore")  # lasso and LDA on as few features as these
    resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
    before = peak_resident()
    load_code(name)
    code = peak_resident() - before
    X, y = data(n, p)
    base = peak_resident()
    best = float("inf")
    for turn in range(repeats):
        start = time.perf_counter()
        METHODS[name].fit(X, y)
        best = min(best, time.perf_counter() - start)
        if turn == 0:
            above = peak_resident() - base
    print(json.dumps({"seconds": best, "mib": above, "code_mib": code}))


if __name__ == "__main__":
    try:
        main()
    except MemoryError:
        sys.exit(3)
