"""Means and centred sums of squares of every feature by class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.kernels import compiled, loops
from ebda.kernels.threads import over_blocks
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Elements of a tile of a compiled loop: it is read twice, from the second-level cache.
_LOOP_TILE = 1 << 15


def class_sums(
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    weight: FloatArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts, means and centred sums of squares of rows that are sorted by class.

    A tile of columns is copied to float64 and summed in two steps, the mean first and
    then the squares about it, while it is in the cache.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data of any real dtype and memory order.
    rows : ndarray of int
        Class k are the rows ``rows[bounds[k]:bounds[k + 1]]``.
    bounds : ndarray of int of shape (n_classes + 1,)
        See `rows`.
    weight : ndarray, one per row of `rows`, optional
        Frequency weights.
    """
    shape = len(bounds) - 1, X.shape[1]
    means, squares = np.zeros(shape), np.zeros(shape)
    if weight is None:
        counts = np.diff(bounds).astype(np.float64)
    else:
        counts = np.add.reduceat(np.append(weight, 0.0), bounds[:-1])
        counts[np.diff(bounds) == 0] = 0.0

    if weight is None and compiled.suits_matrix(X):
        loop = compiled.compile_loop(loops.class_sums)
        width = max(64, _LOOP_TILE // max(len(rows), 1))

        def sum_columns(cols: slice) -> None:
            ends = cols.start, cols.stop
            loop(X, rows, bounds, width, means, squares, *ends)

        over_blocks(sum_columns, X.shape[1], releases_lock=True)
        return counts, means, squares

    def sum_tile(cols: slice) -> None:
        tile = X[rows, cols].astype(np.float64, order="C", copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in np.flatnonzero(counts > 0):
                own = slice(bounds[k], bounds[k + 1])
                w = None if weight is None else weight[own]
                means[k, cols], squares[k, cols] = _sums(tile[own], w, counts[k])

    tile_width = max(1, sizes.tile_elements // max(len(rows), 1))
    over_blocks(sum_tile, X.shape[1], tile_width, releases_lock=True)
    return counts, means, squares


def _sums(
    part: FloatArray, w: FloatArray | None, count: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and centred squares of the columns of `part`, which is overwritten."""

    def total(values: FloatArray) -> FloatArray:
        return values.sum(axis=0) if w is None else w @ values

    mean = total(part)
    mean /= count
    part -= mean
    # The residuals sum to the rounding error of the mean: put it back.
    rest = total(part)
    rest /= count
    if w is None:
        squares = np.einsum("ij,ij->j", part, part)
    else:
        squares = np.einsum("i,ij,ij->j", w, part, part)
    mean += rest
    rest *= rest
    rest *= count
    squares -= rest
    return mean, np.maximum(squares, 0.0, out=squares)


def sparse_class_sums(
    block: Any, codes: IntArray, n_classes: int, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same for a COO matrix without duplicate entries, which stays sparse.

    Parameters
    ----------
    block : sparse matrix of shape (n_samples, n_features)
        In COO format.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    n_classes : int
        Number of classes.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    """
    shape = n_classes, block.shape[1]
    counts = np.bincount(codes, weights=weight, minlength=n_classes).astype(float)
    cell = codes[block.row] * shape[1] + block.col
    value = block.data.astype(np.float64)
    w = weight[block.row]
    known = np.where(counts > 0, counts, 1.0)[:, None]

    def per_cell(x: FloatArray) -> FloatArray:
        sums = np.bincount(cell, weights=x, minlength=shape[0] * shape[1])
        return sums.astype(np.float64, copy=False).reshape(shape)

    means = per_cell(w * value)
    means /= known
    value -= means.ravel()[cell]
    squares = per_cell(w * value * value)
    # Entries that are not stored are zeros: each lies `mean` away from the mean.
    absent = counts[:, None] - per_cell(w)
    np.maximum(absent, 0.0, out=absent)
    absent *= means
    # The residuals sum to the rounding error of the mean: put it back.
    rest = per_cell(w * value)
    rest -= absent
    absent *= means
    squares += absent
    rest /= known
    means += rest
    rest *= rest
    rest *= counts[:, None]
    squares -= rest
    np.maximum(squares, 0.0, out=squares)
    return counts, means, squares
