"""Operations on rows of coefficients, one row per contrast, in place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.kernels import loops
from ebda.kernels.compiled import for_each_block
from ebda.kernels.threads import one_blas_thread, over_blocks
from ebda.sizes import sizes
from ebda.typing import FloatArray


def _divide_by_root(
    rows: FloatArray, variance: FloatArray, left: int, right: int
) -> None:
    rows[:, left:right] /= np.sqrt(variance[left:right])


def divide_by_root(rows: FloatArray, variance: FloatArray) -> None:
    """``rows /= sqrt(variance)``.

    Parameters
    ----------
    rows : ndarray of shape (n_contrasts, n_features)
        Overwritten.
    variance : ndarray of shape (n_features,)
        See above.
    """
    for_each_block(_divide_by_root, loops.divide_by_root, rows.shape[1], rows, variance)


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


def inner_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """``sum_j a_cj b_cj`` of each row, the same for any number of threads."""

    def multiply(cols: slice) -> FloatArray:
        product: FloatArray = np.einsum("cj,cj->c", a[:, cols], b[:, cols])
        return product

    parts = over_blocks(multiply, a.shape[1], sizes.summed_features, True)
    total: FloatArray = np.sum(parts, axis=0)
    return total


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
