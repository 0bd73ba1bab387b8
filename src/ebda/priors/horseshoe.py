"""The horseshoe prior of Carvalho, Polson and Scott (2010)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from ebda.priors.base import (
    BasePriorEstimator,
    PriorFamily,
    divide_by_median_scale,
    sorted_values,
)
from ebda.priors.cells import group
from ebda.priors.mixtures import MixturePrior, NormalComponents
from ebda.priors.normal_mixture import NormalMixturePrior
from ebda.storage.fields import Scalar
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray

# Nodes in log lambda. The integrand is analytic around the real line, so that equal
# steps leave an error below exp(-pi**2 / step); beyond the ends there is no mass.
_STEP, _FIRST, _LAST = 0.25, -20.0, 40.0
_NODES = np.arange(_FIRST, _LAST + _STEP / 2, _STEP)
_LOG_WEIGHTS = -np.log(np.cosh(_NODES))
_LOG_WEIGHTS = _LOG_WEIGHTS - np.log(np.exp(_LOG_WEIGHTS).sum())
# Components narrower than this part of the noise are atoms to the values, and those
# wider than the largest value by as much have no density, while tau is searched for.
_NARROW = 1e-4
# Places of tau that are tried before the search is refined, for each factor of e.
_PER_LOG = 1


@dataclass(frozen=True)
class HorseshoePrior(MixturePrior):
    """The prior ``eta ~ N(0, tau**2 lambda**2)``, ``lambda ~ C+(0, 1)``.

    lambda has a half-Cauchy distribution: most eta are close to zero, and a few are as
    large as they like. With ``t = log lambda`` this is a scale mixture of normal
    distributions with density ``1 / (pi cosh t)`` of t, and it is integrated as one
    with many components.

    Parameters
    ----------
    tau : float
        Global scale, positive.

    Examples
    --------
    >>> from ebda.priors import HorseshoePrior
    >>> HorseshoePrior(tau=0.1).posterior([1.0, 3.0, 6.0]).mean.round(2)
    array([0.07, 1.11, 5.63])
    """

    tau: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.tau) and self.tau > 0):
            raise ValueError(f"tau must be positive, got {self.tau!r}")

    @property
    def log_weights(self) -> FloatArray:
        weights: FloatArray = _LOG_WEIGHTS
        return weights

    @property
    def point_masses(self) -> FloatArray:
        return np.full(len(_NODES), np.nan)

    def components(self, z: FloatArray, scale: FloatArray) -> NormalComponents:
        """What each component leaves for flat values."""
        sds = self.tau * np.exp(_NODES)
        return NormalComponents(z, scale, np.zeros((1, 1)), sds[:, None])

    @property
    def slab_sd(self) -> float:
        """Half of the distribution lies within about this distance of zero."""
        return self.tau

    def slab_density(self, eta: FloatArray) -> FloatArray:
        """Density, which is infinite at zero."""
        sds = self.tau * np.exp(_NODES)
        x = np.asarray(eta)[..., None] / sds
        log_terms = _LOG_WEIGHTS - np.log(sds) - 0.5 * x * x
        density: FloatArray = np.exp(log_terms).sum(axis=-1) / np.sqrt(2 * np.pi)
        return density


class Horseshoe(BasePriorEstimator):
    """Horseshoe prior, its scale by marginal maximum likelihood.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ N(0, tau**2 lambda_k**2)``,
    ``lambda_k ~ C+(0, 1)``. tau maximises ``sum_k log f(z_k)`` between 1/n and 1 in
    units of the noise (van der Pas, Szabo and van der Vaart 2017; R's ``horseshoe`` and
    ``ebnm_horseshoe``). There is no mass at zero: ``prob_zero`` is 0 everywhere.

    Attributes
    ----------
    prior_ : HorseshoePrior
        The estimate.
    log_likelihood_ : float
        ``sum_k log f(z_k)``.

    References
    ----------
    Carvalho, Polson and Scott (2010), Biometrika 97, 465-480.
    van der Pas, Szabo and van der Vaart (2017), Electronic Journal of Statistics 11,
    3196-3225.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import Horseshoe
    >>> z = np.random.default_rng(0).normal(size=1000)
    >>> z[:20] += 6
    >>> round(Horseshoe().fit(z).prior_.tau, 2)
    0.09
    """

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Horseshoe:
        """Estimate the prior of eta.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values, scales = sorted_values(z, scale)
        x, noise, unit = divide_by_median_scale(values, scales)
        cells = group(x, noise)
        value, sd = cells.value, cells.precision**-0.5

        least_sd = _NARROW * float(sd.min())
        most_sd = max(float(np.abs(value).max()), float(sd.max())) / _NARROW

        def loss(log_tau: float) -> float:
            sds = np.exp(log_tau + _NODES)
            sds[sds < least_sd] = 0.0
            groups, place = np.unique(np.minimum(sds, most_sd), return_inverse=True)
            weights = np.bincount(place, weights=np.exp(_LOG_WEIGHTS))
            density = NormalMixturePrior(groups, weights).logpdf(value, sd)
            return -float(cells.count @ density)

        least = -np.log(max(len(values), 2))
        places = np.linspace(least, 0.0, 2 + int(-least * _PER_LOG))
        losses = [loss(place) for place in places]
        best = int(np.argmin(losses))
        ends = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
        refined = minimize_scalar(
            loss, bounds=ends, method="bounded", options={"xatol": 1e-6}
        )
        log_tau = refined.x if refined.fun < losses[best] else places[best]
        self.prior_ = HorseshoePrior(float(np.exp(log_tau)) * unit)
        self.log_likelihood_ = float(self.prior_.logpdf(values, scales).sum())
        return self


register(
    Schema(
        HorseshoePrior,
        {"tau": Scalar((float,), least=np.finfo(np.float64).tiny)},
        is_parameter=True,
        role="prior",
    )
)

FAMILY = PriorFamily(
    "horseshoe",
    "normal distributions whose scales are half-Cauchy",
    Horseshoe,
    fitted={"log_likelihood_": Scalar((float,), finite=False)},
    is_reported=True,
)
