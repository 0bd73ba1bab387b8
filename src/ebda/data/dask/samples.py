"""Samples of a Dask array: each sum is computed block by block, on the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NoReturn, Self

import numpy as np
from dask.delayed import Delayed, delayed

from ebda.data.dask.pieces import Grid, as_values
from ebda.data.dask.running import Runner, tree
from ebda.data.protocols import Labels
from ebda.data.samples import ChosenRows, RowSamples, rows_that_count
from ebda.kernels.hashing import column_keys
from ebda.kernels.residuals import NeighbourSums
from ebda.moments.classwise import ClassMoments, merge_all
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray


class NotKeptError(ValueError):
    """Samples of one batch of a stream are to be kept until the next."""

    def __init__(self) -> None:
        super().__init__(
            "partial_fit cannot keep the samples of a Dask array; give the whole array "
            "to fit, or use covariance='diagonal' and shrinkage='mean' with "
            "calibrate=False, which need none"
        )


@dataclass(frozen=True, eq=False)
class ClusterSamples(ChosenRows):
    """Rows of a Dask array (:class:`ebda.data.Samples`).

    Samples that fit in a quarter of the free memory of the workers are pieces that stay
    there. Others are read from the chunks of the array again, once for each sum.

    Parameters
    ----------
    grid : Grid
        Tasks that have the rows.
    runner : Runner
        Runs them.
    """

    grid: Grid
    runner: Runner

    @classmethod
    def of(cls, grid: Grid, labels: Labels, runner: Runner) -> Self:
        """All rows but those of weight zero."""
        return cls(*rows_that_count(labels.codes, labels.weight), grid, runner)

    def hash_tasks(self) -> list[Delayed]:
        """Tasks for the hashes of the samples in each row of blocks."""
        keys = column_keys(self.n_features)
        return [tree(_add, row) for row in self._call("hashes", (keys,))]

    @property
    def place(self) -> str:
        return "a cluster"

    @property
    def n_features(self) -> int:
        return int(self.grid.col_edges[-1])

    def fits_in_memory(self) -> bool:
        """Whether the workers have memory for all features."""
        p = self.n_features
        size = p * len(self)
        if p <= sizes.persisted_features or size <= sizes.persisted_values:
            return True
        return size * self.grid.itemsize <= self.runner.budget()

    def persist(
        self, chosen: IntArray | None = None, others: list[Delayed] | None = None
    ) -> tuple[Self, list[Delayed]]:
        """The same samples, in pieces that stay on the workers.

        Parameters
        ----------
        chosen : ndarray of int, optional
            Features, in increasing order; all by default.
        others : list of Delayed, optional
            Other tasks on the same chunks, which are read only once for all of them.
            They are returned as tasks that have been started.
        """
        pieces, more = self.grid.gather(self.rows, chosen), others or []
        tasks = self.runner.persist([*pieces.blocks[0], *more])
        n_pieces = len(tasks) - len(more)
        grid = replace(pieces, blocks=[tasks[:n_pieces]])
        return self._moved_to(grid), tasks[n_pieces:]

    def _moved_to(self, grid: Grid) -> Self:
        """The same samples in a grid that has these rows only."""
        return replace(self, grid=grid, rows=np.arange(len(self)))

    def features(self, chosen: IntArray) -> Self:
        return self.persist(chosen)[0]

    def copy(self) -> NoReturn:
        raise NotKeptError

    def append(self, other: Self) -> NoReturn:
        self.copy()

    def _call(
        self, method: str, by_column: tuple[Any, ...], *rest: Any, by_row: Any = None
    ) -> list[list[Delayed]]:
        """Tasks that call a method of `RowSamples` for each block.

        Parameters
        ----------
        method : str
            Its name.
        by_column : tuple of ndarray
            Arguments whose last axis are the features.
        *rest
            Arguments that are the same for all blocks, and come last.
        by_row : ndarray, optional
            An argument with one row per sample, which comes after `by_column`.
        """
        call, more = delayed(_call_on_block, pure=False), [delayed(v) for v in rest]
        vectors = [[v[..., cols] for v in by_column] for cols in self.grid.columns]
        used = self.grid.blocks_with(self.rows)
        if len(used) > 1:
            vectors = [delayed(v) for v in vectors]  # sent once for all rows of blocks
        tasks = []
        for i, part in used:
            view = (
                self.rows[part] - self.grid.row_edges[i],
                *(
                    v[part]
                    for v in (self.codes, self.weight, self.precision, self.number)
                ),
            )
            more_rows = [] if by_row is None else [by_row[part]]
            own = delayed((view, more_rows, self.has_missing))
            tasks.append(
                [
                    call(block, method, v, own, more)
                    for block, v in zip(self.grid.blocks[i], vectors, strict=True)
                ]
            )
        return tasks

    def _sum_rows(
        self, tasks: list[list[Delayed]], add: Callable[[list[Any]], Any]
    ) -> list[Any]:
        """One result for each column of blocks, summed over its rows."""
        columns = zip(*tasks, strict=True)
        return self.runner.run([tree(add, list(column)) for column in columns])

    def _sum_columns(
        self, tasks: list[list[Delayed]], add: Callable[[list[Any]], Any]
    ) -> list[Any]:
        """One result for each row of blocks, summed over its columns."""
        return self.runner.run([tree(add, row) for row in tasks])

    def _sum_gathered(self, method: str, *by_column: FloatArray) -> FloatArray:
        """A sum over features that needs all samples of a feature on one worker."""
        if len(self.grid.blocks_with(self.rows)) == 1:
            (total,) = self._sum_columns(self._call(method, by_column), _add)
            return total  # type: ignore[no-any-return]
        runs = self.grid.by_columns(self.rows, self.runner.budget())
        parts = (
            self._moved_to(grid)._sum_gathered(
                method, *(v[..., cols] for v in by_column)
            )
            for cols, grid in runs
        )
        return reduce(np.add, parts)

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        # Gathered: equal samples have equal sums only if they are added up alike.
        return self._sum_gathered("fingerprint", means, scale)

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        return self._sum_gathered("gram", means, scale)

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        tasks = self._call("loadings", (means, scale), by_row=combine)
        return np.concatenate(self._sum_rows(tasks, _add))

    def projections(
        self, means: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        tasks = self._call("projections", (means, scale, rows))
        return np.concatenate(self._sum_columns(tasks, _add))

    def residual_rows(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        tasks = self._call("residual_rows", (means, scale))
        rows = self._sum_columns(tasks, partial(np.concatenate, axis=1))
        return np.concatenate(rows)

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        tasks = self._call("neighbour_sums", (means, scale, third))
        return _stack(self._sum_columns(tasks, _join))

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        tasks = self._call("moments_by", (), n_groups, n_classes, by_row=group)
        parts = self._sum_rows(tasks, _merge)
        return [ClassMoments.join_features(same) for same in zip(*parts, strict=True)]

    def scores(self, coef: FloatArray) -> FloatArray:
        return np.concatenate(self._sum_columns(self._call("scores", (coef,)), _add))


def _call_on_block(
    block: Any,
    method: str,
    by_column: list[Any],
    own: tuple[
        tuple[IntArray, IntArray, FloatArray, FloatArray, IntArray], list[Any], bool
    ],
    rest: list[Any],
) -> Any:
    """On a worker: a method of the samples in a block."""
    view, by_row, has_missing = own
    samples = RowSamples(*view, as_values(block), has_missing=has_missing)
    return getattr(samples, method)(*by_column, *by_row, *rest)


def _add(parts: list[FloatArray]) -> FloatArray:
    return reduce(np.add, parts)


def _join(parts: list[NeighbourSums]) -> NeighbourSums:
    return reduce(NeighbourSums.join, parts)


def _merge(parts: list[list[ClassMoments]]) -> list[ClassMoments]:
    return [merge_all(list(same)) for same in zip(*parts, strict=True)]


def _stack(parts: list[NeighbourSums]) -> NeighbourSums:
    """Sums over the same features for all samples, in their order."""
    by_row = "first", "last", "thirds"
    return NeighbourSums(
        reduce(np.add, (part.near for part in parts)),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in by_row),
    )
