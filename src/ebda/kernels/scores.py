"""Scores of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ebda.kernels.threads import no_fork
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray


def incomplete(scores: FloatArray) -> IntArray:
    """Rows whose scores are NaN or infinite, as those of NaN are."""
    return np.flatnonzero(~np.isfinite(scores).all(axis=1))


def gap_sums(X: Any, values: FloatArray, gaps: FloatArray) -> FloatArray:
    """Products with the values that are there, and with where they are not.

    Parameters
    ----------
    X : ndarray of any real dtype, or sparse matrix, of shape (n_samples, n_features)
        Values; NaN where one is missing.
    values : ndarray of shape (n_rows, n_features)
        What X is multiplied with, with zero in place of NaN.
    gaps : ndarray of shape (n_more_rows, n_features)
        What is added up over the features that are NaN.

    Returns
    -------
    ndarray of shape (n_samples, n_rows + n_more_rows)

    >>> X = np.array([[1.0, np.nan]])
    >>> gap_sums(X, np.full((1, 2), 2.0), np.array([[3.0, 4.0]]))
    array([[2., 4.]])
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if sparse.issparse(X):
            known, missing = X.astype(np.float64), X.astype(np.float64)
            nan = np.isnan(known.data)
            known.data = np.where(nan, 0.0, known.data)
            missing.data = nan.astype(np.float64)
            return np.hstack([known @ values.T, missing @ gaps.T])
        n, p = X.shape
        out = np.empty((n, len(values) + len(gaps)))
        rows = max(1, sizes.score_elements // max(p, 1))
        for start in range(0, n, rows):
            block = X[start : start + rows].astype(np.float64)
            nan = np.isnan(block)
            block[nan] = 0.0
            some = out[start : start + rows]
            with no_fork():
                some[:, : len(values)] = block @ values.T
                some[:, len(values) :] = nan.astype(np.float64) @ gaps.T
        return out


def scores(X: Any, coef: FloatArray, intercept: FloatArray | float = 0.0) -> FloatArray:
    """``X @ coef.T + intercept`` in float64; NaN and infinity give no warning.

    Parameters
    ----------
    X : ndarray of any real dtype, or sparse matrix, of shape (n_samples, n_features)
        Converted to float64 a few rows at a time.
    coef : ndarray of shape (n_contrasts, n_features)
        Coefficients.
    intercept : ndarray of shape (n_contrasts,) or float
        Intercepts.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if sparse.issparse(X):
            return np.asarray(X @ coef.T) + intercept
        n, p = X.shape
        out = np.empty((n, coef.shape[0]))
        rows = max(1, sizes.score_elements // max(p, 1))
        for start in range(0, n, rows):
            block = X[start : start + rows].astype(np.float64, copy=False)
            with no_fork():
                out[start : start + rows] = block @ coef.T
        out += intercept
        return out
