"""Correlations of all pairs of features, formed in blocks and forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ebda.kernels.threads import no_fork
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Rows of unit length in single precision: their products are off by less than this.
_ROUNDING = 1e-5


def row_blocks(p: int) -> Iterator[slice]:
    """Rows of a p x p matrix, as many at a time as `sizes.covariance_block` allows.

    >>> from ebda.sizes import override
    >>> with override(covariance_block=10):
    ...     [(rows.start, rows.stop) for rows in row_blocks(5)]
    [(0, 2), (2, 4), (4, 5)]
    """
    height = max(1, sizes.covariance_block // max(p, 1))
    for start, stop in pairwise([*range(0, p, height), p]):
        yield slice(start, stop)


def above_diagonal(shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Places above the diagonal, in rows that begin at it.

    >>> above_diagonal((1, 3))
    array([[False,  True,  True]])
    """
    above: npt.NDArray[np.bool_] = np.triu(np.ones(shape, dtype=bool), 1)
    return above


def unit_columns(rows: FloatArray) -> npt.NDArray[np.float32]:
    """The columns as contiguous rows of length one; zero where a column is zero.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Residuals.

    Returns
    -------
    ndarray of float32 of shape (n_features, n_samples)
    """
    length = np.sqrt(np.einsum("ij,ij->j", rows, rows))
    length[length == 0] = 1.0
    unit = np.empty(rows.shape[::-1], dtype=np.float32)
    unit[:] = (rows / length).T
    return unit


def _products(
    unit: npt.NDArray[np.float32],
) -> Iterator[tuple[int, int, npt.NDArray[np.float32]]]:
    """Correlations of all pairs, each once: first row, first column, and a block."""
    for rows in row_blocks(len(unit)):
        own = unit[rows]
        with no_fork():
            beside = own @ own.T
        # Below its diagonal there is nothing new.
        beside[~above_diagonal(beside.shape)] = np.nan
        yield rows.start, rows.start, beside
        if rows.stop < len(unit):
            with no_fork():
                block = own @ unit[rows.stop :].T
            yield rows.start, rows.stop, block


def count_correlations(
    unit: npt.NDArray[np.float32], n_cells: int
) -> npt.NDArray[np.int64]:
    """How many pairs of features have an absolute correlation in each cell.

    Parameters
    ----------
    unit : ndarray of float32 of shape (n_features, n_samples)
        Rows of length one.
    n_cells : int
        Cells of equal width between 0 and 1.

    Returns
    -------
    ndarray of shape (n_cells,)

    >>> unit = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    >>> count_correlations(unit, 4)
    array([1, 0, 1, 1])
    """
    total = np.zeros(2 * n_cells + 2, dtype=np.int64)
    for first_row, first_column, block in _products(unit):
        values = block.ravel()
        if first_row == first_column:
            values = values[~np.isnan(values)]
        # Rounding may take a correlation beyond 1: there is a cell more on either side.
        values *= n_cells
        values += n_cells + 1
        total += np.bincount(values.astype(np.int32), minlength=len(total))
    total[1] += total[0]
    total[-2] += total[-1]
    folded: npt.NDArray[np.int64] = total[n_cells + 1 : -1] + total[n_cells:0:-1]
    return folded


def strong_pairs(
    unit: npt.NDArray[np.float32], bound: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Pairs of features whose absolute correlation exceeds a bound.

    Blocks are of single precision; the correlations that are near the bound, or beyond
    it, are computed again in double precision, so that they do not depend on how the
    features are cut into blocks.

    Parameters
    ----------
    unit : ndarray of float32 of shape (n_features, n_samples)
        Rows of length one.
    bound : float
        Smallest absolute correlation.

    Returns
    -------
    first, second : ndarray of int of shape (n_pairs,)
        The features of each pair, ``first < second``.
    correlation : ndarray of shape (n_pairs,)
    """
    firsts, seconds, found = [], [], []
    for first_row, first_column, block in _products(unit):
        i, j = np.nonzero(np.abs(block) > bound - _ROUNDING)
        i, j = i + first_row, j + first_column
        r = pair_products(unit, i, j)
        kept = np.abs(r) > bound
        firsts.append(i[kept])
        seconds.append(j[kept])
        found.append(r[kept])
    if not found:
        nothing = np.zeros(0, dtype=np.intp)
        return nothing, nothing, np.zeros(0)
    return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(found)


def pair_products(
    unit: npt.NDArray[np.float32], first: IntArray, second: IntArray
) -> FloatArray:
    """Correlation of each pair of features, in double precision."""
    out = np.empty(len(first))
    size = max(1, sizes.covariance_block // unit.shape[1])
    for start in range(0, len(first), size):
        own = slice(start, start + size)
        left = unit[first[own]].astype(np.float64)
        right = unit[second[own]].astype(np.float64)
        out[own] = np.einsum("ij,ij->i", left, right)
    return out
