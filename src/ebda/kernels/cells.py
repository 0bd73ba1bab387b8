"""Very many values counted in cells of equal width."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.typing import FloatArray


class CellSums(NamedTuple):
    """Sums over the values of each cell, in whole numbers of steps."""

    counts: npt.NDArray[np.int64]
    excess: npt.NDArray[np.int64]
    squares: int
    n_beyond: int


def _cell_sums(
    z: FloatArray,
    step: float,
    width: float,
    farthest: float,
    size: int,
    left: int,
    right: int,
) -> tuple[npt.NDArray[np.int64], np.int64, int]:
    whole = z[left:right] * (1 / step)
    np.rint(whole, out=whole)
    x = whole * step
    beyond = 0
    if max(-x.min(), x.max()) > farthest:
        near = np.abs(x) <= farthest
        beyond = len(x) - int(np.count_nonzero(near))
        x, whole = x[near], whole[near]
    x *= 1 / width
    cell = np.floor(x, out=x)
    whole -= np.rint(cell * (width / step))
    place = cell.astype(np.intp)
    place += size // 2
    found = np.empty((2, size), dtype=np.int64)
    found[0] = np.bincount(place, minlength=size)
    found[1] = np.bincount(place, whole, size)
    return found, np.int64(whole @ whole), beyond


def cell_sums(
    z: FloatArray, step: float, width: float, farthest: float, size: int
) -> CellSums:
    """How many values lie in each cell, and by how much they exceed its left end.

    Values are rounded to whole numbers of steps, so that the sums are exact and the
    same in any order.

    Parameters
    ----------
    z : ndarray of shape (n,)
        Values.
    step, width : float
        Unit of rounding, and width of a cell.
    farthest : float
        Values beyond this on either side are only counted.
    size : int
        Number of cells; the middle one begins at zero.
    """
    settings = step, width, farthest, size
    parts = for_each_block(_cell_sums, loops.cell_sums, len(z), z, *settings)
    counts, excess = reduce(np.add, (found for found, _, _ in parts))
    squares = sum(int(square) for _, square, _ in parts)
    return CellSums(counts, excess, squares, sum(int(far) for *_, far in parts))
