"""Priors that are mixtures of continuous components and atoms, and their posteriors.

Given ``z ~ N(eta, scale**2)`` the posterior under ``G = sum_t w_t H_t`` is a mixture of
the posteriors of the components,

    P(eta in A | z) = sum_t w_t f(z | t) P(eta in A | z, t) / sum_t w_t f(z | t).

A family says what a component leaves (:class:`Components`), and everything else follows
here: mean and standard deviation, the local false sign rate, and the quantiles, which
are found by bisection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ebda.cached import cached_property
from ebda.priors.posterior import broadcast_scale, finite_values, tail_probability
from ebda.sizes import sizes
from ebda.storage.fields import VALUES, Array
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
# Ends of intervals are found to this part of the noise.
_PRECISION = 1e-10
_MAX_BISECTIONS = 200


class Components(Protocol):
    """What each component leaves: arrays of shape (n_components, n_values).

    `log_density` holds the log of ``f(z | t)``; `mean` and `sd` are those of eta given
    z and the component.
    """

    @property
    def log_density(self) -> FloatArray: ...
    @property
    def mean(self) -> FloatArray: ...
    @property
    def sd(self) -> FloatArray: ...

    def below(self, t: FloatArray) -> FloatArray:
        """P(eta <= t | z, component)."""

    def above(self, t: FloatArray) -> FloatArray:
        """P(eta >= t | z, component)."""


@dataclass(frozen=True, eq=False)
class NormalComponents:
    """What components ``N(loc, tau**2)`` leave; with tau = 0 they are atoms.

    Parameters
    ----------
    z, scale : ndarray of shape (n_values,)
        Values and their noise.
    loc, tau : ndarray of shape (n_components, 1)
    """

    z: FloatArray
    scale: FloatArray
    loc: FloatArray
    tau: FloatArray

    @cached_property
    def _total(self) -> FloatArray:
        return np.hypot(self.scale, self.tau)

    @cached_property
    def log_density(self) -> FloatArray:
        x = (self.z - self.loc) / self._total
        density: FloatArray = -0.5 * x * x - np.log(self._total) - _LOG_SQRT_2PI
        return density

    @cached_property
    def mean(self) -> FloatArray:
        kept = self.tau / self._total
        mean: FloatArray = self.loc + kept * kept * (self.z - self.loc)
        return mean

    @cached_property
    def sd(self) -> FloatArray:
        sd: FloatArray = self.scale * (self.tau / self._total)
        return sd

    def below(self, t: FloatArray) -> FloatArray:
        return self._tail(t - self.mean)

    def above(self, t: FloatArray) -> FloatArray:
        return self._tail(self.mean - t)

    def _tail(self, distance: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(self.sd > 0, distance / self.sd, np.inf * (distance + 1e-300))
        tail: FloatArray = ndtr(np.where(np.isnan(u), np.inf, u))
        return tail


class MixturePrior(ABC):
    """A prior ``sum_t w_t H_t``; a family says what its components are."""

    @property
    @abstractmethod
    def log_weights(self) -> FloatArray:
        """Logs of the weights."""

    @property
    @abstractmethod
    def point_masses(self) -> FloatArray:
        """Where each component is an atom; NaN for those that are continuous."""

    @abstractmethod
    def components(self, z: FloatArray, scale: FloatArray) -> Components:
        """What each component leaves for flat values."""

    @property
    def pi0(self) -> float:
        """The mass at zero."""
        return float(np.exp(self.log_weights[self.point_masses == 0]).sum())

    def posterior(
        self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0
    ) -> MixturePosterior:
        """Posterior of eta for each z ~ N(eta, scale**2).

        Parameters
        ----------
        z : array-like of any shape, or a number
            Observed values.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values = finite_values(z)
        return MixturePosterior(values, broadcast_scale(values, scale), self)

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log marginal density at each z."""
        values = finite_values(z)
        s = broadcast_scale(values, scale).ravel()
        out = np.empty(values.size)
        for rows, _, _, log_density in blocks(self, values.ravel(), s):
            out[rows] = log_density
        return out.reshape(values.shape)[()]


Block = tuple[slice, Components, FloatArray, FloatArray]


def blocks(prior: MixturePrior, z: FloatArray, scale: FloatArray) -> Iterator[Block]:
    """Components, their posterior weights and the log density, by blocks of values."""
    log_weights = prior.log_weights[:, None]
    size = max(1, sizes.posterior_elements // len(log_weights))
    for start in range(0, len(z), size):
        rows = slice(start, start + size)
        components = prior.components(z[rows], scale[rows])
        weights = log_weights + components.log_density
        top = weights.max(axis=0)
        weights = np.exp(weights - top)
        total = weights.sum(axis=0)
        yield rows, components, weights / total, top + np.log(total)


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """Posterior under a mixture; each summary is computed when asked for.

    Parameters
    ----------
    z, scale : ndarray
        Values and their noise scale, of the same shape.
    prior : MixturePrior
        The prior.
    """

    z: FloatArray
    scale: FloatArray
    prior: MixturePrior

    @cached_property
    def _is_zero(self) -> FloatArray:
        is_zero: FloatArray = (self.prior.point_masses == 0).astype(np.float64)[:, None]
        return is_zero

    @cached_property
    def _moments(self) -> FloatArray:
        """Mean, standard deviation, P(zero) and lfsr, one row each."""

        def moments(c: Components, w: FloatArray) -> FloatArray:
            mean = (w * c.mean).sum(axis=0)
            spread = np.hypot(c.sd, c.mean - mean)
            sd = np.sqrt((w * spread**2).sum(axis=0))
            zero = (w * self._is_zero).sum(axis=0)
            nowhere = np.zeros(w.shape[1])
            sides = [(w * tail(nowhere)).sum(axis=0) for tail in (c.below, c.above)]
            return np.stack([mean, sd, zero, np.minimum(*sides)])

        found = self._summarise(moments, 4)
        # P(eta <= 0) holds the mass at zero; rounding must not make it smaller.
        np.clip(found[2:], 0.0, 1.0, out=found[2:])
        found[3] = np.maximum(found[3], found[2])
        return found

    @property
    def mean(self) -> FloatArray:
        mean: FloatArray = self._moments[0]
        return mean

    @property
    def sd(self) -> FloatArray:
        sd: FloatArray = self._moments[1]
        return sd

    @property
    def prob_zero(self) -> FloatArray:
        zero: FloatArray = self._moments[2]
        return zero

    @property
    def lfsr(self) -> FloatArray:
        lfsr: FloatArray = self._moments[3]
        return lfsr

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the equal-tailed credible interval: quantiles of the posterior.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        tail = tail_probability(level)
        atoms = np.unique(self.prior.point_masses[np.isfinite(self.prior.point_masses)])

        def ends(c: Components, w: FloatArray) -> FloatArray:
            return np.stack([_lower_end(c, w, tail, 1.0), _lower_end(c, w, tail, -1.0)])

        lower, upper = self._summarise(ends, 2)
        return _snap(lower, atoms, self.scale), _snap(upper, atoms, self.scale)

    def _summarise(
        self, function: Callable[[Components, FloatArray], FloatArray], n_rows: int
    ) -> FloatArray:
        """Functions of the posterior, block by block, each of the values' shape."""
        out = np.empty((n_rows, self.z.size))
        z, scale = self.z.ravel(), self.scale.ravel()
        for rows, components, weights, _ in blocks(self.prior, z, scale):
            out[:, rows] = function(components, weights)
        return out.reshape(n_rows, *self.z.shape)


