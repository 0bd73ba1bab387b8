"""Stores that are sliced like an array: memory maps, Zarr, HDF5, sparse AnnData."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.data.disk.source import Block, Source, grid, run_chunk
from ebda.data.matrix import Matrix
from ebda.data.pages import release
from ebda.data.structure import check_pointers, check_structure
from ebda.sizes import sizes
from ebda.typing import IntArray


@contextmanager
def _decompressing() -> Iterator[None]:
    """Say of a chunk that cannot be decompressed what it is: damaged."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(f"a chunk of the store is damaged: {error}") from error


@dataclass(frozen=True, eq=False)
class MemoryMap(Matrix, Source):
    """A ``numpy.memmap``, by rows or by columns."""

    @property
    def _by_column(self) -> bool:
        return bool(abs(self.X.strides[0]) < abs(self.X.strides[1]))

    def plan(self) -> list[Block]:
        chunk = run_chunk(self.shape, self.dtype.itemsize, self._by_column)
        return grid(self.shape, self.dtype.itemsize, chunk, self._by_column)

    def plan_for(self, rows: IntArray) -> list[Block]:
        """Nothing but these rows, each as a whole; those by columns are not copied."""
        return [Block(slice(i, i + 1), slice(0, self.shape[1])) for i in rows.tolist()]

    def read(self, block: Block) -> npt.NDArray[Any]:
        values = np.array(self.X[block.rows, block.cols])
        release(self.X)
        return values

    def reference(self, n_rows: int) -> Any | None:
        run = sizes.tile_elements // max(n_rows, 1) * self.dtype.itemsize
        return self.X if self._by_column or run >= sizes.reread_bytes else None


@dataclass(frozen=True, eq=False)
class ChunkedArray(Matrix, Source):
    """A ``zarr.Array`` or an ``h5py.Dataset``."""

    def plan(self) -> list[Block]:
        # All chunks of a Zarr shard are stored in one object.
        chunk = getattr(self.X, "shards", None) or self.X.chunks
        if chunk is None:
            chunk = run_chunk(self.shape, self.dtype.itemsize, by_column=False)
        return grid(self.shape, self.dtype.itemsize, chunk, by_column=False)

    def read(self, block: Block) -> npt.NDArray[Any]:
        with _decompressing():
            return np.asarray(self.X[block.rows, block.cols])


@dataclass(frozen=True, eq=False)
class SparseOnDisk(Matrix, Source):
    """A sparse ``AnnData.X`` in backed mode, CSR or CSC."""

    def plan(self) -> list[Block]:
        """Runs of rows, or of columns, with about `sizes.block_bytes`."""
        n, p = self.shape
        group = self.X.group
        indptr = np.asarray(group["indptr"][:])
        major = p if self.X.format == "csc" else n
        check_pointers(indptr, major, (len(group["indices"]), len(group["data"])))
        indptr = indptr.astype(np.int64)
        # Each value is stored with the number of its row or column.
        most = sizes.block_bytes // (self.dtype.itemsize + 8)
        cuts = [0]
        while cuts[-1] < len(indptr) - 1:
            target = indptr[cuts[-1]] + most
            stop = int(np.searchsorted(indptr, target, side="right")) - 1
            cuts.append(max(stop, cuts[-1] + 1))
        runs = [slice(a, b) for a, b in pairwise(cuts)]
        if self.X.format == "csc":
            return [Block(slice(0, n), cols) for cols in runs]
        return [Block(rows, slice(0, p)) for rows in runs]

    def read(self, block: Block) -> Any:
        with _decompressing():
            by_column = self.X.format == "csc"
            values = self.X[:, block.cols] if by_column else self.X[block.rows]
        check_structure(values)
        return values
