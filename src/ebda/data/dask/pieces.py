"""A table in tasks: chunks as they come, or pieces with all of the chosen rows.

Most sums over samples are sums over chunks, and are taken chunk by chunk. The products
of each two samples are not: they need all rows of a column at one place. Chunks along
the samples have to be put together for that, which is the only time that values of X
go from one worker to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from scipy import sparse

from ebda.typing import IntArray

# Bytes of a piece.
_PIECE = 1 << 24

Columns = slice | IntArray


def edges(sizes: tuple[int, ...]) -> list[int]:
    """Where chunks begin and end.

    >>> edges((2, 3))
    [0, 2, 5]
    """
    return [0, *np.cumsum(sizes).tolist()]


@dataclass(frozen=True, eq=False)
class Grid:
    """Tasks whose results, side by side, are a table.

    Parameters
    ----------
    blocks : list of lists of Delayed
        Rows of blocks.
    down, across : list of int
        Where blocks begin and end.
    itemsize : int
        Bytes of a value.
    """

    blocks: list[list[Delayed]]
    down: list[int]
    across: list[int]
    itemsize: int

    @classmethod
    def of(cls, X: Any) -> Grid:
        """The chunks of a Dask array."""
        down, across = (edges(sizes) for sizes in X.chunks)
        return cls(X.to_delayed().tolist(), down, across, X.dtype.itemsize)

    @property
    def columns(self) -> list[slice]:
        """Those of each column of blocks."""
        return [slice(a, b) for a, b in pairwise(self.across)]

    def used(self, rows: IntArray) -> list[tuple[int, slice]]:
        """Rows of blocks with any of these rows, and which of them.

        Parameters
        ----------
        rows : ndarray of int
            In rising order.
        """
        bounds = pairwise(np.searchsorted(rows, self.down))
        return [(i, slice(int(a), int(b))) for i, (a, b) in enumerate(bounds) if a < b]

    def together(self, rows: IntArray, chosen: Columns | None = None) -> Grid:
        """Pieces that have all of these rows, and no others.

        Each chunk is read once, however many pieces have a part of it.

        Parameters
        ----------
        rows : ndarray of int
            In rising order.
        chosen : slice or ndarray of int in rising order, optional
            Columns; by default all.
        """
        if chosen is None:
            chosen = slice(0, self.across[-1])
        # Where the chosen columns of each chunk begin and end among the chosen.
        if isinstance(chosen, slice):
            across = np.clip(self.across, chosen.start, chosen.stop) - chosen.start
        else:
            across = np.searchsorted(chosen, self.across)
        used = self.used(rows)
        width = max(1, _PIECE // (max(len(rows), 1) * self.itemsize))
        cut, build = delayed(_cut, pure=False), delayed(_put_together, pure=False)
        pieces, ends = [], [0]
        for chunks, cols in cut_columns(across.tolist(), width):
            inside = [
                (j, _inside(chosen, slice(int(a), int(b)), self.across[j]))
                for j in chunks
                for a, b in [np.clip(across[j : j + 2], cols.start, cols.stop)]
                if a < b
            ]
            grid = [
                [
                    cut(self.blocks[i][j], rows[part] - self.down[i], c)
                    for j, c in inside
                ]
                for i, part in used
            ]
            pieces.append(build(grid))
            ends.append(cols.stop)
        return Grid([pieces], [0, len(rows)], ends, self.itemsize)

    def by_columns(self, rows: IntArray, budget: float) -> Iterator[tuple[slice, Grid]]:
        """All of these rows put together, in runs of columns of so many bytes.

        A run is a piece at least. It has whole columns of chunks, so that each chunk is
        read for one run only, unless the rows of a single column of chunks are more
        than that.
        """
        width = max(budget, _PIECE) // (max(len(rows), 1) * self.itemsize)
        for _, cols in cut_columns(self.across, max(1, int(width))):
            yield cols, self.together(rows, cols)


def cut_columns(across: list[int], width: int) -> Iterator[tuple[range, slice]]:
    """Columns up to this width, and the chunks that they lie in.

    Narrow chunks are put together and wide ones are cut.

    >>> [(list(c), s.start, s.stop) for c, s in cut_columns([0, 2, 4, 9], 4)]
    [([0, 1], 0, 4), ([2], 4, 8), ([2], 8, 9)]
    """
    j, last = 0, len(across) - 1
    while j < last:
        end = j + 1
        while end < last and across[end + 1] - across[j] <= width:
            end += 1
        for left in range(across[j], across[end], width):
            yield range(j, end), slice(left, min(left + width, across[end]))
        j = end


def as_values(block: Any) -> Any:
    """What NumPy and SciPy can work with; masked values are missing ones."""
    if hasattr(block, "to_scipy_sparse"):  # of the package "sparse"
        block = block.to_scipy_sparse()
    if sparse.issparse(block):
        return block if block.format in ("csr", "csc") else block.tocsr()
    if np.ma.is_masked(block):
        return np.ma.filled(block.astype(np.float64), np.nan)
    return np.asarray(block)


def _inside(chosen: Columns, part: slice, left: int) -> Columns:
    """A part of the chosen columns, counted from the first of their chunk."""
    if isinstance(chosen, slice):
        start = chosen.start - left
        return slice(start + part.start, start + part.stop)
    return chosen[part] - left


def _cut(block: Any, rows: IntArray, cols: Columns) -> Any:
    values = as_values(block)
    if sparse.issparse(values):
        return sparse.csr_array(values)[rows][:, cols]
    return values[rows, cols] if isinstance(cols, slice) else values[np.ix_(rows, cols)]


def _put_together(grid: list[list[Any]]) -> Any:
    if any(sparse.issparse(part) for row in grid for part in row):
        return sparse.block_array(grid, format="csr")
    return np.block(grid)
