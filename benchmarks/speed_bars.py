"""What a fit must not take: the bars of the speed benchmark."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from speed_data import MIB
from speed_measure import Result

DIAGONAL, DEFAULT = "EBClassifier, diagonal and mean", "EBClassifier"
LARGE = 2_000_000


def fastest(job: Callable[[], Any], turns: int) -> float:
    best = np.inf
    for _ in range(turns):
        start = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - start)
    return float(best)


def verdict(what: str, value: float | None, limit: float, unit: str = "") -> str:
    if value is None:
        return f"  {what}: not measured in this run (at most {limit:g}{unit})"
    word = "ok" if value <= limit else "NOT MET"
    return f"  {what}: {value:.3g}{unit}, at most {limit:g}{unit}: {word}"


def seconds(results: Sequence[Result], method: str, n: int, p: int) -> float | None:
    for r in results:
        if (r.method, r.n, r.p) == (method, n, p):
            return r.seconds
    return None


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def bars(results: Sequence[Result]) -> Iterator[str]:
    """A line for each bar."""
    at = {
        name: seconds(results, name, 60, LARGE)
        for name in (DIAGONAL, DEFAULT, "GaussianNB", "moments", "moments, NumPy only")
    }
    known = [s for name, s in at.items() if "moments" in name and s]
    best = min(known) if known else None
    size = f"60 x {LARGE:,}"
    nb = at["GaussianNB"]
    yield verdict(f"{size}, diagonal over GaussianNB", ratio(at[DIAGONAL], nb), 0.25)
    yield verdict(
        f"{size}, diagonal over the moments alone", ratio(at[DIAGONAL], best), 1.8
    )
    yield verdict(f"{size}, default over GaussianNB", ratio(at[DEFAULT], nb), 1.5)
    yield verdict("50 x 10,000, diagonal and mean", small_fit() * 1000, 60, " ms")
    for name in (DIAGONAL, DEFAULT):
        growth = ratio(
            seconds(results, name, 60, 4_000_000), seconds(results, name, 60, 1_000_000)
        )
        yield verdict(f"{name}, from p = 10^6 to 4 10^6", growth, 4.4)
    for effects in ("two points", "normal effects"):
        few, many = prior_step(10**5, effects), prior_step(10**7, effects)
        what = f"DP step alone, {effects}, p = 10^7 over p = 10^5"
        yield verdict(what, many / few, 3) + f" ({many:.3f} s over {few:.3f} s)"
    peer, package, estimator = import_times()
    yield verdict("import ebda over sklearn.linear_model", package / peer, 1.3)
    yield verdict("from ebda import EBClassifier over it", estimator / peer, 1.3)
    yield from memory_bars(results)


def memory_bars(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        if r.method in (DIAGONAL, DEFAULT) and r.peak_mib is not None:
            limit = 64 + 12 * 8 * r.p / MIB
            what = f"{r.method}, {r.n} x {r.p:,}, memory above X"
            yield verdict(what, round(r.peak_mib, 1), round(limit, 1), " MiB")


def small_fit() -> float:
    from ebda import EBClassifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 10_000)), np.arange(50) % 2
    X[y == 1, :200] += 0.8
    model = EBClassifier(covariance="diagonal", shrinkage="mean")
    return fastest(lambda: model.fit(X, y), 9)


def prior_step(p: int, effects: str) -> float:
    """Fit of the Dirichlet process to p values, and nothing else."""
    from ebda.priors import DirichletProcess

    rng = np.random.default_rng(0)
    z = rng.standard_normal(p)
    some = z[: p // 50]  # as in the data of the fits, or spread out
    some += 3.1 if effects == "two points" else rng.normal(scale=3.1, size=len(some))
    return fastest(lambda: DirichletProcess().fit(z), 5)


def import_times() -> tuple[float, float, float]:
    """Of sklearn.linear_model, of ebda, and of EBClassifier, turn by turn."""
    codes = (
        "import sklearn.linear_model",
        "import ebda",
        "from ebda import EBClassifier",
    )
    best = dict.fromkeys(codes, np.inf)
    for _ in range(7):
        for code in codes:
            job = [sys.executable, "-c", code]
            start = time.perf_counter()
            subprocess.run(job, check=True)
            best[code] = min(best[code], time.perf_counter() - start)
    peer, package, estimator = (float(best[code]) for code in codes)
    return peer, package, estimator
