"""Operations on rows of coefficients, one row per contrast, in place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.kernels.threads import one_blas_thread, over_blocks
from ebda.sizes import sizes
from ebda.typing import FloatArray


def _scale_and_divide(
    rows: FloatArray,
    factor: FloatArray,
    variance: FloatArray,
    divisor: FloatArray,
    left: int,
    right: int,
) -> None:
    part = rows[:, left:right]
    part *= np.sqrt(factor * variance[left:right])
    part /= divisor[left:right]


def scale_and_divide(
    rows: FloatArray, factor: FloatArray, variance: FloatArray, divisor: FloatArray
) -> None:
    """``rows *= sqrt(factor * variance) / divisor``, for one factor per row.

    Parameters
    ----------
    rows : ndarray of shape (n_contrasts, n_features)
        Overwritten.
    factor : ndarray of shape (n_contrasts, 1)
        See above.
    variance, divisor : ndarray of shape (n_features,)
        See above.
    """
    arguments = rows, factor, variance, divisor
    for_each_block(_scale_and_divide, loops.scale_and_divide, rows.shape[1], *arguments)


def add_scaled(total: FloatArray, share: float, rows: FloatArray) -> None:
    """``total += share * rows``, without a temporary of full size."""

    def add(cols: slice) -> None:
        total[:, cols] += share * rows[:, cols]

    over_blocks(add, rows.shape[1])


def any_nonzero(rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Columns with a nonzero entry."""
    found = np.empty(rows.shape[1], dtype=bool)

    def look(cols: slice) -> None:
        rows[:, cols].any(axis=0, out=found[cols])

    over_blocks(look, len(found), releases_lock=True)
    return found


def weighted_squares(rows: FloatArray, weight: FloatArray) -> float:
    """``sum_cj weight_j rows_cj**2``, the same for any number of threads."""

    def add(cols: slice) -> float:
        w = rows[:, cols]
        return float(np.einsum("cj,cj,j->", w, w, weight[cols]))

    return sum(over_blocks(add, rows.shape[1], sizes.summed_features, True))


def row_products(rows: FloatArray, means: FloatArray) -> FloatArray:
    """``rows @ means.T``, the same for any number of threads.

    Threads of BLAS would add in another order.
    """

    def multiply(cols: slice) -> FloatArray:
        product: FloatArray = rows[:, cols] @ means[:, cols].T
        return product

    with one_blas_thread():
        parts = over_blocks(multiply, rows.shape[1], sizes.summed_features, True)
    total: FloatArray = np.sum(parts, axis=0)
    return total
