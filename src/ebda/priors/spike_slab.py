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
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, log_ndtr, ndtri_exp

from ebda.cached import cached_property
from ebda.priors.posterior import broadcast_scale, finite_values, tail_probability
from ebda.storage.fields import Array
from ebda.storage.objects import Lengths, Nested, Schema, register
from ebda.typing import FloatArray

LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
# From here on the moments of a half are computed from their expansion in 1 / u**2, with
# a relative error of 1e-8; that of the closed form is u**4 times the rounding error.
_FAR = 30.0


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
