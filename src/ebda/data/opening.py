"""The registry of what users may give as X.

An entry is found by the package that the type of X comes from. So no package is
imported only to learn that X is none of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ebda.data.device import LIBRARIES, open_array
from ebda.data.disk.parquet import ParquetTable
from ebda.data.disk.passes import BlockedData
from ebda.data.disk.stores import ChunkedArray, MemoryMap, SparseOnDisk
from ebda.data.memory import InMemory
from ebda.data.protocols import Data
from ebda.data.structure import check_structure
from ebda.registry import Entry, Registry


@dataclass(frozen=True)
class Opener(Entry):
    """How X of some type becomes data.

    Parameters
    ----------
    package : str
        The package that the type comes from.
    open : callable
        From X to :class:`ebda.data.Data`; None if NumPy can make an array of it.
    is_dispatched : bool
        Whether it needs ``array_api_dispatch`` of scikit-learn.
    """

    package: str
    open: Callable[[Any], Data | None]
    is_dispatched: bool = False


def _open_memory_map(X: Any) -> Data | None:
    if isinstance(X, np.memmap) and X.ndim == 2:
        return BlockedData(MemoryMap(X))
    return None


def _open_chunked(X: Any) -> Data | None:
    return BlockedData(ChunkedArray(X)) if hasattr(X, "chunks") else None


def _open_anndata(X: Any) -> Data | None:
    if not hasattr(X, "var_names"):
        # The X of a view, such as that of ``adata[rows]``, is in memory.
        in_memory = isinstance(X, np.ndarray) or sparse.issparse(X)
        return None if in_memory else BlockedData(SparseOnDisk(X))
    names = np.asarray(X.var_names, dtype=object)
    values = X.X
    if values is None:
        raise ValueError("the AnnData object has no X; give adata.layers[...] itself")
    data = as_data(values)
    if isinstance(data, BlockedData):
        # Sources and data of this registry are dataclasses with names, which their
        # protocols cannot say.
        return BlockedData(replace(data.source, names=names))  # type: ignore[type-var]
    if data is not None:
        return replace(data, names=names)  # type: ignore[type-var]
    check_structure(values)
    return InMemory(values if sparse.issparse(values) else np.asarray(values), names)


def _open_arrow(X: Any) -> Data | None:
    return BlockedData(ParquetTable(X)) if hasattr(X, "get_fragments") else None


def _open_own(X: Any) -> Data | None:
    if isinstance(X, ParquetTable):
        return BlockedData(X)
    return X if isinstance(X, BlockedData) else None


def _open_dask(X: Any) -> Data | None:
    from ebda.data.dask import open_dask

    return open_dask(X)


OPENERS = Registry(
    "X",
    Opener("memory map", "numpy.memmap", "numpy", _open_memory_map),
    Opener("zarr", "zarr.Array", "zarr", _open_chunked),
    Opener("hdf5", "h5py.Dataset", "h5py", _open_chunked),
    Opener("anndata", "AnnData in backed mode, or its X", "anndata", _open_anndata),
    Opener("parquet", "Parquet files, by open_parquet", "ebda", _open_own),
    Opener("arrow", "pyarrow.dataset.Dataset", "pyarrow", _open_arrow),
    Opener("dask", "a Dask array or data frame", "dask", _open_dask),
    *(
        Opener(library.name, library.line, library.name, open_array, True)
        for library in LIBRARIES.values()
    ),
)


def as_data(X: Any) -> Data | None:
    """X as data that are not in memory, or None if NumPy can make an array of it.

    >>> as_data([[1.0, 2.0]]) is None
    True
    """
    opener = opener_of(X)
    return None if opener is None else opener.open(X)


def opener_of(X: Any) -> Opener | None:
    """The entry that X is of; None if NumPy can make an array of it."""
    by_package = {opener.package: opener for opener in OPENERS.values()}
    for kind in type(X).__mro__:
        opener = by_package.get(kind.__module__.split(".")[0])
        if opener is not None:
            return opener
    return None
