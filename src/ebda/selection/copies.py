"""Samples that are far more alike than the rest: copies, or one patient twice.

Samples that are independent within the classes have residuals whose correlation
scatters around zero, by chance and by what factors they share. A pair far beyond that
scatter is one sample that was measured twice, or two of one patient. One of the two
then predicts the other, and a held-out error is too small.
"""

from __future__ import annotations

import numpy as np

from ebda.typing import FloatArray, IntArray

# Robust standard deviations above the median, after Fisher's transformation. Of 21 real
# sets three have pairs beyond it, two of them with a correlation of 1.00; the largest
# value in the others is 10.7.
_FAR = 12.0
# Pairs of a lower correlation are no copies, however little the others scatter.
_ALIKE = 0.5
# Fewer samples have too few pairs to tell what is usual.
_LEAST = 10


def near_copies(gram: FloatArray, groups: IntArray | None = None) -> IntArray:
    """Pairs of samples whose residuals are far more alike than those of others.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Of the residuals within the classes.
    groups : ndarray of int of shape (n_samples,), optional
        Group of each sample; pairs of one group are expected to be alike.

    Returns
    -------
    ndarray of int of shape (n_pairs, 2)
        The most alike first.

    >>> X = np.random.default_rng(0).normal(size=(20, 500))
    >>> X[7] = X[3] + 0.3 * X[7]
    >>> near_copies(X @ X.T)
    array([[3, 7]])
    """
    root = np.sqrt(np.diag(gram))
    some = np.flatnonzero(root > 0)
    if len(some) < _LEAST:
        return np.empty((0, 2), dtype=np.intp)
    first, second = (some[side] for side in np.triu_indices(len(some), 1))
    cosine = gram[first, second] / (root[first] * root[second])
    value = np.arctanh(np.clip(cosine, -1 + 1e-12, 1 - 1e-12))
    middle = np.median(value)
    spread = 1.4826 * np.median(np.abs(value - middle))
    alike = (cosine > _ALIKE) & (value > middle + _FAR * spread)
    if groups is not None:
        alike &= groups[first] != groups[second]
    found = np.flatnonzero(alike)
    found = found[np.argsort(-cosine[found], kind="stable")]
    return np.column_stack([first[found], second[found]])
