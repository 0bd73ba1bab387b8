"""Smooth functions of z for very many values: a table, and cubics between its nodes.

Posterior summaries under one prior and one noise scale are smooth functions of z alone,
and their derivatives are known: with posterior weights w_t of the atoms a_t,

    d w_t / dz = w_t (a_t - mean) / scale**2,

so that the mean of any h(a) has the derivative Cov(h, a) / scale**2. Cubic Hermite
interpolation between nodes 1/128 of the noise apart is then exact to 1e-8 of the
noise for the priors of real data (``tests/test_tabulated.py``), and costs the same
however many atoms there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.kernels import compiled, loops
from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray

# Values from which a table is worth it.
LARGE = 1 << 17
# Nodes for each unit of noise, and how many there may be.
_NODES = 128
_MOST_NODES = 1 << 19

# From values to a function of them and its derivative.
Smooth = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def fits(z: FloatArray, scale: FloatArray) -> tuple[float, float] | None:
    """The ends of the values if a table may stand for them: many, with one scale."""
    if z.size < LARGE or (any(scale.strides) and np.ptp(scale) > 0):
        return None
    low, high = ends(z.ravel())
    few = (high - low) / float(scale.flat[0]) * _NODES < _MOST_NODES
    return (low, high) if few else None


def ends(z: FloatArray) -> tuple[float, float]:
    """Smallest and largest value; NaN where there is any."""
    fast = compiled.suit_vectors(len(z))

    def part(rows: slice) -> FloatArray:
        if fast:
            loop = compiled.loop(loops.ends)
            found = loop(z.view(np.int64), rows.start, rows.stop)
            return np.array(found).view(np.float64)
        return np.array([z[rows].min(), z[rows].max()])

    low, high = np.array(over_blocks(part, len(z), long=True)).T
    both = float(low.min()), float(high.max())
    return (np.nan, np.nan) if np.isnan(both).any() else both


@dataclass(frozen=True, eq=False)
class Table:
    """A function as cubics between equidistant nodes.

    Parameters
    ----------
    step : float
        Distance of the nodes.
    first : float
        The first node, in steps.
    coefficients : ndarray of shape (4, n_nodes - 1)
        Of the powers of the way from a node to the next, the constant first.

    Examples
    --------
    >>> sine = Table.of(lambda x: (np.sin(x), np.cos(x)), 1.0, 0.0, 3.0)
    >>> z = np.linspace(0, 3, 1000)
    >>> bool(np.abs(sine.at(z) - np.sin(z)).max() < 1e-11)
    True
    """

    step: float
    first: float
    coefficients: FloatArray

    @classmethod
    def of(cls, function: Smooth, scale: float, low: float, high: float) -> Table:
        """From values and derivatives at nodes, for values between these ends."""
        step = float(scale / _NODES)
        first = float(np.floor(low / step))
        nodes = (first + np.arange(int(high / step - first) + 3.0)) * step
        y, slope = function(nodes)
        slope = slope * step
        rise = np.diff(y)
        square = 3 * rise - 2 * slope[:-1] - slope[1:]
        cube = slope[:-1] + slope[1:] - 2 * rise
        return cls(step, first, np.stack([y[:-1], slope[:-1], square, cube]))

    def at(self, z: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """The function at every value; beyond the ends that at the end.

        Parameters
        ----------
        z : ndarray
            Values.
        out : ndarray, optional
            Where to write, for a vector of values.
        """
        flat = z.ravel()
        into = np.empty(len(flat)) if out is None else out
        fast = compiled.suit_vectors(len(flat))
        last = self.coefficients.shape[1] - 1.0

        def part(rows: slice) -> None:
            if fast:
                loop, ends = compiled.loop(loops.cubics), (rows.start, rows.stop)
                loop(flat, self.step, self.first, self.coefficients, *ends, into)
                return
            t = flat[rows] / self.step
            t -= self.first
            np.clip(t, 0.0, last, out=t)
            cell = t.astype(np.intp)
            t -= cell
            constant, linear, square, cube = self.coefficients
            value = cube.take(cell)
            for lower in (square, linear, constant):
                value *= t
                value += lower.take(cell)
            into[rows] = value

        over_blocks(part, len(flat), long=fast)
        return into.reshape(z.shape)
