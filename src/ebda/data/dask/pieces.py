"""A matrix as a grid of tasks: its chunks, or pieces with all of the chosen rows.

Most sums over samples are sums over chunks, and are taken chunk by chunk. Products of
two samples are not: they need all rows of a column on one worker. For these, chunks
along the samples are concatenated, which is the only time that values of X are sent
from one worker to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from scipy import sparse

from ebda.data.structure import check_structure
from ebda.sizes import sizes
from ebda.typing import IntArray


def edges(lengths: tuple[int, ...]) -> list[int]:
    """Where chunks of these lengths begin and end.

    >>> edges((2, 3))
    [0, 2, 5]
    """
    return [0, *np.cumsum(lengths).tolist()]


@dataclass(frozen=True, eq=False)
class Grid:
    """Tasks whose results are the blocks of a matrix.

    Parameters
    ----------
    blocks : list of lists of Delayed
        Rows of blocks.
    row_edges, col_edges : list of int
        Where blocks begin and end.
    itemsize : int
        Bytes of a value.
    """

    blocks: list[list[Delayed]]
    row_edges: list[int]
    col_edges: list[int]
    itemsize: int

    @classmethod
    def of(cls, X: Any) -> Grid:
        """The chunks of a Dask array."""
        row_edges, col_edges = (edges(lengths) for lengths in X.chunks)
        return cls(X.to_delayed().tolist(), row_edges, col_edges, X.dtype.itemsize)

    @property
    def columns(self) -> list[slice]:
        """The columns of each column of blocks."""
        return [slice(a, b) for a, b in pairwise(self.col_edges)]

    def blocks_with(self, rows: IntArray) -> list[tuple[int, slice]]:
        """Rows of blocks with any of these rows, and which of them they have.

        Parameters
        ----------
        rows : ndarray of int
            Rows, in increasing order.
        """
        bounds = pairwise(np.searchsorted(rows, self.row_edges))
        return [(i, slice(int(a), int(b))) for i, (a, b) in enumerate(bounds) if a < b]

    def gather(self, rows: IntArray, chosen: IntArray | None = None) -> Grid:
        """Pieces that have these rows, all of them and no others.

        Each chunk is read once, however many pieces need a part of it.

        Parameters
        ----------
        rows : ndarray of int
            Rows, in increasing order.
        chosen : ndarray of int, optional
            Columns, in increasing order; all by default.
        """
        if chosen is None:
            chosen = np.arange(self.col_edges[-1])
        # Where the chosen columns of each chunk begin and end among all chosen ones.
        bounds = np.searchsorted(chosen, self.col_edges)
        used = self.blocks_with(rows)
        width = max(1, sizes.piece_bytes // (max(len(rows), 1) * self.itemsize))
        cut, join = delayed(_cut, pure=False), delayed(_join, pure=False)
        pieces, ends = [], [0]
        for chunks, cols in cut_columns(bounds.tolist(), width):
            inside = [
                (j, _run_of(chosen[a:b] - self.col_edges[j]))
                for j in chunks
                for a, b in [np.clip(bounds[j : j + 2], cols.start, cols.stop)]
                if a < b
            ]
            parts = [
                [
                    cut(self.blocks[i][j], rows[part] - self.row_edges[i], c)
                    for j, c in inside
                ]
                for i, part in used
            ]
            pieces.append(join(parts))
            ends.append(cols.stop)
        return Grid([pieces], [0, len(rows)], ends, self.itemsize)

    def by_columns(self, rows: IntArray, budget: float) -> Iterator[tuple[slice, Grid]]:
        """Pieces with all of these rows, a run of columns at a time.

        A run has whole columns of chunks, so that each chunk is read for one run only,
        unless these rows of a single column of chunks exceed the budget.

        Parameters
        ----------
        rows : ndarray of int
            Rows, in increasing order.
        budget : float
            Bytes of a run; it is one piece at least.
        """
        size = max(budget, sizes.piece_bytes)
        width = max(1, int(size // (max(len(rows), 1) * self.itemsize)))
        for _, cols in cut_columns(self.col_edges, width):
            yield cols, self.gather(rows, np.arange(cols.start, cols.stop))


def cut_columns(col_edges: list[int], width: int) -> Iterator[tuple[range, slice]]:
    """Runs of up to `width` columns, and the chunks that they lie in.

    Narrow chunks are combined and wide ones are cut.

    >>> [(list(c), s.start, s.stop) for c, s in cut_columns([0, 2, 4, 9], 4)]
    [([0, 1], 0, 4), ([2], 4, 8), ([2], 8, 9)]
    """
    j, last = 0, len(col_edges) - 1
    while j < last:
        end = j + 1
        while end < last and col_edges[end + 1] - col_edges[j] <= width:
            end += 1
        for left in range(col_edges[j], col_edges[end], width):
            yield range(j, end), slice(left, min(left + width, col_edges[end]))
        j = end


def as_values(block: Any) -> Any:
    """A chunk as an ndarray, CSR or CSC matrix; masked values become NaN."""
    if hasattr(block, "to_scipy_sparse"):  # of the package "sparse"
        block = block.to_scipy_sparse()
    if sparse.issparse(block):
        check_structure(block)
        return block if block.format in ("csr", "csc") else block.tocsr()
    if np.ma.is_masked(block):
        return np.ma.filled(block.astype(np.float64), np.nan)
    return np.asarray(block)


def _run_of(cols: IntArray) -> slice | IntArray:
    """Neighbouring columns as a slice, which is less to send."""
    first, last = int(cols[0]), int(cols[-1])
    return slice(first, last + 1) if last - first == len(cols) - 1 else cols


def _cut(block: Any, rows: IntArray, cols: slice | IntArray) -> Any:
    values = as_values(block)
    if sparse.issparse(values):
        return sparse.csr_array(values)[rows][:, cols]
    return values[rows, cols] if isinstance(cols, slice) else values[np.ix_(rows, cols)]


def _join(parts: list[list[Any]]) -> Any:
    if any(sparse.issparse(part) for row in parts for part in row):
        return sparse.block_array(parts, format="csr")
    return np.block(parts)
