"""EBClassifier on the paper's simulated data, beside the limit and the paper's best.

The drawings are those of `ebda reproduce` with the same seed. `Limit` is the posterior
mean under the true prior with known variances, which no separable rule can beat; in
study 3 the oracle that knows the support stands in its place.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebda.paper.repetition import Record
from ebda.paper.runner import Task, carry_out, key_of, plan, read_runs
from ebda.paper.studies import TABLES
from ebda.paper.summary import Cell, summarise

NAMES = ("table1", "table2", "table3", "table4", "table5", "table6")
QUICK_ROWS = ("(2,200)", "0.5", "study 3")
SEED = 1
FIELDS = (
    "table",
    "row",
    "error",
    "se",
    "bound",
    "best_of_paper",
    "best_error",
    "over_bound",
    "over_best",
    "repetitions",
)
PUBLISHED = Path(__file__).resolve().parents[1] / "docs/reproduction/results.csv"


@dataclass(frozen=True)
class Comparison:
    """A row of a table: our error, its bound, and the best of the paper's methods."""

    table: str
    row: str
    ours: Cell | None
    bound: Cell | None
    best: str
    best_error: float
    of: int

    @property
    def over_bound(self) -> float | None:
        """Our error over the limit's, or over the oracle's."""
        if self.ours is None or self.bound is None:
            return None
        return self.ours.error / max(self.bound.error, 1e-12)

    @property
    def over_best(self) -> float | None:
        """Our error over that of the best of the paper's methods."""
        return self.ours.error / self.best_error if self.ours else None


def run(
    path: Path,
    ours: bool,
    rows: Sequence[str] | None,
    reps: int,
    n_jobs: int,
    redo: bool = False,
) -> Iterator[Task]:
    """Run what the file lacks; `ours` says whether EBClassifier is wanted."""
    if redo and ours and path.exists():
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if '"EBClassifier"' not in line]
        path.write_text("".join(kept))
    done = {key_of(record) for record in read_runs(path)}
    methods = {
        name: ["EBClassifier"] * ours + ["Oracle" if name == "table6" else "Limit"]
        for name in NAMES
    }
    yield from carry_out(plan(methods, rows or (), reps, done), path, SEED, n_jobs)


def compare(path: Path) -> list[Comparison]:
    """The rows of which there are runs, in the paper's order."""
    cells = {(c.table, c.row, c.method): c for c in summarise(_records(path))}
    with PUBLISHED.open(newline="") as file:
        published = list(csv.DictReader(file))
    rows = []
    for name in NAMES:
        columns = set(TABLES[name].columns) - {"Oracle"}
        for row in TABLES[name].rows:
            place = name, row.label
            ours = cells.get((*place, "EBClassifier"))
            bound = cells.get((*place, "Limit")) or cells.get((*place, "Oracle"))
            errors = {
                line["method"]: float(line["error"])
                for line in published
                if (line["table"], line["row"]) == place and line["method"] in columns
            }
            if (ours or bound) and errors:
                best = min(errors, key=lambda method: errors[method])
                rows.append(
                    Comparison(*place, ours, bound, best, errors[best], len(errors))
                )
    return rows


def _records(path: Path) -> list[Record]:
    """The runs; of a row with EBClassifier, those of the drawings that both have."""
    records = read_runs(path)
    drawings: dict[tuple[str, str], dict[str, set[int]]] = {}
    for r in records:
        of_row = drawings.setdefault((r["table"], r["row"]), {})
        of_row.setdefault(r["method"], set()).add(r["repetition"])
    common = {row: set.intersection(*of.values()) for row, of in drawings.items()}
    return [r for r in records if r["repetition"] in common[r["table"], r["row"]]]


def to_csv(rows: Sequence[Comparison]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for c in rows:
        cell = c.ours or c.bound
        writer.writerow(
            [
                c.table,
                c.row,
                f"{c.ours.error:.6f}" if c.ours else "",
                f"{c.ours.se:.6f}" if c.ours else "",
                f"{c.bound.error:.6f}" if c.bound else "",
                c.best,
                f"{c.best_error:.6f}",
                "" if c.over_bound is None else f"{c.over_bound:.3f}",
                "" if c.over_best is None else f"{c.over_best:.3f}",
                len(cell.errors) if cell else 0,
            ]
        )
    return text.getvalue()
