"""Read ahead: while a block is being summed, a thread reads the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ebda.data.disk.source import Block, Source


def prefetched(source: Source, blocks: Iterable[Block]) -> Iterator[tuple[Block, Any]]:
    """Blocks and their values, in order; at most two are in memory at a time.

    Parameters
    ----------
    source : Source
        What is read.
    blocks : iterable of Block
        Which, in this order.
    """
    # Reading waits for the disk, or decompresses without the GIL: one thread is
    # enough to keep that going, and a second one would hold a third block.
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
