"""Rows of the data that may be looked at again: what factors and folds need.

The moments are summed in one pass, and for the independence rule nothing else is ever
read. The correlation within the classes and a cross-validation need the samples
themselves once more. :class:`Samples` is the one door to them: each sum that a later
step needs is a method, taken over tiles of columns, dense or sparse, in memory or on
disk, so that no full-size copy is made. What a sum is does not depend on how the
columns are cut, so that the workers of a cluster
(:class:`ebda.data.dask.samples.ClusterSamples`) can each take some of them.

About `MAX_SAMPLES` rows are kept: that many tell the common factors as well as ten
times as many would, and the Gram matrix stays small. Which rows is decided by a hash
of their number, so that a stream of batches keeps the same ones as a single fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.data.pages import is_mapped, release
from ebda.kernels.hashing import hash_integers
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.typing import FloatArray, IntArray

MAX_SAMPLES = 1024
# Of each class this many are kept at least, if there are so many.
RARE_CLASS = 64
# Elements of a tile: 4 MiB of float64.
_TILE_ELEMENTS = 1 << 19


@dataclass(frozen=True, eq=False)
class NeighbourSums:
    """Products of neighbours, and what is needed to go on at either end.

    Parameters
    ----------
    near : float
        Sum over samples and neighbouring features of the products of residuals.
    ends : ndarray of shape (n_samples, 2), optional
        Residuals of the first and the last feature; None where there is none.
    thirds : ndarray of shape (n_samples, 3)
        Sums of the residuals over each third of the features.
    """

    near: float
    ends: FloatArray | None
    thirds: FloatArray

    def join(self, right: NeighbourSums) -> NeighbourSums:
        """Of these features and those that follow them."""
        near, thirds = self.near + right.near, self.thirds + right.thirds
        if self.ends is None or right.ends is None:
            return NeighbourSums(
                near, right.ends if self.ends is None else self.ends, thirds
            )
        near += float(self.ends[:, 1] @ right.ends[:, 0])
        ends = np.column_stack([self.ends[:, 0], right.ends[:, 1]])
        return NeighbourSums(near, ends, thirds)


@dataclass(frozen=True, eq=False)
class Samples:
    """Some rows of X, their classes and weights.

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix, or rows on disk, of shape (n_rows, n_features)
    rows : ndarray of int
        The rows of X that count.
    codes : ndarray of int, one for each of `rows`
        Their classes.
    weight : ndarray, one for each of `rows`
        Frequency weights.
    number : ndarray of int, one for each of `rows`
        Their place in the stream of all samples.
    """

    X: Any
    rows: IntArray
    codes: IntArray
    weight: FloatArray
    number: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(
        cls, X: Any, codes: IntArray, weight: FloatArray | None, first: int = 0
    ) -> Self:
        """Rows of X with any weight, thinned to `MAX_SAMPLES`."""
        w = np.ones(len(codes)) if weight is None else weight
        rows = np.flatnonzero(w > 0)
        rows = rows[_kept(rows + first, np.asarray(codes)[rows])]
        return cls(X, rows, np.asarray(codes)[rows], w[rows], rows + first)

    def take(self, chosen: npt.NDArray[Any]) -> Self:
        """Some of these samples, by place or by mask."""
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weight=self.weight[chosen],
            number=self.number[chosen],
        )

    def moved_to(self, X: Any) -> Samples:
        """The same samples, where X has their rows and no others."""
        return Samples(X, np.arange(len(self)), self.codes, self.weight, self.number)

    def features(self, chosen: IntArray) -> Samples:
        """The same samples with some of the features alone, copied.

        Parameters
        ----------
        chosen : ndarray of int
            Columns, in rising order.
        """
        if sparse.issparse(self.X):
            return self.moved_to(self.X[self.rows][:, chosen])
        if isinstance(self.X, np.ndarray) and not is_mapped(self.X):
            return self.moved_to(self.X[np.ix_(self.rows, chosen)])
        out = np.empty((len(self), len(chosen)), self.X.dtype)
        for cols, tile in self._raw_tiles():
            a, b = np.searchsorted(chosen, [cols.start, cols.stop])
            out[:, a:b] = tile[:, chosen[a:b] - cols.start]
        return self.moved_to(out)

    def append(self, other: Samples) -> Samples:
        """Both, copied and thinned again: what a stream of batches keeps."""
        number = np.concatenate([self.number, other.number])
        parts = [part.X[part.rows] for part in (self, other)]
        rows: Any
        if any(sparse.issparse(part) for part in parts):
            rows = sparse.vstack([sparse.csr_array(part) for part in parts])
        else:
            rows = np.concatenate(parts)
        codes = np.concatenate([self.codes, other.codes])
        kept = _kept(number, codes)
        return Samples(
            rows[kept],
            np.arange(len(kept)),
            codes[kept],
            np.concatenate([self.weight, other.weight])[kept],
            number[kept],
        )

    def copy(self) -> Samples:
        """The same with rows of their own: X may change or go away."""
        return self.moved_to(self.X[self.rows])

    def _raw_tiles(self) -> Iterator[tuple[slice, Any]]:
        """Columns, and their values in the chosen rows as X has them."""
        p = self.X.shape[1]
        width = max(1, _TILE_ELEMENTS // max(len(self), 1))
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
        for cols, tile in self._raw_tiles():
            dense = tile.toarray() if sparse.issparse(tile) else tile
            yield cols, dense.astype(np.float64)

    def standardised(
        self, means: FloatArray, scale: FloatArray
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Tiles less their class means, over the scale of each feature."""
        for cols, tile in self.tiles():
            tile -= means[self.codes, cols]
            tile /= scale[cols]
            yield cols, tile

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        """A number for each sample, equal for equal samples.

        The sum of the signed squares of its residuals: plain residuals may well add
        up to zero in every sample.
        """
        total = np.zeros(len(self))
        for _, tile in self.standardised(means, scale):
            total += np.einsum("ij,ij->i", tile, np.abs(tile))
        return total

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        """Products of the residuals of each two samples, with the roots of weights."""
        total = np.zeros((len(self), len(self)))
        root = np.sqrt(self.weight)[:, None]
        for _, tile in self.standardised(means, scale):
            tile *= root
            total += tile @ tile.T
        return total

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        """Residuals of each feature, added up over the samples with these weights.

        Parameters
        ----------
        means, scale
            What the residuals are taken from, and their unit.
        combine : ndarray of shape (n_samples, n_factors)
            Weights; the result has a row for each feature.
        """
        out = np.empty((len(scale), combine.shape[1]))
        for cols, tile in self.standardised(means, scale):
            np.matmul(tile.T, combine, out=out[cols])
        return out

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        """Products of neighbouring features, and sums over thirds of them.

        Parameters
        ----------
        means, scale
            What the residuals are taken from, and their unit.
        third : ndarray of int of shape (n_features,)
            The third that a feature belongs to, never falling; -1 steps over it.
        """
        root = np.sqrt(self.weight)[:, None]
        nothing = NeighbourSums(0.0, None, np.zeros((len(self), 3)))

        def of_tile(cols: slice, tile: FloatArray) -> NeighbourSums:
            tile *= root
            used = third[cols] >= 0
            row = tile if used.all() else tile[:, used]
            if not row.shape[1]:
                return nothing
            bounds = np.searchsorted(third[cols][used], np.arange(4))
            sums = [row[:, a:b].sum(axis=1) for a, b in pairwise(bounds)]
            near = float(np.einsum("ij,ij->", row[:, 1:], row[:, :-1]))
            return NeighbourSums(near, row[:, [0, -1]], np.column_stack(sums))

        parts = (of_tile(*tile) for tile in self.standardised(means, scale))
        return reduce(NeighbourSums.join, parts, nothing)

    def moments(self, n_classes: int) -> ClassMoments:
        """Moments of these samples alone."""
        together = np.zeros(len(self), dtype=np.intp)
        return self.moments_by(together, 1, n_classes)[0]

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        """Moments of each group of these samples, in one pass.

        Parameters
        ----------
        group : ndarray of int, one for each sample
            In ``range(n_groups)``.
        n_groups, n_classes : int
            Numbers of groups and of classes.
        """
        # A class of a group is a class.
        codes, n = group * n_classes + self.codes, n_groups * n_classes
        weight = None if (self.weight == 1).all() else self.weight
        in_memory = isinstance(self.X, np.ndarray) and not is_mapped(self.X)
        in_memory = in_memory or sparse.issparse(self.X)
        if in_memory and np.array_equal(self.rows, np.arange(self.X.shape[0])):
            total = class_moments(self.X, codes, n, weight)
        else:
            parts = [
                class_moments(tile, codes, n, weight) for _, tile in self._raw_tiles()
            ]
            nothing = class_moments(np.empty((len(self), 0)), codes, n, weight)
            total = ClassMoments.join_features([nothing, *parts])
        cut = [slice(k * n_classes, (k + 1) * n_classes) for k in range(n_groups)]
        return [
            ClassMoments(total.counts[k], total.means[k], total.centred_squares[k])
            for k in cut
        ]

    def scores(self, coef: FloatArray) -> FloatArray:
        """``x . coef`` of each sample, one column for each row of `coef`."""
        out = np.zeros((len(self), len(coef)))
        for cols, tile in self.tiles():
            out += tile @ coef[:, cols].T
        return out


def _kept(number: IntArray, codes: IntArray) -> IntArray:
    """Places of the samples to keep: those whose number hashes lowest.

    `MAX_SAMPLES` of all classes together, and `RARE_CLASS` of each: a rare class is not
    lost. What a stream keeps is what one call on all of it would keep.
    """
    if len(number) <= MAX_SAMPLES:
        return np.arange(len(number))
    order = np.argsort(hash_integers(number), kind="stable")
    kept = np.zeros(len(number), dtype=bool)
    kept[order[:MAX_SAMPLES]] = True
    for k in np.unique(codes):
        kept[order[codes[order] == k][:RARE_CLASS]] = True
    return np.flatnonzero(kept)
