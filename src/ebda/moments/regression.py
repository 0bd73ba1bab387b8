"""Regression on covariates within the classes: the analysis of covariance.

Sample i of class k is ``x_i = m_k + c_i B + noise``, with the covariates c_i less their
mean over all samples. Within the classes

    B = (C' W C)^-1 C' W X,

C the covariates less their class means and W the weights: products that are summed over
blocks of samples. The class means of ``X - C B`` are those at the mean of the
covariates, its sum of squares within the classes is the residual sum of squares, and
how sure the means are follows from the design matrix (:mod:`ebda.moments.design`).
"""

from __future__ import annotations

import numpy as np

from ebda.typing import FloatArray, IntArray

# What is left of a column that others explain, relative to itself, is rounding.
_NEGLIGIBLE = 1e-9


def centred_by_class(
    covariates: FloatArray, codes: IntArray, weight: FloatArray
) -> FloatArray:
    """Covariates less their weighted means in each class.

    Parameters
    ----------
    covariates : ndarray of shape (n_samples, n_columns)
        Covariates.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    weight : ndarray of shape (n_samples,)
        Weights.

    >>> codes = np.array([0, 0, 1])
    >>> centred_by_class(np.array([[1.0], [3.0], [9.0]]), codes, np.ones(3))
    array([[-1.],
           [ 1.],
           [ 0.]])
    """
    out = np.array(covariates, dtype=np.float64)
    for k in np.unique(codes):
        member = codes == k
        own = weight[member]
        if own.sum() > 0:
            out[member] -= own @ covariates[member] / own.sum()
    return out


def independent_columns(columns: FloatArray, weight: FloatArray) -> IntArray:
    """Columns that are no combinations of those before them.

    Parameters
    ----------
    columns : ndarray of shape (n_samples, n_columns)
        Centred columns.
    weight : ndarray of shape (n_samples,)
        Weights.

    >>> columns = np.array([[1.0, 2.0, 0.0], [-1.0, -2.0, 1.0], [0.0, 0.0, -1.0]])
    >>> independent_columns(columns, np.ones(3))
    array([0, 2])
    """
    kept: list[int] = []
    basis = np.empty((len(columns), 0))
    weighted = np.sqrt(weight)[:, None] * columns
    for j, column in enumerate(weighted.T):
        length = float(np.linalg.norm(column))
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        left = float(np.linalg.norm(rest))
        if left > _NEGLIGIBLE * max(length, 1e-300) and length > 0:
            kept.append(j)
            basis = np.column_stack([basis, rest / left])
    return np.array(kept, dtype=np.intp)


def explained(
    columns: FloatArray, codes: IntArray, n_classes: int, weight: FloatArray
) -> FloatArray:
    """The share of each class's indicator that the covariates explain.

    Parameters
    ----------
    columns : ndarray of shape (n_samples, n_columns)
        Covariates.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    n_classes : int
        Number of classes.
    weight : ndarray of shape (n_samples,)
        Weights.

    >>> plate = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> explained(plate, np.array([0, 0, 1, 1]), 2, np.ones(4)).round(6)
    array([1., 1.])
    """
    root = np.sqrt(weight)[:, None]
    everyone = np.zeros(len(codes), dtype=np.intp)
    C = centred_by_class(columns, everyone, weight)
    indicator = centred_by_class(np.eye(n_classes)[codes], everyone, weight)
    C = root * C[:, independent_columns(C, weight)]
    Y = root * indicator
    basis = np.linalg.qr(C)[0]
    share: FloatArray = ((basis.T @ Y) ** 2).sum(axis=0) / (Y**2).sum(axis=0)
    return share
