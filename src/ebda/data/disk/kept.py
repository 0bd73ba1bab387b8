"""Rows that later steps need again, copied while the moments are summed.

Factors and folds read about a thousand rows a dozen times or more, by columns. Most
stores are cut by rows, or compressed, and would have to be read as a whole each time.
So the rows are copied in the one pass over the data: to memory if they are small, else
to a temporary file (:class:`StripFile`).
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.data.disk.source import Block, Source
from ebda.data.pages import release
from ebda.sizes import sizes
from ebda.typing import IntArray


class Kept(Protocol):
    """Collects the chosen rows, block after block."""

    def add(self, block: Block, values: Any) -> None:
        """Copy the chosen rows of a block."""

    def array(self) -> Any:
        """All chosen rows."""


class DenseKept:
    """Chosen rows of a dense store.

    Parameters
    ----------
    rows : ndarray of int
        Rows to keep, in increasing order.
    n_features : int
        Number of columns.
    dtype : dtype
        Type of the values.
    """

    def __init__(self, rows: IntArray, n_features: int, dtype: np.dtype[Any]) -> None:
        self.rows = rows
        self.values = allocate(len(rows), n_features, dtype)

    def add(self, block: Block, values: npt.NDArray[Any]) -> None:
        a, b = np.searchsorted(self.rows, [block.rows.start, block.rows.stop])
        if a == b:
            return
        if not np.can_cast(values.dtype, self.values.dtype, "same_kind"):
            self._widen(values.dtype)  # the first block with NaN among integers
        whole = b - a == block.rows.stop - block.rows.start
        chosen = values if whole else values[self.rows[a:b] - block.rows.start]
        self.values[a:b, block.cols] = chosen

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Copy what is there to an array of a type that takes the values of both."""
        before, (n, p) = self.values, self.values.shape
        self.values = allocate(n, p, np.result_type(before.dtype, dtype))
        width = max(1, sizes.tile_elements // max(n, 1))
        for left in range(0, p, width):
            cols = slice(left, min(left + width, p))
            self.values[0:n, cols] = before[0:n, cols]

    def array(self) -> Any:
        return self.values


class SparseKept:
    """Chosen rows of a sparse store, which stay sparse and in memory.

    Parameters
    ----------
    rows : ndarray of int
        Rows to keep, in increasing order.
    """

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
    """Somewhere to keep rows of a store.

    Parameters
    ----------
    source : Source
        The store.
    rows : ndarray of int
        Rows to keep, in increasing order.
    first : ndarray or sparse matrix
        Values of the first block.
    """
    if sparse.issparse(first):
        return SparseKept(rows)
    return DenseKept(rows, source.shape[1], source.dtype)


def allocate(n: int, p: int, dtype: np.dtype[Any]) -> Any:
    """An empty array of n rows and p columns, in memory or in a temporary file.

    >>> allocate(2, 3, np.dtype("f4")).shape
    (2, 3)
    """
    size = n * p * dtype.itemsize
    if size <= sizes.kept_bytes:
        return np.empty((n, p), dtype)
    folder = tempfile.gettempdir()
    try:
        return StripFile(n, p, dtype, folder)
    except OSError as error:
        free = shutil.disk_usage(folder).free
        raise OSError(
            error.errno,
            f"{n} rows of {p} features have to be copied to a temporary file of "
            f"{size / 1e9:.3g} GB, but {folder} has only {free / 1e9:.3g} GB left "
            f"({error.strerror}); set TMPDIR to a folder with more space, or use "
            "covariance='diagonal' and shrinkage='mean' with calibrate=False, which "
            "needs no copy",
        ) from error


def reserve(file: BinaryIO, size: int, folder: str) -> None:
    """Give a new file in a folder its bytes on the disk, or raise OSError.

    A mapped file with holes takes its space when it is written to, and where the disk
    has become full by then, the process is killed by SIGBUS.
    """
    if size > shutil.disk_usage(folder).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    piece = bytes(1 << 20)  # macOS and Windows
    for start in range(0, size, len(piece)):
        file.write(piece[: size - start])
    file.flush()


class StripFile:
    """Rows in a mapped temporary file, which is removed with this object.

    All of its space is reserved at the start.

    The columns are cut into strips. The file has strip after strip, and in each strip
    row after row. So blocks of rows are written, and tiles of columns are read, in long
    runs: no page is touched for a few bytes of it.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    dtype : dtype
        Type of the values.
    folder : str
        Folder of the file.

    Examples
    --------
    >>> file = StripFile(2, 3, np.dtype("f4"), tempfile.gettempdir())
    >>> file[0:2, 1:3] = np.array([[1, 2], [3, 4]])
    >>> file[np.array([1]), 1:3].tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, n: int, p: int, dtype: np.dtype[Any], folder: str) -> None:
        self.shape, self.dtype = (n, p), dtype
        self.width = min(p, max(1, sizes.tile_elements // n))
        shape = (-(-p // self.width), n, self.width)
        with tempfile.TemporaryFile(dir=folder) as file:
            reserve(file, math.prod(shape) * dtype.itemsize, folder)
            self.strips = np.memmap(file, dtype, mode="w+", shape=shape)

    def _parts(self, cols: slice) -> Iterator[tuple[int, slice, slice]]:
        """Strips with these columns: which, where in the strip, where in `cols`."""
        left, w = cols.start, self.width
        while left < cols.stop:
            strip, at = divmod(left, w)
            right = min(cols.stop, (strip + 1) * w)
            yield (
                strip,
                slice(at, at + right - left),
                slice(left - cols.start, right - cols.start),
            )
            left = right

    def __setitem__(self, place: tuple[slice, slice], values: Any) -> None:
        rows, cols = place
        for strip, there, here in self._parts(cols):
            self.strips[strip, rows, there] = values[:, here]
        release(self.strips)

    def __getitem__(self, place: Any) -> npt.NDArray[Any]:
        everything = slice(0, self.shape[1])
        rows, cols = place if isinstance(place, tuple) else (place, everything)
        chosen = np.arange(self.shape[0])[rows]
        out = np.empty((len(chosen), cols.stop - cols.start), self.dtype)
        for strip, there, here in self._parts(cols):
            out[:, here] = self.strips[strip, chosen, there]
        release(self.strips)
        return out
