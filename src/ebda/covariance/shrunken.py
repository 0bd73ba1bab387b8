"""The sample correlation, shrunken to the identity: many weak directions together.

Common factors stand out of the bulk of the eigenvalues. Below its edge no single
direction can be told from chance, and yet hundreds of weak ones together may matter as
much. The estimate

    R = (1 - a) C + a I,    C = R_w' R_w / f,

with R_w the residuals within the classes in units of the moderated standard deviations
and f their degrees of freedom, takes all of them by the same amount. Ledoit and Wolf's
(2004) amount minimises the expected distance from the true correlation:

    a = b / d,    d = |C|^2 - p m^2,    b = sum_i |r_i|^4 / f^2 - |C|^2 / f,

``|C|^2`` the sum of the squares, m the mean of the diagonal. In the span of the
residuals R has the eigenvalues ``(1 - a) l + a`` of the eigenvalues l of C, outside of
it a; so any power of it costs two products with the residuals, and nothing of size
p x p.

Contrasts are decorrelated by the symmetric root, ``R^-1/2 z``: of all ways to make
noise independent it is the one that keeps each value closest to its feature. These are
the correlation-adjusted t scores of Zuber and Strimmer (2009).

Where the samples show no more correlation than chance would, there is none. Under
independence, with variances d_j in the units in use, the squared correlations of all
pairs of features add up to

    |C|^2 - sum_j c_jj^2 = (m^2 p^2 - sum_j c_jj^2) / f,

on average, with the standard deviation ``2 sum_j d_j^2 / f``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.covariance.base import Covariance, CovarianceEstimator
from ebda.covariance.diagonal import Diagonal
from ebda.covariance.residuals import Residuals
from ebda.covariance.spectrum import Spectrum
from ebda.covariance.summary import Summary
from ebda.covariance.symmetric_root import SymmetricRoot
from ebda.typing import FloatArray

# Standard deviations that the squared correlations must be above those of chance.
_SIGNIFICANT = 3.0
# The amount is never smaller: with it the condition number is bounded.
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Shrunken(SymmetricRoot):
    """``R = (1 - amount) C + amount I``, C the sample correlation.

    Parameters
    ----------
    residuals : Residuals
        Of the samples that C is estimated from.
    spectrum : Spectrum
        Its eigenvalues.
    amount : float
        a, above 0 and at most 1.
    """

    residuals: Residuals
    spectrum: Spectrum
    amount: float

    def power(self, exponent: float, rows: FloatArray) -> FloatArray:
        a, spectrum = self.amount, self.spectrum
        outside = a**exponent
        within = ((1 - a) * spectrum.eigenvalue + a) ** exponent
        size = (within - outside) / (spectrum.df * spectrum.eigenvalue)
        along = spectrum.coordinates(self.residuals.project(rows)) * size
        out = self.residuals.expand(spectrum.combinations(along))
        out += outside * rows
        return out


def ledoit_wolf(spectrum: Spectrum, weight: FloatArray, p: int) -> float:
    """The amount of shrinkage, between 0 and 1.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenvalues of the sample correlation.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    p : int
        Number of features that vary.
    """
    value, df = spectrum.eigenvalue, spectrum.df
    square = float(value @ value)
    distance = square - value.sum() ** 2 / p
    chance = float(weight @ spectrum.squares**2) / df**2 - square / df
    if not distance > 0:
        return 1.0
    return float(np.clip(chance / distance, _LEAST, 1.0))


def excess(spectrum: Spectrum, squares: float, share: float = 1.0) -> float:
    """Squared correlations beyond those of chance, in its standard deviations.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenvalues of the sample correlation.
    squares : float
        Sum of the squared variances of the features.
    share : float
        Share of the values that are there.
    """
    value, df = spectrum.eigenvalue, spectrum.df
    own = squares * (1 + 2 / (df * share))  # expectation of the squared diagonal
    pairs = float(value @ value) - own
    by_chance = (float(value.sum()) ** 2 - own) / df
    return (pairs - by_chance) * df / (2 * squares)


def shrunken(data: Summary) -> Covariance:
    """The correlation shrunken to the identity, or the identity by itself."""
    spectrum = data.spectrum
    if spectrum is None:
        return Diagonal()
    share = 1 / float(np.mean(1 / data.share))
    if excess(spectrum, data.sum_of_squared_variances, share) <= _SIGNIFICANT:
        return Diagonal()
    amount = ledoit_wolf(spectrum, data.residuals.weight, data.n_varying)
    # Correlations that are too small for missing values stay so: those of the contrasts
    # are, and new samples lack values too. With the overlap put right, rules were worse
    # on such samples, and no better on complete ones.
    return Shrunken(data.residuals, spectrum, amount)


SHRUNKEN = CovarianceEstimator(
    "shrunken",
    "shrunken covariance",
    shrunken,
    needs_samples=True,
    compared=("mean", "top10", "top100"),
    is_usual=True,
)
