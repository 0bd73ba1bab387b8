"""Means and centred sums of squares of every feature by class.

NaN shows in the means, so that no pass over X is made to look for it. Where there are
missing values the features that have them are summed again, over the values that are
there.
"""

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
# A sum of weights this small, relative to that of the class, is rounding.
_NEGLIGIBLE = 1e-12


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


def missing_class_sums(
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    weight: FloatArray | None,
    columns: IntArray,
    totals: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts, means and centred sums of squares of the values that are not NaN.

    Parameters
    ----------
    X, rows, bounds, weight
        As in `class_sums`.
    columns : ndarray of int
        The features to sum.
    totals : ndarray of shape (n_classes,)
        Counts of the samples.

    Returns
    -------
    counts : ndarray of shape (n_classes, n_columns)
        Number of values, or the sum of their weights.
    means, squares : ndarray of shape (n_classes, n_columns)
        Zero where there are no values.
    """
    shape = len(bounds) - 1, len(columns)
    counts, means, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    if weight is None and compiled.suits_matrix(X):
        loop = compiled.compile_loop(loops.missing_class_sums)
        width = max(64, _LOOP_TILE // max(len(rows), 1))

        def sum_columns(cols: slice) -> None:
            out = counts, means, squares
            loop(X, rows, bounds, columns, width, *out, cols.start, cols.stop)

        over_blocks(sum_columns, len(columns), releases_lock=True)
        return counts, means, squares

    def sum_tile(cols: slice) -> None:
        tile = X[np.ix_(rows, columns[cols])].astype(np.float64, order="C", copy=False)
        there = ~np.isnan(tile)
        tile[~there] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for k in np.flatnonzero(np.diff(bounds)):
                own = slice(bounds[k], bounds[k + 1])
                w = np.ones(own.stop - own.start) if weight is None else weight[own]
                sums = _sums_of_values(tile[own], there[own], w, totals[k])
                counts[k, cols], means[k, cols], squares[k, cols] = sums

    tile_width = max(1, sizes.tile_elements // max(len(rows), 1))
    over_blocks(sum_tile, len(columns), tile_width, releases_lock=True)
    return counts, means, squares


def _sums_of_values(
    part: FloatArray, there: npt.NDArray[np.bool_], w: FloatArray, total: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of the columns of `part`, which is overwritten, where `there` is true."""
    # From the sum of all weights, which it is to the bit where nothing is missing.
    count = total - w @ ~there
    count[~(w @ there > 0)] = 0.0
    known = np.where(count > 0, count, 1.0)
    mean = (w @ part) / known
    part -= mean
    part *= there
    rest = (w @ part) / known
    squares = np.einsum("i,ij,ij->j", w, part, part) - rest * rest * count
    mean += rest
    return count, mean, np.maximum(squares, 0.0, out=squares)


def sparse_class_sums(
    block: Any, codes: IntArray, n_classes: int, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    """The same for a COO matrix without duplicate entries, which stays sparse.

    Also returns the counts of the values of each feature, of shape (n_classes,
    n_features), or None if no stored value is NaN.

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

    def per_cell(x: FloatArray) -> FloatArray:
        sums = np.bincount(cell, weights=x, minlength=shape[0] * shape[1])
        return sums.astype(np.float64, copy=False).reshape(shape)

    observed, n = None, counts[:, None]
    gone = np.isnan(value)
    if gone.any():
        n = observed = n - per_cell(w * gone)
        cell, value, w = cell[~gone], value[~gone], w[~gone]
        # What is left of fractions that were subtracted is no value.
        n[n < _NEGLIGIBLE * counts[:, None]] = 0.0
    known = np.where(n > 0, n, 1.0)

    means = per_cell(w * value)
    means /= known
    value -= means.ravel()[cell]
    squares = per_cell(w * value * value)
    # Entries that are not stored are zeros: each lies `mean` away from the mean.
    absent = n - per_cell(w)
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
    rest *= n
    squares -= rest
    np.maximum(squares, 0.0, out=squares)
    return counts, means, squares, observed
