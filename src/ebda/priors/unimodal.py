"""A mixture of uniform distributions that end at zero: any prior with a mode there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from ebda.cached import cached_property
from ebda.priors.base import PriorFamily
from ebda.priors.mixture_estimator import CERTIFICATE, MixtureEstimator
from ebda.priors.spike_slab import truncated_moments
from ebda.priors.weighted_mixture import WeightedMixture, mixture_schema
from ebda.storage.fields import Array
from ebda.storage.objects import register
from ebda.typing import FloatArray

# Ends of the uniform distributions: the nearest in units of the noise, the factor
# between two of them, the farthest in units of the largest value beyond the noise, and
# how many there may be on either side. Those of ashr; with a factor of 1.1 the squared
# error is larger by 3 % at 200 values, and no smaller at 2000.
_NEAREST = 0.1
_FACTOR = np.sqrt(2.0)
_REACH = 2.0
_MOST = 150
# Intervals this short, in units of the noise over their distance, are uniform still
# when the value is known.
_SHORT = 1e-4


def log_mass(a: FloatArray, b: FloatArray) -> FloatArray:
    """Log of ``Phi(b) - Phi(a)`` for a <= b, without cancellation in either tail.

    >>> log_mass(np.array([-1.0, 50.0]), np.array([1.0, 51.0])).round(3).tolist()
    [-0.382, -1254.831]
    """
    upper = a + b > 0
    near = log_ndtr(np.where(upper, -a, b))
    far = log_ndtr(np.where(upper, -b, a))
    with np.errstate(divide="ignore"):
        mass: FloatArray = near + np.log1p(-np.exp(np.minimum(far - near, 0.0)))
    return mass


def _beside(a: FloatArray, length: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of ``X - a`` for normal X in [a, a + length], a > 0."""
    b = a + length
    mean, variance = truncated_moments(a)
    mean_b, variance_b = truncated_moments(b)
    beyond = np.exp(np.minimum(log_ndtr(-b) - log_ndtr(-a), 0.0))
    inside = np.maximum(1 - beyond, np.finfo(np.float64).tiny)
    first = (mean - beyond * (length + mean_b)) / inside
    second = variance + mean**2 - beyond * (variance_b + (length + mean_b) ** 2)
    short = length * np.maximum(a, 1.0) < _SHORT
    first = np.where(short, length / 2, first)
    spread = np.where(short, length**2 / 12, second / inside - first**2)
    return first, np.maximum(spread, 0.0)


