"""A point mass at zero plus a continuous slab: shared by the parametric families.

The prior is ``pi0 delta_0 + (1 - pi0) H``. For a normal or a Laplace slab H, the
posterior of ``z ~ N(eta, scale**2)`` is a point mass at zero and, on either side of it,
a normal distribution truncated at zero:

    p0 delta_0  +  p+ N(m+, v) on (0, inf)  +  p- N(-m-, v) on (-inf, 0).

A family says what these are, and everything else follows here: with the hazard rate
``h(u) = phi(u) / Phi(-u)`` at ``u = -m / sqrt(v)`` a truncated half has mean
``sqrt(v) (h - u)`` and variance ``v (1 - h (h - u))``, and its quantiles come from
those of the normal. All masses and tail probabilities are kept as logarithms, so
``z = 1e6`` is as exact as ``z = 1``.

Estimates are by marginal maximum likelihood. For a given slab the log-likelihood is
concave in pi0, which leaves a search in one dimension, over the slab's standard
deviation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, log_ndtr, ndtri_exp

from ebda.cached import cached_property
from ebda.priors.base import (
    BasePriorEstimator,
    PriorFamily,
    divide_by_median_scale,
    sorted_values,
)
from ebda.priors.cells import Cells, group
from ebda.priors.posterior import broadcast_scale, finite_values, tail_probability
from ebda.storage.fields import Array, Kind, Scalar
from ebda.storage.objects import Lengths, Nested, Schema, register
from ebda.typing import FloatArray

LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
# From here on the moments of a half are computed from their expansion in 1 / u**2, with
# a relative error of 1e-8; that of the closed form is u**4 times the rounding error.
_FAR = 30.0
# Standard deviations of the slab that are tried before the search is refined: the
# factor between two of them, and how many there may be.
_SD_FACTOR = 1.15
_MAX_SDS = 200
# Likelihood ratios are limited to this: beyond it only their inverse matters.
_MAX_LOG_RATIO = 500.0


def log_density(z: FloatArray, sd: FloatArray) -> FloatArray:
    """Log of the N(0, sd**2) density."""
    x = z / sd
    density: FloatArray = -0.5 * x * x - np.log(sd) - LOG_SQRT_2PI
    return density


def log_mills(u: FloatArray) -> FloatArray:
    """Log of Mills' ratio ``Phi(-u) / phi(u)``, at any u.

    >>> log_mills(np.array([-40.0, 0.0, 1e6])).round(4).tolist()
    [800.9189, 0.2258, -13.8155]
    """
    below = np.minimum(u, 0)
    tail = np.log(erfcx(np.maximum(u, 0) / np.sqrt(2))) + 0.5 * np.log(np.pi / 2)
    ratio: FloatArray = np.where(
        u < 0, log_ndtr(-below) + 0.5 * below * below + LOG_SQRT_2PI, tail
    )
    return ratio


def truncated_moments(u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of ``X - u`` given ``X > u``, for standard normal X.

    >>> mean, variance = truncated_moments(np.array([-50.0, 0.0, 1e5]))
    >>> mean, variance.round(3)
    (array([5.00000000e+01, 7.97884561e-01, 1.00000000e-05]),
     array([1.   , 0.363, 0.   ]))
    """
    hazard = np.exp(-log_mills(u))
    mean = hazard - u
    variance = np.maximum(1 - hazard * mean, 0)
    inverse = 1 / np.maximum(u, _FAR)
    t = inverse * inverse
    far_mean = inverse * (1 + t * (-2 + t * (10 + t * (-74 + t * 706))))
    far_variance = t * (1 + t * (-6 + t * (50 + t * (-518 + t * 6354))))
    far = u > _FAR
    return np.where(far, far_mean, mean), np.where(far, far_variance, variance)


@dataclass(frozen=True, eq=False)
class Masses:
    """The posterior of flat values, not normalised.

    Parameters
    ----------
    log_zero : ndarray of shape (n_values,)
        Log of the mass at zero; the sum of all masses is the marginal density.
    log_sides : ndarray of shape (2, n_values)
        Log of the mass above zero, and of that below.
    location : ndarray of shape (2, n_values)
        ``m+`` and ``m-``, each positive away from zero.
    sd : ndarray of shape (n_values,)
        ``sqrt(v)``.
    """

    log_zero: FloatArray
    log_sides: FloatArray
    location: FloatArray
    sd: FloatArray

    @property
    def log_total(self) -> FloatArray:
        """Log of the marginal density of the values."""
        total: FloatArray = np.logaddexp(
            self.log_zero, np.logaddexp(self.log_sides[0], self.log_sides[1])
        )
        return total


