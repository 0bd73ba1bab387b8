"""Estimators of a point mass at zero plus a slab, by marginal maximum likelihood.

For a given slab the log-likelihood is concave in pi0, which leaves a search in one
dimension, over the slab's standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from ebda.priors.base import (
    BasePriorEstimator,
    PriorFamily,
    divide_by_median_scale,
    sorted_values,
)
from ebda.priors.cells import Cells, group
from ebda.priors.spike_slab import SpikeSlab, log_density
from ebda.storage.fields import Kind, Scalar
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray

# Standard deviations of the slab that are tried before the search is refined: the
# factor between two of them, and how many there may be.
_SD_FACTOR = 1.15
_MAX_SDS = 200
# Likelihood ratios are limited to this: beyond it only their inverse matters.
_MAX_LOG_RATIO = 500.0


def slab_weight(log_ratio: FloatArray, share: FloatArray) -> float:
    """``1 - pi0`` that maximises ``sum_k c_k log(pi0 + (1 - pi0) r_k)``.

    Parameters
    ----------
    log_ratio : ndarray
        Log of r_k, the density of value k under the slab over that under the null.
    share : ndarray
        c_k.

    >>> round(slab_weight(np.log([0.5, 0.5, 4.0]), np.full(3, 1 / 3)), 6)
    0.444444
    """
    ratio = np.exp(np.minimum(log_ratio, _MAX_LOG_RATIO))

    def slope(weight: float) -> float:
        return float(share @ ((ratio - 1) / (1 - weight + weight * ratio)))

    if slope(0.0) <= 0:
        return 0.0
    if slope(1.0) >= 0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-15, rtol=1e-14))


def fit_spike_slab(
    family: Callable[[float, float], SpikeSlab], cells: Cells, min_sd: float
) -> tuple[float, float]:
    """pi0 and the slab's standard deviation that maximise the likelihood.

    Parameters
    ----------
    family : callable
        Makes the prior from pi0 and the standard deviation.
    cells : Cells
        The values.
    min_sd : float
        Smallest standard deviation of the slab. The largest is twice the largest
        value, beyond which the likelihood falls.
    """
    z, scale = cells.value, cells.precision**-0.5
    share = cells.count / cells.count.sum()
    null = log_density(z, scale)

    def profile(log_sd: float) -> tuple[float, float]:
        log_ratio = family(0.0, float(np.exp(log_sd))).logpdf(z, scale) - null
        weight = slab_weight(log_ratio, share)
        with np.errstate(divide="ignore"):
            spike, slab = np.log1p(-weight), np.log(weight)
        return float(share @ np.logaddexp(spike, slab + log_ratio)), weight

    max_sd = 2 * max(float(np.abs(z).max()), min_sd)
    count = 2 + int(np.log(max_sd / min_sd) / np.log(_SD_FACTOR))
    log_sds = np.linspace(np.log(min_sd), np.log(max_sd), min(count, _MAX_SDS))
    gains = [profile(log_sd)[0] for log_sd in log_sds]
    best = int(np.argmax(gains))
    refined = minimize_scalar(
        lambda log_sd: -profile(log_sd)[0],
        bounds=(log_sds[max(best - 1, 0)], log_sds[min(best + 1, len(log_sds) - 1)]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    log_sd = float(refined.x) if -refined.fun > gains[best] else log_sds[best]
    return 1 - profile(log_sd)[1], float(np.exp(log_sd))


class SpikeSlabEstimator(BasePriorEstimator):
    """Estimator of a point mass plus slab; subclasses define the prior.

    Parameters
    ----------
    min_sd : float
        Smallest standard deviation of the slab, in units of the noise (of the median
        noise, where values differ in it). A narrower slab cannot be told from the
        point mass, and pi0 would mean nothing.
    """

    def __init__(self, min_sd: float = 0.5) -> None:
        self.min_sd = min_sd

    @staticmethod
    def _prior(pi0: float, sd: float) -> SpikeSlab:
        """The prior with a given standard deviation of the slab."""
        raise NotImplementedError

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> SpikeSlabEstimator:
        """Estimate the prior of eta.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values, scales = sorted_values(z, scale)
        self._check_positive("min_sd")
        z, noise, unit = divide_by_median_scale(values, scales)
        pi0, sd = fit_spike_slab(self._prior, group(z, noise), self.min_sd)
        self.prior_ = self._prior(pi0, sd * unit)
        self.log_likelihood_ = float(self.prior_.logpdf(values, scales).sum())
        return self


def slab_family(
    name: str,
    line: str,
    estimator: type[SpikeSlabEstimator],
    prior: type[SpikeSlab],
    is_one_sided: bool = False,
) -> PriorFamily:
    """The entry of a family; a model file holds the parameters of its prior."""
    numbers: dict[str, Kind] = {field.name: Scalar((float,)) for field in fields(prior)}
    register(Schema(prior, numbers, is_parameter=True, role="prior"))
    fitted = {"log_likelihood_": Scalar((float,), finite=False)}
    return PriorFamily(
        name,
        line,
        estimator,
        fitted=fitted,
        is_reported=True,
        is_one_sided=is_one_sided,
    )
