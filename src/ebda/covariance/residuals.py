"""Residuals of samples about their class means: in memory, or wherever the samples are.

With n samples and p features, n far below p, everything that the residuals tell about
the correlation lies in the span of their n rows. So the estimates are made in n
dimensions, from the n x n Gram matrix; vectors over the features are only projected on
the rows and made of them. Where there are more samples than features, p rows stand for
them (:mod:`ebda.covariance.cross_products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from ebda.data import Samples
from ebda.kernels.threads import no_fork, one_blas_thread
from ebda.typing import FloatArray, IntArray


class Residuals(Protocol):
    """Rows R: residuals in units of the standard deviations, times root information.

    Those of a sample with a scale of its own are over this scale. They are centred by
    class: whatever is projected on them is free of differences between the class means
    of exactly these samples. Other rows with the same ``R'R`` may stand for them.
    """

    @property
    def codes(self) -> IntArray:
        """Class of each sample."""

    @property
    def weight(self) -> FloatArray:
        """Frequency weight of each sample, above zero."""

    @property
    def n_rows(self) -> int:
        """Number of rows of R."""

    def eigen(self) -> tuple[FloatArray, FloatArray | None, FloatArray]:
        """Eigenvalues of ``R R'``, increasing, its eigenvectors, and squared lengths.

        There is None in place of the eigenvectors where the rows are orthogonal.
        Lengths are those of the residuals of each sample, unweighted.
        """

    def project(self, rows: FloatArray) -> FloatArray:
        """``rows R'``: each row's inner products with the rows of R."""

    def expand(self, combine: FloatArray) -> FloatArray:
        """``combine R`` of shape (n_rows, n_features)."""


@dataclass(frozen=True, eq=False)
class RowResiduals:
    """Residuals in memory: of some of the samples, about the class means of these.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Those of all samples about any class means, times root information.
    all_gram : ndarray of shape (n_samples, n_samples)
        ``rows rows'``.
    all_samples : Samples
        Classes and weights of all samples.
    used : ndarray of int
        Those that are meant.
    unit : ndarray of shape (n_features,), optional
        What rows are to be divided by: standard deviations of these samples in units of
        those of all samples. The Gram matrix is then that of all, times the mean of
        ``1 / unit^2``: over many features the rest of it averages out.
    """

    rows: FloatArray
    all_gram: FloatArray
    all_samples: Samples
    used: IntArray
    unit: FloatArray | None = None

    @property
    def codes(self) -> IntArray:
        return self.all_samples.codes[self.used]

    @property
    def weight(self) -> FloatArray:
        return self.all_samples.weight[self.used]

    @property
    def n_rows(self) -> int:
        return len(self.used)

    def _centred(self, rows: FloatArray) -> FloatArray:
        return centred(
            rows, self.codes, np.sqrt(self.all_samples.information[self.used])
        )

    def eigen(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        gram = self._centred(self.all_gram[np.ix_(self.used, self.used)])
        gram = self._centred(gram.T)
        if self.unit is not None:
            gram *= np.mean(self.unit**-2.0)
        return eigen_of(gram, self.weight)

    @no_fork()
    def project(self, rows: FloatArray) -> FloatArray:
        if self.unit is not None:
            rows = rows / self.unit
        return self._centred((rows @ self.rows.T)[:, self.used])

    @no_fork()
    def expand(self, combine: FloatArray) -> FloatArray:
        # The others count zero: to take a part of the rows would be to copy them.
        padded = np.zeros((len(combine), len(self.rows)))
        padded[:, self.used] = self._centred(combine)
        product: FloatArray = padded @ self.rows
        if self.unit is not None:
            product /= self.unit
        return product


@dataclass(frozen=True, eq=False)
class SampleResiduals:
    """Residuals of samples wherever they are: each method is a pass over them.

    Parameters
    ----------
    samples : Samples
        Rows of X.
    means : ndarray of shape (n_classes, n_features)
        Class means, in units of X.
    scale : ndarray of shape (n_features,)
        Standard deviations.
    """

    samples: Samples
    means: FloatArray
    scale: FloatArray

    @property
    def codes(self) -> IntArray:
        return self.samples.codes

    @property
    def weight(self) -> FloatArray:
        return self.samples.weight

    @property
    def n_rows(self) -> int:
        return len(self.samples)

    @property
    def _root(self) -> FloatArray:
        root: FloatArray = np.sqrt(self.samples.information)
        return root

    def eigen(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        root = self._root
        gram = centred(self.samples.gram(self.means, self.scale), self.codes, root)
        return eigen_of(centred(gram.T, self.codes, root), self.weight)

    def project(self, rows: FloatArray) -> FloatArray:
        root = self._root
        product = self.samples.projections(self.means, self.scale, rows).T
        return centred(product * root, self.codes, root)

    def expand(self, combine: FloatArray) -> FloatArray:
        root = self._root
        own = centred(combine, self.codes, root) * root
        return self.samples.loadings(self.means, self.scale, own.T).T


def eigen_of(
    gram: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of a Gram matrix, and lengths without the weights.

    The matrix is overwritten.
    """
    squares = np.diag(gram) / weight
    # On one thread: on several, its many small steps wait for each other, and took
    # twenty times as long beside other work.
    with one_blas_thread():
        value, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
    return value, vectors, squares


def centred(rows: FloatArray, codes: IntArray, root: FloatArray) -> FloatArray:
    """Rows over the samples, less their projection on each class.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_samples)
        What is centred.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    root : ndarray of shape (n_samples,)
        Square roots of what each sample counts in a class mean.

    >>> centred(np.array([[1.0, 3.0, 5.0]]), np.array([0, 0, 1]), np.ones(3))
    array([[-1.,  1.,  0.]])
    """
    out = np.array(rows)
    for k in np.unique(codes):
        member = np.flatnonzero(codes == k)
        own = root[member]
        out[:, member] -= np.outer(rows[:, member] @ own, own) / (own @ own)
    return out
