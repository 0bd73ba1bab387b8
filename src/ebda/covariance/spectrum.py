"""Eigenvalues of the sample correlation, from the residuals of the samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.covariance.residuals import Residuals
from ebda.typing import FloatArray, IntArray

# Eigenvalues this small, relative to the largest, are rounding.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of the sample correlation ``C = R'R / df``, and of the Gram matrix.

    Parameters
    ----------
    eigenvalue : ndarray of shape (rank,)
        Those above zero, decreasing.
    vectors : ndarray of shape (n_rows, rank), or ndarray of int of shape (rank,)
        Eigenvectors of ``R R'``, R the rows that the residuals have or that stand for
        them: the eigenvectors of C are ``R' v / sqrt(df value)``. Where the rows are
        orthogonal, the rows themselves, by their numbers.
    n_rows : int
        Number of rows.
    df : float
        Degrees of freedom of the residuals.
    squares : ndarray of shape (n_samples,)
        Squared lengths of the residuals, unweighted.
    """

    eigenvalue: FloatArray
    vectors: FloatArray | IntArray
    n_rows: int
    df: float
    squares: FloatArray

    def coordinates(self, products: FloatArray) -> FloatArray:
        """Inner products with the eigenvectors, from those with the rows."""
        if self.vectors.ndim == 1:
            return products[:, self.vectors]
        return np.asarray(products @ self.vectors)

    def combinations(self, coordinates: FloatArray) -> FloatArray:
        """Combinations of the first eigenvectors, as combinations of the rows."""
        first = self.vectors[..., : coordinates.shape[1]]
        if first.ndim > 1:
            return np.asarray(coordinates @ first.T)
        out = np.zeros((len(coordinates), self.n_rows))
        out[:, first] = coordinates
        return out


def degrees_of_freedom(residuals: Residuals, n_covariates: int = 0) -> float:
    """Those of the residuals: samples less classes and covariates.

    Parameters
    ----------
    residuals : Residuals
        Of the samples.
    n_covariates : int
        Columns that these were regressed on besides the classes.
    """
    n_classes = len(np.unique(residuals.codes))
    return float(residuals.weight.sum()) - n_classes - n_covariates


def spectrum_of(residuals: Residuals, n_covariates: int = 0) -> Spectrum | None:
    """Eigenvalues of the sample correlation; None without any.

    Parameters
    ----------
    residuals : Residuals
        Of the samples.
    n_covariates : int
        Columns that these were regressed on besides the classes.
    """
    df = degrees_of_freedom(residuals, n_covariates)
    if df <= 0:
        return None
    value, vectors, squares = residuals.eigen()
    kept = np.flatnonzero(value > _NEGLIGIBLE * max(value[-1], 0.0))[::-1]
    if not kept.size:
        return None
    own = kept if vectors is None else vectors[:, kept]
    return Spectrum(value[kept] / df, own, len(value), df, squares)
