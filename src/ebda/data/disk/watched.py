"""Data on disk that say how far they were read, and keep the samples of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.data.disk.passes import BlockedData
from ebda.data.disk.source import Block, Source
from ebda.data.protocols import Labels, Samples
from ebda.moments.classwise import ClassMoments
from ebda.typing import IntArray


@dataclass(frozen=True, eq=False)
class WatchedSource(Source):
    """A store that calls a function after each block.

    Parameters
    ----------
    source : Source
        The store.
    after_block : callable
        Called with the block, from the thread that reads.
    """

    source: Source
    after_block: Callable[[Block], None]

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def names(self) -> npt.NDArray[Any] | None:
        return self.source.names

    def plan(self) -> Iterable[Block]:
        return self.source.plan()

    def plan_for(self, rows: IntArray) -> Iterable[Block]:
        return self.source.plan_for(rows)

    def read(self, block: Block) -> Any:
        values = self.source.read(block)
        self.after_block(block)
        return values

    def reference(self, n_rows: int) -> Any | None:
        return self.source.reference(n_rows)


@dataclass(frozen=True, eq=False)
class RememberedData(BlockedData):
    """A store whose samples for factors and folds stay at hand after the fit.

    Parameters
    ----------
    source : Source
        The store.
    kept : list of Samples
        What each pass that keeps samples has kept.

    Examples
    --------
    >>> from ebda.data.disk.adjusted import ArrayInMemory
    >>> data = RememberedData(ArrayInMemory(np.eye(3)))
    >>> _ = data.summarise(Labels(np.array([0, 0, 1]), 2), keep=True)
    >>> data.kept[0].number.tolist()
    [0, 1, 2]
    """

    kept: list[Samples] = field(default_factory=list)

    def summarise(
        self, labels: Labels, keep: bool
    ) -> tuple[ClassMoments, Samples | None]:
        moments, samples = super().summarise(labels, keep)
        if samples is not None:
            self.kept.append(samples)
        return moments, samples
