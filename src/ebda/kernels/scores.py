"""Scores of samples, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ebda.sizes import sizes
from ebda.typing import FloatArray


def scores(X: Any, coef: FloatArray, intercept: FloatArray) -> FloatArray:
    """``X @ coef.T + intercept`` in float64, block by block.

    X may be dense of any real dtype, or sparse; it is never converted as a whole.
    """
    if sparse.issparse(X):
        return np.asarray(X @ coef.T) + intercept
    n, p = X.shape
    out = np.empty((n, coef.shape[0]))
    rows = max(1, sizes.score_elements // max(p, 1))
    for start in range(0, n, rows):
        block = X[start : start + rows].astype(np.float64, copy=False)
        out[start : start + rows] = block @ coef.T
    out += intercept
    return out
