"""NaN, infinity and masked values, reported where they are found."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ebda.listing import counted
from ebda.typing import FloatArray


class NonFiniteError(ValueError):
    """X contains NaN or infinity.

    Parameters
    ----------
    columns : list of int
        Columns with NaN or infinity, of those that were looked at.
    row : int
        The first row with one in the first of these columns.
    kind : str
        "NaN" or "infinity".
    """

    def __init__(self, columns: list[int], row: int, kind: str) -> None:
        # A worker pickles its exceptions with the arguments that they were given.
        super().__init__(columns, row, kind)
        self.columns, self.row, self.kind = columns, row, kind

    def __str__(self) -> str:
        return (
            f"X contains NaN or infinity in column {self.columns[0]} (the first is "
            f"{self.kind} in row {self.row}); impute or remove them"
        )


def check_block(result: FloatArray, values: Any, top: int, left: int) -> None:
    """Raise an error if a block of X is the reason why its sums are not finite.

    Parameters
    ----------
    result : ndarray
        Sums over the block: NaN and infinity in the values show in them.
    values : ndarray or sparse matrix
        The block.
    top, left : int
        Its first row and column.
    """
    if np.isfinite(result).all():
        return
    if sparse.issparse(values):
        stored = sparse.coo_array(values)
        found = ~np.isfinite(stored.data)
        row, column = stored.row[found], stored.col[found]
        bad = stored.data[found]
    else:
        row, column = np.nonzero(~np.isfinite(values))
        bad = values[row, column]
    if not len(row):
        return  # the sums overflow, which those of all blocks will show
    first = np.lexsort((row, column))[0]
    columns = (np.unique(column) + left).tolist()
    kind = "NaN" if np.isnan(bad[first]) else "infinity"
    raise NonFiniteError(columns, int(row[first]) + top, kind)


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
