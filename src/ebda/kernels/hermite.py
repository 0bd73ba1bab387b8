"""Smooth functions of very many values: cubic Hermite interpolation in a table.

With values and derivatives at nodes 1/128 of the noise apart, posterior summaries are
exact to 1e-8 of the noise for the priors of real data (``tests/test_hermite.py``), and
cost the same however many atoms the prior has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.typing import FloatArray

# Nodes for each unit of noise, and how many there may be.
_NODES = 128
_MOST_NODES = 1 << 19

# From values to a function of them and its derivative.
Smooth = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def hermite_coefficients(y: FloatArray, slope: FloatArray) -> FloatArray:
    """Coefficients of the cubics between neighbouring nodes, the constants first.

    Parameters
    ----------
    y : ndarray of shape (..., n_nodes)
        Values at equidistant nodes.
    slope : ndarray of shape (..., n_nodes)
        Derivatives, times the distance of the nodes.

    Returns
    -------
    coefficients : ndarray of shape (4, ..., n_nodes - 1)
    """
    rise = np.diff(y)
    left, right = slope[..., :-1], slope[..., 1:]
    square = 3 * rise - 2 * left - right
    return np.stack([y[..., :-1], left, square, left + right - 2 * rise])


def evaluate_cubics(
    coefficients: FloatArray, cell: npt.NDArray[np.intp], t: FloatArray
) -> FloatArray:
    """Values of some of the cubics.

    Parameters
    ----------
    coefficients : ndarray of shape (4, n_cubics)
        See :func:`hermite_coefficients`.
    cell : ndarray of shape (n,)
        Which cubic.
    t : ndarray of shape (n,)
        Where: 0 is its left node, 1 the right one.
    """
    constant, linear, square, cube = coefficients
    value: FloatArray = cube.take(cell)
    for lower in (square, linear, constant):
        value *= t
        value += lower.take(cell)
    return value


def _cubics(
    x: FloatArray,
    step: float,
    first: float,
    coefficients: FloatArray,
    out: FloatArray,
    left: int,
    right: int,
) -> None:
    t = x[left:right] / step
    t -= first
    np.clip(t, 0.0, coefficients.shape[1] - 1.0, out=t)
    cell = t.astype(np.intp)
    t -= cell
    out[left:right] = evaluate_cubics(coefficients, cell, t)


def fits_in_table(scale: float, low: float, high: float) -> bool:
    """Whether a table between these values is small enough."""
    return bool((high - low) / scale * _NODES < _MOST_NODES)


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
        See :func:`hermite_coefficients`.

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
        """Tabulate a function between two ends, for noise of this scale.

        Of several functions, as rows, it is the table of all; see `row`.
        """
        step = float(scale / _NODES)
        first = float(np.floor(low / step))
        nodes = (first + np.arange(int(high / step - first) + 3.0)) * step
        y, slope = function(nodes)
        return cls(step, first, hermite_coefficients(y, slope * step))

    def row(self, k: int) -> Table:
        """The table of one of several functions."""
        own = np.ascontiguousarray(self.coefficients[:, k])
        return Table(self.step, self.first, own)

    def at(self, z: FloatArray) -> FloatArray:
        """The function at every value; beyond the ends, the value at the end."""
        flat = z.ravel()
        out = np.empty(len(flat))
        table = self.step, self.first, self.coefficients
        for_each_block(_cubics, loops.cubics, len(flat), flat, *table, out)
        return out.reshape(z.shape)
