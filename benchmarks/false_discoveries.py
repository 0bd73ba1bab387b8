"""Does the ranking keep its promise? False discoveries at a nominal 5 %.

    python benchmarks/false_discoveries.py [--runs 50] [--out docs/benchmarks]

Features with a q-value of at most 0.05 in drawings of which the truth is known: the
share without a difference, and how many of those with one are found.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ebda import EBClassifier
from ebda.datasets import make_factor_classes, make_two_class

LEVEL, BOUND = 0.05, 0.07
# (signals among 4500, effect in standard deviations), 30 samples per class.
INDEPENDENT = [(0, 0.0), (50, 1.5), (100, 1.0), (300, 0.7), (1000, 0.7), (2000, 0.4)]

Draw = Callable[[int], Any]


def designs() -> dict[str, Draw]:
    """What is drawn, by name."""
    found: dict[str, Draw] = {}
    for n, effect in INDEPENDENT:
        name = f"independent, {n} of 4500 at {effect:g}"
        found[name] = lambda seed, n=n, effect=effect: make_two_class(
            30, 4500, n, effect, random_state=seed
        )
    found["factors (study 3), 2 % of 4500"] = lambda seed: make_factor_classes(
        n_test=2, random_state=seed
    )
    return found


def one(draw: Draw, seed: int) -> tuple[float, float]:
    """False discovery proportion and share of the differences found."""
    sim = draw(seed)
    chosen = EBClassifier().fit(sim.data, sim.target).ranking_.selected(LEVEL)
    real = sim.means[1] != sim.means[0]
    false = (chosen & ~real).sum() / max(chosen.sum(), 1)
    return float(false), float((chosen & real).sum() / max(real.sum(), 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    rows = []
    print(f"{'design':<34}{'false':>8}{'se':>8}{'found':>8}")
    for name, draw in designs().items():
        runs = Parallel(options.jobs)(
            delayed(one)(draw, seed) for seed in range(options.runs)
        )
        false, found = np.array(runs).T
        se = false.std(ddof=1) / np.sqrt(len(false))
        rows.append((name, len(false), false.mean(), se, found.mean()))
        print(f"{name:<34}{false.mean():8.3f}{se:8.3f}{found.mean():8.3f}", flush=True)
    with (options.out / "false_discoveries.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["design", "runs", "false_discoveries", "se", "found"])
        writer.writerows([(n, k, *(f"{x:.4f}" for x in v)) for n, k, *v in rows])
    worst = max(row[2] for row in rows)
    word = "ok" if worst <= BOUND else "NOT MET"
    print(f"largest {worst:.3f}, at most {BOUND}: {word}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
