"""Common factors within the classes, without choosing their number.

The residuals within the classes, each feature over its standard deviation, have the
correlation matrix ``L L' + Psi`` with a few columns in L: batches, cell types, the
general state of a sample. With p features and f degrees of freedom the eigenvalues of
the sample correlation are spread over the bulk that ends at ``(1 + sqrt(gamma))^2``,
``gamma = p / f``, even where there are no factors. In the spiked model (Baik and
Silverstein 2006, Paul 2007) an eigenvalue lambda beyond it comes from a factor of
strength l with

    lambda = (1 + l)(1 + gamma / l),

and the sample eigenvector has the squared cosine

    c^2 = (1 - gamma / l^2) / (1 + gamma / l)

with the factor's direction. The loading is the eigenvector times ``sqrt(l c^2)``: as
strong as the factor, as far as its direction is known. With that shrinkage the number
of factors need not be chosen. A factor counts if its eigenvalue is larger than what
chance reaches once in a hundred data sets (the distribution of Tracy and Widom).

Everything comes from the n x n Gram matrix of the residuals: O(n^2 p), and never a
p x p matrix. It is a second pass over the data, not a sketch, because the samples that
the method is for are few, and because a sketch of the features would blur the small
eigenvectors, which matter when p is large.

The contrasts are ``z = eta + L g + Psi^1/2 noise``: the factors differ between the
class means by g, most of it by chance (g would have unit variance if the classes did
not differ), some of it because the classes do differ. g is estimated by generalised
least squares. The rest, over its standard deviation, goes to the prior. The factor part
is shrunk by ``1 - k / |g|^2`` (empirical Bayes for k normal means), and none of it is
kept where it is no larger than chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.cached import cached_property
from ebda.covariance import low_rank
from ebda.covariance.base import Covariance, CovarianceEstimator, Decorrelated
from ebda.covariance.diagonal import Diagonal
from ebda.covariance.residuals import Residuals
from ebda.covariance.spectrum import Spectrum
from ebda.covariance.summary import Summary
from ebda.kernels.threads import no_fork
from ebda.typing import FloatArray

# The 99 % point of the distribution of Tracy and Widom of order one.
_TRACY_WIDOM_99 = 2.0234
# No feature is taken to be explained beyond this: its weight grows 20-fold at most.
_LEAST_SPECIFIC = 0.05


@dataclass(frozen=True, eq=False)
class Factors(Covariance):
    """``R = L L' + Psi``: common factors, and an independent rest.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_factors)
        L, in units of the standard deviations.
    specific : ndarray of shape (n_features,)
        Psi: what the factors leave of the unit variance of each feature.
    overlap : float
        Correlations of the contrasts over those of the values: less than 1 where values
        are missing (:mod:`ebda.covariance.summary`).
    """

    loadings: FloatArray
    specific: FloatArray
    overlap: float = 1.0
    is_diagonal = False

    @property
    def n_factors(self) -> int:
        return int(self.loadings.shape[1])

    @property
    def low_rank(self) -> tuple[FloatArray, FloatArray]:
        return self.loadings, self.specific

    @cached_property
    def of_contrasts(self) -> tuple[FloatArray, FloatArray]:
        """Loadings and specific variances of the noise of the contrasts."""
        if self.overlap == 1:
            return self.loadings, self.specific
        loadings = np.sqrt(self.overlap) * self.loadings
        return loadings, _specific(loadings)

    @no_fork()
    def decorrelate(self, z: FloatArray) -> Decorrelated:
        (L, psi), k = self.of_contrasts, self.n_factors
        weighted = L / psi[:, None]
        inner = np.linalg.inv(L.T @ weighted)
        g = (z @ weighted) @ inner
        rest = (z - g @ L.T) / np.sqrt(psi)
        with np.errstate(divide="ignore"):
            kept = np.maximum(0.0, 1 - k / np.einsum("ck,ck->c", g, g))
        # d(kept g) / dg has the trace k kept + 2 k / |g|^2, where any is kept.
        common_df = kept * k + np.where(kept > 0, 2 * (1 - kept), 0.0)
        leverage = np.einsum("jk,jk->j", L @ inner, weighted)
        return Decorrelated(rest, g * kept[:, None], 1 - leverage, common_df)

    @no_fork()
    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        assert values.common is not None
        loadings, specific = self.of_contrasts
        eta: FloatArray = values.common @ loadings.T
        eta += e * np.sqrt(specific)
        return eta

    def solve(self, rows: FloatArray) -> FloatArray:
        return low_rank.solve(self.loadings, self.specific, rows)


def largest_by_chance(df: float, p: int) -> float:
    """99 % point of the largest eigenvalue without factors (Johnstone and Ma 2012).

    >>> float(round(largest_by_chance(48, 10_000) / (1 + np.sqrt(10_000 / 48)) ** 2, 3))
    1.009
    """
    a, b = np.sqrt(max(df - 0.5, 0.5)), np.sqrt(max(p - 0.5, 0.5))
    centre, scale = (a + b) ** 2, (a + b) * (1 / a + 1 / b) ** (1 / 3)
    return float((centre + _TRACY_WIDOM_99 * scale) / df)


def spike_strength(
    eigenvalue: FloatArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """l and c^2 of sample eigenvalues beyond the bulk.

    >>> l, c2 = spike_strength(np.array([(1 + 50.0) * (1 + 80 / 50.0)]), 80.0)
    >>> l, c2.round(3)
    (array([50.]), array([0.372]))
    """
    b = eigenvalue - 1 - gamma
    strength = (b + np.sqrt(np.maximum(b * b - 4 * gamma, 0.0))) / 2
    cosine2 = (1 - gamma / strength**2) / (1 + gamma / strength)
    return strength, np.maximum(cosine2, 0.0)


def _specific(loadings: FloatArray) -> FloatArray:
    """What the factors leave of the unit variance of each feature, or the least."""
    specific: FloatArray = 1 - np.einsum("jk,jk->j", loadings, loadings)
    return np.maximum(specific, _LEAST_SPECIFIC, out=specific)


def common_factors(
    residuals: Residuals, spectrum: Spectrum, p: int, overlap: float = 1.0
) -> Factors | None:
    """The factors of the residuals, or None if there are none.

    Parameters
    ----------
    residuals : Residuals
        Of the samples to estimate them from.
    spectrum : Spectrum
        Their eigenvalues.
    p : int
        Number of features that are not constant.
    overlap : float
        How much smaller correlations come out for missing values.
    """
    df = spectrum.df
    n_factors = np.count_nonzero(spectrum.eigenvalue > largest_by_chance(df, p))
    if not n_factors:
        return None
    eigenvalue = spectrum.eigenvalue[:n_factors]
    strength, cosine2 = spike_strength(eigenvalue, p / df)
    size = np.sqrt(strength * cosine2 / (eigenvalue * df))
    loadings = residuals.expand(spectrum.combinations(np.diag(size))).T
    if overlap < 1:
        loadings /= np.sqrt(overlap)
        # No feature can be explained beyond its variance.
        most = np.sqrt(1 - _LEAST_SPECIFIC)
        length = np.linalg.norm(loadings, axis=1, keepdims=True)
        loadings *= most / np.maximum(length, most)
    return Factors(loadings, _specific(loadings), overlap)


def factors_of(data: Summary) -> Factors | None:
    """Common factors of the data; None where there are none."""
    spectrum = data.spectrum
    if spectrum is None:
        return None
    return common_factors(data.residuals, spectrum, data.n_varying, data.overlap)


def factor(data: Summary) -> Covariance:
    """Common factors, or the diagonal where there are none."""
    return factors_of(data) or Diagonal()


FACTOR = CovarianceEstimator(
    "factor",
    "common factors taken out",
    factor,
    needs_samples=True,
    compared=("mean", "sparse", "top1000"),
    beside_others=("top1000",),
    tells_missing=True,
)
