"""Features in an order: correlation that falls off with the distance.

Points of a spectrum or probes along a chromosome are correlated with their neighbours.
The simplest model of that is an autoregression (:mod:`ebda.covariance.autoregressive`),
``R_ij = rho^|i - j|``, with rho estimated from the samples.

Effects of neighbours are alike, too: where an order means something to the noise it
often does to the signal. To take the correlation out of the contrasts takes apart what
neighbours have in common, and may leave less than it found. So the contrasts stay as
they are, and the prior of the effects is one along the order
(:mod:`ebda.priors.chain`), which knows the correlation of the noise. How far neighbours
are alike is estimated; where they are not, effects are as independent as under any
other covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.covariance.autoregressive import transposed, whiten
from ebda.covariance.base import Covariance, CovarianceEstimator, Decorrelated
from ebda.covariance.diagonal import Diagonal
from ebda.covariance.summary import Summary
from ebda.data import Samples
from ebda.priors.chain import fit_chain
from ebda.priors.posterior import Prior
from ebda.typing import FloatArray

# With less correlation between neighbours their order is not used.
_LEAST_NEIGHBOUR_CORRELATION = 0.2
# Nor where the mean over so many pairs might be chance, though single correlations were
# as large as can be: the mean must be so many times 1 / sqrt(p).
_SIGNIFICANT = 3.0
# Estimates are clipped to this absolute value: at 1 the correlation has no inverse.
_LARGEST = 0.999


@dataclass(frozen=True, eq=False)
class Autoregression(Covariance):
    """``R_ij = rho^|i - j|``, skipping features that are constant.

    Parameters
    ----------
    rho : float
        Correlation of neighbours.
    constant : ndarray of bool of shape (n_features,)
        Features to skip.
    overlap : float
        Correlations of the contrasts over those of the values: less than 1 where values
        are missing (:mod:`ebda.covariance.summary`).
    """

    rho: float
    constant: npt.NDArray[np.bool_]
    overlap: float = 1.0
    is_diagonal = False
    n_factors = 0
    orders_effects = True

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(z)

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return e

    def prior(
        self, z: FloatArray, fit: Callable[[], Prior], rough: bool = False
    ) -> Prior:
        rho = self.overlap * self.rho
        return fit_chain(z, rho, fit(), self.constant, rough)

    def solve(self, rows: FloatArray) -> FloatArray:
        return self._apply(transposed, self._apply(whiten, rows))

    def _apply(
        self, function: Callable[[FloatArray, float], FloatArray], rows: FloatArray
    ) -> FloatArray:
        out = np.zeros_like(rows)
        out[:, ~self.constant] = function(rows[:, ~self.constant], self.rho)
        return out


def neighbour_correlation(
    samples: Samples,
    means: FloatArray,
    variance: FloatArray,
    constant: npt.NDArray[np.bool_] | None = None,
) -> float:
    """Mean correlation of neighbours within the classes, beyond that of any two.

    Common factors correlate features whatever their order. The mean correlation of
    features far apart measures that, and is subtracted. Far apart are those of the
    first third and those of the last: the mean over all pairs of them is a product of
    sums. The result is clipped to +-0.999.

    Parameters
    ----------
    samples : Samples
        Rows to estimate it from.
    means : ndarray of shape (n_classes, n_features)
        Class means.
    variance : ndarray of shape (n_features,)
        Variances within the classes.
    constant : ndarray of bool of shape (n_features,), optional
        Features to skip.
    """
    varying = np.ones(len(variance), bool) if constant is None else ~constant
    n_varying = int(np.count_nonzero(varying))
    df = samples.weight.sum() - len(np.unique(samples.codes))
    if df <= 0 or n_varying < 3:
        return 0.0
    third = np.full(len(variance), -1)
    third[varying] = np.arange(n_varying) * 3 // n_varying
    sums = samples.neighbour_sums(means, np.sqrt(variance), third)
    n_pairs = float(np.prod([np.count_nonzero(third == k) for k in (0, 2)]))
    far = float(sums.thirds[:, 0] @ sums.thirds[:, 2]) / n_pairs
    rho = (sums.near / (n_varying - 1) - far) / float(df)
    return float(np.clip(rho, -_LARGEST, _LARGEST))


def neighbours(data: Summary) -> Covariance:
    """Autoregression along the features, or the diagonal where they have no order."""
    assert data.samples is not None
    contrasts = data.contrasts
    rho = neighbour_correlation(
        data.samples, data.moments.means, data.scale**2, contrasts.constant
    )
    chance = _SIGNIFICANT / np.sqrt(max(data.n_varying, 1))
    if rho < max(_LEAST_NEIGHBOUR_CORRELATION, chance):
        return Diagonal()
    rho = min(rho / data.overlap, _LARGEST)
    return Autoregression(rho, contrasts.constant, data.overlap)


NEIGHBOURS = CovarianceEstimator(
    "neighbours",
    "correlation and effects along the features",
    neighbours,
    needs_samples=True,
    needs_order=True,
    compared=("mean",),
)
