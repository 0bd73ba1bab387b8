"""Sparse covariances: entries below a threshold are zero.

With residuals A about the class means and f degrees of freedom, ``S = A' A / f`` and

    T_ij = s(S_ij, M w_ij sqrt(log p / n)) for i != j,    T_ii = S_ii,

where s keeps what exceeds the threshold (hard: Bickel and Levina 2008) or what is left
beyond it (soft), and w_ij is 1, or the root of the estimated variance of the summands
of S_ij (adaptive: Cai and Liu 2011, equation 4)

    w_ij^2 = sum_k (A_ki A_kj - S_ij)^2 / n.

Products of blocks of features are formed and forgotten; what is kept is sparse.

A thresholded matrix may not be positive definite, all the less with more features than
samples. In units of the standard deviations the identity is then added as often as it
takes for the smallest eigenvalue to be `LEAST_EIGENVALUE`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from ebda.kernels.correlations import above_diagonal, row_blocks
from ebda.sizes import sizes
from ebda.typing import FloatArray

# Smallest eigenvalue, in units of the standard deviations.
LEAST_EIGENVALUE = 0.1
# The constants M that thresholds are chosen from: at 4 little is left.
CONSTANTS = tuple(np.linspace(0, 4, 41).round(1).tolist())
_SOLVER_TOLERANCE = 1e-9
_SOLVER_STEPS = 10_000
_EIGENVALUE_TOLERANCE = 3e-4
# Share of nonzero entries from which a matrix of moderate size is worked on as dense.
_FULL = 0.1


@dataclass(frozen=True)
class Threshold:
    """How covariances are thresholded.

    Parameters
    ----------
    soft : bool
        Whether what is kept is moved towards zero.
    adaptive : bool
        Whether each covariance has a threshold of its own.
    """

    soft: bool = False
    adaptive: bool = False

    def blocks(self, A: FloatArray, df: float) -> Iterator[Block]:
        """Covariances of all pairs of features, some rows of the matrix at a time.

        Parameters
        ----------
        A : ndarray of shape (n_samples, n_features)
            Residuals.
        df : float
            Degrees of freedom.
        """
        n, p = A.shape
        squares = A**2 if self.adaptive else None
        for rows in row_blocks(p):
            start, stop = rows.start, rows.stop
            covariance = A[:, start:stop].T @ A[:, start:] / df
            unit = np.ones((1, 1))
            if squares is not None:
                second = squares[:, start:stop].T @ squares[:, start:] / n
                spread = second - (2 * df / n - 1) * covariance**2
                unit = np.sqrt(np.maximum(spread, 0))
            yield Block(start, covariance, unit)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a covariance matrix, from the diagonal on.

    Parameters
    ----------
    start : int
        The first row, and the first column.
    covariance : ndarray of shape (n_rows, n_columns)
        Covariances.
    unit : ndarray of shape (n_rows, n_columns) or (1, 1)
        w_ij.
    """

    start: int
    covariance: FloatArray
    unit: FloatArray

    @property
    def above(self) -> npt.NDArray[np.bool_]:
        """Places above the diagonal."""
        return above_diagonal(self.covariance.shape)


def rate(n_features: int, n_samples: float) -> float:
    """``sqrt(log p / n)``.

    >>> round(rate(1000, 100), 4)
    0.2628
    """
    return float(np.sqrt(np.log(max(n_features, 2)) / n_samples))


def split_risks(
    A1: FloatArray,
    df1: float,
    A2: FloatArray,
    df2: float,
    threshold: Threshold,
    steps: FloatArray,
) -> FloatArray:
    """Squared Frobenius distance of one thresholded half to the other as it is.

    Up to a constant, and of the entries above the diagonal (Bickel and Levina 2008,
    section 3). ``|s(a) - b|^2 - b^2`` is nonzero for the entries that are kept only,
    and a sum over these of powers of the threshold.

    Parameters
    ----------
    A1, A2 : ndarray of shape (n_samples, n_features)
        Residuals of either part.
    df1, df2 : float
        Their degrees of freedom.
    threshold : Threshold
        How covariances are thresholded.
    steps : ndarray of shape (n_steps,)
        Thresholds to compare, ascending, in units of w_ij.

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    sums = np.zeros((3, len(steps)))
    # Blocks of the same size.
    for first, second in zip(
        threshold.blocks(A1, df1), Threshold().blocks(A2, df2), strict=True
    ):
        above = first.above
        a, b = first.covariance[above], second.covariance[above]
        unit = np.broadcast_to(first.unit, above.shape)[above]
        terms = [a**2 - 2 * a * b]
        if threshold.soft:
            terms += [-2 * unit * (np.abs(a) - np.sign(a) * b), unit**2]
        place = n_exceeded(np.abs(a), unit, steps)
        for total, term in zip(sums, terms, strict=False):
            counted = np.bincount(place, weights=term, minlength=len(steps) + 1)
            total += counted[::-1].cumsum()[::-1][1:]
    risks: FloatArray = sums[0] + steps * sums[1] + steps**2 * sums[2]
    return risks


def n_exceeded(
    size: FloatArray, unit: FloatArray, steps: FloatArray
) -> npt.NDArray[np.intp]:
    """How many of the thresholds each value exceeds.

    >>> n_exceeded(np.array([0.5, 3.0]), np.ones(1), np.array([0.0, 1.0, 2.0]))
    array([1, 3])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(size > 0, size / unit, 0.0)
    place: npt.NDArray[np.intp] = np.searchsorted(steps, ratio, side="left")
    return place


