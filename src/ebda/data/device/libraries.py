"""The libraries whose arrays are taken, and what differs between them.

Everything else is said in the array API standard, by way of ``array_api_compat`` (the
extra ``ebda[array-api]``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.registry import Entry, Registry


@dataclass(frozen=True)
class Library(Entry):
    """A library of arrays on devices.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`; the name is that of the package.
    module : str
        The namespace of the array API.
    to_host : callable
        From an array to an ndarray.
    named : callable
        From the name of a device to what the library calls it.
    plain : callable
        From what users give to an array that can be computed with, or a ValueError.
    precise : callable
        Makes a context in which float64 stays float64.
    """

    module: str
    to_host: Callable[[Any], npt.NDArray[Any]]
    named: Callable[[str], Any]
    plain: Callable[[Any], Any]
    precise: Callable[[], AbstractContextManager[Any]]

    def namespace(self) -> Any:
        """The functions of the array API."""
        _compat()
        return import_module(self.module)

    def device_of(self, X: Any) -> Any:
        """Where an array lies."""
        return _compat().device(X)

    def put(self, values: npt.NDArray[Any], device: Any) -> Any:
        """An array of the host, on a device."""
        plain = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        if not plain.flags.writeable:
            plain = plain.copy()  # PyTorch warns of others
        with self.precise():
            return self.namespace().asarray(plain, device=device)

    @property
    def is_installed(self) -> bool:
        """Whether the package can be found."""
        return find_spec(self.name) is not None


def _compat() -> Any:
    try:
        return import_module("array_api_compat")
    except ImportError:
        raise ImportError(
            "arrays of PyTorch, CuPy and JAX need array-api-compat: "
            "pip install 'ebda[array-api]'"
        ) from None


def _plain_tensor(X: Any) -> Any:
    torch: Any = import_module("torch")
    if X.layout != torch.strided:
        raise ValueError(
            f"X is a tensor of layout {X.layout}; give a dense one, X.to_dense()"
        )
    return X.detach().resolve_conj()


def _float64_of_jax() -> AbstractContextManager[Any]:
    jax: Any = import_module("jax")
    if not hasattr(jax, "enable_x64"):
        jax = import_module("jax.experimental")
    context: AbstractContextManager[Any] = jax.enable_x64(True)
    return context


def _device_of_cupy(name: str) -> Any:
    kind, _, number = name.partition(":")
    if kind != "cuda":
        raise ValueError(f"CuPy has no device {name!r}; give 'cuda' or 'cuda:1'")
    cupy: Any = import_module("cupy")
    return cupy.cuda.Device(int(number or 0))


def _device_of_jax(name: str) -> Any:
    kind, _, number = name.partition(":")
    jax: Any = import_module("jax")
    return jax.devices(kind)[int(number or 0)]


LIBRARIES = Registry(
    "library",
    Library(
        "torch",
        "a PyTorch tensor",
        "array_api_compat.torch",
        lambda X: np.asarray(X.cpu().numpy()),
        lambda name: import_module("torch").device(name),
        _plain_tensor,
        nullcontext,
    ),
    Library(
        "cupy",
        "a CuPy array",
        "array_api_compat.cupy",
        lambda X: np.asarray(X.get()),
        _device_of_cupy,
        lambda X: X,
        nullcontext,
    ),
    Library(
        "jax",
        "a JAX array",
        "jax.numpy",
        np.array,
        _device_of_jax,
        lambda X: X,
        _float64_of_jax,
    ),
    Library(
        "array_api_strict",
        "an array of array-api-strict",
        "array_api_strict",
        lambda X: np.array(np.from_dlpack(X)),
        lambda name: import_module("array_api_strict").Device(name),
        lambda X: X,
        nullcontext,
    ),
)


def library_of(X: Any) -> Library | None:
    """The library that an array is of; None for those of NumPy and whatever else."""
    for kind in type(X).__mro__:
        name = kind.__module__.split(".")[0]
        if name in LIBRARIES:
            # A device, a dtype or a module of the library has no dimensions.
            return LIBRARIES[name] if hasattr(X, "ndim") else None
    return None


def as_host(values: Any) -> Any:
    """An array of these libraries as an ndarray; all else is returned as it is.

    >>> as_host([1, 2])
    [1, 2]
    """
    library = library_of(values)
    return values if library is None else library.to_host(library.plain(values))


def like(X: Any, values: Any) -> Any:
    """Numbers of the host in the library of X and on its device.

    Parameters
    ----------
    X : object
        What was given; what is of none of these libraries leaves `values` as they are.
    values : ndarray
        Results. Text, which only NumPy has, stays as it is.
    """
    library = library_of(X)
    if library is None or values.dtype.kind not in "biuf":
        return values
    return library.put(values, library.device_of(X))
