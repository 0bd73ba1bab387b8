"""A point mass at zero plus a normal slab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from ebda.priors.slab_estimator import SpikeSlabEstimator, slab_family
from ebda.priors.spike_slab import SpikeSlab, log_density
from ebda.typing import FloatArray


@dataclass(frozen=True)
class PointNormalPrior(SpikeSlab):
    """The prior ``pi0 delta_0 + (1 - pi0) N(0, tau**2)`` of eta.

    Given ``z ~ N(eta, s**2)`` the slab has marginal density ``N(z; 0, s**2 + tau**2)``
    and leaves a normal distribution with mean ``z tau**2 / (s**2 + tau**2)`` and
    variance ``s**2 tau**2 / (s**2 + tau**2)``.

    Parameters
    ----------
    pi0 : float
        The mass at zero.
    tau : float
        Standard deviation of the slab, positive.

    Examples
    --------
    >>> from ebda.priors import PointNormalPrior
    >>> posterior = PointNormalPrior(pi0=0.9, tau=3.0).posterior([0.0, 3.0, 1e6])
    >>> posterior.mean.round(2).tolist()
    [0.0, 1.8, 900000.0]
    >>> posterior.prob_zero.round(2)
    array([0.97, 0.33, 0.  ])
    """

    tau: float

    @property
    def slab_sd(self) -> float:
        """Standard deviation of the slab."""
        return self.tau

    def slab_density(self, eta: FloatArray) -> FloatArray:
        """Density of the slab."""
        return np.exp(log_density(eta, np.asarray(self.tau)))

    def slab(self, z: FloatArray, scale: FloatArray) -> tuple[FloatArray, ...]:
        """Log masses, locations and sd of the halves."""
        total = np.hypot(scale, self.tau)
        kept = self.tau / total
        location = np.stack([z, -z]) * (kept * kept)
        sd = scale * kept
        return log_density(z, total) + log_ndtr(location / sd), location, sd


class PointNormal(SpikeSlabEstimator):
    """Point mass plus normal prior, by marginal maximum likelihood.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ pi0 delta_0 + (1 - pi0) N(0, tau**2)``.
    pi0 and tau maximise ``sum_k log f(z_k)`` (Johnstone and Silverman 2004, Section
    2; Clyde and George 2000).

    Parameters
    ----------
    min_sd : float
        Smallest tau, in units of the noise (of the median noise, where values differ
        in it): a narrower slab cannot be told from the point mass.

    Attributes
    ----------
    prior_ : PointNormalPrior
        The estimate.
    log_likelihood_ : float
        ``sum_k log f(z_k)``.

    References
    ----------
    Clyde and George (2000), Journal of the Royal Statistical Society B 62, 681-698.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import PointNormal
    >>> rng = np.random.default_rng(0)
    >>> eta = 3 * rng.normal(size=5000) * (rng.random(5000) < 0.2)
    >>> prior = PointNormal().fit(eta + rng.normal(size=5000)).prior_
    >>> round(prior.pi0, 1), round(prior.tau)
    (0.8, 3)
    """

    prior_: PointNormalPrior

    @staticmethod
    def _prior(pi0: float, sd: float) -> PointNormalPrior:
        return PointNormalPrior(pi0, sd)


FAMILY = slab_family(
    "normal",
    "point mass at zero plus a normal distribution",
    PointNormal,
    PointNormalPrior,
)
