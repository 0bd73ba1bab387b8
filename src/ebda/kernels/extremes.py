"""Smallest and largest of very many values."""

from __future__ import annotations

import numpy as np

from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray

# Sums of squares up to this can be added up; those below it have lost digits.
_LARGEST, SMALLEST_SQUARE = 1e300, 1e-290


def minmax(z: FloatArray) -> tuple[float, float]:
    """Smallest and largest value of a vector; both NaN if any value is.

    >>> minmax(np.array([3.0, -1.0, 2.0]))
    (-1.0, 3.0)
    """
    ends = over_blocks(lambda block: (z[block].min(), z[block].max()), len(z))
    low, high = np.array(ends).T
    return float(low.min()), float(high.max())


def squares_are_sound(squares: FloatArray) -> bool:
    """Whether sums of squares are finite, can be added up, and have all their digits.

    Squares about a mean that is not finite are NaN, which is the least and the largest
    of all, or infinite. For each feature, some row must be above the smallest square.

    >>> squares_are_sound(np.array([[1.0, np.nan]]))
    False
    """

    def sound(cols: slice) -> bool:
        some = squares[:, cols]
        if not some.max() < _LARGEST:
            return False
        least = some.min(axis=1).max()
        return bool(max(least, some.sum(axis=0).min()) > SMALLEST_SQUARE)

    return all(over_blocks(sound, squares.shape[1], releases_lock=True))
