"""Rows of an array, in memory or on disk, that are looked at again.

The moments are summed in one pass over all samples, which is all that the independence
rule needs. The correlation within the classes and cross-validation need samples a
second time, but not all of them: `sizes.kept_samples` rows are kept. A hash of its
position in the stream decides whether a row is among them, so that a stream of batches
keeps the same rows as a single fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.data.pages import is_mapped, release
from ebda.kernels.hashing import hash_integers
from ebda.kernels.residuals import (
    NeighbourSums,
    neighbour_sums,
    signed_squares,
    standardise,
)
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray


def choose_rows(
    codes: IntArray, weight: FloatArray | None, first: int = 0
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Rows to keep, their classes, their weights, and their positions in the stream.

    Rows of weight zero are not kept.
    """
    w = np.ones(len(codes)) if weight is None else weight
    rows = np.flatnonzero(w > 0)
    rows = rows[_thinned(rows + first, codes[rows])]
    return rows, codes[rows], w[rows], rows + first


def _thinned(number: IntArray, codes: IntArray) -> IntArray:
    """Indices of the samples to keep: those whose position has the lowest hash.

    `sizes.kept_samples` of all classes together, and `sizes.kept_per_class` of each, so
    that a rare class is not lost. A stream keeps what one call on all of it would keep.
    """
    if len(number) <= sizes.kept_samples:
        return np.arange(len(number))
    order = np.argsort(hash_integers(number), kind="stable")
    kept = np.zeros(len(number), dtype=bool)
    kept[order[: sizes.kept_samples]] = True
    for k in np.unique(codes):
        kept[order[codes[order] == k][: sizes.kept_per_class]] = True
    return np.flatnonzero(kept)


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
    number : ndarray of int of shape (n_samples,)
        Their positions in the stream of all samples.
    """

    rows: IntArray
    codes: IntArray
    weight: FloatArray
    number: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: npt.NDArray[Any]) -> Self:
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weight=self.weight[chosen],
            number=self.number[chosen],
        )

    def moments(self, n_classes: int) -> ClassMoments:
        return self.moments_by(np.zeros(len(self), dtype=np.intp), 1, n_classes)[0]

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
        """The rows of X that :func:`choose_rows` chooses."""
        return cls(*choose_rows(codes, weight, first), X)

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
        number = np.concatenate([self.number, other.number])
        codes = np.concatenate([self.codes, other.codes])
        weight = np.concatenate([self.weight, other.weight])
        both = type(self)(np.arange(len(number)), codes, weight, number, rows)
        return both.take(_thinned(number, codes)).copy()

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
        self, means: FloatArray, scale: FloatArray, weighted: bool = False
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Columns, and the standardised residuals of the samples.

        Parameters
        ----------
        means : ndarray of shape (n_classes, n_features)
            Class means.
        scale : ndarray of shape (n_features,)
            Standard deviations.
        weighted : bool
            Whether they are multiplied with the square roots of the weights.
        """
        root = np.sqrt(self.weight)[:, None]
        for cols, tile in self.tiles():
            standardise(tile, self.codes, means[:, cols], scale[cols])
            if weighted:
                tile *= root
            yield cols, tile

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        total = np.zeros(len(self))
        for _, R in self.residuals(means, scale):
            total += signed_squares(R)
        return total

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        total = np.zeros((len(self), len(self)))
        for _, R in self.residuals(means, scale, weighted=True):
            total += R @ R.T
        return total

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        out = np.empty((len(scale), combine.shape[1]))
        for cols, R in self.residuals(means, scale):
            np.matmul(R.T, combine, out=out[cols])
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
        weight = None if (self.weight == 1).all() else self.weight
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
        return [
            ClassMoments(total.counts[k], total.means[k], total.centred_squares[k])
            for k in cuts
        ]

    def scores(self, coef: FloatArray) -> FloatArray:
        out = np.zeros((len(self), len(coef)))
        for cols, tile in self.tiles():
            out += tile @ coef[:, cols].T
        return out
