"""One pass over a store: moments and the rows to keep, or scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebda.data.disk.adjusted import (
    AdjustedSource,
    block_products,
    block_value_products,
)
from ebda.data.disk.kept import Kept, keep_rows
from ebda.data.disk.source import Block, Source
from ebda.data.finite import check_block
from ebda.data.protocols import GapRule, Labels, Samples
from ebda.data.samples import RowSamples
from ebda.kernels.hashing import Hashes, column_keys, hash_rows
from ebda.kernels.lengths import lengths
from ebda.kernels.scores import gap_sums, incomplete, scores
from ebda.moments.classwise import ClassMoments
from ebda.typing import FloatArray, IntArray


def prefetched(source: Source, blocks: Iterable[Block]) -> Iterator[tuple[Block, Any]]:
    """Blocks and their values, in order; a thread reads the next one meanwhile.

    At most two blocks are in memory at a time.

    Parameters
    ----------
    source : Source
        What is read.
    blocks : iterable of Block
        Blocks in the order in which they are read.
    """
    # Reading waits for the disk, or decompresses without the interpreter's lock: one
    # thread keeps that going, and a second one would hold a third block.
    with ThreadPoolExecutor(1, thread_name_prefix="ebda-read") as reader:
        before: tuple[Block, Future[Any]] | None = None
        for block in blocks:
            if before is None:
                before = block, reader.submit(source.read, block)
                continue
            ready, values = before[0], before[1].result()
            before = block, reader.submit(source.read, block)
            yield ready, values
            del values
        if before is not None:
            yield before[0], before[1].result()


class Summing(Protocol):
    """The sums that are taken over a block when it has been read."""

    def checked_moments(self, labels: Labels) -> ClassMoments:
        """Class moments; what must not be in the block is an error."""

    def hashes(self, keys: Hashes) -> Hashes:
        """Hashes of its rows (:func:`ebda.kernels.hashing.hash_rows`)."""

    def scores(self, coef: FloatArray, allow_missing: bool) -> FloatArray:
        """``X coef'``; what must not be in the block is an error."""

    def products(self, rows: FloatArray) -> FloatArray:
        """``rows X``."""

    def lengths(
        self, centre: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        """As :meth:`ebda.data.Data.lengths`."""


@dataclass(frozen=True, eq=False)
class HostBlock:
    """A block that is summed by the processor (:class:`Summing`).

    Parameters
    ----------
    values : ndarray or sparse matrix
        The block.
    top, left : int
        Its first row and column.
    """

    values: Any
    top: int
    left: int

    def checked_moments(self, labels: Labels) -> ClassMoments:
        return labels.checked_moments_of(self.values, self.top, self.left)

    def hashes(self, keys: Hashes) -> Hashes:
        return hash_rows(self.values, keys)

    def scores(self, coef: FloatArray, allow_missing: bool) -> FloatArray:
        part = scores(self.values, coef)
        check_block(part, self.values, self.top, self.left, allow_missing)
        return part

    def products(self, rows: FloatArray) -> FloatArray:
        return block_products(self.values, rows)

    def lengths(
        self, centre: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        return lengths(self.values, centre, scale, rows)


@dataclass(frozen=True, eq=False)
class BlockedData:
    """A store that is read in blocks (:class:`ebda.data.Data`).

    Parameters
    ----------
    source : Source
        The store.
    """

    source: Source

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def names(self) -> npt.NDArray[Any] | None:
        return self.source.names

    @property
    def values(self) -> None:
        return None

    def summarise(
        self, labels: Labels, keep: bool
    ) -> tuple[ClassMoments, Samples | None]:
        samples, kept = None, None
        if keep:
            # Of the shape alone: where the values are is known after the pass.
            shape = np.broadcast_to(0.0, self.shape)
            samples = RowSamples.of(shape, labels.codes, labels.weight, labels.first)
        # Which rows to keep is known after the pass, unless that is all of them.
        many = samples is not None and samples.are_too_many
        keys = column_keys(self.shape[1] if many else 0)
        hashes = np.zeros(self.shape[0], dtype=np.uint64)
        columns: dict[int, ClassMoments] = {}
        for block, values in prefetched(self.source, self.source.plan()):
            rows, cols = block.rows, block.cols
            summing = self._summing(values, block)
            part = summing.checked_moments(labels.part(rows))
            before = columns.get(cols.start)
            columns[cols.start] = part if before is None else before.merge(part)
            if many:
                hashes[rows] += summing.hashes(keys[cols])
            elif samples is not None and self._is_copied(samples):
                kept = kept or keep_rows(self.source, samples.rows, values)
                kept.add(block, values)
        if samples is not None:
            if many:
                samples = samples.thinned(hashes[samples.rows])
            samples = self._with_values(samples, kept)
        moments = ClassMoments.join_features(columns[left] for left in sorted(columns))
        return moments, None if samples is None else samples.as_in(moments)

    def _summing(self, values: Any, block: Block) -> Summing:
        """What sums a block."""
        return HostBlock(values, block.rows.start, block.cols.start)

    def _is_copied(self, samples: RowSamples) -> bool:
        return self.source.reference(len(samples)) is None

    def _with_values(self, samples: RowSamples, kept: Kept | None) -> RowSamples:
        """Samples with what they are read from; copied in another pass if need be."""
        if not self._is_copied(samples):
            return replace(samples, X=self.source.reference(len(samples)))
        if kept is None:
            kept = self._copied(samples.rows)
        return samples.moved_to(kept.array())

    def _copied(self, rows: IntArray) -> Kept:
        kept: Kept | None = None
        for block, values in prefetched(self.source, self.source.plan_for(rows)):
            kept = kept or keep_rows(self.source, rows, values)
            kept.add(block, values)
        assert kept is not None
        return kept

    def scores(
        self, coef: FloatArray, intercept: FloatArray, rule: GapRule | None = None
    ) -> FloatArray:
        out, allow_missing = np.zeros((self.shape[0], len(coef))), rule is not None
        for block, values in prefetched(self.source, self.source.plan()):
            summing = self._summing(values, block)
            out[block.rows] += summing.scores(coef[:, block.cols], allow_missing)
        out += intercept
        rows = incomplete(out)
        if rule is not None and len(rows):
            out[rows] = rule.finish(self._gap_sums(rows, rule.values, rule.gaps))
        return out

    def _gap_sums(
        self, rows: IntArray, values: FloatArray, gaps: FloatArray
    ) -> FloatArray:
        """Sums over the features of some samples, in another pass."""
        out = np.zeros((len(rows), len(values) + len(gaps)))
        for block, X in prefetched(self.source, self.source.plan_for(rows)):
            a, b = np.searchsorted(rows, [block.rows.start, block.rows.stop])
            some = X[rows[a:b] - block.rows.start]
            cols = block.cols
            out[a:b] += gap_sums(some, values[:, cols], gaps[:, cols])
        return out

    def products(self, rows: FloatArray) -> FloatArray:
        out = np.zeros((len(rows), self.shape[1]))
        for block, values in prefetched(self.source, self.source.plan()):
            summing = self._summing(values, block)
            out[:, block.cols] += summing.products(rows[:, block.rows])
        return out

    def value_products(self, rows: FloatArray, masks: FloatArray) -> FloatArray:
        out = np.zeros((len(rows) + len(masks), self.shape[1]))
        for block, values in prefetched(self.source, self.source.plan()):
            own = rows[:, block.rows], masks[:, block.rows]
            out[:, block.cols] += block_value_products(values, *own)
        return out

    def adjusted(self, covariates: FloatArray, slopes: FloatArray) -> BlockedData:
        return replace(self, source=AdjustedSource(self.source, covariates, slopes))

    def lengths(
        self, centre: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        out = np.zeros((self.shape[0], 2 + len(rows)))
        for block, values in prefetched(self.source, self.source.plan()):
            cols, summing = block.cols, self._summing(values, block)
            out[block.rows] += summing.lengths(centre[cols], scale[cols], rows[:, cols])
        return out

    def job_context(self) -> AbstractContextManager[Any]:
        return nullcontext()  # this process reads the blocks
