"""Sums over blocks of X in the library that X comes from, on the device it lies on.

The functions use nothing but the array API standard, so that they serve PyTorch, CuPy,
JAX and every other library that follows it. A block is float64: values of float32 are
converted before they are added up, and sums are as exact as those of
:mod:`ebda.kernels.class_sums`.
"""

from __future__ import annotations

from typing import Any


def class_sums(
    xp: Any, block: Any, members: Any, codes: Any, counts: Any
) -> tuple[Any, Any]:
    """Means and centred sums of squares of each class.

    Parameters
    ----------
    xp : module
        The namespace of the arrays.
    block : array of shape (n_samples, n_features)
        Values in float64.
    members : array of shape (n_classes, n_samples)
        Weight of each sample in its class; zero in the others.
    codes : array of int of shape (n_samples,)
        Classes.
    counts : array of shape (n_classes, 1)
        Sums of the rows of `members`, with one in place of zero.

    Returns
    -------
    means, squares : array of shape (n_classes, n_features)
    """
    means = (members @ block) / counts
    block = block - xp.take(means, codes, axis=0)
    # The residuals sum to the rounding error of the mean: put it back.
    rest = (members @ block) / counts
    squares = members @ (block * block) - rest * rest * counts
    return means + rest, xp.where(squares < 0, xp.zeros_like(squares), squares)


def missing_class_sums(
    xp: Any, block: Any, members: Any, codes: Any, totals: Any
) -> tuple[Any, Any, Any]:
    """Counts, means and centred sums of squares of the values that are not NaN.

    Parameters
    ----------
    xp, block, members, codes
        As in `class_sums`.
    totals : array of shape (n_classes, 1)
        Sums of the rows of `members`.
    """
    missing = xp.isnan(block)
    block = xp.where(missing, xp.zeros_like(block), block)
    gone = xp.astype(missing, xp.float64)
    # From the sum of all weights, which it is to the bit where nothing is missing.
    counts = totals - members @ gone
    there = members @ (1.0 - gone)
    counts = xp.where(there > 0, counts, xp.zeros_like(counts))
    known = xp.where(counts > 0, counts, xp.ones_like(counts))
    means = (members @ block) / known
    block = (block - xp.take(means, codes, axis=0)) * (1.0 - gone)
    rest = (members @ block) / known
    squares = members @ (block * block) - rest * rest * counts
    squares = xp.where(squares < 0, xp.zeros_like(squares), squares)
    return counts, means + rest, squares


def fill_missing(xp: Any, block: Any) -> Any:
    """The block with zero where it is NaN."""
    return xp.where(xp.isnan(block), xp.zeros_like(block), block)


def folded_bits(xp: Any, block: Any) -> Any:
    """Bits of float64 values as int64, the upper half folded into the lower.

    As in :func:`ebda.kernels.hashing.hash_rows`, with arithmetic of signed integers,
    which is the same modulo 2**64; for libraries whose arrays have a ``view``.
    """
    block = xp.where(block == 0, xp.zeros_like(block), block)  # -0.0 becomes 0.0
    # A conversion may change the bits of NaN.
    nan = xp.full_like(block, float("nan"))
    bits = xp.where(xp.isnan(block), nan, block).view(xp.int64)
    return bits ^ ((bits >> 32) & 0xFFFFFFFF)
