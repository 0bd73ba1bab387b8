"""What a covariance is estimated from: moments, contrasts, and residuals of samples.

With n samples and p features, n far below p, everything that the residuals tell about
the correlation lies in the span of their n rows. So the estimates are made in n
dimensions, from the n x n Gram matrix, which is computed once and shared; vectors over
the features are only projected on the rows and made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from ebda.cached import cached_property
from ebda.data import Samples
from ebda.kernels.threads import no_fork, one_blas_thread
from ebda.moments import ClassMoments, Contrasts
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Eigenvalues this small, relative to the largest, are rounding.
_NEGLIGIBLE = 1e-10


class Residuals(Protocol):
    """Rows R: residuals in units of the standard deviations, times root weights.

    They are centred by class: whatever is projected on them is free of differences
    between the class means of exactly these samples.
    """

    @property
    def codes(self) -> IntArray:
        """Class of each row."""

    @property
    def weight(self) -> FloatArray:
        """Frequency weight of each row, above zero."""

    def gram(self) -> FloatArray:
        """``R R'``."""

    def project(self, rows: FloatArray) -> FloatArray:
        """``rows R'``, of shape (n_rows, n_samples)."""

    def expand(self, combine: FloatArray) -> FloatArray:
        """``combine R`` of shape (n_rows, n_features)."""


@dataclass(frozen=True, eq=False)
class RowResiduals:
    """Residuals in memory: of some of the samples, about the class means of these.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Those of all samples about any class means, times root weights.
    all_gram : ndarray of shape (n_samples, n_samples)
        ``rows rows'``.
    all_codes, all_weight : ndarray of shape (n_samples,)
        Classes and frequency weights of all samples.
    used : ndarray of int
        Those that are meant.
    """

    rows: FloatArray
    all_gram: FloatArray
    all_codes: IntArray
    all_weight: FloatArray
    used: IntArray

    @property
    def codes(self) -> IntArray:
        return self.all_codes[self.used]

    @property
    def weight(self) -> FloatArray:
        return self.all_weight[self.used]

    def _centred(self, rows: FloatArray) -> FloatArray:
        return centred(rows, self.codes, np.sqrt(self.weight))

    def gram(self) -> FloatArray:
        return self._centred(
            self._centred(self.all_gram[np.ix_(self.used, self.used)]).T
        )

    @no_fork()
    def project(self, rows: FloatArray) -> FloatArray:
        return self._centred((rows @ self.rows.T)[:, self.used])

    @no_fork()
    def expand(self, combine: FloatArray) -> FloatArray:
        # The others count zero: to take a part of the rows would be to copy them.
        padded = np.zeros((len(combine), len(self.rows)))
        padded[:, self.used] = self._centred(combine)
        product: FloatArray = padded @ self.rows
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

    def gram(self) -> FloatArray:
        root = np.sqrt(self.weight)
        gram = self.samples.gram(self.means, self.scale)
        return centred(centred(gram, self.codes, root).T, self.codes, root)

    def project(self, rows: FloatArray) -> FloatArray:
        root = np.sqrt(self.weight)
        product = self.samples.projections(self.means, self.scale, rows).T
        return centred(product * root, self.codes, root)

    def expand(self, combine: FloatArray) -> FloatArray:
        root = np.sqrt(self.weight)
        own = centred(combine, self.codes, root) * root
        return self.samples.loadings(self.means, self.scale, own.T).T


def centred(rows: FloatArray, codes: IntArray, root: FloatArray) -> FloatArray:
    """Rows over the samples, less their projection on each class.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_samples)
        What is centred.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    root : ndarray of shape (n_samples,)
        Square roots of the frequency weights.

    >>> centred(np.array([[1.0, 3.0, 5.0]]), np.array([0, 0, 1]), np.ones(3))
    array([[-1.,  1.,  0.]])
    """
    out = np.array(rows)
    for k in np.unique(codes):
        member = np.flatnonzero(codes == k)
        own = root[member]
        out[:, member] -= np.outer(rows[:, member] @ own, own) / (own @ own)
    return out


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of the sample correlation ``C = R'R / df``, and of the Gram matrix.

    Parameters
    ----------
    eigenvalue : ndarray of shape (rank,)
        Those above zero, decreasing.
    vectors : ndarray of shape (n_samples, rank)
        Eigenvectors of ``R R'``: the eigenvectors of C are ``R' v / sqrt(df value)``.
    df : float
        Degrees of freedom of the residuals.
    squares : ndarray of shape (n_samples,)
        Squared lengths of the residuals, unweighted.
    """

    eigenvalue: FloatArray
    vectors: FloatArray
    df: float
    squares: FloatArray


def spectrum_of(residuals: Residuals) -> Spectrum | None:
    """Eigenvalues of the sample correlation; None without any."""
    weight = residuals.weight
    df = float(weight.sum()) - len(np.unique(residuals.codes))
    if df <= 0:
        return None
    gram = residuals.gram()
    squares = np.diag(gram) / weight
    # On one thread: on several, its many small steps wait for each other, and took
    # twenty times as long beside other work.
    with one_blas_thread():
        value, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
    kept = np.flatnonzero(value > _NEGLIGIBLE * max(value[-1], 0.0))[::-1]
    if not kept.size:
        return None
    return Spectrum(value[kept] / df, vectors[:, kept], df, squares)


class Summary:
    """What rules are made from: moments, contrasts, and samples if they were kept.

    Parameters
    ----------
    moments : ClassMoments
        Of all samples.
    contrasts : Contrasts
        Normalised contrasts of the class means.
    samples : Samples or None
        Rows that are looked at again.
    """

    def __init__(
        self, moments: ClassMoments, contrasts: Contrasts, samples: Samples | None
    ) -> None:
        self.moments, self.contrasts, self.samples = moments, contrasts, samples

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.contrasts.z.shape[1])

    @property
    def n_varying(self) -> int:
        """Number of features that are not constant."""
        return int(np.count_nonzero(~self.contrasts.constant))

    @cached_property
    def sum_of_squared_variances(self) -> float:
        """Unbiased estimate over the features, in units of the variances in use."""
        moments, varying = self.moments, ~self.contrasts.constant
        df = float(moments.counts.sum()) - len(moments.counts)
        within = moments.centred_squares.sum(axis=0)[varying]
        ratio = within / (df * self.contrasts.variance[varying])
        return float(ratio @ ratio) * df / (df + 2)

    @cached_property
    def rows(self) -> FloatArray:
        """Residuals of the samples about the class means, times root weights."""
        assert self.samples is not None
        scale = np.sqrt(self.contrasts.variance)
        rows = self.samples.residual_rows(self.moments.means, scale)
        rows *= np.sqrt(self.samples.weight)[:, None]
        return rows

    @cached_property
    @no_fork()
    def gram(self) -> FloatArray:
        """``rows rows'``."""
        gram: FloatArray = self.rows @ self.rows.T
        return gram

    @cached_property
    def residuals(self) -> Residuals:
        """Residuals of the samples: in memory if they are few."""
        samples = self.samples
        assert samples is not None
        p = self.moments.means.shape[1]
        if len(samples) * p <= sizes.residual_elements:
            every = np.arange(len(samples))
            return RowResiduals(
                self.rows, self.gram, samples.codes, samples.weight, every
            )
        scale = np.sqrt(self.contrasts.variance)
        return SampleResiduals(samples, self.moments.means, scale)

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """Eigenvalues of the sample correlation, computed once for all estimates."""
        return spectrum_of(self.residuals)
