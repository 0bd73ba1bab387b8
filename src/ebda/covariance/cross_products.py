"""Residuals of more samples than features, by their p x p cross-products.

Rows R with the cross-products ``R'R = V diag(l) V'`` tell the same of the correlation
as the p rows of ``diag(sqrt l) V'``: projections on these, and combinations of them,
have the same products. So estimates that are made in the dimension of the rows
(:mod:`ebda.covariance.residuals`) are made in p dimensions instead of n, and the
training samples of a fold have the cross-products of all samples less those of the
samples that are held out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ebda.data import Samples
from ebda.kernels.threads import no_fork, one_blas_thread
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CrossResiduals:
    """Residuals of some of the samples, as p rows with the same cross-products.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each sample.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    squares : ndarray of shape (n_samples,)
        Squared lengths of the residuals, unweighted.
    value : ndarray of shape (n_features,)
        Eigenvalues of the cross-products, increasing.
    vectors : ndarray of shape (n_features, n_features)
        Their eigenvectors.
    """

    codes: IntArray
    weight: FloatArray
    squares: FloatArray
    value: FloatArray
    vectors: FloatArray

    @classmethod
    @no_fork()
    def of(
        cls,
        rows: FloatArray,
        cross: FloatArray,
        samples: Samples,
        used: IntArray,
        unit: FloatArray | None = None,
    ) -> CrossResiduals:
        """Those of the samples in use, about their own class means.

        Parameters
        ----------
        rows : ndarray of shape (n_all, n_features)
            Residuals of all samples about any class means, times root information.
        cross : ndarray of shape (n_features, n_features)
            ``rows' rows``.
        samples : Samples
            All samples.
        used : ndarray of int
            Those in use.
        unit : ndarray of shape (n_features,), optional
            What the rows are to be divided by.
        """
        codes, information = samples.codes[used], samples.information[used]
        held = np.ones(len(rows), dtype=bool)
        held[used] = False
        own = cross - rows[held].T @ rows[held]
        per_square = np.ones(rows.shape[1]) if unit is None else unit**-2.0
        lengths = np.einsum("ij,ij,j->i", rows, rows, per_square)[used]
        for k in np.unique(codes):
            member = np.flatnonzero(codes == k)
            root, rest = np.sqrt(information[member]), rows[used[member]]
            mean = (root @ rest) / information[member].sum()
            own -= information[member].sum() * np.outer(mean, mean)
            along = mean * per_square
            lengths[member] += root * (root * (mean @ along) - 2 * (rest @ along))
        if unit is not None:
            own /= np.outer(unit, unit)
        with one_blas_thread():
            value, vectors = eigh(own, overwrite_a=True, check_finite=False)
        weight = samples.weight[used]
        squares = np.maximum(lengths, 0.0) / weight
        return cls(codes, weight, squares, np.maximum(value, 0.0), vectors)

    @property
    def n_rows(self) -> int:
        return len(self.value)

    def eigen(self) -> tuple[FloatArray, None, FloatArray]:
        """Those of the rows that stand for the samples, which are orthogonal."""
        return self.value, None, self.squares

    @no_fork()
    def project(self, rows: FloatArray) -> FloatArray:
        """Inner products with the rows that stand for the samples."""
        product: FloatArray = rows @ self.vectors
        product *= np.sqrt(self.value)
        return product

    @no_fork()
    def expand(self, combine: FloatArray) -> FloatArray:
        """Combinations of these rows."""
        product: FloatArray = (combine * np.sqrt(self.value)) @ self.vectors.T
        return product
