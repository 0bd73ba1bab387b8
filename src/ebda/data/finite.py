"""NaN and infinity, named by row and column where they are met."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ebda.typing import FloatArray


class NonFiniteError(ValueError):
    """X has NaN or infinity.

    Parameters
    ----------
    columns : list of int
        Where, as far as was seen.
    row : int
        The first row with one in the first of these columns.
    kind : str
        "NaN" or "infinity".
    """

    def __init__(self, columns: list[int], row: int, kind: str) -> None:
        # All of them are arguments: an exception of a worker is pickled.
        super().__init__(columns, row, kind)
        self.columns, self.row, self.kind = columns, row, kind

    def __str__(self) -> str:
        return (
            f"X contains NaN or infinity in column {self.columns[0]} (the first is "
            f"{self.kind} in row {self.row}); impute or remove them"
        )


def check_block(result: FloatArray, values: Any, top: int, left: int) -> None:
    """Look for the cause of a sum that is not finite in the values summed.

    Parameters
    ----------
    result : ndarray
        What the values were summed to: NaN and infinity stay what they are.
    values : ndarray or sparse matrix
        A block of X.
    top, left : int
        Its first row and column.
    """
    if np.isfinite(result).all():
        return
    place = sparse.coo_array(values) if sparse.issparse(values) else None
    if place is None:
        row, column = np.nonzero(~np.isfinite(values))
        bad = values[row, column]
    else:
        found = ~np.isfinite(place.data)
        row, column, bad = place.row[found], place.col[found], place.data[found]
    if not len(row):
        return  # an overflow, which the sums of all blocks will show
    first = np.lexsort((row, column))[0]
    columns = (np.unique(column) + left).tolist()
    kind = "NaN" if np.isnan(bad[first]) else "infinity"
    raise NonFiniteError(columns, int(row[first]) + top, kind)
