"""What a covariance is estimated from: moments, contrasts, and residuals of samples.

With n samples and p features, n far below p, everything that the residuals tell about
the correlation lies in the span of their n rows. So the estimates are made in n
dimensions, from the n x n Gram matrix, which is computed once and shared; vectors over
the features are only projected on the rows and made of them.

Where values are missing, their residuals are zero. Those of feature j are then divided
by the root of the share of its values that are there, so that its variance is 1. The
correlation of two features is too small by

    overlap = share with both values / sqrt(share of one * share of the other),

which is the share itself where values are missing at random, and 1 where they are
missing together. Its mean over all pairs puts factors and neighbours right. The noise
of the contrasts has the smaller correlation: means of different samples have less in
common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from ebda.cached import cached_property
from ebda.data import Samples
from ebda.kernels.residuals import fill_missing
from ebda.kernels.threads import no_fork, one_blas_thread
from ebda.moments import ClassMoments, Contrasts, choose_features
from ebda.moments.variance import degrees_of_freedom
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Eigenvalues this small, relative to the largest, are rounding.
_NEGLIGIBLE = 1e-10
# Correlations are never magnified by more than the inverse of this.
_LEAST_OVERLAP = 0.1


class Residuals(Protocol):
    """Rows R: residuals in units of the standard deviations, times root information.

    Those of a sample with a scale of its own are over this scale. They are centred by
    class: whatever is projected on them is free of differences between the class means
    of exactly these samples.
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
        Those of all samples about any class means, times root information.
    all_gram : ndarray of shape (n_samples, n_samples)
        ``rows rows'``.
    all_samples : Samples
        Classes and weights of all samples.
    used : ndarray of int
        Those that are meant.
    """

    rows: FloatArray
    all_gram: FloatArray
    all_samples: Samples
    used: IntArray

    @property
    def codes(self) -> IntArray:
        return self.all_samples.codes[self.used]

    @property
    def weight(self) -> FloatArray:
        return self.all_samples.weight[self.used]

    def _centred(self, rows: FloatArray) -> FloatArray:
        return centred(
            rows, self.codes, np.sqrt(self.all_samples.information[self.used])
        )

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

    @property
    def _root(self) -> FloatArray:
        root: FloatArray = np.sqrt(self.samples.information)
        return root

    def gram(self) -> FloatArray:
        root = self._root
        gram = self.samples.gram(self.means, self.scale)
        return centred(centred(gram, self.codes, root).T, self.codes, root)

    def project(self, rows: FloatArray) -> FloatArray:
        root = self._root
        product = self.samples.projections(self.means, self.scale, rows).T
        return centred(product * root, self.codes, root)

    def expand(self, combine: FloatArray) -> FloatArray:
        root = self._root
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


def mean_overlap(
    present: npt.NDArray[np.bool_], weight: FloatArray, varying: npt.NDArray[np.bool_]
) -> float:
    """Mean over all pairs of features of ``share_jl / sqrt(share_j share_l)``.

    Parameters
    ----------
    present : ndarray of bool of shape (n_samples, n_features)
        Which values are there.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    varying : ndarray of bool of shape (n_features,)
        Features that count.

    >>> there = np.array([[True, True], [True, True], [False, False], [False, False]])
    >>> mean_overlap(there, np.ones(4), np.ones(2, bool))
    1.0
    """
    there = present.astype(np.float64)
    share = weight @ there / weight.sum()
    used = varying & (share > 0)
    p = np.count_nonzero(used)
    if p < 2:
        return 1.0
    unit = np.where(used, 1 / np.sqrt(np.where(used, share, 1.0)), 0.0)
    # All pairs at once, less those of a feature with itself, for which it is 1.
    pairs = weight @ (there @ unit) ** 2 / weight.sum() - p
    return float(np.clip(pairs / (p * (p - 1)), _LEAST_OVERLAP, 1.0))


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
    key : ndarray of shape (n_samples,), optional
        A number for each sample, equal for equal ones, in place of its own.
    """

    def __init__(
        self,
        moments: ClassMoments,
        contrasts: Contrasts,
        samples: Samples | None,
        key: FloatArray | None = None,
    ) -> None:
        self.moments, self.contrasts, self.samples = moments, contrasts, samples
        self.given_key = key

    @cached_property
    def key(self) -> FloatArray:
        """A number for each sample, equal for equal ones: it decides the folds."""
        if self.given_key is not None:
            return self.given_key
        assert self.samples is not None
        return self.samples.fingerprint(self.moments.means, self.scale)

    def with_key(self, key: FloatArray) -> Summary:
        """The same with other numbers for the samples."""
        return Summary(self.moments, self.contrasts, self.samples, key)

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.contrasts.z.shape[1])

    @property
    def total(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.moments.counts.sum())

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
        if moments.observed is not None:
            own = self.share[varying] * df
            ratio = within / (own * self.contrasts.variance[varying])
            return float((ratio * own / (own + 2)) @ ratio)
        ratio = within / (df * self.contrasts.variance[varying])
        return float(ratio @ ratio) * df / (df + 2)

    @cached_property
    def share(self) -> FloatArray:
        """Degrees of freedom of each feature over those that it has with all values.

        Of shape (n_features,) where values are missing, else (1,); 1 where constant.
        """
        if self.moments.observed is None:
            return np.ones(1)
        counts = self.moments.counts
        most = float(counts.sum() - np.count_nonzero(counts))
        share = np.asarray(degrees_of_freedom(self.moments)) / most
        share[(share <= 0) | self.contrasts.constant] = 1.0
        return share

    @cached_property
    def scale(self) -> FloatArray:
        """What residuals are divided by: standard deviations times roots of shares."""
        scale: FloatArray = np.sqrt(self.contrasts.variance)
        if self.moments.observed is not None:
            scale = scale * np.sqrt(self.share)
            scale[self.contrasts.constant] = np.inf
        return scale

    @cached_property
    def _rows_and_present(self) -> tuple[FloatArray, npt.NDArray[np.bool_] | None]:
        assert self.samples is not None
        rows = self.samples.residual_rows(self.moments.means, self.scale)
        rows *= np.sqrt(self.samples.information)[:, None]
        if self.moments.observed is None:
            return rows, None
        present = ~np.isnan(rows)
        fill_missing(rows)
        return rows, present

    @property
    def present(self) -> npt.NDArray[np.bool_] | None:
        """Which values of the samples are there; None if none is missing."""
        return self._rows_and_present[1]

    @property
    def rows(self) -> FloatArray:
        """Residuals of the samples about the class means, times root information.

        Zero where a value is missing.
        """
        return self._rows_and_present[0]

    @cached_property
    def overlap(self) -> float:
        """How much smaller correlations come out for missing values; 1 without any."""
        if self.moments.observed is None:
            return 1.0
        assert self.samples is not None
        moments, weight = self.moments, self.samples.weight
        varying = ~self.contrasts.constant
        most = max(sizes.residual_elements // max(len(weight), 1), 1)
        if self.p <= most:
            assert self.present is not None
            return mean_overlap(self.present, weight, varying)
        # Some of the features tell the mean over all pairs well enough.
        some = choose_features(moments, most)
        rows = self.samples.features(some).residual_rows(
            moments.means[:, some], self.scale[some]
        )
        return mean_overlap(~np.isnan(rows), weight, varying[some])

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
            return RowResiduals(self.rows, self.gram, samples, every)
        return SampleResiduals(samples, self.moments.means, self.scale)

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """Eigenvalues of the sample correlation, computed once for all estimates."""
        return spectrum_of(self.residuals)
