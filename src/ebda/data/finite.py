"""NaN, infinity and masked values, reported where they are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.listing import counted
from ebda.typing import FloatArray, IntArray


class NonFiniteError(ValueError):
    """X contains infinity, or NaN where that is not allowed either.

    Parameters
    ----------
    columns : list of int
        Columns with such values, of those that were looked at.
    row : int
        The first row with one in the first of these columns.
    kind : str
        "NaN" or "infinity".
    allow_missing : bool
        Whether NaN is allowed.
    """

    def __init__(
        self, columns: list[int], row: int, kind: str, allow_missing: bool = False
    ) -> None:
        # A worker pickles its exceptions with the arguments that they were given.
        super().__init__(columns, row, kind, allow_missing)
        self.columns, self.row, self.kind = columns, row, kind
        self.allow_missing = allow_missing

    def __str__(self) -> str:
        return self.words(f"column {self.columns[0]}")

    def words(self, where: str) -> str:
        """The message, with other words for the columns."""
        if self.allow_missing:
            return (
                f"X contains infinity in {where} (the first in row {self.row}); remove "
                "it, or make it NaN where the value is missing"
            )
        return (
            f"X contains NaN or infinity in {where} (the first is {self.kind} in row "
            f"{self.row}); impute or remove them"
        )


def check_block(
    result: FloatArray, values: Any, top: int, left: int, allow_missing: bool = False
) -> None:
    """Raise an error if a block of X is the reason why its sums are not finite.

    Parameters
    ----------
    result : ndarray
        Sums over the block: infinity in the values shows in them, and NaN too.
    values : ndarray or sparse matrix
        The block.
    top, left : int
        Its first row and column.
    allow_missing : bool
        Whether NaN is a missing value, and no error.
    """
    if not np.isfinite(result).all():
        refuse_in_block(values, top, left, allow_missing)


def refuse_in_block(
    values: Any, top: int, left: int, allow_missing: bool = False
) -> None:
    """Raise an error if there is infinity in a block of X, or NaN if that is refused.

    Parameters
    ----------
    values, top, left, allow_missing
        As in `check_block`.
    """
    row, column, bad = cells_that_are(refused(allow_missing), values)
    if not len(row):
        return  # the sums overflow, which those of all blocks will show
    first = np.lexsort((row, column))[0]
    columns = (np.unique(column) + left).tolist()
    kind = "NaN" if np.isnan(bad[first]) else "infinity"
    raise NonFiniteError(columns, int(row[first]) + top, kind, allow_missing)


def refused(allow_missing: bool) -> Callable[[Any], npt.NDArray[np.bool_]]:
    """The test for values that are refused: infinity, and perhaps NaN."""
    return np.isinf if allow_missing else lambda values: ~np.isfinite(values)


def cells_that_are(
    test: Callable[[Any], npt.NDArray[np.bool_]], values: Any
) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    """Rows, columns and values of the cells for which a test is true.

    Parameters
    ----------
    test : callable
        From an array to an array of bool; it is false for zero.
    values : ndarray or sparse matrix
        Where to look.

    >>> cells_that_are(np.isnan, np.array([[0.0, np.nan]]))
    (array([0]), array([1]), array([nan]))
    """
    if sparse.issparse(values):
        stored = sparse.coo_array(values)
        found = test(stored.data)
        return stored.row[found], stored.col[found], stored.data[found]
    row, column = np.nonzero(test(values))
    return row, column, values[row, column]


def has_nan(values: Any) -> bool:
    """Whether any value of a matrix is NaN, in one pass without a copy of its size.

    >>> has_nan(np.array([[1.0, np.nan]])), has_nan(np.array([[1.0, np.inf]]))
    (True, False)
    """
    stored = values.data if sparse.issparse(values) else values
    if stored.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        # A sum keeps NaN; that of infinities of both signs is NaN, too.
        return bool(np.isnan(stored.sum())) and bool(np.isnan(stored).any())


def refuse_masked(**given: Any) -> None:
    """Raise an error if any values of an array are masked.

    NumPy drops the mask when it makes a plain array, and what lies below it would be
    taken for data.

    Parameters
    ----------
    **given
        Values by what they are called.

    >>> refuse_masked(y=np.ma.array([1, 0, 1], mask=[False, True, False]))
    Traceback (most recent call last):
    ValueError: y has 1 masked value, the first at position 1; impute or remove these
    """
    for name, values in given.items():
        parts = values if isinstance(values, list | tuple) else [values]
        if any(map(np.ma.is_masked, parts)):
            array = np.ma.stack(parts) if parts is values else values
            mask = np.atleast_1d(np.ma.getmaskarray(array))
            axes = ("row", "column") if mask.ndim == 2 else ("position",)
            first = zip(axes, np.argwhere(mask)[0], strict=False)
            raise ValueError(
                f"{name} has {counted(int(mask.sum()), 'masked value')}, the first at "
                f"{', '.join(f'{axis} {i}' for axis, i in first)}; impute or remove "
                "these"
            )
