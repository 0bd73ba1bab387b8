"""A point mass at zero plus a Laplace slab (Johnstone and Silverman 2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from ebda.priors.slab_estimator import SpikeSlabEstimator, slab_family
from ebda.priors.spike_slab import SpikeSlab, log_density, log_mills
from ebda.typing import FloatArray


@dataclass(frozen=True)
class PointLaplacePrior(SpikeSlab):
    """The prior ``pi0 delta_0 + (1 - pi0) Laplace(rate)`` of eta.

    The slab has density ``(rate / 2) exp(-rate |eta|)``. Given ``z ~ N(eta, s**2)`` it
    leaves, on either side of zero, a normal distribution with mean ``z -+ rate s**2``
    and variance ``s**2``, truncated at zero, with mass

        (rate / 2) exp(rate**2 s**2 / 2 -+ rate z) Phi(+- z / s - rate s).

    Parameters
    ----------
    pi0 : float
        The mass at zero.
    rate : float
        Inverse scale of the slab, positive.

    Examples
    --------
    >>> from ebda.priors import PointLaplacePrior
    >>> prior = PointLaplacePrior(pi0=0.9, rate=0.5)
    >>> posterior = prior.posterior([0.0, 3.0, 1e6])
    >>> posterior.mean.round(2).tolist()
    [0.0, 1.53, 999999.5]
    >>> posterior.prob_zero.round(2)
    array([0.95, 0.39, 0.  ])
    """

    rate: float

    @property
    def slab_sd(self) -> float:
        """Standard deviation of the slab."""
        return float(np.sqrt(2)) / self.rate

    def slab_density(self, eta: FloatArray) -> FloatArray:
        """Density of the slab."""
        return self.rate / 2 * np.exp(-self.rate * np.abs(eta))

    def slab(self, z: FloatArray, scale: FloatArray) -> tuple[FloatArray, ...]:
        """Log masses, locations and sd of the halves."""
        x = np.stack([z, -z]) / scale
        shrink = self.rate * scale
        cut = shrink - x
        # Two forms of one expression, each without cancellation where it is used.
        inside = shrink * (0.5 * shrink - x) + log_ndtr(-np.minimum(cut, 0))
        outside = log_density(z, scale) + np.log(scale) + log_mills(np.maximum(cut, 0))
        log_sides = np.log(self.rate / 2) + np.where(cut < 0, inside, outside)
        return log_sides, -cut * scale, scale


class PointLaplace(SpikeSlabEstimator):
    """Point mass plus Laplace prior, by marginal maximum likelihood.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ pi0 delta_0 + (1 - pi0) Laplace(rate)``.
    pi0 and rate maximise ``sum_k log f(z_k)``, as in EbayesThresh (Johnstone and
    Silverman 2004, 2005). The slab's tail is heavy enough to shrink large values by a
    constant only.

    Parameters
    ----------
    min_sd : float
        Smallest standard deviation ``sqrt(2) / rate`` of the slab, in units of the
        noise (of the median noise, where values differ in it): a narrower slab cannot
        be told from the point mass. EbayesThresh has ``rate <= 3``, an sd of 0.47.

    Attributes
    ----------
    prior_ : PointLaplacePrior
        The estimate.
    log_likelihood_ : float
        ``sum_k log f(z_k)``.

    References
    ----------
    Johnstone and Silverman (2004), Annals of Statistics 32, 1594-1649.
    Johnstone and Silverman (2005), Journal of Statistical Software 12(8).

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import PointLaplace
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.laplace(scale=3, size=5000) * (rng.random(5000) < 0.2)
    >>> prior = PointLaplace().fit(eta + rng.normal(size=5000)).prior_
    >>> round(prior.pi0, 1), round(1 / prior.rate)
    (0.8, 3)
    """

    prior_: PointLaplacePrior

    @staticmethod
    def _prior(pi0: float, sd: float) -> PointLaplacePrior:
        return PointLaplacePrior(pi0, float(np.sqrt(2)) / sd)


FAMILY = slab_family(
    "laplace",
    "point mass at zero plus a Laplace distribution",
    PointLaplace,
    PointLaplacePrior,
)
