"""A row of points: where they go, and their density."""

from __future__ import annotations

import numpy as np
from scipy.stats import gaussian_kde

from ebda.typing import FloatArray, IntArray

_BINS = 60
_GRID = 400


def grid_around(scores: FloatArray) -> FloatArray:
    """Values across all scores, with room on either side of the boundary."""
    low, high = min(scores.min(), 0.0), max(scores.max(), 0.0)
    low, high = min(low, -0.3 * high), max(high, -0.3 * low)
    margin = 0.08 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, _GRID)


def density(values: FloatArray, grid: FloatArray) -> FloatArray:
    """Kernel density of the values, or nothing where they have no spread."""
    if len(values) < 3 or np.ptp(values) <= 1e-9 * np.ptp(grid):
        return np.zeros(len(grid))
    estimate: FloatArray = gaussian_kde(values)(grid)
    return estimate


def stack(values: FloatArray, low: float, high: float) -> IntArray:
    """How many neighbours each value lies upon, in a heap of points.

    >>> stack(np.array([0.1, 5.0, 0.11, 0.12]), 0.0, 10.0)
    array([0, 0, 1, 2])
    """
    cells = np.minimum((values - low) * (_BINS / (high - low)), _BINS - 1).astype(int)
    order = np.lexsort((values, cells))
    ordered = cells[order]
    first = np.searchsorted(ordered, ordered)
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.arange(len(values)) - first
    return place
