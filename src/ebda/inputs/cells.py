"""From cells to numbers: which are numbers, which are missing, which are neither."""

from __future__ import annotations

from dataclasses import dataclass
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


def numbers(frame: Any, decimal_comma: bool = False) -> Cells:
    """Read the cells of a polars table as numbers.

    Examples
    --------
    >>> import polars as pl
    >>> cells = numbers(pl.DataFrame({"a": ["1.5", "NA"], "b": [" 2", "<3"]}))
    >>> cells.values.tolist()
    [[1.5, 2.0], [nan, nan]]
    >>> cells.bad
    {1: array([1])}
    """
    pl = POLARS.load()
    if decimal_comma:
        text = pl.selectors.string()
        frame = frame.with_columns(text.str.replace(",", ".", literal=True))
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
