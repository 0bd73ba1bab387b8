"""Per-class count, mean and centred sum of squares of every feature, in one pass.

Everything downstream is a function of these three arrays, so memory, blocks of a
file and the workers of a cluster differ only in how they are summed. Two summaries
of disjoint rows merge by the formula of Chan, Golub and LeVeque (1983), which is
associative and commutative up to rounding; summaries of disjoint columns are
concatenated. The sums themselves are taken in two steps, the mean first and then the
squares about it (:mod:`ebda.kernels.class_sums`): features with a large mean and a
small variance lose no digits, and X is read once.

A value that is NaN is missing. Means and squares are of the values that are there, and
then each feature has a count of its own in each class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.kernels.class_sums import class_sums, missing_class_sums, sparse_class_sums
from ebda.moments.design import Design
from ebda.sizes import sizes
from ebda.storage.fields import NOT_NEGATIVE, POSITIVE, Array
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray, IntArray

# Sums of weights this close, relative to each other, differ by rounding.
_TIED = 1e-9


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
    observed : ndarray of shape (n_classes, n_features), optional
        Number of values of each feature that are there; None where none is missing.
    design : Design, optional
        How the class means vary where samples have groups or covariates; None where
        they are independent.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [7.0, 1.0]])
    >>> moments = class_moments(X, np.array([0, 0, 1]), n_classes=2)
    >>> moments.means.tolist()
    [[2.0, 5.0], [7.0, 1.0]]
    >>> moments.centred_squares.tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    >>> X[0, 1] = np.nan
    >>> class_moments(X, np.array([0, 0, 1]), n_classes=2).observed.tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """

    counts: FloatArray
    means: FloatArray
    centred_squares: FloatArray
    observed: FloatArray | None = None
    design: Design | None = None

    @property
    def residual_df(self) -> float:
        """Degrees of freedom within the classes, of a feature with all values."""
        if self.design is not None:
            return self.design.degrees_of_freedom
        return float(self.counts.sum() - np.count_nonzero(self.counts > 0))

    @property
    def expected_squares(self) -> float:
        """What sums of squares within the classes are divided by for a variance."""
        known = self.design
        return self.residual_df if known is None else known.expected_squares

    @property
    def n_values(self) -> FloatArray:
        """Values of each class: one column, or one per feature where some are missing.

        Of shape (n_classes, 1) or (n_classes, n_features).
        """
        return self.counts[:, None] if self.observed is None else self.observed

    @property
    def without_values(self) -> npt.NDArray[np.bool_]:
        """Features without a value in some class that has samples.

        And those whose values do not tell a class from the covariates.
        """
        found = np.zeros(self.means.shape[1], dtype=bool)
        if self.observed is not None:
            (self.observed[self.counts > 0] <= 0).any(axis=0, out=found)
            if self.design is not None and self.design.values is not None:
                found |= self.design.values.confounded
        return found

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
        if self.design is not None or other.design is not None:
            raise ValueError(
                "moments of samples with groups or covariates cannot be merged: fit "
                "to all samples at once"
            )
        own, others = self.n_values, other.n_values
        n = own + others
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(n > 0, others / n, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            shift = other.means - self.means
            means = self.means + share * shift
            shift *= shift
            between = own * share
            shift *= between
            if (between == 0).any():  # an infinite square times nothing
                np.copyto(shift, 0.0, where=between == 0)
            shift += self.centred_squares
            shift += other.centred_squares
        complete = self.observed is None and other.observed is None
        counts = self.counts + other.counts
        return ClassMoments(counts, means, shift, None if complete else n)

    def features(self, chosen: IntArray) -> ClassMoments:
        """Moments of some of the features."""
        return ClassMoments(
            self.counts,
            self.means[:, chosen],
            self.centred_squares[:, chosen],
            self._observed(chosen),
            None if self.design is None else self.design.features(chosen),
        )

    def classes(self, chosen: slice) -> ClassMoments:
        """Moments of some of the classes."""
        observed = None if self.observed is None else self.observed[chosen]
        return ClassMoments(
            self.counts[chosen],
            self.means[chosen],
            self.centred_squares[chosen],
            _where_some_are_missing(observed, self.counts[chosen]),
        )

    def _observed(self, chosen: IntArray) -> FloatArray | None:
        if self.observed is None:
            return None
        return _where_some_are_missing(self.observed[:, chosen], self.counts)

    @staticmethod
    def join_features(parts: Iterable[ClassMoments]) -> ClassMoments:
        """Moments of blocks of columns of the same rows, concatenated."""
        blocks = list(parts)
        counts = blocks[0].counts
        # Sums of weights that are not whole numbers may differ by rounding.
        if any(not np.allclose(b.counts, counts, rtol=1e-12) for b in blocks):
            raise ValueError("blocks of columns must come from the same samples")
        observed = None
        if any(block.observed is not None for block in blocks):
            shapes = [block.means.shape for block in blocks]
            parts_of = zip(blocks, shapes, strict=True)
            observed = np.concatenate(
                [np.broadcast_to(block.n_values, shape) for block, shape in parts_of],
                axis=1,
            )
        return ClassMoments(
            counts,
            np.concatenate([block.means for block in blocks], axis=1),
            np.concatenate([block.centred_squares for block in blocks], axis=1),
            observed,
        )


def _where_some_are_missing(
    observed: FloatArray | None, counts: FloatArray
) -> FloatArray | None:
    """The counts by feature, or None where they are those of the samples."""
    if observed is None or (observed == counts[:, None]).all():
        return None
    return observed


def _from_fields(fields: dict[str, Any]) -> ClassMoments:
    observed = fields.setdefault("observed", None)
    fields.setdefault("design", None)
    if observed is not None:
        most = (1 + _TIED) * fields["counts"][:, None]
        if (observed > most).any():
            raise ValueError("a feature has more values than there are samples")
    return ClassMoments(**fields)


register(
    Schema(
        ClassMoments,
        {
            "counts": Array(("k",), POSITIVE),
            "means": Array(("k", "p")),
            "centred_squares": Array(("k", "p"), NOT_NEGATIVE),
            "observed": Array(("k", "p"), NOT_NEGATIVE),
            "design": Nested(("Design",)),
        },
        optional=frozenset({"observed", "design"}),
        build=_from_fields,
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
        Of the values that are not NaN. Infinity in X comes out as NaN or infinity in
        the feature's moments.
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
        part = _of_values(part, X, rows, bounds, own)
        total = part if total is None else total.merge(part)
    return ClassMoments.empty(n_classes, p) if total is None else total


def _of_values(
    part: ClassMoments,
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    weight: FloatArray | None,
) -> ClassMoments:
    """Moments with those features summed again that have missing values."""
    if np.isfinite(part.means).all():
        return part
    columns = np.flatnonzero(~np.isfinite(part.means).all(axis=0))
    n, means, squares = missing_class_sums(
        X, rows, bounds, weight, columns, part.counts
    )
    observed = np.tile(part.counts[:, None], (1, X.shape[1]))
    observed[:, columns] = n
    part.means[:, columns], part.centred_squares[:, columns] = means, squares
    return replace(part, observed=_where_some_are_missing(observed, part.counts))


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
