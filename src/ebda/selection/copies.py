"""Samples that are far more alike than the rest: copies, or one patient twice.

Samples that are independent within the classes have residuals whose correlation
scatters around zero, by chance and by what factors they share. A pair far beyond that
scatter is one sample that was measured twice, or two of one patient. One of the two
then predicts the other, and a held-out error is too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.typing import FloatArray, IntArray

# Robust standard deviations above the median, after Fisher's transformation. Of 21 real
# sets three have pairs beyond it, two of them with a correlation of 1.00; the largest
# value in the others is 10.7.
_FAR = 12.0
# Pairs of a lower correlation are no copies, however little the others scatter.
_ALIKE = 0.5
# Samples whose pairs are looked at together.
_BLOCK = 1024
# Fewer samples have too few pairs to tell what is usual.
_LEAST = 10


@dataclass(frozen=True, eq=False)
class GramRows:
    """Rows of the Gram matrix of many samples, made when they are looked at.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Residuals.
    """

    rows: FloatArray

    def diagonal(self) -> FloatArray:
        """Squared lengths."""
        squares: FloatArray = np.einsum("ij,ij->i", self.rows, self.rows)
        return squares

    def __getitem__(self, part: IntArray) -> FloatArray:
        product: FloatArray = self.rows[part] @ self.rows.T
        return product


def near_copies(
    gram: FloatArray | GramRows, groups: IntArray | None = None
) -> IntArray:
    """Pairs of samples whose residuals are far more alike than those of others.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples), or GramRows
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
    root = np.sqrt(gram.diagonal())
    some = np.flatnonzero(root > 0)
    if len(some) < _LEAST:
        return np.empty((0, 2), dtype=np.intp)
    # What is usual is seen in the pairs of some.
    part = some[:_BLOCK]
    cosine = gram[part][:, part] / np.outer(root[part], root[part])
    value = np.arctanh(
        np.clip(cosine[np.triu_indices(len(part), 1)], -1 + 1e-12, 1 - 1e-12)
    )
    middle = np.median(value)
    spread = 1.4826 * np.median(np.abs(value - middle))
    least = max(_ALIKE, float(np.tanh(middle + _FAR * spread)))
    pairs, alike = [], []
    for start in range(0, len(some), _BLOCK):
        part = some[start : start + _BLOCK]
        cosine = gram[part][:, some] / np.outer(root[part], root[some])
        first, second = np.nonzero(cosine > least)
        alike.append(cosine[first, second])
        pairs.append(np.column_stack([part[first], some[second]]))
    found, cosines = np.concatenate(pairs), np.concatenate(alike)
    kept = found[:, 0] < found[:, 1]
    if groups is not None:
        kept &= groups[found[:, 0]] != groups[found[:, 1]]
    order = np.argsort(-cosines[kept], kind="stable")
    return np.asarray(found[kept][order], dtype=np.intp)
