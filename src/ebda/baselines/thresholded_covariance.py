"""Sparse covariances: entries below a threshold are zero.

With residuals A about the class means and f degrees of freedom, ``S = A' A / f`` and

    T_ij = s(S_ij, M w_ij sqrt(log p / n)) for i != j,    T_ii = S_ii,

where s keeps what exceeds the threshold (hard: Bickel and Levina 2008) or what is left
beyond it (soft), and w_ij is 1, or the root of the estimated variance of the summands
of S_ij (adaptive: Cai and Liu 2011, equation 4)

    w_ij^2 = sum_k (A_ki A_kj - S_ij)^2 / n.

Products of blocks of features are formed and forgotten; what is kept is sparse
(:mod:`ebda.baselines.kept_pairs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.kernels.correlations import above_diagonal, row_blocks
from ebda.typing import FloatArray

# The constants M that thresholds are chosen from: at 4 little is left.
CONSTANTS = tuple(np.linspace(0, 4, 41).round(1).tolist())


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
