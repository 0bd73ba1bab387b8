"""What is known about ``eta`` after seeing ``z ~ N(eta, scale**2)``.

:class:`Posterior` is the contract of every prior family: posterior mean, P(eta = 0),
standard deviation, local false sign rate and credible intervals. The functions
below it do the arithmetic for a discrete prior ``G = sum_t w_t delta(a_t)``, where
the posterior weight of an atom is (the paper's Section 3.3)

    w_kt = w_t exp(-(z_k - a_t)**2 / 2) / sum_s w_s exp(-(z_k - a_s)**2 / 2).

Weights are computed a block of values at a time (:mod:`ebda.kernels.atoms`), so that
memory does not grow with the number of values times the number of atoms.

Summaries of very many values with one scale are looked up in a table
(:mod:`ebda.kernels.hermite`). They are smooth functions of z alone with known
derivatives: since

    d w_t / dz = w_t (a_t - mean) / scale**2,

the posterior mean of any h(eta) has the derivative ``Cov(h, eta | z) / scale**2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.data.finite import refuse_masked
from ebda.kernels.atoms import weight_blocks
from ebda.kernels.extremes import minmax
from ebda.kernels.hermite import Table, fits_in_table
from ebda.listing import listed
from ebda.sizes import sizes
from ebda.storage.fields import VALUES, Array
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray


class Posterior(Protocol):
    """Posterior summaries, each with the shape of the values they belong to."""

    @property
    def mean(self) -> FloatArray:
        """Posterior mean E(eta | z)."""

    @property
    def prob_zero(self) -> FloatArray:
        """P(eta = 0 | z)."""

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviation."""

    @property
    def lfsr(self) -> FloatArray:
        """Local false sign rate: min of P(eta <= 0 | z) and P(eta >= 0 | z)."""

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the equal-tailed credible interval."""


def mean_slope(posterior: Posterior) -> FloatArray:
    """Derivative of each posterior mean by its own value, for noise of scale 1.

    Tweedie's formula makes it the posterior variance. A posterior that looks at other
    values too, or whose prior follows the values, has a `mean_slope` of its own.
    """
    own: FloatArray | None = getattr(posterior, "mean_slope", None)
    return posterior.sd**2 if own is None else own


class Prior(Protocol):
    """A distribution of eta: what an estimated or a given prior can do.

    Some priors follow the values (:class:`ebda.priors.MartinWalker`): they give
    posteriors, and have no marginal density. Their attribute `has_density` is False,
    `logpdf` raises a TypeError, and their posteriors have a `mean_slope`.
    """

    def posterior(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Posterior:
        """Posterior of each value, given its noise scale."""

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log of the marginal density of each value."""


def has_density(prior: Prior) -> bool:
    """Whether the prior has a marginal density: all but those that follow the values.

    >>> from ebda.priors import DiscretePrior, MartinWalker
    >>> priors = DiscretePrior([0], [1]), MartinWalker().fit([1]).prior_
    >>> [has_density(prior) for prior in priors]
    [True, False]
    """
    return bool(getattr(prior, "has_density", True))


