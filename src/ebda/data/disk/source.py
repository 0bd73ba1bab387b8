"""What a store of data has to know, and how its rows and columns are cut into blocks.

A block is as many chunks of the store as fit in `LIMIT` bytes. A chunk is read and
decompressed whole or not at all, so that blocks are aligned with chunks; a store
without chunks is taken to have runs of `_RUN` bytes, which a disk reads at full speed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# Bytes of a block; two are in memory at a time.
LIMIT = 1 << 24
# Merging the moments of a block costs about as much as ten rows of it.
ENOUGH_ROWS = 256
# A chunk up to so many times the limit is still read whole.
_LARGE_CHUNK = 4
# Bytes that are read in one go where there are no chunks.
_RUN = 1 << 17


@dataclass(frozen=True)
class Block:
    """Rows and columns that are read together."""

    rows: slice
    cols: slice


class Source(Protocol):
    """Rows and columns that can be read in blocks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def names(self) -> npt.NDArray[Any] | None:
        """Names of the features, where they have any."""

    def plan(self) -> Iterable[Block]:
        """Blocks in the order they are best read in; columns are cut alike in all."""

    def read(self, block: Block) -> Any:
        """Values of a block: an ndarray, or a CSR or CSC matrix."""

    def reference(self, n_rows: int) -> Any | None:
        """An array to read `n_rows` scattered rows from again, by columns.

        None where that would cost much more than to read them once.
        """


def grid(
    shape: tuple[int, int], itemsize: int, chunk: tuple[int, int], by_column: bool
) -> list[Block]:
    """Blocks of whole chunks, each of about `LIMIT` bytes.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    itemsize : int
        Bytes of a value.
    chunk : tuple of int
        Rows and columns of a chunk.
    by_column : bool
        Whether blocks of the same columns follow each other, else those of the same
        rows.

    >>> blocks = grid((300, 40_000), 8, (100, 1000), by_column=False)
    >>> blocks[0]
    Block(rows=slice(0, 300, None), cols=slice(0, 6000, None))
    >>> len(blocks)
    7
    """
    n, p = shape
    rows, cols = min(chunk[0], n), min(chunk[1], p)
    if rows * cols * itemsize > _LARGE_CHUNK * LIMIT:
        cols = max(1, LIMIT // (rows * itemsize))
        rows = min(rows, max(1, LIMIT // (cols * itemsize)))
    rows = _grown(rows, min(n, ENOUGH_ROWS), LIMIT // (cols * itemsize))
    cols = _grown(cols, p, LIMIT // (rows * itemsize))
    rows = _grown(rows, n, LIMIT // (cols * itemsize))
    down = [slice(a, min(a + rows, n)) for a in range(0, n, rows)]
    across = [slice(a, min(a + cols, p)) for a in range(0, p, cols)]
    if by_column:
        return [Block(r, c) for c in across for r in down]
    return [Block(r, c) for r in down for c in across]


def _grown(size: int, wanted: int, most: int) -> int:
    """A multiple of `size` that reaches `wanted`, or as near as `most` allows."""
    times = min(-(-wanted // size), max(most // size, 1))
    return max(size, times * size)


def run_chunk(
    shape: tuple[int, int], itemsize: int, by_column: bool
) -> tuple[int, int]:
    """The chunk to go by where there are none: a run along the longer steps."""
    length = max(1, _RUN // itemsize)
    return (min(shape[0], length), 1) if by_column else (1, min(shape[1], length))


def in_two_dimensions(shape: tuple[int, ...], what: str) -> tuple[int, int]:
    """Refuse a store that is no table."""
    if len(shape) != 2:
        raise ValueError(
            f"{what} has {len(shape)} dimension(s); X must have two, samples and "
            "features"
        )
    return int(shape[0]), int(shape[1])
