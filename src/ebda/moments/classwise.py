"""Per-class count, mean and centred sum of squares of every feature, in one pass.

Everything downstream is a function of these three arrays, so memory, blocks of a
file and the workers of a cluster differ only in how they are summed. Two summaries
of disjoint rows merge by the formula of Chan, Golub and LeVeque (1983), which is
associative and commutative up to rounding; summaries of disjoint columns are laid
side by side.

A tile of rows and columns is copied to float64, sorted by class, and summed in two
steps (mean first, then squares about it) while it is in the cache: features with a
large mean and a small variance lose no digits, and X itself is read once. Large
matrices are summed by a compiled loop where there is one (:mod:`ebda.kernels.compiled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.kernels import compiled, loops
from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray, IntArray

# Half a million float64 (4 MiB): a tile and its working copy stay in the cache of
# a present core, and the rows of a tile are still long enough to stream.
_TILE_ELEMENTS = 1 << 19
_TILE_ROWS = 2048
# Non-zeros handled at a time for sparse input: 4 MiB for each working vector.
_SPARSE_ELEMENTS = 1 << 19


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
        """The moments of no samples: what merging starts from."""
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
        """Moments of blocks of columns of the same rows, laid side by side."""
        blocks = list(parts)
        counts = blocks[0].counts
        if any(not np.array_equal(block.counts, counts) for block in blocks):
            raise ValueError("blocks of columns must come from the same samples")
        return ClassMoments(
            counts,
            np.concatenate([block.means for block in blocks], axis=1),
            np.concatenate([block.centred_squares for block in blocks], axis=1),
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
    rows_per_tile = min(max(n, 1), _TILE_ROWS)
    total: ClassMoments | None = None
    fast = weight is None and compiled.suits(X)
    for start in range(0, n, rows_per_tile):
        stop = min(start + rows_per_tile, n)
        # Rows of one class become neighbours, so that each class is a slice.
        rows = start + np.argsort(codes[start:stop], kind="stable")
        bounds = np.searchsorted(codes[rows], np.arange(n_classes + 1))
        part_weight = None if weight is None else weight[rows]
        part = ClassMoments.empty(n_classes, p)
        part.counts[:] = _slice_counts(bounds, part_weight)
        if fast:
            _compiled_moments(X, rows, bounds, part)
        else:
            _tiled_moments(X, rows, bounds, part_weight, part)
        total = part if total is None else total.merge(part)
    return ClassMoments.empty(n_classes, p) if total is None else total


def _compiled_moments(
    X: npt.NDArray[Any], rows: IntArray, bounds: IntArray, into: ClassMoments
) -> None:
    kernel = compiled.loop(loops.class_sums)
    width = compiled.tile_columns(len(rows))

    def part(cols: slice) -> None:
        kernel(
            X,
            rows,
            bounds,
            cols.start,
            cols.stop,
            width,
            into.means,
            into.centred_squares,
        )

    over_blocks(part, X.shape[1], long=True)


def _tiled_moments(
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    weight: FloatArray | None,
    into: ClassMoments,
) -> None:
    def part(cols: slice) -> None:
        tile = X[rows, cols].astype(np.float64, order="C", copy=False)
        if tile.shape[1] == 1:
            # NumPy adds up a lone column in another order: here it has company.
            tile = np.repeat(tile, 2, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            _tile_moments(tile, bounds, weight, into, cols)

    width = max(1, _TILE_ELEMENTS // max(len(rows), 1))
    over_blocks(part, X.shape[1], width, long=True)


def _slice_counts(bounds: IntArray, weight: FloatArray | None) -> FloatArray:
    if weight is None:
        return np.diff(bounds).astype(np.float64)
    return np.array([weight[a:b].sum() for a, b in pairwise(bounds)])


def _tile_moments(
    tile: FloatArray,
    bounds: IntArray,
    weight: FloatArray | None,
    into: ClassMoments,
    cols: slice,
) -> None:
    """Write the moments of a tile sorted by class; the tile is overwritten."""
    width = cols.stop - cols.start
    for k, count in enumerate(into.counts):
        if count <= 0:
            continue
        rows = slice(bounds[k], bounds[k + 1])
        part = tile[rows]
        if weight is None:
            mean = part.sum(axis=0)
            mean /= count
            part -= mean
            rest = part.sum(axis=0)
            squares = np.einsum("ij,ij->j", part, part)
        else:
            w = weight[rows]
            mean = w @ part
            mean /= count
            part -= mean
            rest = w @ part
            squares = np.einsum("i,ij,ij->j", w, part, part)
        # The residuals sum to the rounding error of the mean: put it back.
        rest /= count
        into.means[k, cols] = (mean + rest)[:width]
        rest *= rest
        rest *= count
        squares -= rest
        into.centred_squares[k, cols] = np.maximum(squares, 0.0)[:width]


def _sparse_moments(
    X: Any, codes: IntArray, n_classes: int, weight: FloatArray | None
) -> ClassMoments:
    by_column = X.format == "csc"
    if not by_column and X.format != "csr":
        raise ValueError(f"sparse input must be CSR or CSC, not {X.format}")
    w = np.ones(X.shape[0]) if weight is None else weight
    if 0 in X.shape:
        nothing = ClassMoments.empty(n_classes, X.shape[1])
        return replace(nothing, counts=_sums(codes, w, n_classes))
    clean = X.has_canonical_format

    def moments_of(block: Any, codes: IntArray, w: FloatArray) -> ClassMoments:
        coo = block.tocoo()
        if not clean:  # squares of stored parts are not the square of their sum
            coo.sum_duplicates()
        return _sparse_block_moments(coo, codes, n_classes, w)

    if by_column:
        return ClassMoments.join_features(
            moments_of(X[:, block], codes, w)
            for block in _blocks_of_nonzeros(X.indptr, _SPARSE_ELEMENTS)
        )
    # A row block costs a few passes over (n_classes, p) besides its non-zeros, so
    # it should hold at least p of them.
    enough = max(_SPARSE_ELEMENTS, X.shape[1])
    return merge_all(
        moments_of(X[block], codes[block], w[block])
        for block in _blocks_of_nonzeros(X.indptr, enough)
    )


def _blocks_of_nonzeros(indptr: npt.NDArray[Any], size: int) -> Iterator[slice]:
    """Cut rows (or columns) into runs of about `size` non-zeros, at least one each."""
    n = len(indptr) - 1
    start = 0
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + size, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        yield slice(start, stop)
        start = stop


def _sums(place: IntArray, value: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weights=value, minlength=size).astype(
        np.float64, copy=False
    )


def _sparse_block_moments(
    block: Any, codes: IntArray, n_classes: int, weight: FloatArray
) -> ClassMoments:
    p = block.shape[1]
    counts = _sums(codes, weight, n_classes)
    cell = codes[block.row] * p + block.col
    value = block.data.astype(np.float64)
    w = weight[block.row]

    def per_cell(x: FloatArray) -> FloatArray:
        return _sums(cell, x, n_classes * p).reshape(n_classes, p)

    with np.errstate(invalid="ignore", divide="ignore"):
        means = per_cell(w * value)
        means /= counts[:, None]
    means[counts == 0] = 0.0
    value -= means.ravel()[cell]
    squares = per_cell(w * value * value)
    # Entries that are not stored are zeros: each lies `mean` away from the mean.
    absent = counts[:, None] - per_cell(w)
    np.maximum(absent, 0.0, out=absent)
    absent *= means
    # The residuals sum to the rounding error of the mean: put it back.
    rest = per_cell(w * value)
    rest -= absent
    absent *= means
    squares += absent
    with np.errstate(invalid="ignore", divide="ignore"):
        rest /= counts[:, None]
    rest[counts == 0] = 0.0
    means += rest
    rest *= rest
    rest *= counts[:, None]
    squares -= rest
    np.maximum(squares, 0.0, out=squares)
    return ClassMoments(counts, means, squares)
