"""Data that are sent through a device block by block, while the next one is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ebda.data.device.arrays import DeviceData
from ebda.data.device.libraries import LIBRARIES, Library
from ebda.data.device.matrix import DeviceMatrix
from ebda.data.device.samples import hash_rows_of
from ebda.data.disk.adjusted import ArrayInMemory
from ebda.data.disk.passes import BlockedData
from ebda.data.disk.source import Block, Source
from ebda.data.finite import check_block
from ebda.data.protocols import Labels
from ebda.kernels.hashing import Hashes
from ebda.moments.classwise import ClassMoments
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class DeviceBlock:
    """A block that is summed on a device (:class:`ebda.data.disk.passes.Summing`).

    Parameters
    ----------
    values : ndarray
        The block.
    data : DeviceData
        The same on the device.
    """

    values: Any
    data: DeviceData

    def checked_moments(self, labels: Labels) -> ClassMoments:
        return self.data.checked_moments(labels)

    def hashes(self, keys: Hashes) -> Hashes:
        return hash_rows_of(self.data.matrix, keys)

    def scores(self, coef: FloatArray, allow_missing: bool) -> FloatArray:
        part = self.data.products_with(coef)
        check_block(part, self.values, self.data.top, self.data.left, allow_missing)
        return part

    def products(self, rows: FloatArray) -> FloatArray:
        return self.data.products(rows)

    def lengths(
        self, centre: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        return self.data.lengths(centre, scale, rows)


@dataclass(frozen=True, eq=False)
class StreamedData(BlockedData):
    """A store whose blocks are summed on a device (:class:`ebda.data.Data`).

    Parameters
    ----------
    library : Library
        What sums.
    device : object
        The device, as the library has it.
    """

    library: Library
    device: Any

    def _summing(self, values: Any, block: Block) -> DeviceBlock:
        if sparse.issparse(values):
            raise ValueError(
                "sparse data are not sent to a device, where they would be dense; give "
                "the store itself, without on_device"
            )
        sent = DeviceMatrix(self.library.put(values, self.device), self.library)
        place = block.rows.start, block.cols.start
        return DeviceBlock(values, DeviceData(sent, *place))


def streamed(X: Any, device: str, library: str | None) -> StreamedData:
    """Data whose blocks are sent to a device (:func:`ebda.data.on_device`)."""
    source = _source(X)
    if library is None:
        installed = [name for name in LIBRARIES if LIBRARIES[name].is_installed]
        if not installed:
            raise ImportError(
                "on_device needs a library that computes on the device; install one "
                f"of {', '.join(LIBRARIES)}"
            )
        library = installed[0]
    LIBRARIES.find(library)
    using = LIBRARIES[library]
    where = using.named(device)
    # What the device cannot do is said now, and not after the first block was read.
    DeviceData.of(using.put(np.zeros((1, 1), np.float32), where))
    return StreamedData(source, using, where)


def _source(X: Any) -> Source:
    from ebda.data.opening import as_data

    data = as_data(X)
    if isinstance(data, BlockedData):
        return data.source
    if data is not None:
        raise ValueError(
            "on_device takes data of the host, in memory or on disk; "
            f"{type(X).__name__} is summed where it is"
        )
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"on_device takes a matrix of numbers, got {values.ndim} dimension(s) of "
            f"{values.dtype}"
        )
    return ArrayInMemory(values)
