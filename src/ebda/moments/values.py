"""Regression on covariates where values are missing: each feature has its own samples.

Let M_j tell which values of feature j are there. Within the classes, of these values,

    B_j = W_j^-1 v_j,    W_j = C_j' M_j C_j,    v_j = C_j' M_j x_j,

C_j the covariates less their means over the values of each class. W_j are q x q
matrices, one per feature: their entries are products of a few rows over the samples,
such as ``c_a c_b``, with M, which are summed over blocks of samples. The class means at
the mean of the covariates, and the slopes, have for a variance of 1 the covariances

    cov(m_k, m_l) = [k = l] / n_kj + c_kj' W_j^-1 c_lj,
    cov(m_k, B_j) = - c_kj' W_j^-1,

c_kj the mean of the covariates over the values of class k. They are those of least
squares on the values that are there, as in limma's ``lmFit``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from ebda.storage.fields import NOT_NEGATIVE, Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray

# Eigenvalues this small, relative to those of all samples, are rounding.
_NEGLIGIBLE = 1e-9
# Class means of covariates differ where this much of a standard deviation is left.
_DIFFERENT = 1e-6


@dataclass(frozen=True, eq=False)
class ValueDesign:
    """What missing values change in a design with covariates.

    Parameters
    ----------
    class_covariates : ndarray of shape (n_classes, n_columns, n_features)
        Means of the covariates over the values of each class, less the mean of all
        samples.
    inverse : ndarray of shape (n_columns, n_columns, n_features)
        ``W_j^-1``; a pseudo-inverse where some columns do not vary.
    rank : ndarray of shape (n_features,)
        Columns that vary within the classes.
    confounded : ndarray of bool of shape (n_features,)
        Features whose values do not tell the classes from the covariates.
    complete : ndarray of shape (n_classes, n_classes)
        Covariance of the class means of a feature with all values, of independent
        samples.
    """

    class_covariates: FloatArray
    inverse: FloatArray
    rank: FloatArray
    confounded: npt.NDArray[np.bool_]
    complete: FloatArray

    def features(self, chosen: IntArray) -> Self:
        """Those of some features."""
        return replace(
            self,
            class_covariates=self.class_covariates[..., chosen],
            inverse=self.inverse[..., chosen],
            rank=self.rank[chosen],
            confounded=self.confounded[chosen],
        )

    def leverage(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """What covariates add to the covariance of ``left m`` and ``right m``.

        Parameters
        ----------
        left, right : ndarray of shape (n_contrasts, n_classes)
            Weights of the class means.

        Returns
        -------
        ndarray of shape (n_contrasts, n_features)
        """
        a, b = (
            np.einsum("ck,kqj->cqj", side, self.class_covariates)
            for side in (left, right)
        )
        added: FloatArray = np.einsum("cqj,qrj,crj->cj", a, self.inverse, b)
        return added

    def of_slopes(self, sides: FloatArray) -> FloatArray:
        """Covariance of weighted class means with the slopes.

        Parameters
        ----------
        sides : ndarray of shape (n_contrasts, n_classes)
            Weights of the class means.

        Returns
        -------
        ndarray of shape (n_contrasts, n_columns, n_features)
        """
        means = np.einsum("ck,kqj->cqj", sides, self.class_covariates)
        covariance: FloatArray = -np.einsum("cqj,qrj->crj", means, self.inverse)
        return covariance


register(
    Schema(
        ValueDesign,
        {
            "class_covariates": Array(("k", "m", "p")),
            "inverse": Array(("m", "m", "p")),
            "rank": Array(("p",), NOT_NEGATIVE),
            "confounded": Array(("p",), (), np.bool_),
            "complete": Array(("k", "k")),
        },
    )
)


def value_rows(
    codes: IntArray, n_classes: int, covariates: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What X, and what M, are multiplied with.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Classes.
    n_classes : int
        Number of classes.
    covariates : ndarray of shape (n_samples, n_columns)
        Covariates less their class means.
    weight : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    rows : ndarray of shape (n_classes + n_columns, n_samples)
        Class indicators and covariates, times the weights.
    masks : ndarray of shape (n_classes (1 + n_columns) + n_pairs, n_samples)
        Class indicators, these times covariates, and products of covariates.
    """
    indicator = weight * (codes == np.arange(n_classes)[:, None])
    C = covariates.T
    i, j = np.triu_indices(len(C))
    by_class = (indicator[:, None] * C).reshape(-1, len(codes))
    rows = np.vstack([indicator, weight * C])
    return rows, np.vstack([indicator, by_class, weight * C[i] * C[j]])


