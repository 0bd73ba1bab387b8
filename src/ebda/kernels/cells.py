"""Very many values counted in cells of equal width."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray


class CellSums(NamedTuple):
    """Sums over the values of each cell, in whole numbers of steps.

    Parameters
    ----------
    counts : ndarray of shape (size,)
        Number of values.
    excess : ndarray of shape (size,)
        Sum of what they exceed the left end of their cell by.
    squares : int
        Sum of the squares of these excesses, over all cells.
    beyond : ndarray
        The values that lie in no cell, rounded.
    """

    counts: npt.NDArray[np.int64]
    excess: npt.NDArray[np.int64]
    squares: int
    beyond: FloatArray


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
    n_beyond = 0
    if max(-x.min(), x.max()) > farthest:
        near = np.abs(x) <= farthest
        n_beyond = len(x) - int(np.count_nonzero(near))
        x, whole = x[near], whole[near]
    x *= 1 / width
    cell = np.floor(x, out=x)
    whole -= np.rint(cell * (width / step))
    place = cell.astype(np.intp)
    place += size // 2
    found = np.empty((2, size), dtype=np.int64)
    found[0] = np.bincount(place, minlength=size)
    found[1] = np.bincount(place, whole, size)
    return found, np.int64(whole @ whole), n_beyond


def round_to_steps(z: FloatArray, step: float) -> FloatArray:
    """Values rounded to whole numbers of steps."""
    x = z * (1 / step)
    np.rint(x, out=x)
    x *= step
    return x


def _values_beyond(z: FloatArray, step: float, farthest: float) -> FloatArray:
    x = round_to_steps(z[np.abs(z) > farthest - step], step)
    return x[np.abs(x) > farthest]


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
        Values beyond this on either side lie in no cell.
    size : int
        Number of cells; the middle one begins at zero.
    """
    settings = step, width, farthest, size
    parts = for_each_block(_cell_sums, loops.cell_sums, len(z), z, *settings)
    counts, excess = reduce(np.add, (found for found, _, _ in parts))
    squares = sum(int(square) for _, square, _ in parts)
    beyond = [z[:0]]
    if any(n_beyond for *_, n_beyond in parts):
        beyond = over_blocks(
            lambda block: _values_beyond(z[block], step, farthest), len(z)
        )
    return CellSums(counts, excess, squares, np.concatenate(beyond))
