"""Fits of very many samples of few features, beside Gaussian naive Bayes.

    python benchmarks/many_samples.py [--samples 1000000] [--out docs/benchmarks]

Eight classes and 2,000 features in float32, each method after the other in one process.
Memory is the peak of the process during the fit beyond what it held before, which Linux
tells.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.naive_bayes import GaussianNB

from accuracy_report import machine
from ebda import EBClassifier

FILE = "many_samples.json"
N_FEATURES, N_CLASSES = 2000, 8
# Samples that are drawn at a time.
_BLOCK = 20_000
PEER = "GaussianNB"
METHODS: dict[str, Callable[[], Any]] = {
    "diagonal": lambda: EBClassifier(
        covariance="diagonal", shrinkage="mean", calibrate=False
    ),
    "default": EBClassifier,
    PEER: GaussianNB,
}


def simulated(n: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
    """Classes that differ in one feature of twenty."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n)
    shape = N_CLASSES, N_FEATURES
    means = 0.3 * rng.normal(size=shape) * (rng.random(shape) < 0.05)
    X = np.empty((n, N_FEATURES), np.float32)
    for start in range(0, n, _BLOCK):
        part = X[start : start + _BLOCK]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
        part += means[y[start : start + _BLOCK]]
    return X, y


def megabytes(field: str) -> float:
    """A field of the status of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(field))
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    X, y = simulated(options.samples)
    found = {}
    for name, make in METHODS.items():
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before, start = megabytes("VmRSS"), time.perf_counter()
        make().fit(X, y)
        seconds = time.perf_counter() - start
        found[name] = {"seconds": seconds, "MiB": megabytes("VmHWM") - before}
        print(f"{name}: {seconds:.1f} s, {found[name]['MiB']:.0f} MiB beyond the data")
    for name, row in found.items():
        row["over_peer"] = row["seconds"] / found[PEER]["seconds"]
        print(f"{name} over {PEER}: {row['over_peer']:.2f}")
    record = {"machine": machine(), "samples": options.samples, "fits": found}
    (options.out / FILE).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
