"""Rows of a chunked array, laid out anew in pieces of columns.

A piece has all of the chosen rows and some of the columns: what factors, neighbours
and folds are summed from. Chunks along the samples have to be put together for that,
which is the only time that values of X go from one worker to another; each does so
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from scipy import sparse

from ebda.arrays import IntArray

# Bytes of a piece.
_PIECE = 1 << 24

Piece = tuple[slice, Delayed]


def edges(sizes: tuple[int, ...]) -> list[int]:
    """Where chunks begin and end.

    >>> edges((2, 3))
    [0, 2, 5]
    """
    return [0, *np.cumsum(sizes).tolist()]


def make_pieces(X: Any, rows: IntArray) -> list[Piece]:
    """Tasks that make the pieces of some rows of a Dask array, in rising order."""
    blocks = X.to_delayed()
    down, across = edges(X.chunks[0]), edges(X.chunks[1])
    bounds = np.searchsorted(rows, down)
    # Chunks of rows with any that are wanted, and which of theirs.
    used = [
        (i, rows[a:b] - down[i]) for i, (a, b) in enumerate(pairwise(bounds)) if a < b
    ]
    width = max(1, _PIECE // (max(len(rows), 1) * X.dtype.itemsize))
    cut, build = delayed(_cut, pure=False), delayed(_put_together, pure=False)
    pieces = []
    for chunks, cols in _columns(across, width):
        grid = []
        for i, local in used:
            grid.append(
                [
                    cut(blocks[i, j], local, _inside(cols, across[j], across[j + 1]))
                    for j in chunks
                ]
            )
        pieces.append((cols, build(grid)))
    return pieces


def _columns(across: list[int], width: int) -> Iterator[tuple[range, slice]]:
    """Columns of each piece, and the chunks that they lie in.

    Narrow chunks are put together and wide ones are cut.

    >>> [(list(c), s.start, s.stop) for c, s in _columns([0, 2, 4, 9], 4)]
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


def _inside(cols: slice, left: int, right: int) -> slice:
    """The part of these columns that a chunk has, counted from its own first."""
    return slice(max(cols.start, left) - left, min(cols.stop, right) - left)


def _cut(block: Any, rows: IntArray, cols: slice) -> Any:
    if sparse.issparse(block):
        return sparse.csr_array(block)[rows][:, cols]
    return np.asarray(block)[rows, cols]


def _put_together(grid: list[list[Any]]) -> Any:
    if any(sparse.issparse(part) for row in grid for part in row):
        return sparse.block_array(grid, format="csr")
    return np.block(grid)
