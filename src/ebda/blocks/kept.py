"""Rows that will be looked at again, put aside while the moments are summed.

Factors and folds read up to a thousand rows a dozen times or more, by columns. Most
stores are cut by rows, or compressed, and would have to be read as a whole each time.
So the rows are written down in the one pass over the data: by columns, in memory where
they are few bytes, else in a temporary file that is mapped.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.arrays import IntArray
from ebda.blocks.source import Block, Source
from ebda.pages import release

# Bytes that are kept in memory; more go to a file.
_IN_MEMORY = 1 << 25


class Kept(Protocol):
    """Takes block after block, and has the chosen rows in the end."""

    def add(self, block: Block, values: Any) -> None:
        """Put the chosen rows of a block aside."""

    def array(self) -> Any:
        """All of them."""


class DenseKept:
    """Rows of a dense store.

    Parameters
    ----------
    rows : ndarray of int
        Which, in rising order.
    n_features : int
        Columns.
    dtype : dtype
        Type of the values.
    """

    def __init__(self, rows: IntArray, n_features: int, dtype: np.dtype[Any]) -> None:
        self.rows = rows
        self.values = room(len(rows), n_features, dtype)

    def add(self, block: Block, values: npt.NDArray[Any]) -> None:
        a, b = np.searchsorted(self.rows, [block.rows.start, block.rows.stop])
        if a == b:
            return
        self.values[a:b, block.cols] = values[self.rows[a:b] - block.rows.start]
        release(self.values)

    def array(self) -> npt.NDArray[Any]:
        return self.values


class SparseKept:
    """Rows of a sparse store, which stay sparse and in memory."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows
        self.parts: dict[int, list[Any]] = {}

    def add(self, block: Block, values: Any) -> None:
        a, b = np.searchsorted(self.rows, [block.rows.start, block.rows.stop])
        chosen = sparse.csr_array(values)[self.rows[a:b] - block.rows.start]
        self.parts.setdefault(block.rows.start, []).append(chosen)

    def array(self) -> Any:
        # Blocks are runs of rows, or runs of columns.
        across = [sparse.hstack(parts, format="csr") for parts in self.parts.values()]
        return sparse.vstack(across, format="csr")


def keep_rows(source: Source, rows: IntArray, first: Any) -> Kept:
    """A place for rows of a store whose first block has these values."""
    if sparse.issparse(first):
        return SparseKept(rows)
    return DenseKept(rows, source.shape[1], source.dtype)


def room(n: int, p: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array by columns, in memory or in a file that goes away with it.

    >>> room(2, 3, np.dtype("f4")).shape
    (2, 3)
    """
    size = n * p * dtype.itemsize
    if size <= _IN_MEMORY:
        return np.empty((n, p), dtype, order="F")
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"{n} rows of {p} features have to be put aside on disk, but {folder} has "
            f"only {free / 1e9:.1f} GB left of the {size / 1e9:.1f} GB; set TMPDIR to "
            "a larger one, or use covariance='diagonal' with shrinkage='mean', which "
            "reads the data only once"
        )
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, dtype, mode="w+", shape=(n, p), order="F")
