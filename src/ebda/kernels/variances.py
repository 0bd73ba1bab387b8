"""Variances of very many features: pooled, grouped, shrunken."""

from __future__ import annotations

from functools import reduce

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.kernels.extremes import minmax
from ebda.kernels.rounding import rounding_variance
from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray

# Variances are grouped by 9 bits of the mantissa, and 35 more are added up.
_DROPPED_BITS, _LAST_BITS = 43, 8


def _of(value: float | FloatArray, cols: slice) -> float | FloatArray:
    """A number for all features, or those of a block."""
    return value[cols] if isinstance(value, np.ndarray) else value


def pooled_variance(
    means: FloatArray, squares: FloatArray, df: float | FloatArray
) -> tuple[FloatArray, bool]:
    """Sums of squares over all classes, divided by `df`, which is above zero.

    Also returns whether some of them may be the rounding error of a constant.
    """
    within = np.empty(means.shape[1])

    def pool(cols: slice) -> bool:
        part, mean = within[cols], means[:, cols]
        squares[:, cols].sum(axis=0, out=part)
        part /= _of(df, cols)
        largest = max(mean.max(), -mean.min())
        return not part.min() > rounding_variance(largest)

    return within, any(over_blocks(pool, len(within)))


def shrink_variance(
    s2: FloatArray,
    own: float | FloatArray,
    rest: float | FloatArray,
    outlier_threshold: float | FloatArray,
    out: FloatArray,
) -> FloatArray:
    """``own s2 + rest``, except for outliers; `out` may be `s2` itself.

    What is not `s2` or `out` is one number, or has one per feature.
    """

    def shrink(cols: slice) -> None:
        part, shrunken = s2[cols], out[cols]
        outliers = np.flatnonzero(part > _of(outlier_threshold, cols))
        kept = part[outliers]
        np.multiply(part, _of(own, cols), out=shrunken)
        shrunken += _of(rest, cols)
        shrunken[outliers] = kept

    over_blocks(shrink, len(s2))
    return out


def _leading_bits(
    bits: npt.NDArray[np.int64],
    dropped: int,
    last: int,
    first: int,
    size: int,
    left: int,
    right: int,
) -> npt.NDArray[np.int64]:
    place = bits[left:right] >> dropped
    place -= first - 1
    np.maximum(place, 0, out=place)
    follow = (bits[left:right] >> last) & ((1 << (dropped - last)) - 1)
    found = np.empty((2, size), dtype=np.int64)
    found[0] = np.bincount(place, minlength=size)
    found[1] = np.bincount(place, follow, size)
    return found


def group_positive(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positive values in cells 0.2 % wide: the mean of each cell, and its count.

    Cells are values with the same leading bits. Sums are of the bits that follow, as
    integers, and so are the same in any order.
    """
    low, high = minmax(x)
    if not np.isfinite([low, high]).all():
        raise ValueError("variances must be finite")
    first, last = (
        int(np.float64(end).view(np.int64) >> _DROPPED_BITS)
        for end in (max(low, np.finfo(float).tiny), high)
    )
    size = max(last - first, 0) + 2  # the first place is for what is not positive
    settings = _DROPPED_BITS, _LAST_BITS, first, size
    found = for_each_block(
        _leading_bits, loops.leading_bits, len(x), x.view(np.int64), *settings
    )
    count, rest = reduce(np.add, found)[:, 1:]
    used = np.flatnonzero(count)
    members = count[used]
    mean = ((used + first) << _DROPPED_BITS) + (rest[used] // members << _LAST_BITS)
    return mean.view(np.float64), members.astype(np.float64)
