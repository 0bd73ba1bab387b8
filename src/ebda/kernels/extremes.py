"""Smallest and largest of very many values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.typing import FloatArray


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
