"""Data less what covariates make of them, computed block by block when it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.data.disk.source import Block, Source, grid, run_chunk
from ebda.data.matrix import Matrix
from ebda.kernels.threads import no_fork
from ebda.typing import FloatArray, IntArray

# Sums this small, relative to what is summed, are rounding.
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False)
class ArrayInMemory(Matrix, Source):
    """An ndarray, or a CSR or CSC matrix, that is read in blocks as if it were stored.

    Examples
    --------
    >>> source = ArrayInMemory(np.eye(3))
    >>> [source.read(block).shape for block in source.plan()]
    [(3, 3)]
    """

    def plan(self) -> list[Block]:
        by_column = bool(getattr(self.X, "format", "") == "csc")
        chunk = run_chunk(self.shape, 8, by_column)
        return grid(self.shape, 8, chunk, by_column)

    def read(self, block: Block) -> Any:
        if sparse.issparse(self.X):
            return self.X[block.rows][:, block.cols]
        return self.X[block.rows, block.cols]


@dataclass(frozen=True, eq=False)
class AdjustedSource(Source):
    """``X - C B`` of a store: covariates C, and their slopes B.

    Parameters
    ----------
    source : Source
        X.
    covariates : ndarray of shape (n_samples, n_columns)
        C.
    slopes : ndarray of shape (n_columns, n_features)
        B.
    """

    source: Source
    covariates: FloatArray
    slopes: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def names(self) -> npt.NDArray[Any] | None:
        return self.source.names

    def plan(self) -> Iterable[Block]:
        return self.source.plan()

    def plan_for(self, rows: IntArray) -> Iterable[Block]:
        return self.source.plan_for(rows)

    def read(self, block: Block) -> FloatArray:
        part = self.covariates[block.rows], self.slopes[:, block.cols]
        return adjusted_block(self.source.read(block), *part)


@no_fork()
def adjusted_block(
    values: Any, covariates: FloatArray, slopes: FloatArray
) -> FloatArray:
    """``values - covariates slopes``, dense.

    >>> adjusted_block(np.array([[1.0], [3.0]]), np.array([[0.0], [1.0]]), np.eye(1))
    array([[1.],
           [2.]])
    """
    dense = values.toarray() if sparse.issparse(values) else values
    return np.asarray(dense - covariates @ slopes)


@no_fork()
def block_value_products(
    values: Any, rows: FloatArray, masks: FloatArray
) -> FloatArray:
    """``rows values`` with zero in place of NaN, above ``masks`` times what is no NaN.

    >>> X = np.array([[1.0, np.nan], [2.0, 3.0]])
    >>> block_value_products(X, np.array([[1.0, 10.0]]), np.ones((1, 2)))
    array([[21., 30.],
           [ 2.,  1.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if not sparse.issparse(values):
            there = ~np.isnan(values)
            sums = rows @ np.where(there, values, 0.0)
            return np.vstack([sums, masks @ there.astype(np.float64)])
        known, missing = values.astype(np.float64), values.astype(np.float64)
        nan = np.isnan(known.data)
        known.data = np.where(nan, 0.0, known.data)
        missing.data = nan.astype(np.float64)
        counts = masks.sum(axis=1)[:, None] - (missing.T @ masks.T).T
        # Where all are missing, nothing is left but rounding.
        most = np.abs(masks).sum(axis=1)[:, None]
        counts[np.abs(counts) <= _NEGLIGIBLE * most] = 0.0
        return np.vstack([(known.T @ rows.T).T, counts])


@no_fork()
def block_products(values: Any, rows: FloatArray) -> FloatArray:
    """``rows values``, of shape (n_rows, n_features)."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = (values.T @ rows.T).T
    return np.asarray(product, dtype=np.float64)
