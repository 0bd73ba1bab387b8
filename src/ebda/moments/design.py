"""How sure class means are where samples are alike in groups or have covariates.

Sample i has the row d_i of the design D: the indicators of the classes, and its
covariates less their mean. Samples of one group have the correlation rho (the
intraclass correlation), and all others none: ``V = (1 - rho) I + rho B``, B the matrix
that tells who is in the same group. Sample i of a group of m samples counts

    a_i = 1 / (1 + (m - 1) rho)

in all sums: m samples of one patient are m if rho is 0, and one if rho is 1. The
coefficients of weighted least squares, ``M D' A x`` with ``M = (D' A D)^-1``, have the
covariance ``M D' A V A D M`` times the variance. Its first K rows and columns are those
of the adjusted class means, at the mean of the covariates. Without covariates, and with
groups of one class each, this is ``1 / n_k``, n_k the sum of the a_i: the effective
number of samples; a group in several classes makes the class means alike. The residual
sum of squares is ``x' Q x``, with ``Q = A - A D M D' A``; its expectation is ``tr QV``
times the variance, and its degrees
of freedom are those of Satterthwaite, ``tr(QV)^2 / tr(QVQV)``. Without groups both are
``N - K - q``, q the number of covariates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ebda.moments.values import ValueDesign
from ebda.storage.fields import Array, Scalar
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Design:
    """What groups and covariates change in standard errors and degrees of freedom.

    Parameters
    ----------
    mean_covariance : ndarray of shape (n_classes, n_classes)
        Covariance of the class means for a variance of 1.
    expected_squares : float
        Expectation of the residual sum of squares for a variance of 1.
    degrees_of_freedom : float
        Those of the residual sum of squares.
    slope_covariance : ndarray of shape (n_classes, n_columns), optional
        Covariance of the class means and the slopes on covariates, for a variance of 1.
    values : ValueDesign, optional
        What missing values change for each feature, where there are covariates.
    """

    mean_covariance: FloatArray
    expected_squares: float
    degrees_of_freedom: float
    slope_covariance: FloatArray | None = None
    values: ValueDesign | None = None

    def features(self, chosen: IntArray) -> Design:
        """That of some features."""
        if self.values is None:
            return self
        return replace(self, values=self.values.features(chosen))


register(
    Schema(
        Design,
        {
            "mean_covariance": Array(("k", "k")),
            "expected_squares": Scalar((float,), least=0.0),
            "degrees_of_freedom": Scalar((float,), least=0.0),
            "slope_covariance": Array(("k", "m")),
            "values": Nested(("ValueDesign",)),
        },
        optional=frozenset({"slope_covariance", "values"}),
    )
)


def group_weights(groups: IntArray, weight: FloatArray, icc: float) -> FloatArray:
    """``a_i``: what one sample of a group counts.

    Parameters
    ----------
    groups : ndarray of int of shape (n_samples,)
        Group of each sample.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    icc : float
        Intraclass correlation.

    >>> group_weights(np.array([0, 0, 0, 1]), np.ones(4), icc=0.5)
    array([0.5, 0.5, 0.5, 1. ])
    """
    size = np.bincount(groups, weights=weight)[groups]
    share: FloatArray = 1 / (1 + np.maximum(size - 1, 0.0) * icc)
    return share


def design_of(
    codes: IntArray,
    n_classes: int,
    weight: FloatArray,
    groups: IntArray | None = None,
    icc: float = 0.0,
    covariates: FloatArray | None = None,
) -> Design:
    """The design of some samples.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each sample.
    n_classes : int
        Number of classes; each has samples.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    groups : ndarray of int of shape (n_samples,), optional
        Group of each sample.
    icc : float
        Intraclass correlation.
    covariates : ndarray of shape (n_samples, n_columns), optional
        Columns that are linearly independent of the classes.

    Examples
    --------
    Four patients with two samples each, two patients per class: with a correlation of
    1 they are four samples.

    >>> codes, groups = np.repeat([0, 1], 4), np.repeat(np.arange(4), 2)
    >>> design = design_of(codes, 2, np.ones(8), groups, icc=1.0)
    >>> design.mean_covariance.tolist(), design.degrees_of_freedom
    ([[0.5, 0.0], [0.0, 0.5]], 2.0)
    """
    a = np.ones(len(codes))
    place = np.arange(len(codes)) if groups is None else groups
    if groups is not None:
        a = group_weights(groups, weight, icc)
    D = np.eye(n_classes)[codes]
    total = weight * a
    if covariates is not None:
        D = np.column_stack([D, covariates - total @ covariates / total.sum()])
    M = np.linalg.inv(D.T @ (D * total[:, None]))

    def sums(rows: FloatArray) -> FloatArray:
        """``rho B`` times rows that each stand for `weight` samples."""
        out = np.zeros((int(place.max()) + 1, rows.shape[1]))
        np.add.at(out, place, weight[:, None] * rows)
        return icc * out[place]

    AD = D * a[:, None]
    VAD = (1 - icc) * AD + sums(AD)
    F = AD.T @ (weight[:, None] * VAD)
    AVAD = VAD * a[:, None]
    VAVAD = (1 - icc) * AVAD + sums(AVAD)
    H = AD.T @ (weight[:, None] * VAVAD)
    # tr(AV AV): of the diagonal, and of the pairs in a group.
    squares = np.bincount(place, weights=weight * a**2)
    pairs = np.bincount(place, weights=total) ** 2 - squares
    whole = float(squares.sum() + icc**2 * np.maximum(pairs, 0.0).sum())
    expected = float(total.sum() - np.trace(M @ F))
    second = whole - 2 * float(np.trace(M @ H)) + float(np.trace(M @ F @ M @ F))
    covariance = M @ F @ M
    df = expected**2 / second if expected > 0 and second > 0 else 0.0
    between = None if covariates is None else covariance[:n_classes, n_classes:]
    own = covariance[:n_classes, :n_classes]
    return Design(own, max(expected, 0.0), df, between)
