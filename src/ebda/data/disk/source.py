"""What a store of data has to provide, and how it is cut into blocks.

A block is as many chunks of the store as fit in `sizes.block_bytes`. Chunks can only be
read and decompressed as a whole, so blocks are aligned with them. A store without
chunks is treated as one with chunks of `sizes.run_bytes`, which a disk reads at full
speed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebda.sizes import sizes
from ebda.typing import IntArray

# A chunk of up to so many times the size of a block is still read as a whole.
_LARGE_CHUNK = 4


@dataclass(frozen=True)
class Block:
    """Rows and columns that are read together.

    Parameters
    ----------
    rows, cols : slice
        Which.
    """

    rows: slice
    cols: slice


class Source(Protocol):
    """A store whose rows and columns can be read in blocks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def names(self) -> npt.NDArray[Any] | None:
        """Names of the features, where they have any."""

    def plan(self) -> Iterable[Block]:
        """Blocks in the best order to read them; all rows are cut at equal columns."""

    def plan_for(self, rows: IntArray) -> Iterable[Block]:
        """Those blocks, or smaller ones, that have any of some rows.

        Parameters
        ----------
        rows : ndarray of int
            Rows, in increasing order.
        """
        for block in self.plan():
            first, last = np.searchsorted(rows, [block.rows.start, block.rows.stop])
            if first < last:
                yield block

    def read(self, block: Block) -> Any:
        """Values of a block: an ndarray, or a CSR or CSC matrix."""

    def reference(self, n_rows: int) -> Any | None:
        """An array from which `n_rows` scattered rows can be read again, by columns.

        None where they are copied: rows of sparse stores fit in memory, and chunks
        and row groups would be decompressed as a whole each time.
        """
        return None


def grid(
    shape: tuple[int, int], itemsize: int, chunk: tuple[int, int], by_column: bool
) -> list[Block]:
    """Blocks of whole chunks, each of about `sizes.block_bytes`.

    Parameters
    ----------
    shape : tuple of int
        Numbers of rows and of columns.
    itemsize : int
        Bytes of a value.
    chunk : tuple of int
        Numbers of rows and of columns of a chunk.
    by_column : bool
        Whether blocks with the same columns follow each other, or those with the same
        rows.

    >>> blocks = grid((300, 40_000), 8, (100, 1000), by_column=False)
    >>> blocks[0]
    Block(rows=slice(0, 300, None), cols=slice(0, 6000, None))
    >>> len(blocks)
    7
    """
    n, p = shape
    limit = sizes.block_bytes
    rows, cols = min(chunk[0], n), min(chunk[1], p)
    if rows * cols * itemsize > _LARGE_CHUNK * limit:
        cols = max(1, limit // (rows * itemsize))
        rows = min(rows, max(1, limit // (cols * itemsize)))
    rows = _grown(rows, min(n, sizes.block_rows), limit // (cols * itemsize))
    cols = _grown(cols, p, limit // (rows * itemsize))
    rows = _grown(rows, n, limit // (cols * itemsize))
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
    """What is taken for a chunk where there are none: a run of a row or a column."""
    length = max(1, sizes.run_bytes // itemsize)
    return (min(shape[0], length), 1) if by_column else (1, min(shape[1], length))
