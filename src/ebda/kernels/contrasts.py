"""Contrasts of class means over their standard errors."""

from __future__ import annotations

import numpy as np

from ebda.kernels import compiled, loops
from ebda.kernels.rounding import ROUNDING, rounding_variance
from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray, IntArray


def contrast_z(
    means: FloatArray,
    squares: FloatArray,
    variance: FloatArray,
    weights: FloatArray,
    factor: FloatArray,
    most: float,
) -> tuple[FloatArray, IntArray, IntArray]:
    """``weights @ means / sqrt(factor * variance)``, and features without variance.

    Parameters
    ----------
    means, squares : ndarray of shape (n_classes, n_features)
        Class means and centred sums of squares.
    variance : ndarray of shape (n_features,)
        Variances within the classes.
    weights : ndarray of shape (n_contrasts, n_classes)
        Weights of the class means.
    factor : ndarray of shape (n_contrasts, 1) or (n_contrasts, n_features)
        Variance of a contrast over `variance`.
    most : float
        Samples of the largest class.

    Returns
    -------
    z : ndarray of shape (n_contrasts, n_features)
        The contrast itself where there is no variance.
    flat : ndarray of int
        Features whose variance is zero up to rounding.
    constant : ndarray of int
        Those of them whose class means are the same up to rounding, too.
    """
    z = np.empty((len(weights), means.shape[1]))

    def divide(cols: slice) -> tuple[IntArray, IntArray] | None:
        mean, d, within = means[:, cols], z[:, cols], variance[cols]
        square = squares[:, cols].max(axis=0)
        np.matmul(weights, mean, out=d)
        scale = (factor if factor.shape[1] == 1 else factor[:, cols]) * within
        np.sqrt(scale, out=scale)
        # A quick look at the block, and at its features only where need be.
        largest = rounding_variance(max(mean.max(), -mean.min()))
        if min(within.min(), square.min() / most) > largest:
            d /= scale
            return None
        tiny = ROUNDING * np.abs(mean).max(axis=0)
        constant = square / most <= tiny**2
        constant &= np.abs(d).max(axis=0) <= tiny
        flat = within <= tiny**2
        flat |= constant
        np.divide(d, scale, out=d, where=~flat)
        return np.flatnonzero(flat) + cols.start, np.flatnonzero(constant) + cols.start

    fast = means.shape[0] == 2 and factor.shape[1] == 1
    if fast and compiled.suits_vectors(means.shape[1]):
        loop = compiled.compile_loop(loops.two_class_z)

        def divide_quickly(cols: slice) -> tuple[IntArray, IntArray] | None:
            found = loop(
                means, squares, variance, factor[0, 0], z[0], cols.start, cols.stop
            )
            largest, least, smallest = np.array(found).view(np.float64)
            if min(least, smallest / most) > rounding_variance(largest):
                return None
            return divide(cols)

        parts = over_blocks(divide_quickly, means.shape[1], releases_lock=True)
    else:
        parts = over_blocks(divide, means.shape[1])
    none = np.empty(0, dtype=np.intp)
    found = [part for part in parts if part is not None]
    flat, constant = (np.concatenate([none, *(f[k] for f in found)]) for k in (0, 1))
    return z, flat, constant
