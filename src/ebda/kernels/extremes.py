"""Smallest and largest of very many values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray

# Sums of squares up to this can be added up; those below it have lost digits.
_LARGEST, SMALLEST_SQUARE = 1e300, 1e-290


def as_floats(bits: tuple[np.int64, ...]) -> FloatArray:
    """Numbers from their bits, as the loops return them."""
    return np.array(bits, dtype=np.int64).view(np.float64)


def _ends(
    bits: npt.NDArray[np.int64], left: int, right: int
) -> tuple[np.int64, np.int64]:
    values = bits[left:right].view(np.float64)
    low, high = np.array([values.min(), values.max()]).view(np.int64)
    return low, high


def minmax(z: FloatArray) -> tuple[float, float]:
    """Smallest and largest value of a vector; both NaN if any value is.

    >>> minmax(np.array([3.0, -1.0, 2.0]))
    (-1.0, 3.0)
    """
    z = np.ascontiguousarray(z)
    found = for_each_block(_ends, loops.ends, len(z), z.view(np.int64))
    low, high = np.array(found).view(np.float64).T
    both = float(low.min()), float(high.max())
    # The loop has NaN at one end only, by its sign.
    return (np.nan, np.nan) if np.isnan(both).any() else both


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