def _lower_end(c: Components, w: FloatArray, tail: float, sign: float) -> FloatArray:
    """Where the probability beyond passes `tail`, from below (1) or from above (-1).

    By Cantelli's inequality the quantile of a component lies within a multiple of its
    standard deviation of its mean, and that of the mixture between those.
    """
    mean, probability = sign * c.mean, c.below if sign > 0 else c.above
    left = (mean - np.sqrt((1 - tail) / tail) * c.sd).min(axis=0)
    right = (mean + np.sqrt(tail / (1 - tail)) * c.sd).max(axis=0)
    room = 1e-12 * (1 + np.maximum(np.abs(left), np.abs(right)))
    left, right = left - room, right + room
    spread = np.sqrt((w * c.sd**2).sum(axis=0))
    precise = np.where(spread > 0, _PRECISION * spread, 1e-6 * (right - left))
    for _ in range(_MAX_BISECTIONS):
        middle = (left + right) / 2
        # Each value stops by itself: its result does not depend on the others.
        wide = right - left > np.maximum(precise, 1e-14 * np.abs(middle))
        if not wide.any():
            break
        beyond = (w * probability(sign * middle)).sum(axis=0) > tail
        right = np.where(wide & beyond, middle, right)
        left = np.where(wide & ~beyond, middle, left)
    end: FloatArray = sign * right
    return end


def _snap(end: FloatArray, atoms: FloatArray, scale: FloatArray) -> FloatArray:
    """Ends that are an atom but for the last digits become the atom."""
    for atom in atoms:
        near = np.abs(end - atom) <= 4 * _PRECISION * np.maximum(scale, np.abs(atom))
        end = np.where(near, atom, end)
    return end


register(
    Schema(
        MixturePosterior,
        {
            "z": Array(VALUES),
            "scale": Array(VALUES, ("finite", "positive")),
            "prior": Nested("prior"),
        },
        role="posterior",
    )
)
