"""What is known about ``eta`` after seeing ``z ~ N(eta, scale**2)``.

:class:`Posterior` is the contract of every prior family: posterior mean, P(eta = 0),
standard deviation, local false sign rate and credible intervals. The functions
below it do the arithmetic for a discrete prior ``G = sum_t w_t delta(a_t)``, where
the posterior weight of an atom is (the paper's Section 3.3)

    w_kt = w_t exp(-(z_k - a_t)**2 / 2) / sum_s w_s exp(-(z_k - a_s)**2 / 2).

Exponents are taken relative to the atom nearest to z, as
``(a_t - a*)(z - (a_t + a*)/2) / scale**2``: no square of z is ever formed and
cancelled again, so ``z = 1e6`` is as exact as ``z = 1``. Values are handled in
blocks, so that memory does not grow with their number times the number of atoms; very
many values of one scale are looked up in a table (:mod:`ebda.kernels.tabulated`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ebda.kernels import tabulated
from ebda.kernels.tabulated import Table
from ebda.listing import listed
from ebda.typing import FloatArray

# Elements of a block of values x atoms: 2 MiB of float64, within the cache.
_BLOCK_ELEMENTS = 1 << 18
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
# Functions of the atoms whose posterior means are asked for.
_OF_ATOMS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "mean": lambda atoms: atoms,
    "zero": lambda atoms: (atoms == 0).astype(np.float64),
    "square": lambda atoms: atoms**2,
}


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


class Prior(Protocol):
    """A distribution of eta: what an estimated or a given prior can do."""

    def posterior(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Posterior:
        """Posterior of each value, given its noise scale."""

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log of the marginal density of each value."""


@dataclass(frozen=True, eq=False)
class DiscretePosterior:
    """Posterior under a discrete prior; summaries are computed when first asked for.

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

    @cached_property
    def _ends(self) -> tuple[float, float] | None:
        """Of the values, where there are so many that a table is worth it."""
        return tabulated.fits(self.z, self.scale)

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    @property
    def is_tabulated(self) -> bool:
        """Whether summaries are looked up in tables, since there are very many."""
        return self._ends is not None

    def part(self, cols: slice) -> DiscretePosterior:
        """The posterior of some of the values along the last axis, by the same tables.

        So that what is made of the summaries can be made block by block.
        """
        some = replace(self, z=self.z[..., cols], scale=self.scale[..., cols])
        vars(some).update(_ends=self._ends, _tables=self._tables)
        return some

    def mean_writer(self) -> Callable[[slice, FloatArray], None]:
        """A function that writes the means of some of many values, in rows, to rows."""
        table = self._table("mean")

        def write(cols: slice, out: FloatArray) -> None:
            for z, row in zip(self.z, out, strict=True):
                table.at(z[cols], row)

        return write

    def _expectation(self, name: str) -> FloatArray:
        """Posterior mean of a function of the atoms, at every value."""
        if self._ends is not None:
            return self._table(name).at(self.z)
        h = _OF_ATOMS[name](self.atoms)
        return self._summarise(lambda w: (h @ w)[None, :], 1)[0]

    def _table(self, name: str) -> Table:
        """The table of that function; made once."""
        if name in self._tables:
            return self._tables[name]
        assert self._ends is not None
        h, scale = _OF_ATOMS[name](self.atoms), float(self.scale.flat[0])

        def with_slope(nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
            rows = np.stack([h, self.atoms, h * self.atoms])
            scales = np.full(len(nodes), scale)
            parts = [
                rows @ w
                for _, w, _ in weight_blocks(
                    nodes, scales, self.atoms, self.log_weights
                )
            ]
            mean_h, mean, product = np.concatenate(parts, axis=1)
            return mean_h, (product - mean_h * mean) / scale**2

        self._tables[name] = Table.of(with_slope, scale, *self._ends)
        return self._tables[name]

    @cached_property
    def mean(self) -> FloatArray:
        return self._expectation("mean")

    @cached_property
    def prob_zero(self) -> FloatArray:
        zero = self._expectation("zero")
        return np.clip(zero, 0.0, 1.0, out=zero)

    @cached_property
    def sd(self) -> FloatArray:
        if self._ends is not None:
            square = self._expectation("square")
            square -= self.mean**2
            return np.sqrt(np.maximum(square, 0.0, out=square), out=square)

        def spread(w: FloatArray) -> FloatArray:
            from_mean = self.atoms[:, None] - self.atoms @ w
            variance = np.einsum("tk,tk,tk->k", w, from_mean, from_mean)
            root: FloatArray = np.sqrt(variance)[None, :]
            return root

        return self._summarise(spread, 1)[0]

    @cached_property
    def lfsr(self) -> FloatArray:
        signs = np.stack([self.atoms <= 0, self.atoms >= 0]).astype(np.float64)
        not_positive, not_negative = self._summarise(lambda w: signs @ w, 2)
        return np.minimum(np.minimum(not_positive, not_negative), 1.0)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the equal-tailed credible interval: quantiles of the posterior.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}")
        tail = min((1 - level) / 2, np.nextafter(0.5, 0))

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
        self, function: Callable[[FloatArray], FloatArray], width: int
    ) -> tuple[FloatArray, ...]:
        """Apply a function of the posterior weights block by block."""
        out = np.empty((width, self.z.size))
        blocks = weight_blocks(
            self.z.ravel(), self.scale.ravel(), self.atoms, self.log_weights
        )
        for rows, weights, _ in blocks:
            out[:, rows] = function(weights)
        return tuple(row.reshape(self.z.shape) for row in out)


def weight_blocks(
    z: FloatArray, scale: FloatArray, atoms: FloatArray, log_weights: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Posterior weights of the atoms, a block of values at a time.

    Yields
    ------
    rows : slice
        Which values.
    weights : ndarray of shape (n_atoms, n_rows)
        Posterior probability of each atom. Atoms come first, so that sums over the
        few of them run along whole rows of memory.
    log_density : ndarray of shape (n_rows,)
        Log of the marginal density of the values.
    """
    middles = (atoms[1:] + atoms[:-1]) / 2
    size = max(1, _BLOCK_ELEMENTS // len(atoms))
    for start in range(0, len(z), size):
        rows = slice(start, min(start + size, len(z)))
        x, s = z[rows], scale[rows]
        nearest = atoms[np.searchsorted(middles, x)]
        exponent = ((x - nearest / 2) - atoms[:, None] / 2) / s
        exponent *= (atoms[:, None] - nearest) / s
        exponent += log_weights[:, None]
        top = exponent.max(axis=0)
        exponent -= top
        weights = np.exp(exponent, out=exponent)
        total = weights.sum(axis=0)
        weights /= total
        residual = (x - nearest) / s
        log_density = np.log(total) + top - 0.5 * residual * residual
        yield rows, weights, log_density - np.log(s) - _LOG_SQRT_2PI


def finite_values(z: npt.ArrayLike) -> FloatArray:
    """Values as float64, refused with their place where they are not finite."""
    values = np.asarray(z, dtype=np.float64)
    if values.size and np.isfinite(tabulated.ends(values.ravel())).all():
        return values
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        kind = "NaN" if np.isnan(values.ravel()[bad[0]]) else "infinity"
        raise ValueError(
            f"values must be finite: {kind} at position {listed(bad, shown=1)}"
        )
    return values


def broadcast_scale(z: FloatArray, scale: npt.ArrayLike) -> FloatArray:
    """One noise scale per value, checked to be positive and finite."""
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
