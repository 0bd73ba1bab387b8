"""The registry of what X may be.

By the package that the type of X comes from, so that no package is imported to find
out that X is none of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ebda.data.disk.parquet import ParquetTable
from ebda.data.disk.passes import BlockedData
from ebda.data.disk.stores import ChunkedArray, MemoryMap, SparseOnDisk
from ebda.data.memory import InMemory
from ebda.data.protocols import Data


def _open_numpy(X: Any) -> Data | None:
    if isinstance(X, np.memmap) and X.ndim == 2:
        return BlockedData(MemoryMap(X))
    return None


def _open_chunked(X: Any) -> Data | None:
    return BlockedData(ChunkedArray(X)) if hasattr(X, "chunks") else None


def _open_anndata(X: Any) -> Data | None:
    if not hasattr(X, "var_names"):
        return BlockedData(SparseOnDisk(X))
    names = np.asarray(X.var_names, dtype=object)
    values = X.X
    if values is None:
        raise ValueError("the AnnData object has no X; give adata.layers[...] itself")
    data = as_data(values)
    if isinstance(data, BlockedData):
        # Sources and data of the registries are dataclasses with names, which their
        # protocols cannot say.
        return BlockedData(replace(data.source, names=names))  # type: ignore[type-var]
    if data is not None:
        return replace(data, names=names)  # type: ignore[type-var]
    return InMemory(values if sparse.issparse(values) else np.asarray(values), names)


def _open_arrow(X: Any) -> Data | None:
    is_dataset = hasattr(X, "get_fragments")
    return BlockedData(ParquetTable(X)) if is_dataset else None


def _open_own(X: Any) -> Data | None:
    return BlockedData(X) if isinstance(X, ParquetTable) else None


def _open_dask(X: Any) -> Data | None:
    from ebda.data.dask import open_dask

    return open_dask(X)


OPENERS: dict[str, Callable[[Any], Data | None]] = {
    "numpy": _open_numpy,
    "zarr": _open_chunked,
    "h5py": _open_chunked,
    "anndata": _open_anndata,
    "pyarrow": _open_arrow,
    "ebda": _open_own,
    "dask": _open_dask,
}


def as_data(X: Any) -> Data | None:
    """X as data that is not in memory, or None for what NumPy can make an array of.

    >>> as_data([[1.0, 2.0]]) is None
    True
    """
    for kind in type(X).__mro__:
        opener = OPENERS.get(kind.__module__.split(".")[0])
        if opener is not None:
            return opener(X)
    return None
