"""Scores of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ebda.kernels.threads import no_fork
from ebda.sizes import sizes
from ebda.typing import FloatArray


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