@dataclass(frozen=True, eq=False)
class UniformComponents:
    """What components ``U(lower, upper)`` leave: truncated normal distributions.

    Parameters
    ----------
    z, scale : ndarray of shape (n_values,)
        Values and their noise.
    lower, upper : ndarray of shape (n_components, 1)
        Ends; equal ones are atoms.
    """

    z: FloatArray
    scale: FloatArray
    lower: FloatArray
    upper: FloatArray

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends in units of the noise, relative to z."""
        return (self.lower - self.z) / self.scale, (self.upper - self.z) / self.scale

    @cached_property
    def _is_atom(self) -> FloatArray:
        is_atom: FloatArray = np.broadcast_to(
            self.lower == self.upper, self._ends[0].shape
        )
        return is_atom

    @cached_property
    def _log_mass(self) -> FloatArray:
        return log_mass(*self._ends)

    @cached_property
    def log_density(self) -> FloatArray:
        x = self._ends[0]
        atom = -0.5 * x * x - np.log(self.scale) - 0.5 * np.log(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore"):
            slab = self._log_mass - np.log(self.upper - self.lower)
        density: FloatArray = np.where(self._is_atom, atom, slab)
        return density

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of eta."""
        a, b = self._ends
        # The end that is nearer to z comes first; signs are put back at the end.
        flip = a + b < 0
        near, far = np.where(flip, -b, a), np.where(flip, -a, b)
        outside, length = near > 0, far - near
        first, variance = _beside(np.maximum(near, 0.0), length)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            density = np.exp(
                -0.5 * np.stack([near, far]) ** 2
                - 0.5 * np.log(2 * np.pi)
                - self._log_mass
            )
            middle = density[0] - density[1]
            around = 1 + near * density[0] - np.where(far < 1e8, far, 0) * density[1]
        mean = np.where(outside, first, middle - near)
        variance = np.where(outside, variance, around - middle**2)
        sd = self.scale * np.sqrt(np.maximum(variance, 0.0))
        distance = self.scale * mean
        eta = np.where(flip, self.upper - distance, self.lower + distance)
        inside = self.z + np.where(flip, -1.0, 1.0) * self.scale * middle
        eta = np.clip(np.where(outside, eta, inside), self.lower, self.upper)
        atom = self._is_atom
        return np.where(atom, self.lower, eta), np.where(atom, 0.0, sd)

    @property
    def mean(self) -> FloatArray:
        return self._moments[0]

    @property
    def sd(self) -> FloatArray:
        return self._moments[1]

    def below(self, t: FloatArray) -> FloatArray:
        return self._share(t, self._ends[0], 0)

    def above(self, t: FloatArray) -> FloatArray:
        return self._share(t, self._ends[1], 1)

    def _share(self, t: FloatArray, end: FloatArray, upper: int) -> FloatArray:
        """Probability between t and an end of the component."""
        cut = (np.clip(t, self.lower, self.upper) - self.z) / self.scale
        low, high = (cut, end) if upper else (end, cut)
        with np.errstate(invalid="ignore"):
            share = np.exp(log_mass(low, high) - self._log_mass)
        atom = self.lower >= t if upper else self.lower <= t
        share = np.where(self._is_atom, atom, share)
        return np.minimum(share, 1.0)


