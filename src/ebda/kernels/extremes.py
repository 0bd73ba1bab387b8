"""Smallest and largest of very many values."""

from __future__ import annotations

import numpy as np

from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray

# Sums of squares up to this can be added up.
_LARGEST = 1e300


def minmax(z: FloatArray) -> tuple[float, float]:
    """Smallest and largest value of a vector; both NaN if any value is.

    >>> minmax(np.array([3.0, -1.0, 2.0]))
    (-1.0, 3.0)
    """
    ends = over_blocks(lambda block: (z[block].min(), z[block].max()), len(z))
    low, high = np.array(ends).T
    return float(low.min()), float(high.max())


def squares_are_sound(squares: FloatArray) -> bool:
    """Whether sums of squares are finite, can be added up, and are positive somewhere.

    Squares about a mean that is not finite are NaN, which is the least and the largest
    of all, or infinite. For each feature, some row is to be positive.

    >>> squares_are_sound(np.array([[1.0, np.nan]]))
    False
    """

    def sound(cols: slice) -> bool:
        some = squares[:, cols]
        if not some.max() < _LARGEST:
            return False
        return bool(some.min(axis=1).max() > 0 or some.sum(axis=0).min() > 0)

    return all(over_blocks(sound, squares.shape[1], releases_lock=True))
