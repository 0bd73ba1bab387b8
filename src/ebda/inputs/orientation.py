"""From a sheet to a block: which way round a table is, and what its margins are.

Samples are in rows, as statistics has it, or in columns, as expression tables come.
What is known decides: where the name of the labels stands, where the sample names of a
file of labels stand, where the features of a model stand. Only where nothing of this
is known does the shape of the table.
"""

from __future__ import annotations

import re
from itertools import compress

import numpy as np
import numpy.typing as npt

from ebda.inputs.base import Annotation, Block, Reading, Sheet
from ebda.inputs.cells import numbers
from ebda.inputs.grid import among, make_grid
from ebda.listing import counted, quoted
from ebda.typing import FloatArray

ORIENTATIONS = ("auto", "rows", "columns")
# Names of a first column that holds names of samples even where these are numbers.
_ID_NAME = re.compile(
    "ids?|names?|(sample|patient|subject|case|row)(s|id|ids|name|names)?|barcode|index"
)
# Fewer rows than this may be numbered by chance.
_FEWEST_NUMBERED = 5


def to_block(sheet: Sheet, how: Reading, source: str) -> Block:
    """Find samples, features and labels of a table.

    Parameters
    ----------
    sheet : Sheet
        The cells.
    how : Reading
        What helps to decide.
    source : str
        The file, for messages.
    """
    orient, evidence = how.orient, "as --orient says"
    if orient == "auto":
        orient, evidence = guess(sheet, how)
    in_rows = orient == "rows"
    named = not in_rows or has_row_names(sheet, how)
    notes = list(sheet.notes)
    if in_rows and named and sheet.names[0]:
        notes.append(f"the samples are named by the column {sheet.names[0]!r}")
    if named:
        ids = [(cell or "").strip() for cell in sheet.column(0)]
    else:
        ids = [str(i + 1) for i in range(sheet.frame.height)]
    features, samples = (sheet.names, ids) if in_rows else (ids, sheet.names)
    wanted = _wanted(features, how)
    n_ignored = int(np.count_nonzero(~wanted[in_rows and named :]))
    there = ~among(samples, how.drop if named else ())
    if not in_rows:
        there &= ~among(samples, {how.target, *how.aside})
    rows, columns = (there, wanted) if in_rows else (wanted, there)
    columns[0] &= not named
    grid = make_grid(sheet, ids, rows, columns, how, in_rows, source)
    margins = grid.text_columns if in_rows else grid.text_rows
    for what, names in (("row", grid.text_rows), ("column", grid.text_columns)):
        known = {how.target, *how.aside} if names is margins else set()
        others = [name for name in names if name not in known]
        flags = [name for name in others if _is_flag(names[name])]
        text = [name for name in others if name not in flags]
        notes += _left_out(what, "text", text)
        notes += _left_out(what, "true and false (write 1 and 0 for a feature)", flags)
    keep = np.ones(len(grid.columns), dtype=np.bool_)
    if in_rows and how.features is None:
        # A running number says where in the file a sample stands, and files are sorted.
        keep = np.array([not counts(v) for v in grid.values.T], dtype=np.bool_)
        numbered = list(compress(grid.columns, ~keep))
        notes += _left_out("column", "running numbers", numbered)
    ends = np.array(grid.columns, np.str_)[keep], np.array(grid.rows, np.str_)
    feature_names, sample_names = ends if in_rows else ends[::-1]
    return Block(
        grid.values[:, keep] if in_rows else np.ascontiguousarray(grid.values.T),
        sample_names if named else None,
        feature_names,
        margins,
        orientation=orient,
        evidence=evidence,
        n_ignored=n_ignored,
        notes=tuple(notes),
    )


def _wanted(names: list[str], how: Reading) -> npt.NDArray[np.bool_]:
    """Which rows or columns are features to be read, or the labels."""
    wanted = ~among(names, how.drop)
    if how.features is not None:
        wanted &= among(names, how.features)
    for name in dict.fromkeys([how.target, *how.aside]):
        if name is not None and name in names:
            wanted &= ~among(names, [name])
            wanted[names.index(name)] = True
    return wanted


def _is_flag(cells: Annotation) -> bool:
    """Whether all cells are true or false.

    >>> _is_flag(["TRUE", "False", None]), _is_flag(["true", "maybe"])
    (True, False)
    """
    found = {str(cell).strip().lower() for cell in cells if cell is not None}
    return bool(found) and found <= {"true", "false"}


def _left_out(what: str, why: str, names: list[str]) -> list[str]:
    if not names:
        return []
    return [f"left out {counted(len(names), what)} of {why}: {quoted(names)}"]


def guess(sheet: Sheet, how: Reading) -> tuple[str, str]:
    """Where the samples are, and why.

    Examples
    --------
    >>> import polars as pl
    >>> sheet = Sheet(["gene", "s1"], pl.DataFrame({"a": ["g1", "type"], "b": "1"}))
    >>> guess(sheet, Reading(target="type"))
    ('columns', "the row 'type' has the classes")
    """
    header, below = set(sheet.names), set(sheet.column(0))
    if how.target is not None and how.target in header:
        return "rows", f"the column {how.target!r} has the classes"
    if how.target is not None and how.target in below:
        return "columns", f"the row {how.target!r} has the classes"
    for words, names, if_header in (
        ("the features of the model", how.features or frozenset(), "rows"),
        ("the samples of the file of labels", how.samples, "columns"),
    ):
        across, down = len(header.intersection(names)), len(below.intersection(names))
        if across > down:
            return if_header, f"{words} are in the header"
        if down > across:
            other = "columns" if if_header == "rows" else "rows"
            return other, f"{words} are in the first column"
    long = sheet.frame.height > sheet.frame.width
    if long and sheet.frame.width > 1 and has_row_names(sheet, how):
        return "columns", "a guess: more rows than columns, and the first holds names"
    return "rows", "a guess: nothing speaks for samples in columns"


def has_row_names(sheet: Sheet, how: Reading) -> bool:
    """Whether the first column holds names of the rows and no values."""
    name = sheet.names[0]
    if name == how.target or name in (how.features or ()) or name in how.aside:
        return False
    if sheet.row_names or not name or name.startswith("Unnamed:"):
        return True
    cells = sheet.column(0)
    if len(set(cells)) < len(cells):
        return False
    if _ID_NAME.fullmatch(re.sub(r"[^a-z]", "", name.lower())):
        return True
    first = numbers(sheet.frame.select(sheet.frame.columns[0]), sheet.decimal)
    return len(first.bad.get(0, ())) > len(cells) / 2 or counts(first.values[:, 0])


def counts(values: FloatArray) -> bool:
    """Whether values number the rows from 0 or 1 on.

    >>> counts(np.arange(1.0, 9.0)), counts(np.arange(2.0, 9.0))
    (True, False)
    """
    if len(values) < _FEWEST_NUMBERED or values[0] not in (0, 1):
        return False
    return bool((np.diff(values) == 1).all())
