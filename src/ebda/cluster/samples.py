"""Samples on a cluster: each sum is taken piece by piece, where the pieces are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from dask.delayed import delayed

from ebda.arrays import FloatArray, IntArray
from ebda.cluster.pieces import Piece, make_pieces
from ebda.cluster.running import Runner, tree
from ebda.moments import ClassMoments
from ebda.samples import NeighbourSums, Samples


@dataclass(frozen=True, eq=False)
class Pieces:
    """Columns of the samples that were kept.

    Parameters
    ----------
    groups : list of lists of pieces
        Those of a group are worked on at a time.
    runner : Runner
        Works on them.
    n_features : int
        Columns of all pieces.
    """

    groups: list[list[Piece]]
    runner: Runner
    n_features: int

    @classmethod
    def of(cls, X: Any, rows: IntArray, runner: Runner) -> Pieces:
        """Pieces of some rows of a Dask array.

        They stay on the workers where they fit in a quarter of what is free. Else they
        are made again for each sum, some at a time: chunks along the samples yield no
        piece before all of them were read, and all pieces at once may be too much.
        """
        pieces = make_pieces(X, rows)
        budget = runner.budget()
        size = len(rows) * X.dtype.itemsize
        if size * X.shape[1] <= budget:
            held = runner.persist([task for _, task in pieces])
            groups = [[(c, t) for (c, _), t in zip(pieces, held, strict=True)]]
        else:
            groups = [[]]
            left = budget
            for cols, task in pieces:
                left -= size * (cols.stop - cols.start)
                if left < 0 and groups[-1]:
                    groups.append([])
                    left = budget - size * (cols.stop - cols.start)
                groups[-1].append((cols, task))
        return cls(groups, runner, X.shape[1])


@dataclass(frozen=True, eq=False)
class ClusterSamples(Samples):
    """Rows of a Dask array; `X` are the :class:`Pieces` of those that were kept."""

    @classmethod
    def of_dask(
        cls, X: Any, codes: IntArray, weight: FloatArray | None, runner: Runner
    ) -> ClusterSamples:
        """Rows with any weight, thinned as those of any other data."""
        chosen = Samples.of(None, codes, weight)
        pieces = Pieces.of(X, chosen.rows, runner)
        everything = np.arange(len(chosen))
        return cls(pieces, everything, chosen.codes, chosen.weight, chosen.number)

    def _looks(
        self, name: str, by_column: list[Any], *rest: Any
    ) -> Iterator[list[Any]]:
        """Tasks that call a method of `Samples` for each piece, group by group."""
        look = delayed(_look, pure=False)
        # Once for all tasks.
        view = delayed((self.rows, self.codes, self.weight, self.number))
        more = [delayed(value) for value in rest]
        for group in self.X.groups:
            yield [
                look(task, view, name, [v[..., cols] for v in by_column], more)
                for cols, task in group
            ]

    def _sum(self, name: str, *by_column: Any) -> FloatArray:
        """What is added up over the features."""
        total: FloatArray = sum(
            self.X.runner.run([tree(_add, tasks)])[0]
            for tasks in self._looks(name, list(by_column))
        )
        return total

    def _list(self, name: str, by_column: list[Any], *rest: Any) -> list[Any]:
        """What is laid side by side."""
        return [
            part
            for tasks in self._looks(name, by_column, *rest)
            for part in self.X.runner.run(tasks)
        ]

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        return self._sum("fingerprint", means, scale)

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        return self._sum("gram", means, scale)

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        return np.concatenate(self._list("loadings", [means, scale], combine))

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        parts: list[NeighbourSums]
        parts = self._list("neighbour_sums", [means, scale, third])
        return reduce(NeighbourSums.join, parts)

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        parts = self._list("moments_by", [], group, n_groups, n_classes)
        return [ClassMoments.join_features(same) for same in zip(*parts, strict=True)]

    def scores(self, coef: FloatArray) -> FloatArray:
        return self._sum("scores", coef)

    def features(self, chosen: IntArray) -> ClusterSamples:
        """The same samples with some of the features, which stay on the workers."""
        take = delayed(_columns, pure=False)
        pieces, left = [], 0
        for cols, task in (piece for group in self.X.groups for piece in group):
            a, b = np.searchsorted(chosen, [cols.start, cols.stop])
            if a < b:
                part = take(task, self.rows, chosen[a:b] - cols.start)
                pieces.append((slice(left, left + b - a), part))
                left += b - a
        held = self.X.runner.persist([task for _, task in pieces])
        group = [(c, t) for (c, _), t in zip(pieces, held, strict=True)]
        kept = Pieces([group], self.X.runner, len(chosen))
        everything = np.arange(len(self))
        return ClusterSamples(kept, everything, self.codes, self.weight, self.number)

    def copy(self) -> Samples:
        """Refused: it would bring the samples together in this process."""
        raise ValueError(
            "partial_fit cannot keep the samples of a Dask array; give the whole array "
            "to fit, or use covariance='diagonal' with shrinkage='mean'"
        )


def _columns(piece: Any, rows: IntArray, columns: IntArray) -> Any:
    return piece[rows][:, columns]


def _look(
    piece: Any, view: tuple[Any, ...], name: str, by_column: list[Any], rest: list[Any]
) -> Any:
    """On a worker: a method of the samples whose features are those of a piece."""
    return getattr(Samples(piece, *view), name)(*by_column, *rest)


def _add(parts: list[FloatArray]) -> FloatArray:
    return reduce(np.add, parts)
