"""Does a fit cost what the formula says? Constants, predictions, measured times.

    python benchmarks/scaling.py [--quick] [--page docs/scaling.md]

The constants of the formula are measured at three sizes, and used to predict fits of
other sizes, which are then measured, all in core-seconds. The tables replace those
between the marks of the page; with --quick they are only printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from ebda.estimators.classifier import _COMPARED_VALUES, LEAST_COMPARED, MOST_COMPARED
from ebda.kernels import compiled
from ebda.kernels.threads import available
from ebda.priors import DirichletProcess
from ebda.sizes import sizes
from speed_data import data
from speed_methods import default, diagonal, moments

# Where the constants come from: the first for all of them, the others for how the
# comparison of rules grows with the samples.
KNOWN = ((60, 1_000_000), (60, 300_000), (200, 200_000), (1_000, 100_000))
SIZES = (
    (60, 200_000),
    (60, 500_000),
    (60, 2_000_000),
    (60, 4_000_000),
    (120, 500_000),
    (400, 300_000),
    (2_000, 100_000),
)
QUICK = 10
MARKS = "<!-- measured -->", "<!-- end of measured -->"


@dataclass(frozen=True)
class Constants:
    """Of the formula, in core-seconds.

    Parameters
    ----------
    element : float
        For each element of X: reading and summing it.
    feature : float
        For each feature: all vectors after the moments.
    prior : float
        The iteration of the prior on its cells.
    compare, value, product, rules : float
        The comparison of rules, its part for each value of the samples compared, for
        each product of two values of the Gram matrix, and for each feature.
    """

    element: float
    feature: float
    prior: float
    compare: float
    value: float
    product: float
    rules: float

    def diagonal(self, n: int, p: int) -> float:
        """Seconds of a fit with one rule and no factors."""
        return self.element * n * p + self.feature * p + self.prior

    def default(self, n: int, p: int, factors: bool = False) -> float:
        """Seconds of a fit with the default arguments.

        Parameters
        ----------
        n, p : int
            Samples and features.
        factors : bool
            Whether the features that were compared seemed to have common factors: then
            folds and all features have Gram matrices too.
        """
        parts = compared(n, p)
        if factors:
            parts[2] = 11 * parts[2] + min(n, sizes.kept_samples) ** 2 * p
        costs = np.array([self.compare, self.value, self.product, self.rules])
        return self.diagonal(n, p) + float(costs @ parts)


def compared(n: int, p: int) -> NDArray[np.float64]:
    """What the comparison of rules has: one, values, products of them, features."""
    kept = min(n, sizes.kept_samples)
    most = max(LEAST_COMPARED, min(MOST_COMPARED, _COMPARED_VALUES // kept))
    values = float(kept * min(p, most))
    return np.array([1.0, values, kept * values, p])


def fastest(job: Callable[[Any, Any], Any], X: Any, y: Any, turns: int) -> float:
    """Core-seconds: the time of the processor, which other work hardly changes."""
    best = np.inf
    for _ in range(turns):
        start = time.process_time()
        job(X, y)
        best = min(best, time.process_time() - start)
    return float(best)


def calibrate(known: Sequence[tuple[int, int]], turns: int) -> Constants:
    n, p = known[0]
    X, y = data(n, p)
    compiled.load()
    default(X, y)  # code is loaded before the clock starts
    element = fastest(moments, X, y, turns) / (n * p)
    single = fastest(diagonal, X, y, turns)
    z = diagonal(X, y).z_
    # Of few values the iteration alone is left: it does not grow with p.
    few = z[:: max(1, p // 50_000)].copy()
    prior = fastest(lambda z, _: DirichletProcess().fit(z), few, None, turns)
    feature = max(single - element * n * p - prior, 0.0) / p
    extra = []
    for size in known:
        X, y = data(*size)
        extra.append(fastest(default, X, y, turns) - fastest(diagonal, X, y, turns))
    parts = np.array([compared(*size) for size in known])
    # Relative errors, and nothing below zero.
    comparison, _ = nnls(parts / np.array(extra)[:, None], np.ones(len(known)))
    return Constants(element, feature, prior, *map(float, comparison))


def tables(c: Constants, sizes: Sequence[tuple[int, int]], turns: int) -> str:
    lines = [
        "| constant | measured |",
        "|---|---:|",
        f"| `a`, an element of X | {c.element * 1e9:.2f} ns |",
        f"| `v`, a feature after the moments | {c.feature * 1e9:.0f} ns |",
        f"| `g`, the iteration of the prior | {c.prior * 1e3:.0f} ms |",
        f"| `f0`, the comparison of rules | {c.compare * 1e3:.0f} ms |",
        f"| `f1`, a value compared | {c.value * 1e9:.1f} ns |",
        f"| `f2`, a product of the Gram matrix | {c.product * 1e9:.3f} ns |",
        f"| `f3`, a feature, for more rules | {c.rules * 1e9:.0f} ns |",
        "",
        "| n x p | diagonal: formula | measured | off by "
        "| default: formula | measured | off by |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    off: dict[str, list[float]] = {"diagonal": [], "default": []}
    for n, p in sizes:
        X, y = data(n, p)
        factors = any(
            name == "factor" for name, _ in default(X, y).selection_.candidates
        )
        row = f"| {n:,} x {p:,}{' (with factors)' if factors else ''} |"
        formulas = c.diagonal(n, p), c.default(n, p, factors)
        jobs = ("diagonal", diagonal), ("default", default)
        for said, (name, job) in zip(formulas, jobs, strict=True):
            took = fastest(job, X, y, turns)
            off[name].append(took / said - 1)
            row += f" {said:.3f} s | {took:.3f} s | {took / said - 1:+.0%} |"
        lines.append(row)
        print(row, flush=True)
        del X
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    largest = {name: max(map(abs, values)) for name, values in off.items()}
    lines += [
        "",
        f"Largest difference: {largest['diagonal']:.0%} with one rule, "
        f"{largest['default']:.0%} with the default arguments. Core-seconds, the "
        f"fastest of {turns} fits each; {platform.machine()}, {os.cpu_count()} cores, "
        f"{available(None)} thread(s), NumPy {np.__version__}, load average {load}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the features")
    parser.add_argument("--page", type=Path, default=Path("docs/scaling.md"))
    parser.add_argument("--turns", type=int, default=4, help="fits of each size (4)")
    options = parser.parse_args()
    less = QUICK if options.quick else 1
    known, sizes = ([(n, p // less) for n, p in group] for group in (KNOWN, SIZES))
    constants = calibrate(known, options.turns)
    text = tables(constants, sizes, options.turns)
    print(text)
    if options.quick:
        return
    page = options.page.read_text()
    between = re.compile(f"{MARKS[0]}.*{MARKS[1]}", re.DOTALL)
    if not between.search(page):
        raise SystemExit(f"{options.page} has no marks {MARKS[0]} ... {MARKS[1]}")
    made = f"{MARKS[0]}\n{text}\n{MARKS[1]}"
    options.page.write_text(between.sub(lambda _: made, page))


if __name__ == "__main__":
    main()