@dataclass(frozen=True, eq=False)
class SpikeSlabPosterior:
    """Posterior under a point mass plus slab; each summary is computed when asked for.

    Parameters
    ----------
    masses : Masses
        The posterior of the values, flat.
    shape : tuple of int
        Shape of the values, which every summary has.
    """

    masses: Masses
    shape: tuple[int, ...]

    @cached_property
    def _log_sides(self) -> FloatArray:
        """Log of P(eta > 0 | z) and P(eta < 0 | z)."""
        sides: FloatArray = self.masses.log_sides - self.masses.log_total
        return np.minimum(sides, 0.0)

    @cached_property
    def _zero(self) -> FloatArray:
        probability: FloatArray = np.exp(self.masses.log_zero - self.masses.log_total)
        return np.minimum(probability, 1.0)

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of eta, flat."""
        above, below = np.exp(self._log_sides)
        sd = self.masses.sd
        means, variances = truncated_moments(-self.masses.location / sd)
        means, sds = means * sd, np.sqrt(variances) * sd
        mean = above * means[0] - below * means[1]
        # Roots of sums of squares by hypot, which does not overflow in any unit.
        total_sd = np.sqrt(self._zero) * np.abs(mean)
        for weight, mean_of_side, sd_of_side in (
            (above, means[0], sds[0]),
            (below, -means[1], sds[1]),
        ):
            part = np.sqrt(weight) * np.hypot(sd_of_side, mean_of_side - mean)
            total_sd = np.hypot(total_sd, part)
        return mean, total_sd

    @property
    def mean(self) -> FloatArray:
        return self._moments[0].reshape(self.shape)

    @property
    def sd(self) -> FloatArray:
        return self._moments[1].reshape(self.shape)

    @property
    def prob_zero(self) -> FloatArray:
        return self._zero.reshape(self.shape)

    @property
    def lfsr(self) -> FloatArray:
        smaller = self._zero + np.exp(self._log_sides.min(axis=0))
        lfsr: FloatArray = np.minimum(smaller, 1.0)
        return lfsr.reshape(self.shape)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the equal-tailed credible interval: quantiles of the posterior.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        tail = tail_probability(level)
        upper, lower = self._end(0, 1, tail), 0.0 - self._end(1, 0, tail)
        return lower.reshape(self.shape), upper.reshape(self.shape)

    def _end(self, near: int, other: int, tail: float) -> FloatArray:
        """Place, in the direction of a side, beyond which the probability is `tail`."""
        end = np.zeros(len(self._zero))
        for side, beyond, sign in ((near, tail, 1.0), (other, 1 - tail, -1.0)):
            log_beyond = np.log(beyond) - self._log_sides[side]
            here = np.flatnonzero(log_beyond < 0)
            location, sd = self.masses.location[side, here], self.masses.sd[here]
            log_tail = log_beyond[here] + log_ndtr(location / sd)
            distance = location - sd * ndtri_exp(log_tail)
            end[here] = sign * np.maximum(distance, 0)
        return end


def _masses_from_fields(fields: dict[str, FloatArray]) -> Masses:
    masses = Masses(**fields)
    if not np.isfinite(masses.log_total).all():
        raise ValueError("the masses of a value have no finite sum")
    return masses


register(
    Schema(
        Masses,
        {
            "log_zero": Array(("flat",), ("free of NaN",)),
            "log_sides": Array(("2", "flat"), ("free of NaN",)),
            "location": Array(("2", "flat")),
            "sd": Array(("flat",), ("finite", "positive")),
        },
        build=_masses_from_fields,
    ),
    Schema(
        SpikeSlabPosterior,
        {"shape": Lengths(), "masses": Nested(("Masses",))},
        role="posterior",
    ),
)


@dataclass(frozen=True)
class SpikeSlab(ABC):
    """The prior ``pi0 delta_0 + (1 - pi0) H``; a family says what H leads to.

    Its parameters besides pi0 are positive numbers.
    """

    pi0: float

    def __post_init__(self) -> None:
        if not 0 <= self.pi0 <= 1:
            raise ValueError(f"pi0 must lie between 0 and 1, got {self.pi0!r}")
        for name in [field.name for field in fields(self)][1:]:
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive, got {value!r}")

    @abstractmethod
    def slab(self, z: FloatArray, scale: FloatArray) -> tuple[FloatArray, ...]:
        """Log masses, locations and sd of the halves, as in `Masses`, for pi0 = 0."""

    def _masses(
        self, z: npt.ArrayLike, scale: npt.ArrayLike
    ) -> tuple[Masses, tuple[int, ...]]:
        """The posterior of the values, flat, and their shape."""
        values = finite_values(z)
        x, s = values.ravel(), broadcast_scale(values, scale).ravel()
        log_sides, location, sd = self.slab(x, s)
        with np.errstate(divide="ignore"):
            spike, slab = np.log(self.pi0), np.log1p(-self.pi0)
        masses = Masses(spike + log_density(x, s), slab + log_sides, location, sd)
        return masses, values.shape

    def posterior(
        self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0
    ) -> SpikeSlabPosterior:
        """Posterior of eta for each z ~ N(eta, scale**2).

        Parameters
        ----------
        z : array-like of any shape, or a number
            Observed values.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        return SpikeSlabPosterior(*self._masses(z, scale))

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log marginal density at each z."""
        masses, shape = self._masses(z, scale)
        return masses.log_total.reshape(shape)[()]


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
