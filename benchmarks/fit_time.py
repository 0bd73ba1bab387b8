"""How long a default fit takes beside tuned ridge logistic regression, set by set.

    python benchmarks/fit_time.py [--sets NAME ...] [--turns 3] [--out docs/benchmarks]

All samples of each real set are fitted, with one thread each and with two, turn by
turn, and the fastest turn counts: whatever else the machine does slows all alike. Run
it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import bars
import real_data
from accuracy_report import machine
from bars import Bar
from ebda import EBClassifier
from peers import METHODS

FILE = "fit_time.csv"


@dataclass(frozen=True)
class Times:
    """Seconds that fits of a set took; `ours_2` and `ridge_2` with two threads."""

    set: str
    n: int
    p: int
    classes: int
    ours: float
    ridge: float
    ours_2: float
    ridge_2: float


def measure(name: str, turns: int) -> Times:
    """The fastest of some turns."""
    data = real_data.load(name)
    counts = np.unique(data.y, return_counts=True)[1]
    ridge = METHODS["Ridge logistic"](min(real_data.FOLDS, int(counts.min())), 0)
    jobs: dict[str, tuple[Any, int]] = {
        "ours": (EBClassifier(), 1),
        "ridge": (ridge, 1),
        "ours_2": (EBClassifier(n_jobs=2), 2),
        "ridge_2": (ridge, 2),
    }
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(turns):
        for what, (model, threads) in jobs.items():
            with threadpool_limits(threads):
                start = time.perf_counter()
                model.fit(data.X, data.y)
                best[what] = min(best[what], time.perf_counter() - start)
    return Times(name, *data.X.shape, len(counts), **best)


def write(times: Iterable[Times], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Times))
        for t in times:
            cells = asdict(t).values()
            writer.writerow(f"{c:.4g}" if isinstance(c, float) else c for c in cells)


def read(path: Path) -> list[Times]:
    """The times of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Times(
                row["set"],
                *(int(row[k]) for k in ("n", "p", "classes")),
                **_seconds(row),
            )
            for row in csv.DictReader(file)
        ]


def _seconds(row: dict[str, str]) -> dict[str, float]:
    return {k: float(row[k]) for k in ("ours", "ridge", "ours_2", "ridge_2")}


def judge(times: Iterable[Times]) -> list[Bar]:
    """The bars, from geometric means over the sets."""
    times = list(times)
    count = f"geometric mean over {len(times)} sets"

    def over(ratio: Callable[[Times], float]) -> float | None:
        return (
            float(np.exp(np.mean([np.log(ratio(t)) for t in times]))) if times else None
        )

    return [
        Bar(
            f"default fit over tuned ridge, one thread each, {count}",
            over(lambda t: t.ours / t.ridge),
            1.0,
        ),
        Bar(
            f"default fit with two threads over tuned ridge with one, {count}",
            over(lambda t: t.ours_2 / t.ridge),
            0.5,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", nargs="+", metavar="NAME", choices=real_data.names())
    add("--turns", type=int, default=3, help="of each fit (3)")
    add("--out", type=Path, default=Path("docs/benchmarks"), help="folder")
    options = parser.parse_args()
    print(f"{machine()}; load average {os.getloadavg()[0]:.2f}")
    print(f"{'':<24}{'n':>5}{'p':>7}{'K':>3}", end="")
    print(
        "".join(f"{h:>12}" for h in ("ours, s", "ridge, s", "ours/ridge", "two, s")),
        end="",
    )
    print(f"{'two/ridge':>12}")
    warnings.simplefilter("ignore", ConvergenceWarning)
    sets = options.sets or real_data.names()
    measure(sets[0], 1)  # code is loaded, and loops compiled, before the clock starts
    found = []
    for name in sets:
        t = measure(name, options.turns)
        found.append(t)
        cells = (t.ours, t.ridge, t.ours / t.ridge, t.ours_2, t.ours_2 / t.ridge)
        text = "".join(f"{c:>12.3f}" for c in cells)
        print(f"{t.set:<24}{t.n:>5}{t.p:>7}{t.classes:>3}{text}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write(found, options.out / FILE)
    print("\n".join(["", *bars.to_terminal(judge(found))]))
    print(f"load average {os.getloadavg()[0]:.2f}; written to {options.out / FILE}")


if __name__ == "__main__":
    main()
