"""Data in a Dask array: moments chunk by chunk, and lazy scores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from ebda.cached import cached_property
from ebda.data.dask.pieces import Grid, as_values, edges
from ebda.data.dask.running import Runner, tree
from ebda.data.dask.samples import ClusterSamples, NotKeptError
from ebda.data.disk.adjusted import (
    adjusted_block,
    block_products,
    block_value_products,
)
from ebda.data.finite import check_block
from ebda.data.matrix import Matrix, in_two_dimensions
from ebda.data.protocols import GapRule, Labels, Samples
from ebda.kernels.lengths import lengths
from ebda.kernels.scores import gap_sums, incomplete, scores
from ebda.moments.classwise import ClassMoments, merge_all
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DaskData(Matrix):
    """A Dask array with chunks of known sizes (:class:`ebda.data.Data`).

    Parameters
    ----------
    X : dask.array.Array
        Samples in rows; chunks may be ndarrays or sparse matrices.
    names : ndarray, optional
        Names of the features.

    Examples
    --------
    >>> import dask.array as da
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=500, effect=1.0, random_state=0)
    >>> X = da.from_array(sim.data, chunks=(20, 200))
    >>> model = EBClassifier().fit(X, sim.target)
    >>> labels = model.predict(X)
    >>> type(labels).__module__, labels.chunks
    ('dask.array.core', ((20, 20, 10),))
    >>> bool((labels.compute() == sim.target).mean() > 0.9)
    True
    """

    @classmethod
    def of(cls, X: Any, names: list[Any] | None = None) -> DaskData:
        """Data in X; sizes of chunks that Dask does not know are computed."""
        if np.isnan(X.shape).any():
            X = X.copy().compute_chunk_sizes()  # which changes an array in place
        in_two_dimensions(X.shape, "the Dask array")
        return cls(X, None if names is None else np.array(names, dtype=object))

    @property
    def values(self) -> None:
        return None

    @cached_property
    def runner(self) -> Runner:
        """The scheduler, which stays the same from here on."""
        return Runner.current()

    def job_context(self) -> AbstractContextManager[Any]:
        return self.runner.job_context()

    def summarise(
        self, labels: Labels, keep: bool
    ) -> tuple[ClassMoments, Samples | None]:
        """Moments of each chunk on its worker, merged along the rows in a tree.

        Samples that fit in memory are copied while the chunks are read for that; which
        of more than ``sizes.kept(p)`` are kept is known after it.
        """
        if keep and labels.first:
            raise NotKeptError
        grid, part = Grid.of(self.X), delayed(_block_moments, pure=False)
        here = replace(labels, first=0)  # errors count the rows of this array
        by_row = [delayed(here.part(slice(a, b))) for a, b in pairwise(grid.row_edges)]
        columns = [
            tree(
                merge_all,
                [
                    part(row[j], own, left)
                    for row, own in zip(grid.blocks, by_row, strict=True)
                ],
            )
            for j, left in enumerate(grid.col_edges[:-1])
        ]
        samples = ClusterSamples.of(grid, labels, self.runner) if keep else None
        if samples is not None and samples.are_too_many:
            found = self.runner.run([*columns, *samples.hash_tasks()])
            parts, hashes = found[: len(columns)], found[len(columns) :]
            samples = samples.thinned(np.concatenate(hashes))
            if samples.fits_in_memory():
                samples, _ = samples.persist()
            moments = ClassMoments.join_features(parts)
            return moments, samples.as_in(moments)
        if samples is not None and samples.fits_in_memory():
            samples, columns = samples.persist(others=columns)
        moments = ClassMoments.join_features(self.runner.run(columns))
        return moments, None if samples is None else samples.as_in(moments)

    def scores(
        self, coef: FloatArray, intercept: FloatArray, rule: GapRule | None = None
    ) -> Any:
        """``X @ coef.T + intercept``, as a lazy Dask array with the chunks of X.

        Whether values are missing is not known before it is computed, and so the sums
        that missing values need are computed for every sample.
        """
        if rule is None:
            return self._sums(_block_scores, coef) + intercept
        plain = self._sums(partial(_block_scores, allow_missing=True), coef) + intercept
        of_gaps = partial(_block_gap_sums, n_values=len(rule.values))
        sums = self._sums(of_gaps, np.vstack([rule.values, rule.gaps]))
        return da.blockwise(
            *(partial(_completed, finish=rule.finish), "ik", plain, "ik", sums, "im"),
            dtype=np.float64,
            concatenate=True,
            align_arrays=False,
            meta=np.empty((0, 0)),
        )

    def products(self, rows: FloatArray) -> FloatArray:
        return self._summed(_block_products, rows)

    def value_products(self, rows: FloatArray, masks: FloatArray) -> FloatArray:
        of_values = partial(_block_value_products, n_rows=len(rows))
        return self._summed(of_values, np.vstack([rows, masks]))

    def _summed(self, function: Any, rows: FloatArray) -> FloatArray:
        """Sums over the samples of what a function makes of each chunk and the rows."""
        parts = da.blockwise(
            function,
            "iqj",
            *(self.X, "ij", self._by_row(rows.T), "iq"),
            dtype=np.float64,
            concatenate=True,
            adjust_chunks={"i": 1},
            align_arrays=False,
            meta=np.empty((0, 0, 0)),
        )
        return np.asarray(parts.sum(axis=0).compute())

    def adjusted(self, covariates: FloatArray, slopes: FloatArray) -> DaskData:
        by_column = da.from_array(slopes, chunks=((len(slopes),), self.X.chunks[1]))
        values = da.blockwise(
            _adjusted_block,
            "ij",
            *(self.X, "ij", self._by_row(covariates), "iq", by_column, "qj"),
            dtype=np.float64,
            concatenate=True,
            align_arrays=False,
            meta=np.empty((0, 0)),
        )
        return DaskData(values, self.names)

    def _by_row(self, rows: FloatArray) -> Any:
        """Rows over the samples, in the chunks of X."""
        return da.from_array(rows, chunks=(self.X.chunks[0], (rows.shape[1],)))

    def _sums(self, function: Any, rows: FloatArray) -> Any:
        """Sums over the features of what a function makes of each chunk and the rows.

        Parameters
        ----------
        function : callable
            From a chunk, its columns of `rows`, transposed, and its first row and
            column.
        rows : ndarray of shape (n_rows, n_features)
            What chunks are multiplied with.
        """
        row_edges, col_edges = edges(self.X.chunks[0]), edges(self.X.chunks[1])
        by_chunk = da.from_array(rows.T, chunks=(self.X.chunks[1], (len(rows),)))
        # The first row and the first column of each chunk.
        top = da.from_array(np.array(row_edges[:-1]), chunks=1)
        left = da.from_array(np.array(col_edges[:-1]), chunks=1)
        parts = da.blockwise(
            function,
            "ijk",
            *(self.X, "ij", by_chunk, "jk", top, "i", left, "j"),
            dtype=np.float64,
            adjust_chunks={"j": 1},
            align_arrays=False,
            meta=np.empty((0, 0, 0)),
        )
        return parts.sum(axis=1)

    def lengths(self, centre: FloatArray, scale: FloatArray, rows: FloatArray) -> Any:
        """Squared lengths and products, as a lazy Dask array with the chunks of X."""
        chunks = self.X.chunks[1]
        vectors = da.from_array(np.vstack([centre, scale]).T, chunks=(chunks, (2,)))
        by_chunk = da.from_array(rows.T, chunks=(chunks, (len(rows),)))
        parts = da.blockwise(
            _block_lengths,
            "ijk",
            *(self.X, "ij", vectors, "jm", by_chunk, "jn"),
            dtype=np.float64,
            new_axes={"k": 2 + len(rows)},
            adjust_chunks={"j": 1},
            align_arrays=False,
            concatenate=True,
            meta=np.empty((0, 0, 0)),
        )
        return parts.sum(axis=1)


def map_rows(function: Any, score: Any, width: int | None, dtype: Any) -> Any:
    """Apply a function to the rows of a lazy array of scores.

    Parameters
    ----------
    function : callable
        From scores of shape (n_samples, n_contrasts) to one row or value per sample.
    score : dask.array.Array
        Scores.
    width : int or None
        Number of columns of the result; None for a vector.
    dtype : dtype
        Type of the result.
    """
    where: dict[str, Any] = {"drop_axis": 1}
    if width is not None:
        where = {"chunks": (score.chunks[0], (width,))}
    shape = (0,) if width is None else (0, 0)
    return da.map_blocks(function, score, meta=np.empty(shape, dtype), **where)


def join_columns(score: Any, last: Any) -> Any:
    """A lazy array and a lazy vector, whose entries become its last column."""
    both = da.concatenate([score, last[:, None]], axis=1)
    return both.rechunk({1: both.shape[1]})


def _block_moments(block: Any, labels: Labels, left: int) -> ClassMoments:
    values = as_values(block)
    return labels.checked_moments_of(values, labels.first, left)


def _block_products(block: Any, rows: FloatArray) -> FloatArray:
    return block_products(as_values(block), rows.T)[None]


def _block_value_products(block: Any, rows: FloatArray, n_rows: int) -> FloatArray:
    parts = rows.T[:n_rows], rows.T[n_rows:]
    return block_value_products(as_values(block), *parts)[None]


def _adjusted_block(
    block: Any, covariates: FloatArray, slopes: FloatArray
) -> FloatArray:
    return adjusted_block(as_values(block), covariates, slopes)


def _block_scores(
    block: Any,
    coef: FloatArray,
    top: IntArray,
    left: IntArray,
    allow_missing: bool = False,
) -> FloatArray:
    values = as_values(block)
    part = scores(values, coef.T)
    check_block(part, values, int(top[0]), int(left[0]), allow_missing)
    return part[:, None, :]


def _block_gap_sums(
    block: Any, rows: FloatArray, top: IntArray, left: IntArray, n_values: int
) -> FloatArray:
    values, gaps = rows.T[:n_values], rows.T[n_values:]
    return gap_sums(as_values(block), values, gaps)[:, None, :]


def _completed(
    plain: FloatArray, sums: FloatArray, finish: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Scores, with those of samples that have missing values made of other sums."""
    rows = incomplete(plain)
    if not len(rows):
        return plain
    out = plain.copy()
    out[rows] = finish(sums[rows])
    return out


def with_rows(score: Any, values: FloatArray) -> Any:
    """Lazy scores, and further columns that are in memory."""
    columns = da.from_array(values, chunks=(score.chunks[0], (values.shape[1],)))
    joined = da.concatenate([score, columns], axis=1)
    return joined.rechunk({1: joined.shape[1]})


def _block_lengths(block: Any, vectors: FloatArray, rows: FloatArray) -> FloatArray:
    centre, scale = vectors.T
    return lengths(as_values(block), centre, scale, rows.T)[:, None, :]