@dataclass(frozen=True, eq=False)
class ValueRegression:
    """Regressions of features on covariates, each on the values that it has.

    Parameters
    ----------
    n_values : ndarray of shape (n_classes, n_features)
        Values of each class.
    means : ndarray of shape (n_classes, n_features)
        Class means where the given covariates are zero.
    slopes : ndarray of shape (n_columns, n_features)
        Slopes; those of least length where columns do not vary.
    class_covariates, inverse, rank, confounded
        As in :class:`ValueDesign`.
    """

    n_values: FloatArray
    means: FloatArray
    slopes: FloatArray
    class_covariates: FloatArray
    inverse: FloatArray
    rank: FloatArray
    confounded: npt.NDArray[np.bool_]


def regress_values(
    sums: FloatArray, counts: FloatArray, middle: FloatArray
) -> ValueRegression:
    """Class means and slopes from products with the values.

    Parameters
    ----------
    sums : ndarray of shape (n_classes + n_columns, n_features)
        Products of the first rows of `value_rows` with X, zero where one is missing.
    counts : ndarray of shape (n_classes (1 + n_columns) + n_pairs, n_features)
        Products of the other rows with M.
    middle : ndarray of shape (n_classes, n_columns)
        Class means of the covariates, if they were subtracted from them. Columns have
        similar scales.

    Examples
    --------
    >>> codes, c = np.array([0, 0, 0, 1]), np.array([[-1.0], [0.0], [1.0], [0.0]])
    >>> x = np.array([[1.0], [np.nan], [5.0], [9.0]])
    >>> rows, masks = value_rows(codes, 2, c, np.ones(4))
    >>> there = ~np.isnan(x)
    >>> sums, counts = rows @ np.where(there, x, 0), masks @ there
    >>> found = regress_values(sums, counts, np.zeros((2, 1)))
    >>> found.slopes, found.means
    (array([[2.]]), array([[3.],
           [9.]]))
    """
    (k, q), p = middle.shape, sums.shape[1]
    n, of_classes, pairs = np.split(counts, [k, k * (1 + q)])
    total = of_classes.reshape(k, q, p)
    safe = np.where(n > 0, n, 1.0)
    mean = total / safe[:, None]
    W = np.empty((p, q, q))
    i, j = np.triu_indices(q)
    W[:, i, j] = W[:, j, i] = pairs.T
    W -= np.einsum("kaj,kbj->jab", total, mean)
    v = sums[k:] - np.einsum("kaj,kj->aj", mean, sums[:k])
    value, vectors = np.linalg.eigh(W)
    kept = value > _NEGLIGIBLE * np.maximum(pairs.max(initial=0.0), 1e-300)
    weight = np.where(kept, 1 / np.where(kept, value, 1.0), 0.0)
    inverse = np.einsum("jar,jr,jbr->abj", vectors, weight, vectors)
    slopes = np.einsum("abj,bj->aj", inverse, v)
    means = (sums[:k] - np.einsum("kaj,aj->kj", total, slopes)) / safe
    # Differences of the class means of covariates in directions that do not vary.
    mean = mean + middle[..., None]
    away = mean - mean[np.argmax(n > 0, axis=0), :, np.arange(p)].T
    away *= (n > 0)[:, None]
    outside = np.einsum("jar,jr,kaj->krj", vectors, ~kept, away)
    confounded = (np.abs(outside) > _DIFFERENT).any(axis=(0, 1))
    rank = kept.sum(axis=1).astype(np.float64)
    return ValueRegression(n, means, slopes, mean, inverse, rank, confounded)
