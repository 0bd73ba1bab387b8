"""From a sheet to a block: which way round a table is, and what its margins are.

Samples are in rows, as statistics has it, or in columns, as expression tables come.
What is known decides: where the name of the labels stands, where the sample names of a
file of labels stand, where the features of a model stand. Only where nothing of this
is known does the shape of the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from ebda.inputs.base import Annotation, Block, Names, Sheet
from ebda.inputs.cells import numbers
from ebda.inputs.grid import Known, is_wanted, make_grid
from ebda.listing import counted, quoted
from ebda.typing import FloatArray

ORIENTATIONS = ("auto", "rows", "columns")
# Names of a first column that holds names of samples even where these are numbers.
_ID_NAME = re.compile(
    "ids?|names?|(sample|patient|subject|case|row)(s|id|ids|name|names)?|barcode|index"
)
# Fewer rows than this may be numbered by chance.
_FEWEST_NUMBERED = 5


def to_block(sheet: Sheet, orient: str, known: Known, source: str) -> Block:
    """Find samples, features and labels of a table.

    Parameters
    ----------
    sheet : Sheet
        The cells.
    orient : {"auto", "rows", "columns"}
        Where the samples are.
    known : Known
        What helps to decide.
    source : str
        The file, for messages.
    """
    evidence = "as --orient says"
    if orient == "auto":
        orient, evidence = guess(sheet, known)
    return _READERS[orient](sheet, known, source, evidence)


def guess(sheet: Sheet, known: Known) -> tuple[str, str]:
    """Where the samples are, and why.

    Examples
    --------
    >>> import polars as pl
    >>> sheet = Sheet(["gene", "s1"], pl.DataFrame({"a": ["g1", "type"], "b": "1"}))
    >>> guess(sheet, Known(target="type"))
    ('columns', "the row 'type' has the classes")
    """
    header, below = set(sheet.names), set(sheet.column(0))
    if known.target is not None and known.target in header:
        return "rows", f"the column {known.target!r} has the classes"
    if known.target is not None and known.target in below:
        return "columns", f"the row {known.target!r} has the classes"
    for words, names, if_header in (
        ("the features of the model", known.features or frozenset(), "rows"),
        ("the samples of the file of labels", known.samples, "columns"),
    ):
        across, down = len(header.intersection(names)), len(below.intersection(names))
        if across > down:
            return if_header, f"{words} are in the header"
        if down > across:
            other = "columns" if if_header == "rows" else "rows"
            return other, f"{words} are in the first column"
    long = sheet.frame.height > sheet.frame.width
    if long and sheet.frame.width > 1 and has_row_names(sheet, known):
        return "columns", "a guess: more rows than columns, and the first holds names"
    return "rows", "a guess: nothing speaks for samples in columns"


def has_row_names(sheet: Sheet, known: Known) -> bool:
    """Whether the first column holds names of the rows and no values."""
    name = sheet.names[0]
    if name == known.target or name in (known.features or ()):
        return False
    if sheet.row_names or not name or name.startswith("Unnamed:"):
        return True
    cells = sheet.column(0)
    if len(set(cells)) < len(cells):
        return False
    if _ID_NAME.fullmatch(re.sub(r"[^a-z]", "", name.lower())):
        return True
    first = numbers(sheet.frame.select(sheet.frame.columns[0]), sheet.decimal_comma)
    return len(first.bad.get(0, ())) > len(cells) / 2 or counts(first.values[:, 0])


def counts(values: FloatArray) -> bool:
    """Whether values number the rows from 0 or 1 on.

    >>> counts(np.arange(1.0, 9.0)), counts(np.arange(2.0, 9.0))
    (True, False)
    """
    if len(values) < _FEWEST_NUMBERED or values[0] not in (0, 1):
        return False
    return bool((np.diff(values) == 1).all())


def samples_in_rows(sheet: Sheet, known: Known, source: str, evidence: str) -> Block:
    """A block from a table with a sample in each row."""
    notes = list(sheet.notes)
    named = has_row_names(sheet, known)
    if named and sheet.names[0]:
        notes.append(f"the samples are named by the column {sheet.names[0]!r}")
    rows = _names(sheet.column(0)) if named else _numbers_as_names(sheet.frame.height)
    target = [j for j, name in enumerate(sheet.names) if name == known.target]
    places = [
        j
        for j, name in enumerate(sheet.names)
        if not (j == 0 and named) and j not in target and is_wanted(name, known)
    ]
    ignored = len(sheet.names) - len(places) - len(target) - named
    every = np.ones(sheet.frame.height, dtype=np.bool_)
    grid = make_grid(sheet, every, places, rows, known, source)
    notes += _left_out("row", "text", list(grid.text_rows))
    notes += _left_out("column", "text", list(grid.text_columns))
    keep = np.ones(len(grid.columns), dtype=np.bool_)
    if known.features is None:
        # A running number says where in the file a sample stands, and files are sorted.
        keep = np.array([not counts(v) for v in grid.values.T], dtype=np.bool_)
        numbered = [name for name, k in zip(grid.columns, keep, strict=True) if not k]
        notes += _left_out("column", "running numbers", numbered)
    labels = {}
    if target:
        labels[sheet.names[target[0]]] = list(
            compress(sheet.column(target[0]), grid.kept_rows)
        )
    return Block(
        grid.values[:, keep],
        _as_array(grid.rows) if named else None,
        _as_array(grid.columns)[keep],
        labels | grid.text_columns,
        orientation="rows",
        evidence=evidence,
        n_ignored=ignored,
        notes=tuple(notes),
    )


def samples_in_columns(sheet: Sheet, known: Known, source: str, evidence: str) -> Block:
    """A block from a table with a feature in each row, named by the first column."""
    ids = _names(sheet.column(0))
    places = [
        j
        for j, name in enumerate(sheet.names)
        if j > 0 and name not in known.drop and name != known.target
    ]
    is_target = np.array([name == known.target for name in ids], dtype=np.bool_)
    wanted = np.array([is_wanted(name, known) for name in ids], dtype=np.bool_)
    grid = make_grid(sheet, wanted & ~is_target, places, ids, known, source)
    margins: dict[str, Annotation] = dict(grid.text_rows)
    if is_target.any():
        row = sheet.frame.row(int(np.argmax(is_target)))
        kept = compress(places, grid.kept_columns)
        margins[known.target or ""] = [row[j] for j in kept]
    notes = [
        *sheet.notes,
        *_left_out("row", "text", list(grid.text_rows)),
        *_left_out("column", "text", list(grid.text_columns)),
    ]
    return Block(
        np.ascontiguousarray(grid.values.T),
        _as_array(grid.columns),
        _as_array(grid.rows),
        margins,
        orientation="columns",
        evidence=evidence,
        n_ignored=int(np.count_nonzero(~wanted & ~is_target)),
        notes=tuple(notes),
    )


_READERS: dict[str, Callable[[Sheet, Known, str, str], Block]] = {
    "rows": samples_in_rows,
    "columns": samples_in_columns,
}


def _left_out(what: str, why: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"left out {counted(len(names), what)} of {why}: {quoted(names)}"]


def _names(cells: Sequence[str | None]) -> list[str]:
    return ["" if cell is None else cell.strip() for cell in cells]


def _numbers_as_names(n: int) -> list[str]:
    return [str(i + 1) for i in range(n)]


def _as_array(names: Sequence[str]) -> Names:
    return np.array(names, dtype=np.str_)
