"""Class moments of a matrix on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.data.device.matrix import DeviceMatrix
from ebda.kernels import cuda
from ebda.kernels.device import class_sums, missing_class_sums
from ebda.moments.classwise import ClassMoments
from ebda.typing import FloatArray, IntArray


def moments_of(
    matrix: DeviceMatrix,
    codes: IntArray,
    n_classes: int,
    weight: FloatArray | None = None,
    rows: IntArray | None = None,
) -> ClassMoments:
    """Moments of the rows of a matrix by class (:func:`ebda.moments.class_moments`).

    Parameters
    ----------
    matrix : DeviceMatrix
        Values.
    codes : ndarray of int
        Class of each row.
    n_classes : int
        Number of classes; a class may be without rows.
    weight : ndarray, optional
        Frequency weight of each row.
    rows : ndarray of int, optional
        Which rows; by default all of them.
    """
    counts = np.bincount(codes, weight, n_classes).astype(np.float64)
    if matrix.slopes is None and cuda.suits(matrix.X):
        means, squares, observed = cuda.class_sums(
            matrix.X, np.arange(matrix.shape[0]) if rows is None else rows,
            codes, n_classes, weight,
        )  # fmt: skip
    else:
        means, squares, observed = _summed(matrix, codes, counts, weight, rows)
    # Only what differs from the counts is kept.
    return ClassMoments(counts, means, squares, observed).classes(slice(0, n_classes))


def _summed(
    matrix: DeviceMatrix,
    codes: IntArray,
    counts: FloatArray,
    weight: FloatArray | None,
    rows: IntArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Means, squares and counts of values, by the functions of the array API."""
    xp, n_classes = matrix.xp, len(counts)
    members = np.zeros((n_classes, len(codes)))
    members[codes, np.arange(len(codes))] = 1.0 if weight is None else weight
    totals = counts[:, None]
    own = matrix.send(members), matrix.send(codes)
    known, total = matrix.send(np.where(totals > 0, totals, 1.0)), matrix.send(totals)
    shape = n_classes, matrix.shape[1]
    means, squares = np.empty(shape), np.empty(shape)
    observed: FloatArray | None = None

    def sums(cols: slice, block: Any) -> list[FloatArray]:
        found: tuple[Any, ...] = class_sums(xp, block, *own, known)
        if not bool(xp.all(xp.isfinite(found[0]))):
            # Counts come first.
            found = missing_class_sums(xp, block, *own, total)
        return [matrix.host(values) for values in found]

    for cols, found in matrix.blocks(sums, rows):
        means[:, cols], squares[:, cols] = found[-2:]
        if len(found) == 3:
            if observed is None:
                observed = np.tile(totals, (1, shape[1]))
            observed[:, cols] = found[0]
    return means, squares, observed
