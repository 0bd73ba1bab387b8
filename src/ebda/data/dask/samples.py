"""Samples on a cluster: each sum is taken block by block, where the blocks are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from ebda.data.dask.pieces import Grid, as_values
from ebda.data.dask.running import Runner, tree
from ebda.data.samples import NeighbourSums, Samples
from ebda.moments.classwise import ClassMoments, merge_all
from ebda.typing import FloatArray, IntArray

# So few features, or values, are held whatever memory there is: rules are compared on
# no more (:mod:`ebda.estimators.classifier`), and the folds look at them some fifty times.
HELD_FEATURES, HELD_VALUES = 1 << 12, 1 << 22


@dataclass(frozen=True, eq=False)
class ClusterSamples(Samples):
    """Rows of a Dask array; `X` is the :class:`Grid` that they are in.

    They are pieces that stay on the workers where those fit in a quarter of what is
    free. Else they are read from the chunks of the array again, once for each sum.
    """

    runner: Runner

    @classmethod
    def of_grid(
        cls, grid: Grid, codes: IntArray, weight: FloatArray | None, runner: Runner
    ) -> ClusterSamples:
        """Rows with any weight, thinned as those of any other data."""
        kept = Samples.of(None, codes, weight)
        return cls(grid, kept.rows, kept.codes, kept.weight, kept.number, runner)

    def may_be_held(self) -> bool:
        """Whether there is room for all features."""
        grid: Grid = self.X
        p = grid.across[-1]
        if p <= HELD_FEATURES or p * len(self) <= HELD_VALUES:
            return True
        return p * len(self) * grid.itemsize <= self.runner.budget()

    def held(
        self, chosen: IntArray | None = None, beside: list[Delayed] | None = None
    ) -> tuple[ClusterSamples, list[Delayed]]:
        """The same samples in pieces that stay on the workers.

        Parameters
        ----------
        chosen : ndarray of int, optional
            Features, in rising order; by default all.
        beside : list of Delayed, optional
            Other tasks on the same chunks, which are then read for both at once; they
            come back as tasks that are under way.
        """
        pieces, other = self.X.together(self.rows, chosen), beside or []
        tasks = self.runner.persist([*pieces.blocks[0], *other])
        n_pieces = len(tasks) - len(other)
        grid = replace(pieces, blocks=[tasks[:n_pieces]])
        kept = replace(self, X=grid, rows=np.arange(len(self)))
        return kept, tasks[n_pieces:]

    def _looks(
        self, name: str, by_column: tuple[Any, ...], *rest: Any, by_row: Any = None
    ) -> list[list[Delayed]]:
        """Tasks that call a method of `Samples` for each block, in rows of blocks.

        Parameters
        ----------
        name : str
            The method.
        by_column : tuple of ndarray
            Arguments whose last axis are the features.
        *rest
            Arguments that are the same for all blocks, and come last.
        by_row : ndarray, optional
            An argument with a row for each sample, which comes after `by_column`.
        """
        look, more = delayed(_look, pure=False), [delayed(value) for value in rest]
        columns = self.X.columns
        vectors = [[v[..., cols] for v in by_column] for cols in columns]
        if len(self.X.used(self.rows)) > 1:
            vectors = [delayed(v) for v in vectors]  # once for all rows of blocks
        looks = []
        for i, part in self.X.used(self.rows):
            view = (
                self.rows[part] - self.X.down[i],
                *(v[part] for v in (self.codes, self.weight, self.number)),
            )
            own = delayed((view, [] if by_row is None else [by_row[part]]))
            looks.append(
                [
                    look(block, name, v, own, more)
                    for block, v in zip(self.X.blocks[i], vectors, strict=True)
                ]
            )
        return looks

    def _down(
        self, looks: list[list[Delayed]], add: Callable[[list[Any]], Any]
    ) -> list[Any]:
        """A result for each column of blocks: those of its rows, added up."""
        return self.runner.run([tree(add, list(of)) for of in zip(*looks, strict=True)])

    def _together(self, name: str, *by_column: FloatArray) -> FloatArray:
        """What needs all samples of a feature at one place, summed over features."""
        if len(self.X.used(self.rows)) == 1:
            (looks,) = self._looks(name, by_column)
            total: FloatArray = self.runner.run([tree(_add, looks)])[0]
            return total
        parts = []
        for cols, grid in self.X.by_columns(self.rows, self.runner.budget()):
            run = replace(self, X=grid, rows=np.arange(len(self)))
            parts.append(run._together(name, *(v[..., cols] for v in by_column)))
        return _add(parts)

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        # Equal samples have equal sums only where they are added up alike: together.
        return self._together("fingerprint", means, scale)

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        return self._together("gram", means, scale)

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        looks = self._looks("loadings", (means, scale), by_row=combine)
        return np.concatenate(self._down(looks, _add))

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        looks = self._looks("neighbour_sums", (means, scale, third))
        join = [tree(_join, row) for row in looks]
        return _stack(self.runner.run(join))

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        looks = self._looks("moments_by", (), n_groups, n_classes, by_row=group)
        parts = self._down(looks, _merge)
        return [ClassMoments.join_features(same) for same in zip(*parts, strict=True)]

    def scores(self, coef: FloatArray) -> FloatArray:
        looks = self._looks("scores", (coef,))
        return np.concatenate(self.runner.run([tree(_add, row) for row in looks]))

    def features(self, chosen: IntArray) -> ClusterSamples:
        """The same samples with some of the features, which stay on the workers."""
        return self.held(chosen)[0]

    def copy(self) -> Samples:
        """Refused: it would bring the samples together in this process."""
        raise ValueError(
            "partial_fit cannot keep the samples of a Dask array; give the whole array "
            "to fit, or use covariance='diagonal' with shrinkage='mean'"
        )


def _look(
    block: Any,
    name: str,
    by_column: list[Any],
    own: tuple[tuple[Any, ...], list[Any]],
    rest: list[Any],
) -> Any:
    """On a worker: a method of the samples whose rows and features a block has."""
    view, by_row = own
    samples = Samples(as_values(block), *view)
    return getattr(samples, name)(*by_column, *by_row, *rest)


def _add(parts: list[FloatArray]) -> FloatArray:
    return reduce(np.add, parts)


def _join(parts: list[NeighbourSums]) -> NeighbourSums:
    return reduce(NeighbourSums.join, parts)


def _merge(parts: list[list[ClassMoments]]) -> list[ClassMoments]:
    return [merge_all(list(same)) for same in zip(*parts, strict=True)]


def _stack(parts: list[NeighbourSums]) -> NeighbourSums:
    """Sums of the same features over other samples, in their order."""
    ends = [part.ends for part in parts if part.ends is not None]
    return NeighbourSums(
        sum(part.near for part in parts),
        np.concatenate(ends) if ends else None,
        np.concatenate([part.thirds for part in parts]),
    )
