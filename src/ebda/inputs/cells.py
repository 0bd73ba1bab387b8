"""From cells to numbers: which are numbers, which are missing, which are neither."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.inputs.base import POLARS
from ebda.typing import FloatArray

# Ways to write that a value is missing.
_WORDS = ["na", "n/a", "<na>", "nan", "null", "none", "nd", "missing", ".", "-", "?"]
_SPREADSHEET = ["#n/a", "#value!", "#div/0!", "#num!", "#ref!", "#name?"]
MISSING = frozenset(["", *_WORDS, *_SPREADSHEET])
# The same for labels; fewer, because "none" or "-" may well be a class.
NO_LABEL = frozenset(["", "na", "n/a", "nan", "<na>", "null"])

DECIMALS = ("point", "comma")
_TURNED = [",", "."], [".", ","]
# Numbers with a decimal point, and those with commas between thousands, for polars.
_THOUSANDS = r"^\s*[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?\s*$"
_POINT = r"^\s*[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$|" + _THOUSANDS


@dataclass(frozen=True, eq=False)
class Cells:
    """Numbers of a table, and the cells that hold something else.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Numbers; NaN where there is none.
    bad : dict of int to ndarray of int
        By column, the rows that hold something other than a number.
    """

    values: FloatArray
    bad: dict[int, npt.NDArray[np.intp]]


def find_decimal(frame: Any, path: Path) -> str | None:
    """The decimal sign of a table of text in which there are commas.

    Examples
    --------
    >>> import polars as pl
    >>> find_decimal(pl.DataFrame({"a": ["1,5", "2"]}), Path("a.tsv"))
    'comma'
    >>> find_decimal(pl.DataFrame({"a": ["1,729", "2.5"]}), Path("a.tsv"))
    'point'
    >>> find_decimal(pl.DataFrame({"a": ["1,729", "2"]}), Path("a.tsv"))
    Traceback (most recent call last):
    ValueError: a.tsv: is '1,729' a number of thousands, or does it have a decimal \
comma? Say so with --decimal point or --decimal comma
    """
    cells = _in_one_column(frame)
    cells = cells.filter(cells.str.contains("[,.]"))
    point = cells.str.contains(_POINT)
    comma = cells.str.replace_many(*_TURNED).str.contains(_POINT)
    for decimal, only in (("point", point & ~comma), ("comma", comma & ~point)):
        if only.any():
            # A number with the other sign is found where it stands.
            return decimal
    unclear = cells.filter(point & cells.str.contains(",", literal=True))
    if not len(unclear):
        return None
    raise ValueError(
        f"{path}: is {unclear[0]!r} a number of thousands, or does it have a decimal "
        "comma? Say so with --decimal point or --decimal comma"
    )


def _in_one_column(frame: Any) -> Any:
    """The columns one below the other: for polars, many columns are slow."""
    return POLARS.load().concat([series.alias("") for series in frame]).rechunk()


def _with_points(frame: Any, decimal: str) -> Any:
    """A table of text with decimal points, and nothing between thousands."""
    pl = POLARS.load()
    cells = _in_one_column(frame)
    if decimal == "comma":
        turned = cells.str.replace_many(*_TURNED)
        cells = turned.zip_with(cells.str.contains("[0-9]"), cells)
    whole = cells.str.replace_all(",", "", literal=True)
    cells = whole.zip_with(cells.str.contains(_THOUSANDS), cells)
    n = frame.height
    return pl.DataFrame(
        [cells.slice(j * n, n).alias(name) for j, name in enumerate(frame.columns)]
    )


def numbers(frame: Any, decimal: str | None = None) -> Cells:
    """Read the cells of a polars table as numbers.

    Examples
    --------
    >>> import polars as pl
    >>> cells = numbers(pl.DataFrame({"a": ["1.5", "NA"], "b": [" 2", "<3"]}))
    >>> cells.values.tolist()
    [[1.5, 2.0], [nan, nan]]
    >>> cells.bad
    {1: array([1])}
    >>> numbers(pl.DataFrame({"a": ["1.729,5", "2"]}), "comma").values.tolist()
    [[1729.5], [2.0]]
    """
    pl = POLARS.load()
    if decimal is not None:
        frame = _with_points(frame, decimal)
    parsed = frame.select(pl.all().cast(pl.Float64, strict=False))
    before = np.array(frame.null_count().row(0), dtype=np.intp)
    after = np.array(parsed.null_count().row(0), dtype=np.intp)
    values = parsed.to_numpy(writable=True)
    bad: dict[int, npt.NDArray[np.intp]] = {}
    for j in np.flatnonzero(after > before).tolist():
        # Blanks around a number, and the other ways to write a missing one, are rare:
        # only the columns that have them are parsed again.
        again, wrong = _second_look(frame.to_series(j))
        values[:, j] = again
        if len(wrong):
            bad[j] = wrong
    return Cells(values, bad)


def _second_look(series: Any) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    pl = POLARS.load()
    cells = series.str.strip_chars()
    parsed = cells.cast(pl.Float64, strict=False)
    unread = parsed.is_null() & cells.is_not_null()
    missing = cells.str.to_lowercase().is_in(list(MISSING))
    values = parsed.to_numpy(writable=True).astype(np.float64)
    return values, np.flatnonzero((unread & ~missing.fill_null(True)).to_numpy())


def is_label(cell: Any) -> bool:
    """Whether a cell holds a label.

    >>> [is_label(cell) for cell in ("ALL", "none", "NA", "", None, float("nan"), 0)]
    [True, True, False, False, False, False, True]
    """
    if cell is None or cell != cell:
        return False
    return not (isinstance(cell, str) and cell.strip().lower() in NO_LABEL)
