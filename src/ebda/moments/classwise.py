"""Per-class count, mean and centred sum of squares of every feature, in one pass.

Everything downstream is a function of these three arrays, so memory, blocks of a
file and the workers of a cluster differ only in how they are summed. Two summaries
of disjoint rows merge by the formula of Chan, Golub and LeVeque (1983), which is
associative and commutative up to rounding; summaries of disjoint columns are
concatenated. The sums themselves are taken in two steps, the mean first and then the
squares about it (:mod:`ebda.kernels.class_sums`): features with a large mean and a
small variance lose no digits, and X is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.kernels.class_sums import class_sums, sparse_class_sums
from ebda.sizes import sizes
from ebda.storage.fields import NOT_NEGATIVE, POSITIVE, Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Sufficient statistics of the samples of each class.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        Number of samples, or the sum of their frequency weights.
    means : ndarray of shape (n_classes, n_features)
        Class means; zero for a class without samples.
    centred_squares : ndarray of shape (n_classes, n_features)
        Sum of squares about the class mean.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [7.0, 1.0]])
    >>> moments = class_moments(X, np.array([0, 0, 1]), n_classes=2)
    >>> moments.means.tolist()
    [[2.0, 5.0], [7.0, 1.0]]
    >>> moments.centred_squares.tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """

    counts: FloatArray
    means: FloatArray
    centred_squares: FloatArray

    @classmethod
    def empty(cls, n_classes: int, n_features: int) -> ClassMoments:
        """The moments of no samples, from which merging starts."""
        shape = (n_classes, n_features)
        return cls(np.zeros(n_classes), np.zeros(shape), np.zeros(shape))

    def merge(self, other: ClassMoments) -> ClassMoments:
        """Moments of the union of two disjoint sets of rows."""
        if self.means.shape != other.means.shape:
            raise ValueError(
                f"cannot merge moments of {self.means.shape[0]} classes x "
                f"{self.means.shape[1]} features with {other.means.shape[0]} x "
                f"{other.means.shape[1]}"
            )
        counts = self.counts + other.counts
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(counts > 0, other.counts / counts, 0.0)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            shift = other.means - self.means
            means = self.means + share * shift
            shift *= shift
            between = self.counts[:, None] * share
            shift *= between
            shift[between[:, 0] == 0] = 0.0  # an infinite square times nothing
            shift += self.centred_squares
            shift += other.centred_squares
        return ClassMoments(counts, means, shift)

    def features(self, chosen: IntArray) -> ClassMoments:
        """Moments of some of the features."""
        return ClassMoments(
            self.counts, self.means[:, chosen], self.centred_squares[:, chosen]
        )

    @staticmethod
    def join_features(parts: Iterable[ClassMoments]) -> ClassMoments:
        """Moments of blocks of columns of the same rows, concatenated."""
        blocks = list(parts)
        counts = blocks[0].counts
        if any(not np.array_equal(block.counts, counts) for block in blocks):
            raise ValueError("blocks of columns must come from the same samples")
        return ClassMoments(
            counts,
            np.concatenate([block.means for block in blocks], axis=1),
            np.concatenate([block.centred_squares for block in blocks], axis=1),
        )


register(
    Schema(
        ClassMoments,
        {
            "counts": Array(("k",), POSITIVE),
            "means": Array(("k", "p")),
            "centred_squares": Array(("k", "p"), NOT_NEGATIVE),
        },
    )
)


def merge_all(parts: Iterable[ClassMoments]) -> ClassMoments:
    """Merge any number of summaries of disjoint rows, in the order given."""
    return reduce(ClassMoments.merge, parts)


def class_moments(
    X: Any,
    codes: npt.ArrayLike,
    n_classes: int,
    sample_weight: FloatArray | None = None,
) -> ClassMoments:
    """Moments of the rows of X by class.

    Parameters
    ----------
    X : ndarray, or CSR or CSC matrix, of shape (n_samples, n_features)
        Any real dtype and memory order; never copied as a whole, sparse input
        never densified.
    codes : ndarray of shape (n_samples,)
        Class of each row as an integer in ``range(n_classes)``.
    n_classes : int
        Number of classes; a class may be without rows.
    sample_weight : ndarray of shape (n_samples,), optional
        Frequency weights: a row of weight 2 counts as two equal rows.

    Returns
    -------
    ClassMoments
        NaN and infinity in X come out as NaN or infinity in the feature's moments.
    """
    place = np.asarray(codes, dtype=np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            return _sparse_moments(X, place, n_classes, sample_weight)
        return _dense_moments(np.asarray(X), place, n_classes, sample_weight)


def _dense_moments(
    X: npt.NDArray[Any], codes: IntArray, n_classes: int, weight: FloatArray | None
) -> ClassMoments:
    n, p = X.shape
    total: ClassMoments | None = None
    for start in range(0, n, sizes.tile_rows):
        stop = min(start + sizes.tile_rows, n)
        # Rows of one class become neighbours, so that each class is a slice.
        rows = start + np.argsort(codes[start:stop], kind="stable")
        bounds = np.searchsorted(codes[rows], np.arange(n_classes + 1))
        own = None if weight is None else weight[rows]
        part = ClassMoments(*class_sums(X, rows, bounds, own))
        total = part if total is None else total.merge(part)
    return ClassMoments.empty(n_classes, p) if total is None else total


def _sparse_moments(
    X: Any, codes: IntArray, n_classes: int, weight: FloatArray | None
) -> ClassMoments:
    by_column = X.format == "csc"
    if not by_column and X.format != "csr":
        raise ValueError(f"sparse input must be CSR or CSC, not {X.format}")
    w = np.ones(X.shape[0]) if weight is None else weight
    if 0 in X.shape:
        counts = np.bincount(codes, weights=w, minlength=n_classes).astype(np.float64)
        return replace(ClassMoments.empty(n_classes, X.shape[1]), counts=counts)
    canonical = X.has_canonical_format

    def moments_of(block: Any, codes: IntArray, w: FloatArray) -> ClassMoments:
        coo = block.tocoo()
        if not canonical:  # squares of stored parts are not the square of their sum
            coo.sum_duplicates()
        return ClassMoments(*sparse_class_sums(coo, codes, n_classes, w))

    if by_column:
        return ClassMoments.join_features(
            moments_of(X[:, block], codes, w)
            for block in _blocks_of_nonzeros(X.indptr, sizes.sparse_elements)
        )
    # A row block costs a few passes over (n_classes, p) besides its nonzeros, so it
    # should hold at least p of them.
    enough = max(sizes.sparse_elements, X.shape[1])
    return merge_all(
        moments_of(X[block], codes[block], w[block])
        for block in _blocks_of_nonzeros(X.indptr, enough)
    )


def _blocks_of_nonzeros(indptr: npt.NDArray[Any], size: int) -> Iterator[slice]:
    """Cut rows (or columns) into runs of about `size` nonzeros, at least one each."""
    n = len(indptr) - 1
    start = 0
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + size, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        yield slice(start, stop)
        start = stop
