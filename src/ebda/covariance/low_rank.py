"""A diagonal plus a matrix of low rank: the covariance of a factor model.

``L L' + diag(psi)`` with k columns in L costs O(p k^2) where a dense p x p matrix would
cost O(p^3), and is never formed.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ebda.kernels.threads import no_fork
from ebda.typing import FloatArray


@no_fork()
def solve(loadings: FloatArray, psi: FloatArray, rows: FloatArray) -> FloatArray:
    """The inverse of ``L L' + diag(psi)`` times each row, by Woodbury's formula.

    Parameters
    ----------
    loadings : ndarray of shape (p, k)
        L.
    psi : ndarray of shape (p,)
        The diagonal, positive.
    rows : ndarray of shape (p,) or (n_rows, p)
        Right-hand sides; left as they are.

    Returns
    -------
    ndarray of the shape of `rows`

    Examples
    --------
    >>> solve(np.ones((3, 1)), np.ones(3), np.full(3, 4.0)).round(12)
    array([1., 1., 1.])
    """
    if not loadings.shape[1]:  # older versions of SciPy refuse empty matrices
        return rows / psi
    weighted = loadings / psi[:, None]
    inner = np.eye(loadings.shape[1]) + loadings.T @ weighted
    common = cho_solve(cho_factor(inner), (rows @ weighted).T).T
    result: FloatArray = rows / psi
    result -= common @ weighted.T
    return result
