"""Fit times as ratios to scikit-learn's in the same run.

    python benchmarks/speed.py [--quick]

Each estimator fits the same data several times, turn by turn, and the fastest counts:
what else the machine does then slows all alike.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid

from ebda import EBClassifier
from ebda.moments import class_moments


def best_times(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    times = dict.fromkeys(jobs, np.inf)
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def data(n: int, p: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float32).astype(dtype, copy=False)
    y = np.arange(n) % 2
    X[y == 1, : p // 50] += 0.8
    return X, y


def compare(n: int, p: int, dtype: Any, repeats: int) -> dict[str, float]:
    X, y = data(n, p, dtype)
    times = best_times(
        {
            "X.sum()": lambda: X.sum(),
            "moments alone": lambda: class_moments(X, y, 2),
            "EBClassifier": lambda: EBClassifier(
                covariance="diagonal", shrinkage="mean"
            ).fit(X, y),
            "GaussianNB": lambda: GaussianNB().fit(X, y),
            "NearestCentroid(shrink_threshold=1)": lambda: NearestCentroid(
                shrink_threshold=1.0
            ).fit(X, y),
        },
        repeats,
    )
    print(f"\n{n} x {p:,} {np.dtype(dtype).name}")
    print(f"  {'':<37}{'seconds':>9}{'over GaussianNB':>17}")
    for name, seconds in times.items():
        ratio = seconds / times["GaussianNB"]
        print(f"  {name:<37}{seconds:>9.3f}{ratio:>17.2f}")
    return times


def verdict(what: str, value: float, limit: float, unit: str = "") -> None:
    word = "ok" if value <= limit else "NOT MET"
    print(f"  {what}: {value:.2f}{unit}, at most {limit:g}{unit}: {word}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    large = 100_000 if parser.parse_args().quick else 1_000_000
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}"
    )
    small_times = compare(50, 10_000, np.float64, repeats=7)
    large_times = compare(60, large, np.float32, repeats=3)
    if large < 1_000_000:
        return
    print("\nBounds:")
    verdict("fit of 50 x 10,000", small_times["EBClassifier"], 0.25, " s")
    verdict(
        f"fit of 60 x {large:,} over GaussianNB",
        large_times["EBClassifier"] / large_times["GaussianNB"],
        2.0,
    )


if __name__ == "__main__":
    main()
