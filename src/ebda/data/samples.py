"""Rows of an array, in memory or on disk, that are looked at again.

The moments are summed in one pass over all samples, which is all that the independence
rule needs. The correlation within the classes and cross-validation need samples a
second time, but not all of them: ``sizes.kept(p)`` rows are kept. A hash of its
values decides whether a row is among them, and not its place: the same samples in
another order, in batches, or with weights in place of repetitions keep the same rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.data.pages import is_mapped, release
from ebda.kernels.hashing import Hashes, column_keys, hash_integers, hash_rows
from ebda.kernels.residuals import (
    NeighbourSums,
    fill_missing,
    neighbour_sums,
    signed_squares,
    standardise,
)
from ebda.kernels.threads import no_fork
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray


def rows_that_count(
    codes: IntArray, weight: FloatArray | None, first: int = 0
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, IntArray]:
    """Rows of positive weight: which, their classes, weights, precisions, and numbers.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each row.
    weight : ndarray of shape (n_samples,), optional
        Frequency weights.
    first : int
        Position of the first row in the stream of all samples.
    """
    w = np.ones(len(codes)) if weight is None else weight
    rows = np.flatnonzero(w > 0)
    return rows, codes[rows], w[rows], np.ones(len(rows)), rows + first


def choose(
    hashes: Hashes, codes: IntArray, weight: FloatArray, n_kept: int
) -> tuple[IntArray, FloatArray]:
    """Samples to keep, in their order, and their weights: those of lowest hash.

    Equal samples become one, with the sum of their weights: to a sample of weight 2
    happens what happens to two equal samples. There are `n_kept` of all classes
    together, and `sizes.kept_per_class` of each, so that a rare class is not lost. A
    stream keeps what one call on all of it would keep.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_samples,)
        Equal for equal samples.
    codes : ndarray of int of shape (n_samples,)
        Their classes.
    weight : ndarray of shape (n_samples,)
        Their frequency weights.
    n_kept : int
        How many to keep.

    >>> from ebda.sizes import override
    >>> with override(kept_per_class=1):
    ...     choose(np.array([3, 1, 2, 1], np.uint64), np.zeros(4, int), np.ones(4), 2)
    (array([1, 2]), array([2., 1.]))
    """
    order = np.lexsort((codes, hashes))
    key = np.stack([hashes[order], codes[order].astype(np.uint64)])
    starts = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
    first, (hashes, own) = order[starts], key[:, starts]
    total = np.add.reduceat(weight[order], starts)
    kept = hashes <= hashes[:n_kept][-1]
    for k in np.unique(own):
        kept[np.flatnonzero(own == k)[: sizes.kept_per_class]] = True
    chosen = np.flatnonzero(kept)[np.argsort(first[kept])]
    return first[chosen], total[chosen]


@dataclass(frozen=True, eq=False)
class ChosenRows(ABC):
    """What all samples share (:class:`ebda.data.Samples`): which rows of X they are.

    Parameters
    ----------
    rows : ndarray of int of shape (n_samples,)
        Which.
    codes : ndarray of int of shape (n_samples,)
        Their classes.
    weight : ndarray of shape (n_samples,)
        Their frequency weights.
    precision : ndarray of shape (n_samples,)
        One over the squares of their scales.
    number : ndarray of int of shape (n_samples,)
        Their positions in the stream of all samples.
    has_missing : bool
        Whether any values may be NaN, which then count nothing in the sums.
    """

    rows: IntArray
    codes: IntArray
    weight: FloatArray
    precision: FloatArray
    number: IntArray
    has_missing: bool = field(default=False, kw_only=True)

    @property
    def information(self) -> FloatArray:
        return self.weight * self.precision

    @property
    def place(self) -> str:
        """Where the values are; samples of two places cannot be joined."""
        return "the host"

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: npt.NDArray[Any]) -> Self:
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weight=self.weight[chosen],
            precision=self.precision[chosen],
            number=self.number[chosen],
        )

    def with_precision(self, precision: FloatArray) -> Self:
        return replace(self, precision=precision)

    def moments(self, n_classes: int) -> ClassMoments:
        return self.moments_by(np.zeros(len(self), dtype=np.intp), 1, n_classes)[0]

    def as_in(self, moments: ClassMoments) -> Self:
        """The same, with missing values if their moments say that there are any."""
        return replace(self, has_missing=moments.observed is not None)

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @property
    def are_too_many(self) -> bool:
        """Whether there are more than are kept."""
        return len(self) > sizes.kept(self.n_features)

    def thinned(self, hashes: Hashes) -> Self:
        """Those that :func:`choose` chooses by these hashes of their values."""
        # The sums of the kernel are mixed once more, so that any of them may be lowest.
        n_kept = sizes.kept(self.n_features)
        chosen, weight = choose(hash_integers(hashes), self.codes, self.weight, n_kept)
        return replace(self.take(chosen), weight=weight)

    @abstractmethod
    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]: ...


@dataclass(frozen=True, eq=False)
class RowSamples(ChosenRows):
    """Rows of an array in memory or on disk, read in tiles of some features.

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix, or array on disk, of shape (n_rows, n_features)
        What is sliced by rows and columns.
    """

    X: Any

    @classmethod
    def of(
        cls, X: Any, codes: IntArray, weight: FloatArray | None, first: int = 0
    ) -> Self:
        """All rows of X but those of weight zero (:func:`rows_that_count`)."""
        return cls(*rows_that_count(codes, weight, first), X)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def kept(self) -> Self:
        """Those of these samples that are kept."""
        if not self.are_too_many:
            return self
        return self.thinned(self.hashes(column_keys(self.n_features)))

    def moved_to(self, X: Any) -> Self:
        """The same samples in an array that has these rows only."""
        return replace(self, X=X, rows=np.arange(len(self)))

    def features(self, chosen: IntArray) -> Self:
        if sparse.issparse(self.X):
            return self.moved_to(self.X[self.rows][:, chosen])
        if self._in_memory:
            return self.moved_to(self.X[np.ix_(self.rows, chosen)])
        out = np.empty((len(self), len(chosen)), self.X.dtype)
        for cols, tile in self._stored_tiles():
            a, b = np.searchsorted(chosen, [cols.start, cols.stop])
            out[:, a:b] = tile[:, chosen[a:b] - cols.start]
        return self.moved_to(out)

    def copy(self) -> Self:
        return self.moved_to(self.X[self.rows])

    def append(self, other: Self) -> Self:
        parts = [samples.X[samples.rows] for samples in (self, other)]
        rows: Any
        if any(sparse.issparse(part) for part in parts):
            rows = sparse.vstack([sparse.csr_array(part) for part in parts])
        else:
            rows = np.concatenate(parts)
        codes, weight, precision, number = (
            np.concatenate([getattr(samples, name) for samples in (self, other)])
            for name in ("codes", "weight", "precision", "number")
        )
        has_missing = self.has_missing or other.has_missing
        known = np.arange(len(codes)), codes, weight, precision, number, rows
        both = type(self)(*known, has_missing=has_missing)
        return both.kept().copy()

    @property
    def _in_memory(self) -> bool:
        dense = isinstance(self.X, np.ndarray) and not is_mapped(self.X)
        return dense or sparse.issparse(self.X)

    def _stored_tiles(self) -> Iterator[tuple[slice, Any]]:
        """Columns, and a copy of their values in the chosen rows, as X has them."""
        p = self.X.shape[1]
        width = max(1, sizes.tile_elements // max(len(self), 1))
        by_column = self.X[self.rows].tocsc() if sparse.issparse(self.X) else None
        for left in range(0, p, width):
            cols = slice(left, min(left + width, p))
            if by_column is None:
                yield cols, self.X[self.rows, cols]
                release(self.X)
            else:
                yield cols, by_column[:, cols]

    def tiles(self) -> Iterator[tuple[slice, FloatArray]]:
        """Columns, and a float64 copy of their values in the chosen rows."""
        for cols, tile in self._stored_tiles():
            dense = tile.toarray() if sparse.issparse(tile) else tile
            yield cols, dense.astype(np.float64, copy=False)

    def residuals(
        self,
        means: FloatArray,
        scale: FloatArray,
        weighted: bool = False,
        keep_nan: bool = False,
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Columns, and the standardised residuals of the samples.

        Parameters
        ----------
        means : ndarray of shape (n_classes, n_features)
            Class means.
        scale : ndarray of shape (n_features,)
            Standard deviations.
        weighted : bool
            Whether they are multiplied with the square roots of the information.
        keep_nan : bool
            Whether missing values stay NaN, and do not become zero.
        """
        root = np.sqrt(self.information)[:, None]
        for cols, tile in self.tiles():
            standardise(tile, self.codes, means[:, cols], scale[cols])
            if self.has_missing and not keep_nan:
                fill_missing(tile)
            if weighted:
                tile *= root
            yield cols, tile

    def hashes(self, keys: Hashes) -> Hashes:
        """Hashes of the values of each sample (:func:`ebda.kernels.hashing.hash_rows`).

        Parameters
        ----------
        keys : ndarray of uint64 of shape (n_features,)
            Those of the columns.
        """
        if self._in_memory:
            return hash_rows(self.X, keys)[self.rows]
        total = np.zeros(len(self), dtype=np.uint64)
        for cols, tile in self._stored_tiles():
            total += hash_rows(tile, keys[cols])
        return total

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        total = np.zeros(len(self))
        for _, R in self.residuals(means, scale):
            total += signed_squares(R)
        return total

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        total = np.zeros((len(self), len(self)))
        for _, R in self.residuals(means, scale, weighted=True):
            with no_fork():
                total += R @ R.T
        return total

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        out = np.empty((len(scale), combine.shape[1]))
        for cols, R in self.residuals(means, scale):
            with no_fork():
                np.matmul(R.T, combine, out=out[cols])
        return out

    def projections(
        self, means: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        total = np.zeros((len(self), len(rows)))
        for cols, R in self.residuals(means, scale):
            with no_fork():
                total += R @ rows[:, cols].T
        return total

    def residual_rows(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        out = np.empty((len(self), len(scale)))
        for cols, R in self.residuals(means, scale, keep_nan=True):
            out[:, cols] = R
        return out

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        tiles = self.residuals(means, scale, weighted=True)
        parts = (neighbour_sums(R, third[cols]) for cols, R in tiles)
        return reduce(NeighbourSums.join, parts, NeighbourSums.empty(len(self)))

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        # A class of a group is a class.
        codes, n = group * n_classes + self.codes, n_groups * n_classes
        weight = None if (self.information == 1).all() else self.information
        if self._in_memory and np.array_equal(self.rows, np.arange(self.X.shape[0])):
            total = class_moments(self.X, codes, n, weight)
        else:
            nothing = class_moments(np.empty((len(self), 0)), codes, n, weight)
            parts = (
                class_moments(tile, codes, n, weight)
                for _, tile in self._stored_tiles()
            )
            total = ClassMoments.join_features([nothing, *parts])
        cuts = [slice(k, k + n_classes) for k in range(0, n, n_classes)]
        return [total.classes(k) for k in cuts]

    def scores(self, coef: FloatArray) -> FloatArray:
        out = np.zeros((len(self), len(coef)))
        for cols, tile in self.tiles():
            if self.has_missing:
                fill_missing(tile)
            with no_fork():
                out += tile @ coef[:, cols].T
        return out
