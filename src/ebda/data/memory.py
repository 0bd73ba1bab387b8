"""Data in memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ebda.data.disk.adjusted import (
    AdjustedSource,
    ArrayInMemory,
    block_products,
    block_value_products,
)
from ebda.data.disk.passes import BlockedData
from ebda.data.matrix import Matrix
from ebda.data.protocols import GapRule, Labels, Samples
from ebda.data.samples import RowSamples
from ebda.kernels.lengths import lengths
from ebda.kernels.scores import gap_sums, incomplete, scores
from ebda.moments.classwise import ClassMoments
from ebda.sizes import sizes
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class InMemory(Matrix):
    """An array in memory (:class:`ebda.data.Data`).

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix of shape (n_samples, n_features)
        Samples in rows; already validated.
    names : ndarray, optional
        Names of the features.
    """

    @property
    def values(self) -> Any:
        return self.X

    def summarise(
        self, labels: Labels, keep: bool
    ) -> tuple[ClassMoments, Samples | None]:
        moments = labels.moments_of(self.X)
        if not keep:
            return moments, None
        samples = RowSamples.of(self.X, labels.codes, labels.weight, labels.first)
        return moments, samples.as_in(moments).kept()

    def scores(
        self, coef: FloatArray, intercept: FloatArray, rule: GapRule | None = None
    ) -> FloatArray:
        out = scores(self.X, coef, intercept)
        # A product keeps NaN.
        rows = incomplete(out)
        if rule is not None and len(rows):
            out[rows] = rule.finish(gap_sums(self.X[rows], rule.values, rule.gaps))
        return out

    def products(self, rows: FloatArray) -> FloatArray:
        return block_products(self.X, rows)

    def value_products(self, rows: FloatArray, masks: FloatArray) -> FloatArray:
        p, n = self.shape[1], max(self.shape[0], 1)
        out = np.empty((len(rows) + len(masks), p))
        width = max(1, sizes.tile_elements // n)
        for left in range(0, p, width):
            cols = slice(left, left + width)
            out[:, cols] = block_value_products(self.X[:, cols], rows, masks)
        return out

    def adjusted(self, covariates: FloatArray, slopes: FloatArray) -> BlockedData:
        source = ArrayInMemory(self.X, self.names)
        return BlockedData(AdjustedSource(source, covariates, slopes))

    def lengths(
        self, centre: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        return lengths(self.X, centre, scale, rows)

    def job_context(self) -> AbstractContextManager[Any]:
        return nullcontext()
