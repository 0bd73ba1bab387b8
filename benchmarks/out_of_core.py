"""Fit a file that does not fit in memory; print seconds, GB/s and peak memory.

    python benchmarks/out_of_core.py --size 20

writes float32 values with common factors to a temporary folder, as a memory map or as
Zarr, fits them in a fresh process each (the independence rule, and the default
arguments), and deletes them. The floor is the time to read the same blocks and sum
nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ebda import EBClassifier
from ebda.data import as_data
from ebda.data.disk import BlockedData
from ebda.data.disk.passes import prefetched

SETTINGS: dict[str, dict[str, Any]] = {
    "diagonal": {"covariance": "diagonal", "shrinkage": "mean"},
    "default": {},
}
ROWS = 256


def make(path: Path, kind: str, n: int, p: int) -> None:
    """Write n x p values, a few hundred rows at a time."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((ROWS, p), dtype=np.float32)
    loadings = rng.standard_normal((2, p), dtype=np.float32)
    effect = np.zeros(p, dtype=np.float32)
    effect[: p // 100] = 0.2
    X = create(path, kind, n, p)
    for start in range(0, n, ROWS):
        rows = np.arange(start, min(start + ROWS, n))
        # The same noise each time, but no two rows have it at the same place.
        block = np.roll(noise[: len(rows)], int(rng.integers(p)), axis=1)
        block += rng.standard_normal((len(rows), 2), dtype=np.float32) @ loadings
        block[rows % 2 == 1] += effect
        X[start : start + len(rows)] = block


def create(path: Path, kind: str, n: int, p: int) -> Any:
    if kind == "memmap":
        return np.memmap(path, np.float32, mode="w+", shape=(n, p))
    import zarr

    chunks = (ROWS, min(p, 16_384))
    return zarr.create_array(path, shape=(n, p), chunks=chunks, dtype="f4")


def load(path: Path, kind: str, n: int, p: int) -> Any:
    if kind == "memmap":
        return np.memmap(path, np.float32, mode="r", shape=(n, p))
    import zarr

    return zarr.open_array(path, mode="r")


def peak_bytes() -> int:
    """Largest resident size of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts what was before exec
        lines = status.read_text().splitlines()
        return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(what: str, path: Path, kind: str, n: int, p: int) -> dict[str, float]:
    """In a process of its own: read, or fit."""
    X = load(path, kind, n, p)
    y = np.arange(n) % 2
    before, start = peak_bytes(), time.perf_counter()
    if what == "read":
        data = as_data(X)
        assert isinstance(data, BlockedData)
        for _ in prefetched(data.source, data.source.plan()):
            pass
    else:
        EBClassifier(**SETTINGS[what]).fit(X, y)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": peak_bytes(), "before": before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=20.0, help="GB (20)")
    parser.add_argument("--features", type=int, default=250_000)
    parser.add_argument("--kind", choices=["memmap", "zarr"], default="memmap")
    parser.add_argument("--settings", nargs="+", default=["read", *SETTINGS])
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, path, kind, n, p = options.child
        print(json.dumps(measure(what, Path(path), kind, int(n), int(p))))
        return
    p = options.features
    n = max(20, int(options.size * 1e9 / 4 / p))
    size = 4e-9 * n * p
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        free = shutil.disk_usage(folder).free / 1e9
        if free < 1.3 * size:
            parser.error(f"{folder} has {free:.0f} GB left, {1.3 * size:.0f} needed")
        path, start = folder / "X", time.perf_counter()
        make(path, options.kind, n, p)
        print(f"{platform.platform()}, Python {platform.python_version()}")
        print(
            f"{options.kind} of {n} x {p} float32, {size:.1f} GB, "
            f"written in {time.perf_counter() - start:.0f} s"
        )
        print(f"{'':<10}{'seconds':>9}{'GB/s':>7}{'peak MB':>9}{'of which fit':>14}")
        for what in options.settings:
            child = ["--child", what, str(path), options.kind, str(n), str(p)]
            result = subprocess.run(
                [sys.executable, __file__, *child],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            got = json.loads(result.stdout)
            fit = got["peak"] - got["before"]
            print(
                f"{what:<10}{got['seconds']:>9.1f}{size / got['seconds']:>7.2f}"
                f"{got['peak'] / 1e6:>9.0f}{fit / 1e6:>14.0f}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
