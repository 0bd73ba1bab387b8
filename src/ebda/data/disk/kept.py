"""Rows that will be looked at again, put aside while the moments are summed.

Factors and folds read up to a thousand rows a dozen times or more, by columns. Most
stores are cut by rows, or compressed, and would have to be read as a whole each time.
So the rows are written down in the one pass over the data: in memory where they are few
bytes, else in a temporary file (:class:`StripFile`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.data.disk.source import Block, Source
from ebda.data.pages import release
from ebda.typing import IntArray

# Bytes that are kept in memory; more go to a file.
_IN_MEMORY = 1 << 25
# Values of a strip of the file: those of a tile of columns (:mod:`ebda.data.samples`).
_STRIP_ELEMENTS = 1 << 19


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
        whole = b - a == block.rows.stop - block.rows.start
        chosen = values if whole else values[self.rows[a:b] - block.rows.start]
        self.values[a:b, block.cols] = chosen

    def array(self) -> Any:
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


def room(n: int, p: int, dtype: np.dtype[Any]) -> Any:
    """Room for n rows of p features, in memory or in a file.

    >>> room(2, 3, np.dtype("f4")).shape
    (2, 3)
    """
    size = n * p * dtype.itemsize
    if size <= _IN_MEMORY:
        return np.empty((n, p), dtype)
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"{n} rows of {p} features have to be put aside on disk, but {folder} has "
            f"only {free / 1e9:.1f} GB left of the {size / 1e9:.1f} GB; set TMPDIR to "
            "a larger one, or use covariance='diagonal' with shrinkage='mean', which "
            "reads the data only once"
        )
    return StripFile(n, p, dtype, folder)


class StripFile:
    """Rows in a temporary file that is mapped, and goes away with this object.

    The columns are cut into strips; in the file strip follows strip, and in a strip
    row follows row. So a block of rows is written in runs, and so is a tile of
    columns read, and no page is touched for a few bytes of it.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    dtype : dtype
        Type of the values.
    folder : str
        Where the file is made.

    Examples
    --------
    >>> file = StripFile(2, 3, np.dtype("f4"), tempfile.gettempdir())
    >>> file[0:2, 1:3] = np.array([[1, 2], [3, 4]])
    >>> file[np.array([1]), 1:3].tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, n: int, p: int, dtype: np.dtype[Any], folder: str) -> None:
        self.shape, self.dtype = (n, p), dtype
        self.width = min(p, max(1, _STRIP_ELEMENTS // n))
        shape = (-(-p // self.width), n, self.width)
        with tempfile.TemporaryFile(dir=folder) as file:
            self.strips = np.memmap(file, dtype, mode="w+", shape=shape)

    def _parts(self, cols: slice) -> Iterator[tuple[int, slice, slice]]:
        """Strips that columns lie in: which, where there, and where among these."""
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
