"""The intraclass correlation: how much more samples of a group are alike.

It is one number for all features, as the consensus correlation of limma's
``duplicateCorrelation`` (Smyth, Michaud and Scott 2005). Residuals within the classes
are ``P X``, with a projection P, and X has the covariance ``I + rho M`` over the
samples, M the matrix of the pairs in a group, and the same for each feature in units
of its standard deviation. So sums over the features have the expectations

    tr(G)  ~ tr(P) + rho tr(PM),        tr(MG) ~ tr(PM) + rho tr(PMPM),

G the Gram matrix of the residuals, and their ratio gives rho.

A sample of weight f is f equal samples of its group. The traces over all copies are
those of matrices over the samples: with F the weights, ``F^1/2 X`` in place of X, and
``F^1/2 B F^1/2 - I`` in place of M, B the matrix that tells who is in the same group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import orth

from ebda.listing import joined
from ebda.storage.fields import COUNT, POSITIVE, Array, Scalar
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray

# With 1, differences within a group would have no variance at all.
MOST = 0.999


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of samples, and what they are worth; ``print(grouping)`` says it.

    Parameters
    ----------
    icc : float
        Intraclass correlation.
    n_groups : int
        Number of groups.
    n_samples : float
        Number of samples, or the sum of their frequency weights.
    n_effective : ndarray of shape (n_classes,)
        Independent samples that each class is worth.
    counts : ndarray of shape (n_classes,)
        Samples of each class, or the sums of their frequency weights.
    """

    icc: float
    n_groups: int
    n_samples: float
    n_effective: FloatArray
    counts: FloatArray

    def __repr__(self) -> str:
        worth = joined([f"{n:.1f}" for n in self.n_effective])
        return (
            f"{self.n_samples:g} samples of {self.n_groups} groups: samples of a group "
            f"have an intraclass correlation of {self.icc:.2f}, and the classes are "
            f"worth {worth} independent samples."
        )


register(
    Schema(
        Grouping,
        {
            "icc": Scalar((float,), least=0.0, most=1.0),
            "n_groups": COUNT,
            "n_samples": Scalar((float,), least=0.0),
            "n_effective": Array(("k",), POSITIVE),
            "counts": Array(("k",), POSITIVE),
        },
    )
)


def intraclass_correlation(
    gram: FloatArray,
    codes: IntArray,
    groups: IntArray,
    covariates: FloatArray | None = None,
    overlap: float = 1.0,
    weight: FloatArray | None = None,
) -> float | None:
    """rho from the Gram matrix of the samples, between 0 and 0.999.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Of the values in units of the standard deviations, about any class means.
    codes, groups : ndarray of int of shape (n_samples,)
        Class and group of each sample.
    covariates : ndarray of shape (n_samples, n_columns), optional
        What is regressed on besides the classes.
    overlap : float
        How much smaller products of samples come out for missing values.
    weight : ndarray of shape (n_samples,), optional
        Frequency weights: 2 counts as two equal samples of the group.

    Returns
    -------
    float or None
        None where no two samples tell it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(20), 3)
    >>> X = rng.normal(size=(20, 500))[groups] + rng.normal(size=(60, 500))
    >>> rho = intraclass_correlation(X @ X.T, np.repeat([0, 1], 30), groups)
    >>> round(rho, 1)
    0.5
    """
    D = (codes[:, None] == np.unique(codes)).astype(np.float64)
    if covariates is not None:
        D = np.column_stack([D, covariates])
    f = np.ones(len(codes)) if weight is None else weight
    root = np.sqrt(f)
    basis = orth(root[:, None] * D)
    P = np.eye(len(codes)) - basis @ basis.T
    # Pairs of copies of a sample are on the diagonal, and those of different ones not.
    M = (groups[:, None] == groups) * np.outer(root, root)
    np.fill_diagonal(M, np.maximum(f - 1, 0.0))
    G = P @ (gram * np.outer(root, root)) @ P
    own, together = float(np.trace(G)), float((M * G).sum()) / overlap
    n = float(f.sum()) - basis.shape[1]
    MU = M @ basis
    inside = basis.T @ MU
    pairs = np.outer(f, f) * (M > 0)
    np.fill_diagonal(pairs, f * np.diag(M))
    once = -float(np.trace(inside))
    twice = float(pairs.sum() - 2 * (MU**2).sum() + (inside**2).sum())
    below = own * twice - together * once
    if not (M.any() and below > 0):
        return None
    return float(np.clip((together * n - own * once) / below, 0.0, MOST))
