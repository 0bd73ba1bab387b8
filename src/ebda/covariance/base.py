"""The within-class covariance: what the rule divides by, and what z is freed from.

A covariance is a small object that knows two things. ``decorrelate`` turns the
normalised contrasts into values whose noise is independent from feature to feature
with unit variance, which is what the prior is fitted to, and says how an estimate of
their means goes back. ``solve`` multiplies rows of differences by the inverse.
`COVARIANCES` is the registry that the `covariance` parameter of the classifier names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ebda.covariance.autoregressive import (
    neighbour_correlation,
    transposed,
    unwhiten,
    whiten,
)
from ebda.covariance.factors import Factors, common_factors
from ebda.data.samples import Samples
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts
from ebda.typing import FloatArray

# With less correlation between neighbours their order is not used: in the designs of
# the paper's Tables 3 to 5 whitening halves the error at 0.9 and doubles it at 0.7.
_LEAST_NEIGHBOUR_CORRELATION = 0.8


@dataclass(frozen=True, eq=False)
class Decorrelated:
    """Contrasts with independent noise, and the way back.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        Values with unit noise; their means are the e that the prior shrinks.
    common : ndarray of shape (n_contrasts, n_factors), optional
        Differences of common factors, as far as they are kept.
    share : ndarray of shape (n_features,) or float
        How much of the derivative of an estimate e_j by its value is left in
        d eta_j / d z_j, once e has gone back.
    common_df : ndarray of shape (n_contrasts,) or float
        Part of the sum of d eta_j / d z_j that does not go through e.
    """

    z: FloatArray
    common: FloatArray | None = None
    share: FloatArray | float = 1.0
    common_df: FloatArray | float = 0.0

    def divergence(self, slope: FloatArray) -> FloatArray:
        """Sum over the features of d eta_j / d z_j, given d e_j / d z_j."""
        total: FloatArray = (slope * self.share).sum(axis=1) + self.common_df
        return total


class Covariance(Protocol):
    """A p x p matrix that is never formed."""

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        """Contrasts of unit variance with this correlation, made independent."""

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        """eta, from an estimate of the means of decorrelated values."""

    def solve(self, rows: FloatArray) -> FloatArray:
        """The inverse times each row; may overwrite `rows`."""


@dataclass(frozen=True, eq=False)
class Diagonal:
    """No correlation: the independence rule of Bickel and Levina."""

    variance: FloatArray

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(z)

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return e

    def solve(self, rows: FloatArray) -> FloatArray:
        rows /= self.variance
        return rows


@dataclass(frozen=True, eq=False)
class FactorCovariance:
    """Common factors and independent rest: ``S (L L' + Psi) S``, by Woodbury.

    The contrasts are ``z = eta + L g + Psi^1/2 noise``: the factors differ between
    the class means by g, most of it chance (g would have unit variance if the classes
    did not differ), some of it a real difference of the classes. g is estimated by
    generalised least squares. The rest, over its standard deviation, goes to the
    prior; the factor part is shrunken by ``1 - k / |g|^2`` (empirical Bayes for k
    normal means), and none of it is kept where it is no larger than chance.
    """

    variance: FloatArray
    factors: Factors

    @property
    def n_factors(self) -> int:
        return self.factors.n_factors

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        L, psi = self.factors.loadings, self.factors.specific
        weighted = L / psi[:, None]
        inner = np.linalg.inv(L.T @ weighted)
        g = (z @ weighted) @ inner
        unit = np.sqrt(psi)
        rest = (z - g @ L.T) / unit
        k = self.factors.n_factors
        with np.errstate(divide="ignore"):
            kept = np.maximum(0.0, 1 - k / np.einsum("ck,ck->c", g, g))
        # d(kept g) / dg has the trace k kept + 2 k / |g|^2, where any is kept.
        common_df = kept * k + np.where(kept > 0, 2 * (1 - kept), 0.0)
        leverage = np.einsum("jk,kl,jl->j", L, inner, weighted)
        return Decorrelated(rest, g * kept[:, None], 1 - leverage, common_df)

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        assert values.common is not None
        eta: FloatArray = values.common @ self.factors.loadings.T
        eta += e * np.sqrt(self.factors.specific)
        return eta

    def solve(self, rows: FloatArray) -> FloatArray:
        L, psi = self.factors.loadings, self.factors.specific
        scale = np.sqrt(self.variance)
        rows /= scale
        weighted = L / psi[:, None]
        inner = np.eye(L.shape[1]) + L.T @ weighted
        common = np.linalg.solve(inner, (rows @ weighted).T).T @ weighted.T
        rows /= psi
        rows -= common
        rows /= scale
        return rows


@dataclass(frozen=True, eq=False)
class NeighbourCovariance:
    """Features in an order: ``S R S`` with ``R_ij = rho^|i - j|``.

    W (:mod:`ebda.covariance.autoregressive`) makes the contrasts independent. Features that are
    constant are stepped over.
    """

    variance: FloatArray
    rho: float
    constant: npt.NDArray[np.bool_]

    def _along(
        self, rows: FloatArray, function: Callable[[FloatArray, float], FloatArray]
    ) -> FloatArray:
        out = np.zeros_like(rows)
        out[:, ~self.constant] = function(rows[:, ~self.constant], self.rho)
        return out

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(self._along(z, whiten))

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return self._along(e, unwhiten)

    def solve(self, rows: FloatArray) -> FloatArray:
        scale = np.sqrt(self.variance)
        rows /= scale
        rows = self._along(self._along(rows, whiten), transposed)
        rows /= scale
        return rows


def diagonal(
    moments: ClassMoments, contrasts: Contrasts, samples: Samples | None
) -> Covariance:
    """D, the diagonal of the estimated variances."""
    return Diagonal(contrasts.variance)


def factor(
    moments: ClassMoments, contrasts: Contrasts, samples: Samples | None
) -> Covariance:
    """Common factors, or the diagonal where there are none."""
    if samples is None:
        raise ValueError("covariance='factor' needs the samples, not moments alone")
    varying = int(np.count_nonzero(~contrasts.constant))
    factors = common_factors(samples, moments.means, contrasts.variance, varying)
    if factors is None:
        return Diagonal(contrasts.variance)
    return FactorCovariance(contrasts.variance, factors)


def neighbours(
    moments: ClassMoments, contrasts: Contrasts, samples: Samples | None
) -> Covariance:
    """Autoregression along the features, or the diagonal where they have no order.

    Whitening also takes apart what neighbours have in common in their means, and is
    worth it for a strong correlation only.
    """
    if samples is None:
        raise ValueError("covariance='neighbours' needs the samples, not moments alone")
    rho = neighbour_correlation(
        samples, moments.means, contrasts.variance, contrasts.constant
    )
    if rho < _LEAST_NEIGHBOUR_CORRELATION:
        return Diagonal(contrasts.variance)
    return NeighbourCovariance(contrasts.variance, rho, contrasts.constant)


Estimate = Callable[[ClassMoments, Contrasts, Samples | None], Covariance]
COVARIANCES: dict[str, Estimate] = {
    "diagonal": diagonal,
    "factor": factor,
    "neighbours": neighbours,
}
# Those that need to see the samples again.
NEEDS_SAMPLES = frozenset({"factor", "neighbours"})
