"""What a classifier asks of its X, wherever X is: in memory, on disk, on a cluster.

`OPENERS` is the registry, by the package that the type of X comes from, so that no
package is imported to find out that X is none of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.arrays import FloatArray, IntArray
from ebda.blocks.parquet import ParquetTable
from ebda.blocks.passes import BlockedData
from ebda.blocks.stores import ChunkedArray, MemoryMap, SparseOnDisk
from ebda.linear_rule import scores
from ebda.moments import ClassMoments, class_moments
from ebda.samples import Samples


class Data(Protocol):
    """Samples in rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def names(self) -> npt.NDArray[Any] | None:
        """Names of the features, where they have any."""

    def summarise(
        self,
        codes: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        keep: bool,
        first: int = 0,
    ) -> tuple[ClassMoments, Samples | None]:
        """Class moments; and samples to look at again, if they are to be kept.

        Parameters
        ----------
        codes : ndarray of int of shape (n_samples,)
            Classes.
        n_classes : int
            Number of classes.
        weight : ndarray of shape (n_samples,), optional
            Frequency weights.
        keep : bool
            Whether samples are needed.
        first : int
            Number of the first row in the stream of all samples.
        """

    def scores(self, coef: FloatArray, intercept: FloatArray) -> Any:
        """``X @ coef.T + intercept``."""

    def at_work(self) -> AbstractContextManager[Any]:
        """Inside of this block jobs are run by whatever works on the data."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A checked ndarray, CSR or CSC matrix."""

    X: Any
    names: npt.NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    def summarise(
        self,
        codes: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        keep: bool,
        first: int = 0,
    ) -> tuple[ClassMoments, Samples | None]:
        moments = class_moments(self.X, codes, n_classes, weight)
        return moments, Samples.of(self.X, codes, weight, first) if keep else None

    def scores(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", over="ignore"):
            return scores(self.X, coef, intercept)

    def at_work(self) -> AbstractContextManager[Any]:
        """As joblib has it."""
        return nullcontext()


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
    from ebda.cluster import open_dask

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
