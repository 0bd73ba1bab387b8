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

``covariance="auto"`` compares it only where correlations at longer distances are those
of an autoregression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.covariance.autoregressive import transposed, whiten
from ebda.covariance.base import Covariance, CovarianceEstimator, Decorrelated
from ebda.covariance.diagonal import Diagonal
from ebda.covariance.summary import Summary
from ebda.data import Samples
from ebda.kernels.residuals import LAGS
from ebda.priors.chain_fit import fit_chains
from ebda.priors.posterior import Prior
from ebda.typing import FloatArray

# With less correlation between neighbours their order is not used.
_LEAST_NEIGHBOUR_CORRELATION = 0.2
# Nor where the mean over so many pairs might be chance, though single correlations were
# as large as can be: the mean must be so many times 1 / sqrt(p).
_SIGNIFICANT = 3.0
# Share of the squared correlations, at some distances, that an autoregression may miss.
# Where it holds it misses next to nothing; correlations of features that were sorted by
# a clustering, or lie along chromosomes, fall off much more slowly.
_MOST_MISSED = 0.1
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
    is_contradicted : bool
        Whether correlations at other distances are not those of an autoregression.
    """

    rho: float
    constant: npt.NDArray[np.bool_]
    overlap: float = 1.0
    is_contradicted: bool = False
    is_diagonal = False
    n_factors = 0
    orders_effects = True

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(z)

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return e

    @classmethod
    def priors(
        cls,
        parts: Sequence[Autoregression],
        z: Sequence[FloatArray],
        fits: Sequence[Callable[[], Prior]],
        rough: bool = False,
    ) -> list[Prior]:
        rho = [part.overlap * part.rho for part in parts]
        found = [fit() for fit in fits]
        return [*fit_chains(z, rho, found, parts[0].constant, rough)]

    def solve(self, rows: FloatArray) -> FloatArray:
        return self._apply(transposed, self._apply(whiten, rows))

    def _apply(
        self, function: Callable[[FloatArray, float], FloatArray], rows: FloatArray
    ) -> FloatArray:
        out = np.zeros_like(rows)
        out[:, ~self.constant] = function(rows[:, ~self.constant], self.rho)
        return out


def neighbour_correlations(
    samples: Samples,
    means: FloatArray,
    variance: FloatArray,
    constant: npt.NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Mean correlations of neighbours within the classes, beyond that of any two.

    Common factors correlate features whatever their order. The mean correlation of
    features far apart measures that, and is subtracted. Far apart are those of the
    first third and those of the last: the mean over all pairs of them is a product of
    sums. The results are clipped to +-0.999; one for each distance in
    :data:`ebda.kernels.residuals.LAGS`, and 0 where there are no pairs.

    Parameters
    ----------
    samples : Samples
        Rows to estimate them from.
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
        return np.zeros(len(LAGS))
    third = np.full(len(variance), -1)
    third[varying] = np.arange(n_varying) * 3 // n_varying
    sums = samples.neighbour_sums(means, np.sqrt(variance), third)
    n_far = float(np.prod([np.count_nonzero(third == k) for k in (0, 2)]))
    far = float(sums.thirds[:, 0] @ sums.thirds[:, 2]) / n_far
    n_pairs = n_varying - np.array(LAGS)
    found = (sums.near / np.maximum(n_pairs, 1) - far) / float(df)
    return np.clip(np.where(n_pairs > 0, found, 0.0), -_LARGEST, _LARGEST)


def neighbours(data: Summary) -> Covariance:
    """Autoregression along the features, or the diagonal where they have no order."""
    assert data.samples is not None
    contrasts = data.contrasts
    found = neighbour_correlations(
        data.samples, data.moments.means, data.scale**2, contrasts.constant
    )
    rho = float(found[0])
    chance = _SIGNIFICANT / np.sqrt(max(data.n_varying, 1))
    if rho < max(_LEAST_NEIGHBOUR_CORRELATION, chance):
        return Diagonal()
    missed = found - rho ** np.array(LAGS)
    is_contradicted = bool(missed @ missed > _MOST_MISSED * (found @ found))
    rho = min(rho / data.overlap, _LARGEST)
    return Autoregression(rho, contrasts.constant, data.overlap, is_contradicted)


NEIGHBOURS = CovarianceEstimator(
    "neighbours",
    "correlation and effects along the features",
    neighbours,
    needs_samples=True,
    needs_order=True,
    compared=("mean",),
)
