"""The one loop that is worth compiling: class sums of a dense matrix.

NumPy makes several passes over each tile, and a copy of it in float64; a compiled
loop reads it twice while it is in the cache and copies nothing, in less than half of
the time (``benchmarks/speed.py``). It is used where Numba is installed (the extra
``ebda[fast]``) and the data are large enough to be worth the second that loading it
takes; additions happen in the same order, and the numbers are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.arrays import FloatArray, IntArray

# Elements of X from which the loop is used.
LARGE = 1 << 24
# Elements of a tile: it is read twice, and stays in the second cache.
_TILE = 1 << 15

Kernel = Callable[..., None]


def suits(X: npt.NDArray[Any]) -> bool:
    """Whether the compiled loop is there, and worth it for this matrix."""
    return (
        X.size >= LARGE
        and X.dtype in (np.float32, np.float64)
        and X.dtype.isnative
        and X.flags.c_contiguous
        and find_spec("numba") is not None
    )


def tile_columns(n_rows: int) -> int:
    """Columns of a tile of so many rows."""
    return max(64, _TILE // max(n_rows, 1))


@cache
def class_sums() -> Kernel:
    """The loop, compiled at first use and kept on disk for the next process.

    ``kernel(X, rows, bounds, left, right, width, means, squares)`` writes means and
    centred sums of squares of the columns ``left:right``, whose class k are the rows
    ``rows[bounds[k]:bounds[k + 1]]`` of X, `width` columns at a time.
    """
    import numba

    compiled: Kernel = numba.njit(nogil=True, cache=True)(_class_sums)
    return compiled


def _class_sums(
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    left: int,
    right: int,
    width: int,
    means: FloatArray,
    squares: FloatArray,
) -> None:
    mean, rest, square = np.empty(width), np.empty(width), np.empty(width)
    for start in range(left, right, width):
        w = min(width, right - start)
        for k in range(len(bounds) - 1):
            n = bounds[k + 1] - bounds[k]
            if n == 0:
                continue
            for j in range(w):
                mean[j] = 0.0
            for i in range(bounds[k], bounds[k + 1]):
                row = X[rows[i], start : start + w]
                for j in range(w):
                    mean[j] += row[j]
            for j in range(w):
                mean[j] /= n
                rest[j] = 0.0
                square[j] = 0.0
            for i in range(bounds[k], bounds[k + 1]):
                row = X[rows[i], start : start + w]
                for j in range(w):
                    d = row[j] - mean[j]
                    rest[j] += d
                    square[j] += d * d
            for j in range(w):
                # The residuals sum to the rounding error of the mean: put it back.
                r = rest[j] / n
                means[k, start + j] = mean[j] + r
                squares[k, start + j] = max(square[j] - r * r * n, 0.0)
