"""Arrays of PyTorch, CuPy, JAX and other libraries of the array API, on any device.

With ``sklearn.config_context(array_api_dispatch=True)``, ``EBClassifier().fit(X, y)``
takes such an array. X never leaves its device: blocks of it are summed there in
float64, and only sums and vectors over the features come to the host. :func:`on_device`
sends data that lie elsewhere through a device, block by block.
"""

from __future__ import annotations

from typing import Any

from ebda.data.device.libraries import LIBRARIES, Library, as_host, like
from ebda.data.device.matrix import DeviceMemoryWarning

__all__ = [
    "LIBRARIES",
    "DeviceMemoryWarning",
    "Library",
    "as_host",
    "like",
    "on_device",
    "open_array",
]


def open_array(X: Any) -> Any:
    """An array of one of `LIBRARIES` as data; None if it is something else of these."""
    from ebda.data.device.arrays import DeviceData

    return DeviceData.of(X)


def on_device(X: Any, device: str = "cuda", library: str | None = None) -> Any:
    """Data for ``fit`` and ``predict`` whose sums are computed on a device.

    Blocks are read, as they are without it, sent to the device and summed there, while
    the next one is read. So X may be larger than the memory of the device.

    Parameters
    ----------
    X : ndarray, numpy.memmap, zarr.Array, h5py.Dataset or other data on disk
        Dense samples in rows.
    device : str
        The device, as the library names it.
    library : {"torch", "cupy", "jax", "array_api_strict"}, optional
        The library that sums; by default the first of these that is installed.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda import EBClassifier
    >>> from ebda.data import on_device
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=500, effect=1.0, random_state=0)
    >>> X = on_device(sim.data, "CPU_DEVICE", library="array_api_strict")
    >>> model = EBClassifier().fit(X, sim.target)
    >>> bool((model.predict(X) == sim.target).mean() > 0.9)
    True
    """
    from ebda.data.device.streamed import streamed

    return streamed(X, device, library)