@dataclass(frozen=True, eq=False)
class DiscretePosterior:
    """Posterior under a discrete prior; summaries are computed when first asked for.

    For a few values `mean`, `prob_zero` and `sd` are kept. For very many values
    (`is_tabulated`) they are not: each access looks them up again, which takes about
    as long as reading the values, and returns a new array that may be overwritten.
    `lfsr` is kept in both cases.

    Parameters
    ----------
    z, scale : ndarray
        Values and their noise scale, of the same shape.
    atoms, log_weights : ndarray of shape (n_atoms,)
        The prior, atoms ascending.
    """

    z: FloatArray
    scale: FloatArray
    atoms: FloatArray
    log_weights: FloatArray

    def __getstate__(self) -> dict[str, Any]:
        # Neither tables nor summaries are pickled: they follow from the fields.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _range(self) -> tuple[float, float] | None:
        """Smallest and largest value, where there are enough values for a table."""
        if self.z.size < sizes.tabulated_values or not all_equal(self.scale):
            return None
        low, high = minmax(self.z.ravel())
        return (low, high) if fits_in_table(self._common_scale, low, high) else None

    @property
    def _common_scale(self) -> float:
        return float(self.scale.flat[0])

    @property
    def is_tabulated(self) -> bool:
        """Whether summaries are looked up in tables, because there are very many."""
        return self._range is not None

    @property
    def mean(self) -> FloatArray:
        return self._mean_of(0)

    @property
    def prob_zero(self) -> FloatArray:
        zero = self._mean_of(1)
        return np.clip(zero, 0.0, 1.0, out=zero)

    @property
    def sd(self) -> FloatArray:
        if not self.is_tabulated:
            return self._sd
        variance = self._mean_of(2)
        variance -= self.mean**2
        np.maximum(variance, 0.0, out=variance)
        return np.sqrt(variance, out=variance)

    @cached_property
    def _functions(self) -> FloatArray:
        """eta, whether it is zero, and its square, at the atoms."""
        return np.stack([self.atoms, self.atoms == 0, self.atoms**2])

    @cached_property
    def _known(self) -> dict[int, Any]:
        """What `_mean_of` has computed: tables, or else the means themselves."""
        return {}

    def _mean_of(self, k: int) -> FloatArray:
        """Posterior mean of one of the functions of eta."""
        if k not in self._known:
            self._known[k] = (
                self._tables.row(k)
                if self.is_tabulated
                else self._summarise(lambda w: self._functions[k] @ w)
            )
        known = self._known[k]
        values: FloatArray = known.at(self.z) if self.is_tabulated else known
        return values

    @cached_property
    def _sd(self) -> FloatArray:
        def sd(w: FloatArray) -> FloatArray:
            from_mean = self.atoms[:, None] - self.atoms @ w
            variance = np.einsum("tk,tk,tk->k", w, from_mean, from_mean)
            root: FloatArray = np.sqrt(variance)
            return root

        return self._summarise(sd)

    @cached_property
    def lfsr(self) -> FloatArray:
        signs = np.stack([self.atoms <= 0, self.atoms >= 0]).astype(np.float64)
        not_positive, not_negative = self._summarise(lambda w: signs @ w, 2)
        smaller: FloatArray = np.minimum(not_positive, not_negative)
        return np.minimum(smaller, 1.0)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the equal-tailed credible interval: quantiles of the posterior.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        tail = min(tail_probability(level), np.nextafter(0.5, 0))

        def ends(w: FloatArray) -> FloatArray:
            # Each tail is summed from its own end, where small weights still count.
            lower = np.argmax(np.cumsum(w, axis=0) > tail, axis=0)
            from_above = np.argmax(np.cumsum(w[::-1], axis=0) > tail, axis=0)
            upper = len(self.atoms) - 1 - from_above
            quantiles: FloatArray = self.atoms[np.stack([lower, upper])]
            return quantiles

        lower, upper = self._summarise(ends, 2)
        return lower, upper

    def _summarise(
        self, function: Callable[[FloatArray], FloatArray], n_rows: int = 1
    ) -> FloatArray:
        """One or more functions of the posterior weights, block by block.

        One function has the shape of the values; several are stacked.
        """
        out = np.empty((n_rows, self.z.size))
        blocks = weight_blocks(
            self.z.ravel(), self.scale.ravel(), self.atoms, self.log_weights
        )
        for some, weights, _ in blocks:
            out[:, some] = function(weights)
        shape = self.z.shape
        return out.reshape(shape if n_rows == 1 else (n_rows, *shape))

    @cached_property
    def _tables(self) -> Table:
        """Table of the posterior means of all functions: they share the weights."""
        assert self._range is not None
        scale, h = self._common_scale, self._functions
        rows = np.concatenate([h, h * self.atoms])

        def with_slope(nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
            scales = np.broadcast_to(scale, nodes.shape)
            blocks = weight_blocks(nodes, scales, self.atoms, self.log_weights)
            parts = [rows @ weights for _, weights, _ in blocks]
            mean, product = np.split(np.concatenate(parts, axis=1), 2)
            return mean, (product - mean * mean[0]) / scale**2

        return Table.of(with_slope, scale, *self._range)


register(
    Schema(
        DiscretePosterior,
        {
            "z": Array(VALUES),
            "scale": Array(VALUES, ("finite", "positive")),
            "atoms": Array(("t",), ("finite", "ascending")),
            "log_weights": Array(("t",), ("zero or less", "logs of a distribution")),
        },
        role="posterior",
    )
)


@dataclass(frozen=True, eq=False)
class RescaledPosterior:
    """A posterior in other units: that of ``eta / unit``.

    Parameters
    ----------
    posterior : Posterior
        Of eta.
    unit : ndarray
        Of the shape of its values, or one that is broadcast to it.

    Examples
    --------
    >>> from ebda.priors import DiscretePrior
    >>> prior = DiscretePrior([0.0, 3.0], [0.5, 0.5])
    >>> posterior = prior.posterior(np.array([9.0]), 2.0)
    >>> RescaledPosterior(posterior, np.array([2.0])).mean.round(2)
    array([1.49])
    """

    posterior: Posterior
    unit: FloatArray

    @property
    def mean(self) -> FloatArray:
        return self.posterior.mean / self.unit

    @property
    def prob_zero(self) -> FloatArray:
        return self.posterior.prob_zero

    @property
    def sd(self) -> FloatArray:
        return self.posterior.sd / self.unit

    @property
    def lfsr(self) -> FloatArray:
        return self.posterior.lfsr

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        lower, upper = self.posterior.interval(level)
        return lower / self.unit, upper / self.unit


register(
    Schema(
        RescaledPosterior,
        {
            "posterior": Nested("posterior"),
            "unit": Array(VALUES, ("finite", "positive")),
        },
        role="posterior",
    )
)


def as_values(z: npt.ArrayLike) -> FloatArray:
    """Values as float64, none of them masked."""
    refuse_masked(values=z)
    return np.asarray(z, dtype=np.float64)


def finite_values(z: npt.ArrayLike) -> FloatArray:
    """Values as float64, or an error that says where they are not finite."""
    values = as_values(z)
    if values.size and np.isfinite(minmax(values.ravel())).all():
        return values
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        kind = "NaN" if np.isnan(values.ravel()[bad[0]]) else "infinity"
        raise ValueError(
            f"values must be finite: {kind} at position {listed(bad, shown=1)}"
        )
    return values


def all_equal(scale: FloatArray) -> bool:
    """Whether all values, at least one, have the same noise scale."""
    return not any(scale.strides) or bool(np.ptp(scale) == 0)


def tail_probability(level: float) -> float:
    """Probability on either side of an equal-tailed interval of this level."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return (1 - level) / 2


def broadcast_scale(z: FloatArray, scale: npt.ArrayLike) -> FloatArray:
    """One noise scale per value, checked to be positive and finite."""
    refuse_masked(scale=scale)
    s = np.asarray(scale, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(s) & (s > 0)))
    if bad.size:
        raise ValueError(
            f"scale must be positive and finite; at position {bad[0]} it is "
            f"{s.ravel()[bad[0]]}"
        )
    try:
        return np.broadcast_to(s, z.shape)
    except ValueError:
        raise ValueError(
            f"scale has shape {s.shape}, which does not fit values of shape {z.shape}: "
            "give one number, or one for each value"
        ) from None
