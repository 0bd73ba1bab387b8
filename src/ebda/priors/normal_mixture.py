"""A scale mixture of normal distributions with a point mass at zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.priors.base import PriorFamily
from ebda.priors.mixture_estimator import CERTIFICATE, MixtureEstimator
from ebda.priors.mixtures import NormalComponents
from ebda.priors.weighted_mixture import WeightedMixture, mixture_schema
from ebda.storage.fields import Array
from ebda.storage.objects import register
from ebda.typing import FloatArray

# Variances of the marginal distribution on the grid: each is larger by this factor,
# and there are at most so many.
_FACTOR = 1.1
_MOST = 300
# The largest standard deviation, in units of the largest value.
_REACH = 1.5


@dataclass(frozen=True, eq=False, init=False)
class NormalMixturePrior(WeightedMixture):
    """The prior ``sum_t w_t N(loc_t, sd_t**2)`` of eta; ``sd_t = 0`` is an atom.

    Parameters
    ----------
    sds : array-like of shape (n_components,)
        Standard deviations, zero or more.
    weights : array-like of shape (n_components,)
        Non-negative, not all zero; stored with sum one. Components of weight zero are
        dropped.
    locs : array-like of shape (n_components,), optional
        Means of the components, by default zero.

    Examples
    --------
    >>> from ebda.priors import NormalMixturePrior
    >>> prior = NormalMixturePrior(sds=[0, 3], weights=[9, 1])
    >>> posterior = prior.posterior([0.0, 3.0, 1e6])
    >>> posterior.mean.round(2).tolist()
    [0.0, 1.8, 900000.0]
    >>> posterior.prob_zero.round(2)
    array([0.97, 0.33, 0.  ])
    """

    sds: FloatArray
    weights: FloatArray
    locs: FloatArray

    def __init__(
        self,
        sds: npt.ArrayLike,
        weights: npt.ArrayLike,
        locs: npt.ArrayLike | None = None,
    ) -> None:
        sd = np.array(sds, dtype=np.float64, ndmin=1)
        loc = np.zeros_like(sd) if locs is None else np.array(locs, np.float64, ndmin=1)
        if not (np.isfinite(sd).all() and (sd >= 0).all() and np.isfinite(loc).all()):
            raise ValueError("sds must be finite and zero or more, and locs finite")
        self._store(weights, sds=sd, locs=loc)

    def __repr__(self) -> str:
        parts = [
            f"{w:.3g} N({m:.3g}, {s:.3g}²)"
            for w, m, s in zip(self.weights, self.locs, self.sds, strict=True)
        ]
        return f"NormalMixturePrior({' + '.join(parts)})"

    @property
    def point_masses(self) -> FloatArray:
        return np.where(self.sds == 0, self.locs, np.nan)

    def components(self, z: FloatArray, scale: FloatArray) -> NormalComponents:
        """What each component leaves for flat values."""
        return NormalComponents(z, scale, self.locs[:, None], self.sds[:, None])

    @property
    def slab_sd(self) -> float:
        """Standard deviation of the part away from zero."""
        slab = self.point_masses != 0
        if not slab.any():
            return 0.0
        share = self.weights[slab] / self.weights[slab].sum()
        square = self.sds[slab] ** 2 + self.locs[slab] ** 2
        return float(np.sqrt(share @ square))

    def slab_density(self, eta: FloatArray) -> FloatArray:
        """Density of the continuous part, given that eta is in it."""
        slab = self.sds > 0
        if not slab.any():
            return np.zeros(np.shape(eta))
        sd, loc = self.sds[slab], self.locs[slab]
        x = (np.asarray(eta)[..., None] - loc) / sd
        share = self.weights[slab] / self.weights[slab].sum()
        density: FloatArray = np.exp(-0.5 * x * x) @ (share / sd) / np.sqrt(2 * np.pi)
        return density

    def rescale(self, factor: float) -> NormalMixturePrior:
        """The prior of ``factor * eta``."""
        return NormalMixturePrior(self.sds * factor, self.weights, self.locs * factor)


class NormalMixture(MixtureEstimator):
    """Scale mixture of normal distributions, by maximum likelihood (Stephens 2017).

    ``z_k ~ N(eta_k, scale_k**2)`` and ``eta_k ~ w_0 delta_0 + sum_t w_t N(0, sd_t**2)``
    with standard deviations on a fine grid: any distribution that is symmetric about
    zero and has its mode there as normal, Laplace and t distributions have. Finding the
    weights is a convex problem (:mod:`ebda.priors.mixture_weights`), and the maximum is
    certified by its duality gap, as that of `NPMLE` is. This is the prior of R's
    ``ashr`` with ``mixcompdist="normal"`` and of ``ebnm_normal_scale_mixture``.

    Parameters
    ----------
    sds : array-like, optional
        Standard deviations of the components beside the point mass. By default
        ``s sqrt(1.1**k - 1)``, k = 1, 2, ..., up to one and a half times the largest
        value, where s is the smallest noise: next to each other the densities of z can
        hardly be told apart.
    zero_count : float
        Pseudo-count of the point mass: the likelihood is multiplied by
        ``w_0**zero_count``. ``ashr`` has 9 by default, which keeps noise from being
        taken for many small effects; 0 is maximum likelihood, as in ``ebnm``.
    tol : float
        Duality gap to reach, in average log-likelihood.
    max_iter : int
        Maximum number of Newton steps.

    Attributes
    ----------
    prior_ : NormalMixturePrior
        The estimate: the components that have any weight.
    duality_gap_ : float
        Upper bound of what other weights could gain in average log-likelihood; of the
        values in their groups, where there are many (:mod:`ebda.priors.cells`).
    log_likelihood_ : float
        ``sum_k log f(z_k)``, without the pseudo-count.
    n_iter_ : int
        Number of Newton steps.
    converged_ : bool
        Whether the duality gap reached `tol`.

    References
    ----------
    Stephens (2017), Biostatistics 18, 275-294.
    Willwerscheid, Carbonetto and Stephens (2025), Journal of Statistical Software
    114(3).

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import NormalMixture
    >>> rng = np.random.default_rng(0)
    >>> eta = 3 * rng.standard_t(4, size=5000) * (rng.random(5000) < 0.2)
    >>> prior = NormalMixture().fit(eta + rng.normal(size=5000)).prior_
    >>> round(prior.pi0, 1)
    0.8
    """

    def __init__(
        self,
        sds: npt.ArrayLike | None = None,
        zero_count: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self.sds = sds
        self.zero_count = zero_count
        self.tol = tol
        self.max_iter = max_iter

    def _grid(self, x: FloatArray, noise: FloatArray, unit: float) -> FloatArray:
        """Standard deviations; the first is zero."""
        if self.sds is not None:
            sds = np.unique(np.asarray(self.sds, dtype=np.float64))
            if not (sds.size and np.isfinite(sds).all() and (sds > 0).all()):
                raise ValueError("sds must be finite and positive, at least one")
            return np.append(0.0, sds / unit)
        least = float(noise.min())
        reach = _REACH * float(np.abs(x).max()) / least
        # Of the marginal variance, in units of the least noise.
        log_top = np.log1p(max(reach, 1.0)) * 2
        count = min(int(np.ceil(log_top / np.log(_FACTOR))), _MOST)
        steps = np.arange(count + 1) * (log_top / count)
        grid: FloatArray = least * np.sqrt(np.expm1(steps))
        return grid

    @staticmethod
    def _prior(grid: FloatArray, weights: FloatArray) -> NormalMixturePrior:
        return NormalMixturePrior(grid, weights)


register(
    mixture_schema(
        NormalMixturePrior,
        sds=Array(("t",), ("finite", "zero or more")),
        locs=Array(("t",), ("finite",)),
    )
)

FAMILY = PriorFamily(
    "normal_mixture",
    "point mass at zero plus a scale mixture of normal distributions",
    NormalMixture,
    fitted=CERTIFICATE,
    is_reported=True,
)