@dataclass(frozen=True, eq=False, init=False)
class UnimodalPrior(WeightedMixture):
    """The prior ``sum_t w_t U(0, a_t)`` of eta, where a_t has either sign.

    ``a_t = 0`` is a point mass at zero.

    Parameters
    ----------
    ends : array-like of shape (n_components,)
        The a_t.
    weights : array-like of shape (n_components,)
        Non-negative, not all zero; stored with sum one. Components of weight zero are
        dropped.

    Examples
    --------
    >>> from ebda.priors import UnimodalPrior
    >>> prior = UnimodalPrior(ends=[0, -2, 6], weights=[8, 1, 1])
    >>> posterior = prior.posterior([-3.0, 0.0, 3.0])
    >>> posterior.mean.round(2).tolist()
    [-1.02, -0.03, 2.46]
    >>> posterior.prob_zero.round(2)
    array([0.31, 0.91, 0.18])
    """

    ends: FloatArray
    weights: FloatArray

    def __init__(self, ends: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        end = np.array(ends, dtype=np.float64, ndmin=1)
        if not np.isfinite(end).all():
            raise ValueError("ends must be finite")
        self._store(weights, ends=end)

    def __repr__(self) -> str:
        parts = [
            f"{w:.3g} U({min(a, 0):.3g}, {max(a, 0):.3g})"
            for w, a in zip(self.weights, self.ends, strict=True)
        ]
        return f"UnimodalPrior({' + '.join(parts)})"

    @property
    def point_masses(self) -> FloatArray:
        return np.where(self.ends == 0, 0.0, np.nan)

    def components(self, z: FloatArray, scale: FloatArray) -> UniformComponents:
        """What each component leaves for flat values."""
        end = self.ends[:, None]
        return UniformComponents(z, scale, np.minimum(end, 0), np.maximum(end, 0))

    @property
    def share_below(self) -> float:
        """Share of the part away from zero that is negative."""
        away = self.weights[self.ends != 0].sum()
        return float(self.weights[self.ends < 0].sum() / away) if away > 0 else 0.0

    @property
    def slab_sd(self) -> float:
        """Standard deviation of the part away from zero, about zero."""
        slab = self.ends != 0
        if not slab.any():
            return 0.0
        share = self.weights[slab] / self.weights[slab].sum()
        return float(np.sqrt(share @ self.ends[slab] ** 2 / 3))

    def slab_density(self, eta: FloatArray) -> FloatArray:
        """Density of the part away from zero."""
        slab = self.ends != 0
        if not slab.any():
            return np.zeros(np.shape(eta))
        end = self.ends[slab]
        share = self.weights[slab] / self.weights[slab].sum()
        x = np.asarray(eta)[..., None] / end
        density: FloatArray = ((x >= 0) & (x <= 1)) @ (share / np.abs(end))
        return density


class Unimodal(MixtureEstimator):
    """Any distribution with its mode at zero, by maximum likelihood (Stephens 2017).

    ``z_k ~ N(eta_k, scale_k**2)`` and ``eta_k ~ w_0 delta_0 + sum_t w_t U(0, a_t)``
    with ends a_t of both signs on a fine grid. A density that falls away from zero on
    either side is such a mixture (Khintchine); it need not be symmetric. This is the
    prior of R's ``ashr`` with ``mixcompdist="halfuniform"`` and of ``ebnm_unimodal``;
    ``ashr``'s default, "uniform", has symmetric components only. The weights are found
    as those of `NormalMixture` are.

    Parameters
    ----------
    ends : array-like, optional
        The ends a_t beside zero. By default a tenth of the smallest noise times powers
        of the square root of 2, up to twice the largest value, of both signs.
    zero_count : float
        Pseudo-count of the point mass at zero: the likelihood is multiplied by
        ``w_0**zero_count``. The default is that of ``ashr``; 0 is maximum likelihood,
        as in ``ebnm_unimodal``. Without it the mode of a few hundred values that are
        mostly zero often has all its mass on one side, and is sure of every sign: six
        out of seven calls were false in ``benchmarks/normal_means.py``.
    tol : float
        Duality gap to reach, in average log-likelihood.
    max_iter : int
        Maximum number of Newton steps.

    Attributes
    ----------
    prior_ : UnimodalPrior
        The estimate: the components that have any weight.
    duality_gap_, log_likelihood_, n_iter_, converged_
        As of `NormalMixture`.

    References
    ----------
    Stephens (2017), Biostatistics 18, 275-294.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import Unimodal
    >>> rng = np.random.default_rng(0)
    >>> eta = 3 * rng.exponential(size=5000) * (rng.random(5000) < 0.2)
    >>> prior = Unimodal().fit(eta + rng.normal(size=5000)).prior_
    >>> bool(prior.posterior(-2.0).mean > -0.1)
    True
    """

    def __init__(
        self,
        ends: npt.ArrayLike | None = None,
        zero_count: float = 9.0,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self.ends = ends
        self.zero_count = zero_count
        self.tol = tol
        self.max_iter = max_iter

    def _grid(self, x: FloatArray, noise: FloatArray, unit: float) -> FloatArray:
        """Ends in order; zero is one of them."""
        if self.ends is not None:
            ends = np.asarray(self.ends, dtype=np.float64)
            if not (ends.size and np.isfinite(ends).all()):
                raise ValueError("ends must be finite, at least one")
            return np.union1d(ends / unit, 0.0)
        first = _NEAREST * float(noise.min())
        beyond = float(np.max((np.abs(x) - noise) * (np.abs(x) + noise)))
        last = _REACH * np.sqrt(beyond) if beyond > 0 else 8 * first
        count = min(1 + int(np.ceil(np.log(last / first) / np.log(_FACTOR))), _MOST)
        if count < _MOST:
            side = last * _FACTOR ** np.arange(1.0 - count, 1.0)
        else:
            side = np.geomspace(first, last, count)
        return np.concatenate([-side[::-1], [0.0], side])

    @staticmethod
    def _prior(grid: FloatArray, weights: FloatArray) -> UnimodalPrior:
        return UnimodalPrior(grid, weights)


register(mixture_schema(UnimodalPrior, ends=Array(("t",), ("finite", "in order"))))

FAMILY = PriorFamily(
    "unimodal",
    "any distribution with its mode at zero, a mixture of uniform ones",
    Unimodal,
    fitted=CERTIFICATE,
    is_reported=True,
)