def count_pairs(
    A: FloatArray, df: float, threshold: Threshold, steps: FloatArray
) -> npt.NDArray[np.intp]:
    """Number of pairs of features that each threshold keeps."""
    kept = np.zeros(len(steps) + 1, dtype=np.intp)
    for block in threshold.blocks(A, df):
        place = n_exceeded(np.abs(block.covariance), block.unit, steps)
        kept += np.bincount(place[block.above], minlength=len(kept))
    counts: npt.NDArray[np.intp] = kept[::-1].cumsum()[::-1][1:]
    return counts


def feasible(
    A: FloatArray, df: float, threshold: Threshold, constants: FloatArray, step: float
) -> FloatArray:
    """The constants M that keep no more pairs than memory should hold.

    Parameters
    ----------
    A, df, threshold
        As in `sparse_covariance`.
    constants : ndarray of shape (n_constants,)
        M, ascending.
    step : float
        ``sqrt(log p / n)``.
    """
    p = A.shape[1]
    if p * (p - 1) // 2 <= sizes.covariance_pairs:
        return constants
    kept = count_pairs(A, df, threshold, constants * step)
    few = kept <= sizes.covariance_pairs
    if not few.any():
        raise ValueError(
            f"the largest constant, {constants[-1]:g}, keeps {kept[-1]} pairs of "
            f"features, and {sizes.covariance_pairs} are the limit; allow a larger one"
        )
    found: FloatArray = constants[few]
    return found


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

    def solve(self, rows: FloatArray) -> FloatArray:
        """The inverse times each row."""
        scaled = rows / self.sd
        solved = scaled / (1 + self.lift)
        if self.n_pairs:
            part = scaled[:, self.connected]
            solved[:, self.connected] = _solve(self.correlation, self.lift, part)
        product: FloatArray = solved / self.sd
        return product


def sparse_covariance(
    A: FloatArray, df: float, threshold: Threshold, step: float
) -> SparseCovariance:
    """Threshold the covariance of residuals.

    Parameters
    ----------
    A : ndarray of shape (n_samples, n_features)
        Residuals; every feature varies.
    df : float
        Degrees of freedom.
    threshold : Threshold
        How covariances are thresholded.
    step : float
        ``M sqrt(log p / n)``.
    """
    sd = np.sqrt(np.einsum("ij,ij->j", A, A) / df)
    rows, columns, values = [], [], []
    for block in threshold.blocks(A, df):
        limit = step * block.unit
        kept = (np.abs(block.covariance) > limit) & block.above
        row, column = kept.nonzero()
        value = block.covariance[kept]
        if threshold.soft:
            value -= np.sign(value) * np.broadcast_to(limit, kept.shape)[kept]
        row, column = row + block.start, column + block.start
        rows.append(row.astype(np.int32))
        columns.append(column.astype(np.int32))
        values.append(value / (sd[row] * sd[column]))
    row, column = np.concatenate(rows), np.concatenate(columns)
    has_any = np.zeros(A.shape[1], dtype=bool)
    has_any[row] = has_any[column] = True
    connected = has_any.nonzero()[0]
    place = has_any.cumsum(dtype=np.int32) - np.int32(1)
    upper = sparse.coo_array(
        (np.concatenate(values), (place[row], place[column])),
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


def _solve(correlation: Any, lift: float, rows: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix times each row."""
    matrix = _dense_if_full(correlation)
    if isinstance(matrix, np.ndarray):
        np.fill_diagonal(matrix, 1 + lift)
        factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        dense: FloatArray = linalg.cho_solve(factor, rows.T, check_finite=False).T
        return dense
    return _conjugate_gradients(matrix + lift * sparse.eye_array(len(rows.T)), rows)


def _conjugate_gradients(matrix: Any, rows: FloatArray) -> FloatArray:
    """The inverse times each row, for all rows at once.

    SciPy's does one at a time, and reads the matrix as often as there are rows.
    """
    residual = rows.T.copy()
    found, direction = np.zeros(residual.shape), residual.copy()
    square = np.einsum("ij,ij->j", residual, residual)
    enough = _SOLVER_TOLERANCE**2 * square
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
