"""From finished repetitions to tables: cells, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ebda.paper.repetition import Record
from ebda.paper.studies import TABLES, methods_of, published

# Half a unit of the last printed digit.
_ROUNDING = 0.5e-4
_FEWEST_REPETITIONS = 10
# Standard errors from the published value beyond which a cell is marked.
_FAR = 3
# Columns of results.csv: properties of a cell, and how they are printed.
FIELDS = {
    "table": "",
    "row": "",
    "method": "",
    "error": ".6f",
    "se": ".6f",
    "error_authors": ".6f",
    "paper": ".4f",
    "repetitions": "",
}


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the errors of all repetitions, and the published value."""

    table: str
    row: str
    method: str
    errors: tuple[float, ...]
    errors_authors: tuple[float, ...]
    paper: float | None

    @property
    def error(self) -> float:
        """Mean error: exact in studies 1 and 2, otherwise on test samples."""
        return float(np.mean(self.errors))

    @property
    def se(self) -> float:
        """Standard error of `error`; 0 for a single repetition."""
        if self.repetitions < 2:
            return 0.0
        return float(np.std(self.errors, ddof=1) / np.sqrt(self.repetitions))

    @property
    def repetitions(self) -> int:
        """Number of errors."""
        return len(self.errors)

    @property
    def error_authors(self) -> float | None:
        """Mean error by the authors' formula, in studies 1 and 2."""
        return float(np.mean(self.errors_authors)) if self.errors_authors else None

    @property
    def z(self) -> float | None:
        """Distance from the published cell, in standard errors of the difference.

        Both means are random, the published one over its own repetitions. A difference
        within the rounding of the printed cell counts as zero. None for fewer than ten
        repetitions, from which the variance is not known well enough.
        """
        if self.paper is None or self.repetitions < _FEWEST_REPETITIONS:
            return None
        values = self.errors_authors or self.errors
        mean, variance = float(np.mean(values)), float(np.var(values, ddof=1))
        # The leukemia data were fitted once.
        published_repetitions = 1 if self.table == "table7" else 100
        se = np.sqrt(variance / len(values) + variance / published_repetitions)
        difference = mean - self.paper
        if abs(difference) <= _ROUNDING:
            return 0.0
        if se <= 1e-12:
            return float(np.copysign(np.inf, difference))
        return float(difference / se)


def summarise(records: Iterable[Record]) -> list[Cell]:
    """Cells in the order of the paper's tables, rows and columns."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record["table"], record["row"], record["method"]].append(record)
    places = (
        (name, row.label, method)
        for name, table in TABLES.items()
        for row in table.rows
        for method in methods_of(table)
    )
    return [_cell(place, groups[place]) for place in places if place in groups]


def _cell(place: tuple[str, str, str], runs: list[Record]) -> Cell:
    errors = tuple(run["error"] for run in runs)
    authors = tuple(run["error_authors"] for run in runs)
    known = () if None in authors else authors
    return Cell(*place, errors, known, published(*place))


def agreement(cells: Iterable[Cell]) -> tuple[int, int]:
    """Cells within three standard errors of the published one, and cells compared."""
    distances = [cell.z for cell in cells if cell.z is not None]
    return sum(abs(z) <= _FAR for z in distances), len(distances)


def to_csv(cells: Iterable[Cell]) -> str:
    """``results.csv``: one line per cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for cell in cells:
        values = {name: getattr(cell, name) for name in FIELDS}
        writer.writerow(
            "" if value is None else format(value, FIELDS[name])
            for name, value in values.items()
        )
    return text.getvalue()


def to_markdown(cells: Sequence[Cell]) -> str:
    """Each table beside the published one, with differences marked."""
    within, compared = agreement(cells)
    parts = [
        "# The paper's tables, reproduced\n",
        "A cell reads *published / ours (exact)*. In Tables 1-5 *ours* is by the "
        "formula of the authors' scripts, which the published numbers come from, and "
        "*exact* by equation 5. A cell in **bold** differs from the published one by "
        "more than three standard errors of the difference, where there are at least "
        f"{_FEWEST_REPETITIONS} repetitions: {within} of {compared} cells lie within. "
        "Methods that the paper does not compare with have tables of their own, of "
        "exact errors where there are such.\n",
    ]
    for name in TABLES:
        of_table = [cell for cell in cells if cell.table == name]
        if of_table:
            parts.append(_table_markdown(name, of_table))
    return "\n".join(parts)


def _table_markdown(name: str, cells: Sequence[Cell]) -> str:
    columns = TABLES[name].columns
    parts = [f"## {TABLES[name].title}\n"]
    for of_paper, head in ((True, ""), (False, "Further methods:\n")):
        some = [cell for cell in cells if (cell.method in columns) == of_paper]
        if some:
            parts += [head] * bool(head) + _columns_markdown(name, some)
    return "\n".join(parts)


def _columns_markdown(name: str, cells: Sequence[Cell]) -> list[str]:
    methods = [m for m in methods_of(TABLES[name]) if any(c.method == m for c in cells)]
    by_place = {(cell.row, cell.method): cell for cell in cells}
    counts = {m: {len(c.errors) for c in cells if c.method == m} for m in methods}
    lines = ["| row | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for row in TABLES[name].rows:
        if any(cell.row == row.label for cell in cells):
            texts = [_cell_text(by_place.get((row.label, m))) for m in methods]
            lines.append(f"| {row.label} | " + " | ".join(texts) + " |")
    reps = ", ".join(f"{m} {'/'.join(map(str, sorted(counts[m])))}" for m in methods)
    return [*lines, f"\nRepetitions: {reps}.\n"]


def _cell_text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    ours = cell.error if cell.error_authors is None else cell.error_authors
    exact = "" if cell.error_authors is None else f" ({cell.error:.4f})"
    if cell.paper is None:
        return f"{cell.error:.4f}"
    text = f"{cell.paper:.4f} / {ours:.4f}{exact}"
    marked = cell.z is not None and abs(cell.z) > _FAR
    return f"**{text}**" if marked else text
