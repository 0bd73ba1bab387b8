"""A point mass at zero plus an exponential slab: effects that are never negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.priors.laplace import PointLaplacePrior
from ebda.priors.slab_estimator import SpikeSlabEstimator, slab_family
from ebda.priors.spike_slab import SpikeSlab
from ebda.typing import FloatArray


@dataclass(frozen=True)
class PointExponentialPrior(SpikeSlab):
    """The prior ``pi0 delta_0 + (1 - pi0) Exp(rate)`` of eta, which is zero or more.

    The slab has density ``rate exp(-rate eta)``. Given ``z ~ N(eta, s**2)`` it leaves
    what a Laplace slab leaves above zero, with twice the mass.

    Parameters
    ----------
    pi0 : float
        The mass at zero.
    rate : float
        Inverse mean of the slab, positive.

    Examples
    --------
    >>> from ebda.priors import PointExponentialPrior
    >>> prior = PointExponentialPrior(pi0=0.9, rate=0.5)
    >>> posterior = prior.posterior([-3.0, 0.0, 3.0])
    >>> posterior.mean.round(2).tolist()
    [0.0, 0.03, 1.91]
    >>> posterior.lfsr.round(2)
    array([0.99, 0.95, 0.24])
    """

    rate: float

    @property
    def share_below(self) -> float:
        """Share of the part away from zero that is negative: none."""
        return 0.0

    @property
    def slab_sd(self) -> float:
        """Standard deviation of the slab about zero."""
        return float(np.sqrt(2)) / self.rate

    def slab_density(self, eta: FloatArray) -> FloatArray:
        """Density of the slab."""
        eta = np.asarray(eta)
        inside = self.rate * np.exp(-self.rate * np.maximum(eta, 0))
        return np.where(eta >= 0, inside, 0.0)

    def slab(self, z: FloatArray, scale: FloatArray) -> tuple[FloatArray, ...]:
        """Log masses, locations and sd of the halves; the lower one is empty."""
        both = PointLaplacePrior(0.0, self.rate)
        log_sides, location, sd = both.slab(z, scale)
        log_sides = log_sides + np.log(2.0)
        log_sides[1] = -np.inf
        return log_sides, location, sd


class PointExponential(SpikeSlabEstimator):
    """Point mass plus exponential prior, by marginal maximum likelihood.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ pi0 delta_0 + (1 - pi0) Exp(rate)``: for
    effects that can only be positive, as in ``ebnm_point_exponential``. Negate values
    whose effects can only be negative.

    Parameters
    ----------
    min_sd : float
        Smallest root mean square ``sqrt(2) / rate`` of the slab, in units of the noise
        (of the median noise, where values differ in it): a narrower slab cannot be told
        from the point mass.

    Attributes
    ----------
    prior_ : PointExponentialPrior
        The estimate.
    log_likelihood_ : float
        ``sum_k log f(z_k)``.

    References
    ----------
    Willwerscheid, Carbonetto and Stephens (2025), Journal of Statistical Software
    114(3).

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import PointExponential
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.exponential(scale=3, size=5000) * (rng.random(5000) < 0.2)
    >>> prior = PointExponential().fit(eta + rng.normal(size=5000)).prior_
    >>> round(prior.pi0, 1), round(1 / prior.rate)
    (0.8, 3)
    """

    prior_: PointExponentialPrior

    @staticmethod
    def _prior(pi0: float, sd: float) -> PointExponentialPrior:
        return PointExponentialPrior(pi0, float(np.sqrt(2)) / sd)


FAMILY = slab_family(
    "point_exponential",
    "point mass at zero plus an exponential distribution, for positive effects",
    PointExponential,
    PointExponentialPrior,
    is_one_sided=True,
)
