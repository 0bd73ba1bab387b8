"""Do the lists of features keep their promise? False discoveries at a nominal 5 %.

    python benchmarks/false_discoveries.py [--runs 50] [--out docs/benchmarks]

In drawings of which the truth is known: the share of features that do not differ among
those with a q-value of at most 0.05, and how many of those that do are found; for both
lists of `ranking_`, and for the same moderated t or F with the q-values of Benjamini
and Hochberg and, where R has it, of the package qvalue.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ebda import EBClassifier
from ebda.rule.discoveries import q_values
from feature_designs import Draw, Drawing, designs

Array = NDArray[Any]
LEVEL, BOUND = 0.05, 0.06
METHODS = ("ebda", "bh", "qvalue", "ebda_beyond_factors")
# Larger drawings are run less often, and smaller ones, which cost little, more often.
LARGE, LESS_OFTEN = 5_000_000, 5
SMALL, MORE_OFTEN = 250_000, 3
R_PROGRAM = """
options(warn = -1)
p <- as.matrix(read.csv(commandArgs(TRUE)[1], header = FALSE))
q <- t(apply(p, 1, function(row) qvalue::qvalue(row)$qvalues))
write.table(q, commandArgs(TRUE)[2], sep = ",", row.names = FALSE, col.names = FALSE)
"""


def lists(drawn: Drawing) -> tuple[Array, Array, Array]:
    """q-values of both lists, and the p-values of the t or F test.

    The lists are those of the default: they do not depend on the rules that it
    compares.
    """
    model = EBClassifier(covariance="factor", shrinkage="mean", calibrate=False)
    ranking = model.fit(drawn.X, drawn.y).ranking_
    marginal = ranking.marginal
    return (
        marginal.q_over_classes,
        ranking.conditional.q_over_classes,
        marginal.p_over_classes,
    )


def one(draw: Draw, seed: int) -> tuple[Array, ...]:
    """A drawing: its truths, q-values and p-values."""
    drawn = draw(seed)
    q, beyond, p = lists(drawn)
    return drawn.differs, drawn.beyond, q, beyond, p


def qvalues_of_r(p: Array) -> Array | None:
    """q-values of each row by R's qvalue; None where there is no R or no qvalue."""
    if shutil.which("Rscript") is None:
        return None
    with TemporaryDirectory() as folder:
        given, made = (Path(folder, name) for name in ("p.csv", "q.csv"))
        np.savetxt(given, p, delimiter=",")
        done = subprocess.run(
            ["Rscript", "-e", R_PROGRAM, given, made], capture_output=True, check=False
        )
        return np.loadtxt(made, delimiter=",", ndmin=2) if not done.returncode else None


def shares(q: Array, real: Array) -> tuple[float, float]:
    """False discovery proportion, and share of the differences found."""
    chosen = q <= LEVEL
    false = (chosen & ~real).sum() / max(chosen.sum(), 1)
    return float(false), float((chosen & real).sum() / max(real.sum(), 1))


def measure(draw: Draw, runs: int, jobs: int) -> dict[str, float]:
    """One row of the record."""
    first = draw(0)
    if first.X.size > LARGE:
        runs = max(runs // LESS_OFTEN, 2)
    elif first.X.size <= SMALL:
        runs *= MORE_OFTEN
    found = Parallel(jobs)(delayed(one)(draw, seed) for seed in range(runs))
    by_r = qvalues_of_r(np.array([run[4] for run in found]))
    row: dict[str, float] = {"runs": runs}
    for method in METHODS:
        pairs = []
        for k, (differs, beyond, q, q_beyond, p) in enumerate(found):
            if method == "qvalue" and by_r is None:
                continue
            known = {
                "ebda": (q, differs),
                "bh": (q_values(np.log(np.maximum(p, 1e-300)), 1.0), differs),
                "qvalue": (p if by_r is None else by_r[k], differs),
                "ebda_beyond_factors": (q_beyond, beyond),
            }
            pairs.append(shares(*known[method]))
        if pairs:
            false, power = np.array(pairs).T
            row[f"{method}_false"] = float(false.mean())
            row[f"{method}_se"] = float(false.std(ddof=1) / np.sqrt(runs))
            row[f"{method}_found"] = float(power.mean())
    return row


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """The record as a table for the guide."""
    names = ("ebda", "BH", "qvalue", "ebda, beyond factors")
    lines = [
        "| design | " + " | ".join(names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for row in rows:
        cells = [
            f"{row[f'{m}_false']:.3f}, {row[f'{m}_found']:.2f}"
            if f"{m}_false" in row
            else "-"
            for m in METHODS
        ]
        lines.append(f"| {row['design']} | " + " | ".join(cells) + " |")
    runs = [row["runs"] for row in rows]
    ends = sorted({min(runs), max(runs)})
    errors = [row["ebda_se"] for row in rows]
    lines += [
        "",
        f"False discoveries, and share found. Means of {' to '.join(map(str, ends))} "
        "drawings, more where they are small; standard errors of the first up to "
        f"{max(errors):.3f}. Made by `benchmarks/false_discoveries.py`.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="designs whose names contain this")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    rows = []
    print(f"{'false discoveries / found':<38}" + "".join(f"{m:>22}" for m in METHODS))
    for name, draw in designs().items():
        if options.only and not any(part in name for part in options.only):
            continue
        row = measure(draw, options.runs, options.jobs)
        rows.append({"design": name, **row})
        cells = [
            f"{row[f'{m}_false']:8.3f} ({row[f'{m}_se']:.3f}){row[f'{m}_found']:6.3f}"
            if f"{m}_false" in row
            else "-"
            for m in METHODS
        ]
        print(f"{name:<38}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
    heads = list(dict.fromkeys(key for row in rows for key in row))
    with (options.out / "false_discoveries.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, heads)
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()}
            )
    table = as_markdown(rows)
    (options.out / "false_discoveries.txt").write_text(table, encoding="utf-8")
    worst = max(row["ebda_false"] for row in rows)
    word = "ok" if worst <= BOUND else "NOT MET"
    print(f"largest {worst:.3f}, at most {BOUND}: {word}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
