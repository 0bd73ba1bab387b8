"""Rows of the data that may be looked at again: what factors and folds need.

The moments are summed in one pass, and for the independence rule nothing else is ever
read. The correlation within the classes and a cross-validation need the samples
themselves once more. :class:`Samples` hands them out in tiles of columns, dense or
sparse, in memory or on disk, so that no full-size copy is made.

About `MAX_SAMPLES` rows are kept: that many tell the common factors as well as ten
times as many would, and the Gram matrix stays small. Which rows is decided by a hash
of their number, so that a stream of batches keeps the same ones as a single fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ebda.arrays import FloatArray, IntArray, scattered
from ebda.moments import ClassMoments, class_moments

MAX_SAMPLES = 1024
# Of each class this many are kept at least, if there are so many.
RARE_CLASS = 64
# Elements of a tile: 4 MiB of float64.
_TILE_ELEMENTS = 1 << 19


@dataclass(frozen=True, eq=False)
class Samples:
    """Some rows of X, their classes and weights.

    Parameters
    ----------
    X : ndarray, or CSR or CSC matrix, of shape (n_rows, n_features)
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
    ) -> Samples:
        """Rows of X with any weight, thinned to `MAX_SAMPLES`."""
        w = np.ones(len(codes)) if weight is None else weight
        rows = np.flatnonzero(w > 0)
        rows = rows[_kept(rows + first, np.asarray(codes)[rows])]
        return cls(X, rows, np.asarray(codes)[rows], w[rows], rows + first)

    def take(self, chosen: IntArray) -> Samples:
        """Some of these samples."""
        return Samples(
            self.X,
            self.rows[chosen],
            self.codes[chosen],
            self.weight[chosen],
            self.number[chosen],
        )

    def features(self, chosen: IntArray) -> Samples:
        """The same samples with some of the features alone, copied."""
        return Samples(
            self.X[self.rows][:, chosen]
            if sparse.issparse(self.X)
            else self.X[np.ix_(self.rows, chosen)],
            np.arange(len(self)),
            self.codes,
            self.weight,
            self.number,
        )

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
        everything = np.arange(len(self))
        return Samples(
            self.X[self.rows], everything, self.codes, self.weight, self.number
        )

    def tiles(self) -> Iterator[tuple[slice, FloatArray]]:
        """Columns, and a float64 copy of their values in the chosen rows."""
        p = self.X.shape[1]
        width = max(1, _TILE_ELEMENTS // max(len(self), 1))
        by_column = self.X[self.rows].tocsc() if sparse.issparse(self.X) else None
        for left in range(0, p, width):
            cols = slice(left, min(left + width, p))
            if by_column is None:
                yield cols, self.X[self.rows, cols].astype(np.float64)
            else:
                yield cols, by_column[:, cols].toarray().astype(np.float64)

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

    def moments(self, n_classes: int) -> ClassMoments:
        """Moments of these samples alone."""
        X = self.X if len(self.rows) == self.X.shape[0] else self.X[self.rows]
        weight = None if (self.weight == 1).all() else self.weight
        return class_moments(X, self.codes, n_classes, weight)

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
    order = np.argsort(scattered(number), kind="stable")
    kept = np.zeros(len(number), dtype=bool)
    kept[order[:MAX_SAMPLES]] = True
    for k in np.unique(codes):
        kept[order[codes[order] == k][:RARE_CLASS]] = True
    return np.flatnonzero(kept)
