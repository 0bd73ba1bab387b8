"""Integrals over z of functions that are smooth except for a few jumps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ebda.typing import FloatArray

Estimate = Callable[[FloatArray], FloatArray]

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def panel_rule(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on the panels between ascending edges.

    Parameters
    ----------
    edges : ndarray of shape (..., n_edges)
        Edges of the panels; panels of width zero are allowed.

    Returns
    -------
    nodes, weights : ndarray of shape (..., 10 * (n_edges - 1))

    >>> nodes, weights = panel_rule(np.array([0.0, 1.0, 3.0]))
    >>> round(float(weights @ nodes**2), 12)
    9.0
    """
    half = np.diff(edges)[..., None] / 2
    middle = edges[..., :-1, None] + half
    shape = (*edges.shape[:-1], -1)
    return (middle + half * _POINTS).reshape(shape), (half * _WEIGHTS).reshape(shape)


def switch_points(estimate: Estimate, grid: FloatArray) -> tuple[FloatArray, ...]:
    """Find where an estimator changes from zero to nonzero or back.

    Parameters
    ----------
    estimate : callable
        Maps an array of z to the estimates.
    grid : ndarray
        Ascending points; a change is found if it separates two neighbouring points.

    Returns
    -------
    zero, nonzero : ndarray
        Adjacent floating-point numbers on either side of each change.

    >>> def hard(z):
    ...     return np.where(abs(z) > 2.5, z, 0.0)
    >>> zero, nonzero = switch_points(hard, np.array([-9.0, 0.0, 9.0]))
    >>> zero, nonzero.round(8)
    (array([-2.5, 2.5]), array([-2.5, 2.5]))
    """
    is_zero: npt.NDArray[np.bool_] = estimate(grid) == 0
    left = np.flatnonzero(is_zero[1:] != is_zero[:-1])
    starts = is_zero[left]
    zero = np.where(starts, grid[left], grid[left + 1])
    nonzero = np.where(starts, grid[left + 1], grid[left])
    # Each step halves the distance; 64 exhaust the precision of a double.
    for _ in range(64 if left.size else 0):
        middle = (zero + nonzero) / 2
        goes = estimate(middle) == 0
        zero, nonzero = np.where(goes, middle, zero), np.where(goes, nonzero, middle)
    return zero, nonzero
