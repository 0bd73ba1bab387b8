"""A sparse covariance: its inverse, and what makes it positive definite.

A thresholded matrix may not be positive definite, all the less with more features than
samples. In units of the standard deviations the identity is then added as often as it
takes for the smallest eigenvalue to be `LEAST_EIGENVALUE`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from ebda.sizes import sizes
from ebda.typing import FloatArray

# Smallest eigenvalue, in units of the standard deviations.
LEAST_EIGENVALUE = 0.1
# What conjugate gradients leave, as a part of the right side.
PRECISE = 1e-9
_SOLVER_STEPS = 10_000
_EIGENVALUE_TOLERANCE = 3e-4
# Share of nonzero entries from which a matrix of moderate size is worked on as dense.
_FULL = 0.1


@dataclass(frozen=True, eq=False)
class SparseCovariance:
    """A thresholded covariance in units of the standard deviations.

    Parameters
    ----------
    sd : ndarray of shape (n_features,)
        Standard deviations.
    connected : ndarray of int of shape (n_connected,)
        Features with any covariance.
    correlation : sparse array of shape (n_connected, n_connected)
        Of these, with ones on the diagonal and `lift` not added yet.
    lift : float
        How often the identity is added.
    n_pairs : int
        Number of pairs of features with a covariance.
    """

    sd: FloatArray
    connected: npt.NDArray[np.intp]
    correlation: Any
    lift: float
    n_pairs: int

    def solve(self, rows: FloatArray, tolerance: float = PRECISE) -> FloatArray:
        """The inverse times each row.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Rows.
        tolerance : float
            Length of what the solution leaves, as a part of that of the row, where it
            is found by conjugate gradients.
        """
        scaled = rows / self.sd
        solved = scaled / (1 + self.lift)
        if self.n_pairs:
            part = scaled[:, self.connected]
            solved[:, self.connected] = _solve(
                self.correlation, self.lift, part, tolerance
            )
        product: FloatArray = solved / self.sd
        return product


def from_entries(
    sd: FloatArray,
    row: npt.NDArray[np.int32],
    column: npt.NDArray[np.int32],
    covariance: FloatArray,
) -> SparseCovariance:
    """A sparse covariance from its entries above the diagonal.

    Parameters
    ----------
    sd : ndarray of shape (n_features,)
        Standard deviations.
    row, column : ndarray of int of shape (n_pairs,)
        Pairs of features with a covariance.
    covariance : ndarray of shape (n_pairs,)
        Their covariances.
    """
    has_any = np.zeros(len(sd), dtype=bool)
    has_any[row] = has_any[column] = True
    connected = has_any.nonzero()[0]
    place = has_any.cumsum(dtype=np.int32) - np.int32(1)
    upper = sparse.coo_array(
        (covariance / (sd[row] * sd[column]), (place[row], place[column])),
        shape=(len(connected), len(connected)),
    )
    correlation = (upper + upper.T + sparse.eye_array(len(connected))).tocsr()
    return SparseCovariance(sd, connected, correlation, _lift(correlation), len(row))


def _lift(correlation: Any) -> float:
    """How often the identity is to be added for the least eigenvalue to be reached."""
    q = correlation.shape[0]
    if q == 0:
        return 0.0
    matrix = _dense_if_full(correlation)
    if isinstance(matrix, np.ndarray):
        shifted = matrix - LEAST_EIGENVALUE * np.eye(q)
        with suppress(linalg.LinAlgError):
            linalg.cholesky(shifted, overwrite_a=True, check_finite=False)
            return 0.0
    if q <= sizes.dense_features:
        least = linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0]
    else:
        # Raised by 1, for the tolerance is relative; the start must not depend on the
        # order of the features.
        ones = np.ones(q)
        raised = LinearOperator((q, q), matvec=lambda v: matrix @ v + v, dtype=float)
        least = (
            -1
            + eigsh(
                raised,
                k=1,
                which="SA",
                v0=ones,
                tol=_EIGENVALUE_TOLERANCE,
                return_eigenvectors=False,
            )[0]
        )
    return max(0.0, float(LEAST_EIGENVALUE - least))


def _dense_if_full(correlation: Any) -> Any:
    """The matrix as an array where that is small, or not large and mostly nonzero."""
    q = correlation.shape[0]
    full = correlation.nnz > _FULL * q**2 and q <= 4 * sizes.dense_features
    return correlation.toarray() if full or q <= sizes.dense_features else correlation


def _solve(
    correlation: Any, lift: float, rows: FloatArray, tolerance: float
) -> FloatArray:
    """The inverse of a positive definite matrix times each row."""
    matrix = _dense_if_full(correlation)
    if isinstance(matrix, np.ndarray):
        np.fill_diagonal(matrix, 1 + lift)
        factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        dense: FloatArray = linalg.cho_solve(factor, rows.T, check_finite=False).T
        return dense
    lifted = matrix + lift * sparse.eye_array(len(rows.T))
    return _conjugate_gradients(lifted, rows, tolerance)


def _conjugate_gradients(matrix: Any, rows: FloatArray, tolerance: float) -> FloatArray:
    """The inverse times each row, for all rows at once.

    SciPy's does one at a time, and reads the matrix as often as there are rows.
    """
    residual = rows.T.copy()
    found, direction = np.zeros(residual.shape), residual.copy()
    square = np.einsum("ij,ij->j", residual, residual)
    enough = tolerance**2 * square
    for _ in range(_SOLVER_STEPS):
        left = np.flatnonzero(square > enough)
        if not left.size:
            return found.T
        along = direction[:, left]
        image = matrix @ along
        curvature = np.einsum("ij,ij->j", along, image)
        if not (curvature > 0).all():
            break
        step = square[left] / curvature
        found[:, left] += step * along
        residual[:, left] -= step * image
        new = np.einsum("ij,ij->j", residual[:, left], residual[:, left])
        direction[:, left] = residual[:, left] + new / square[left] * along
        square[left] = new
    raise ArithmeticError(
        "the thresholded covariance could not be inverted by conjugate gradients; "
        "choose a larger threshold"
    )
