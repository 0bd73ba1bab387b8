"""Samples on a device: each sum is computed there, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ebda.data.device.matrix import DeviceMatrix
from ebda.data.device.moments import moments_of
from ebda.data.samples import ChosenRows, rows_that_count
from ebda.kernels.device import fill_missing, folded_bits
from ebda.kernels.hashing import Hashes, column_keys, hash_rows
from ebda.kernels.residuals import LAGS, NeighbourSums
from ebda.moments.classwise import ClassMoments
from ebda.typing import FloatArray, IntArray


def hash_rows_of(
    matrix: DeviceMatrix, keys: Hashes, rows: IntArray | None = None
) -> Hashes:
    """Hashes of rows of a matrix (:func:`ebda.kernels.hashing.hash_rows`).

    Parameters
    ----------
    matrix : DeviceMatrix
        Values.
    keys : ndarray of uint64 of shape (n_features,)
        Those of the columns.
    rows : ndarray of int, optional
        Which rows; by default all of them.
    """
    xp = matrix.xp

    def add(cols: slice, block: Any) -> Hashes:
        if not hasattr(block, "view"):  # the standard cannot look at bits
            return hash_rows(matrix.host(block), keys[cols])
        products = folded_bits(xp, block) * matrix.send(keys[cols].view(np.int64))
        return matrix.host(xp.sum(products, axis=1)).view(np.uint64)

    total = np.zeros(matrix.shape[0] if rows is None else len(rows), dtype=np.uint64)
    for _, part in matrix.blocks(add, rows):
        total += part
    return total


@dataclass(frozen=True, eq=False)
class DeviceSamples(ChosenRows):
    """Rows of an array on a device (:class:`ebda.data.Samples`).

    Parameters
    ----------
    matrix : DeviceMatrix
        What has the rows.
    """

    matrix: DeviceMatrix

    @classmethod
    def of(
        cls,
        matrix: DeviceMatrix,
        codes: IntArray,
        weight: FloatArray | None,
        first: int = 0,
    ) -> Self:
        """All rows but those of weight zero."""
        return cls(*rows_that_count(codes, weight, first), matrix)

    @property
    def place(self) -> str:
        return self.matrix.place

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])

    def kept(self) -> Self:
        """Those of these samples that are kept."""
        return self.thinned(self.hashes()) if self.are_too_many else self

    def hashes(self) -> Hashes:
        """Hashes of the values of each sample."""
        return hash_rows_of(self.matrix, column_keys(self.matrix.shape[1]), self.rows)

    def _moved_to(self, matrix: DeviceMatrix) -> Self:
        return replace(self, matrix=matrix, rows=np.arange(len(self)))

    def features(self, chosen: IntArray) -> Self:
        return self._moved_to(self.matrix.select(self.rows, chosen))

    def copy(self) -> Self:
        return self._moved_to(self.matrix.select(self.rows, None))

    def append(self, other: Self) -> Self:
        codes, weight, precision, number = (
            np.concatenate([getattr(samples, name) for samples in (self, other)])
            for name in ("codes", "weight", "precision", "number")
        )
        parts = [s.matrix.select(s.rows, None) for s in (self, other)]
        known = np.arange(len(codes)), codes, weight, precision, number
        both = type(self)(
            *known,
            parts[0].join(parts[1]),
            has_missing=self.has_missing or other.has_missing,
        )
        return both.kept().copy()

    def _residuals(
        self,
        means: FloatArray,
        scale: FloatArray,
        function: Callable[[slice, Any], Any],
        weighted: bool = False,
        keep_nan: bool = False,
    ) -> Iterator[tuple[slice, Any]]:
        """Results of a function of the residuals in each block, and its columns.

        The other parameters are those of :meth:`ebda.data.RowSamples.residuals`.
        """
        matrix, xp = self.matrix, self.matrix.xp
        codes, root = matrix.send(self.codes), np.sqrt(self.information)[:, None]
        weights = matrix.send(root) if weighted and (root != 1).any() else None

        def call(cols: slice, block: Any) -> Any:
            middle = xp.take(matrix.send(means[:, cols]), codes, axis=0)
            R = (block - middle) / matrix.send(scale[cols])
            if self.has_missing and not keep_nan:
                R = fill_missing(xp, R)
            return function(cols, R if weights is None else R * weights)

        return matrix.blocks(call, self.rows)

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        host, xp = self.matrix.host, self.matrix.xp

        def squares(_: slice, R: Any) -> FloatArray:
            return host(xp.sum(R * xp.abs(R), axis=1))

        total = np.zeros(len(self))
        for _, part in self._residuals(means, scale, squares):
            total += part
        return total

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        host, total = self.matrix.host, np.zeros((len(self), len(self)))

        def products(_: slice, R: Any) -> FloatArray:
            return host(R @ R.T)

        for _, part in self._residuals(means, scale, products, weighted=True):
            total += part
        return total

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        host, sent = self.matrix.host, self.matrix.send(combine)
        out = np.empty((len(scale), combine.shape[1]))
        parts = self._residuals(means, scale, lambda _, R: host(R.T @ sent))
        for cols, part in parts:
            out[cols] = part
        return out

    def projections(
        self, means: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        matrix, total = self.matrix, np.zeros((len(self), len(rows)))

        def products(cols: slice, R: Any) -> FloatArray:
            return matrix.host(R @ matrix.send(rows[:, cols].T))

        for _, part in self._residuals(means, scale, products):
            total += part
        return total

    def residual_rows(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        host, out = self.matrix.host, np.empty((len(self), len(scale)))
        parts = self._residuals(means, scale, lambda _, R: host(R), keep_nan=True)
        for cols, part in parts:
            out[:, cols] = part
        return out

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        matrix, xp = self.matrix, self.matrix.xp

        def sums(cols: slice, R: Any) -> NeighbourSums:
            own = third[cols]
            used = np.flatnonzero(own >= 0)
            if not len(used):
                return NeighbourSums.empty(len(self))
            if len(used) < len(own):
                R = xp.take(R, matrix.send(used), axis=1)
            bounds = np.searchsorted(own[used], np.arange(4)).tolist()
            parts = [
                xp.sum(R[:, a:b], axis=1, keepdims=True) for a, b in pairwise(bounds)
            ]
            # No slice may reach beyond the end: the standard leaves it open.
            k = len(used)
            steps = [min(lag, k) for lag in LAGS]
            near = [float(xp.sum(R[:, lag:] * R[:, : k - lag])) for lag in steps]
            first = matrix.host(R[:, : steps[-1]])
            last = matrix.host(R[:, k - steps[-1] :])
            thirds = matrix.host(xp.concat(parts, axis=1))
            return NeighbourSums(np.array(near), first, last, thirds)

        parts = (part for _, part in self._residuals(means, scale, sums, weighted=True))
        return reduce(NeighbourSums.join, parts, NeighbourSums.empty(len(self)))

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        # A class of a group is a class.
        codes, n = group * n_classes + self.codes, n_groups * n_classes
        weight = None if (self.information == 1).all() else self.information
        total = moments_of(self.matrix, codes, n, weight, self.rows)
        return [total.classes(slice(k, k + n_classes)) for k in range(0, n, n_classes)]

    def scores(self, coef: FloatArray) -> FloatArray:
        matrix, total = self.matrix, np.zeros((len(self), len(coef)))

        def products(cols: slice, block: Any) -> FloatArray:
            if self.has_missing:
                block = fill_missing(matrix.xp, block)
            return matrix.host(block @ matrix.send(coef[:, cols].T))

        for _, part in matrix.blocks(products, self.rows):
            total += part
        return total
