"""Where there is no signal EBClassifier should do as well as a constant answer.

    python benchmarks/no_signal.py [--redo] [--methods NAME ...] [--out docs/benchmarks]

Labels are permuted at random on five of the real sets, and one more set is known to
have next to no signal. The folds are those of the accuracy benchmark. The error is
held against that of always saying the largest class, and the log-loss against that of
the class shares. It can be stopped, and goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

import bars
import real_data
from accuracy_report import machine
from accuracy_scores import OURS
from bars import Bar
from peers import METHODS

WITHOUT_SIGNAL = "pomeroy_cns"
PERMUTED = (
    "alon_colon",
    "gordon_lung",
    "gravier_breast",
    "khan_srbct",
    "singh_prostate_6033",
)
# Of these 60 to 200 samples a single permutation tells little: over five of them the
# error of one set has a standard error of 0.01 to 0.02.
PERMUTATIONS = 25
REPEATS = 5
MARGIN = 0.03
FILE = "no_signal.csv"


@dataclass(frozen=True)
class Outcome:
    """A method on a set, and what constant answers have there."""

    set: str
    method: str
    error: float
    largest_class: float
    log_loss: float
    class_shares: float


def constants(name: str) -> tuple[float, float]:
    """Error of saying the largest class, and log-loss of the class shares."""
    counts = np.unique(real_data.load(name).y, return_counts=True)[1]
    share = counts / counts.sum()
    return float(1 - share.max()), float(-(share * np.log(share)).sum())


def summarise(records: Iterable[real_data.Record]) -> list[Outcome]:
    """Means over all samples, all permutations of a set together."""
    groups: dict[tuple[str, str], list[real_data.Record]] = {}
    for r in records:
        name = r["set"].split(real_data.PERMUTED)[0]
        permuted = real_data.PERMUTED in r["set"]
        shown = f"{name}, labels permuted" if permuted else name
        groups.setdefault((shown, r["method"]), []).append(r)
    outcomes = []
    for (shown, method), runs in sorted(groups.items()):
        sizes = [r["samples"] for r in runs]
        error, loss = (
            float(np.average([r[field] for r in runs], weights=sizes))
            for field in ("error", "log_loss")
        )
        largest, shares = constants(runs[0]["set"])
        outcomes.append(Outcome(shown, method, error, largest, loss, shares))
    return outcomes


def judge(outcomes: Iterable[Outcome]) -> list[Bar]:
    """Two bars for each set."""
    found = []
    for o in outcomes:
        if o.method != OURS:
            continue
        most = o.largest_class + MARGIN
        found.append(Bar(f"{o.set}: error", o.error, round(most, 4)))
        most = o.class_shares + MARGIN
        found.append(Bar(f"{o.set}: log-loss", o.log_loss, round(most, 4)))
    return found


def write(outcomes: Iterable[Outcome], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Outcome))
        for outcome in outcomes:
            cells = astuple(outcome)
            writer.writerow(f"{c:.6g}" if isinstance(c, float) else c for c in cells)


def read(path: Path) -> list[Outcome]:
    """The outcomes of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Outcome(
                row.pop("set"),
                row.pop("method"),
                **{k: float(v) for k, v in row.items()},
            )
            for row in csv.DictReader(file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--methods", nargs="+", metavar="NAME", choices=list(METHODS), default=[OURS])
    add("--redo", action="store_true", help="run these methods again")
    add("--jobs", type=int, default=2, help="fits at a time (2)")
    add("--out", type=Path, default=Path("docs/benchmarks"), help="folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = (options.out / FILE).with_suffix(".jsonl")
    if options.redo:
        kept = [r for r in real_data.read(path) if r["method"] not in options.methods]
        real_data.rewrite(path, kept)
    permuted = [
        f"{name}{real_data.PERMUTED}{k}"
        for name in PERMUTED
        for k in range(PERMUTATIONS)
    ]
    for sets, repeats in ((permuted, 1), ([WITHOUT_SIGNAL], REPEATS)):
        run = real_data.carry_out(path, sets, options.methods, repeats, options.jobs)
        for record in run:
            if record["fold"] == real_data.FOLDS - 1:
                print(f"  {record['method']} {record['set']}", flush=True)
    outcomes = summarise(real_data.read(path))
    write(outcomes, options.out / FILE)
    print(machine())
    for o in outcomes:
        print(
            f"  {o.set:<38}{o.method:<22}error {o.error:.3f} (largest class "
            f"{o.largest_class:.3f})  log-loss {o.log_loss:.3f} (class shares "
            f"{o.class_shares:.3f})"
        )
    print("\n".join(["Bars:", *bars.to_terminal(judge(outcomes))]))


if __name__ == "__main__":
    main()
