"""Squared lengths of standardised samples, and their products with some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ebda.kernels.threads import no_fork
from ebda.sizes import sizes
from ebda.typing import FloatArray


def lengths(
    X: Any, centre: FloatArray, scale: FloatArray, rows: FloatArray
) -> FloatArray:
    """``[r' r, values, rows r]`` for each ``r = (x - centre) / scale``.

    `values` is the number of finite entries of r that are not left out; r is zero where
    a value is missing.

    Parameters
    ----------
    X : ndarray of any real dtype, or sparse matrix, of shape (n_samples, n_features)
        Converted to float64 a few rows at a time; sparse input is not densified.
    centre : ndarray of shape (n_features,)
        What is subtracted.
    scale : ndarray of shape (n_features,)
        What is divided by; infinite for features to leave out.
    rows : ndarray of shape (n_rows, n_features)
        What r is multiplied with.

    Returns
    -------
    ndarray of shape (n_samples, 2 + n_rows)

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> lengths(X, np.ones(2), np.array([1.0, 2.0]), np.array([[1.0, -1.0]]))
    array([[ 4.,  2., -2.],
           [ 8.,  2.,  0.]])
    """
    used = np.isfinite(scale)
    if sparse.issparse(X):
        return _sparse_lengths(X, centre, np.where(used, 1 / scale, 0.0), rows)
    n, p = X.shape
    out = np.empty((n, 2 + len(rows)))
    at_once = max(1, sizes.score_elements // max(p, 1))
    for start in range(0, n, at_once):
        r = X[start : start + at_once].astype(np.float64)
        r -= centre
        r /= scale
        part = out[start : start + at_once]
        missing = np.isnan(r)
        r[missing] = 0.0
        np.einsum("ij,ij->i", r, r, out=part[:, 0])
        part[:, 1] = used.sum() - missing @ used.astype(float)
        with no_fork():
            np.matmul(r, rows.T, out=part[:, 2:])
    return out


def _sparse_lengths(
    X: Any, centre: FloatArray, factor: FloatArray, rows: FloatArray
) -> FloatArray:
    """Those of a row of zeros, and what the stored values change."""
    at_zero = -centre * factor
    part = X.tocsr().astype(np.float64)
    part.sum_duplicates()
    # (x - c)^2 - c^2 = x (x - 2 c)
    squares = part.copy()
    columns = part.indices
    missing = part.copy()
    missing.data = np.isnan(part.data).astype(np.float64)
    # A missing value is the centre.
    part.data = np.where(np.isnan(part.data), centre[columns], part.data)
    squares.data = part.data.copy()
    squares.data *= (part.data - 2 * centre[columns]) * factor[columns] ** 2
    out = np.empty((X.shape[0], 2 + len(rows)))
    used = (factor != 0).astype(np.float64)
    out[:, 1] = used.sum() - missing @ used
    out[:, 0] = np.asarray(squares.sum(axis=1)).ravel() + at_zero @ at_zero
    out[:, 2:] = np.asarray(part @ (rows * factor).T) + rows @ at_zero
    return out
