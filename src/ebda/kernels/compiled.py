"""Compiled loops: where Numba is installed and the arrays are large.

NumPy makes several passes over a block of the data, with temporaries. A compiled loop
(:mod:`ebda.kernels.loops`) makes one, needs none, and releases the interpreter's lock.
At 60 x 2,000,000 this halves the time of a fit (``benchmarks/speed.py``). Numba (the
extra ``ebda[fast]``) takes a third of a second to load, and five seconds on its first
use on a machine, when the loops are compiled and cached on disk.

Whether a loop is used depends on the size of the arrays alone, so that two equal calls
give the same bits. NumPy and the loops agree to 1e-12 relative.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ebda.kernels.threads import no_fork, over_blocks
from ebda.sizes import sizes

P = ParamSpec("P")
R = TypeVar("R")


@cache
def available() -> bool:
    """Whether Numba is installed and can be loaded beside this NumPy."""
    try:
        with no_fork():
            import_module("numba")
    except ImportError:
        return False
    return True


def suits_matrix(X: npt.NDArray[Any]) -> bool:
    """Whether to use loops for this matrix."""
    return (
        X.size >= sizes.compiled_elements
        and X.dtype in (np.float32, np.float64)
        and X.dtype.isnative
        and X.flags.c_contiguous
        and available()
    )


def suits_vectors(length: int) -> bool:
    """Whether to use loops for vectors of this length."""
    return length >= sizes.compiled_features and available()


@cache
def compile_loop(function: Callable[P, R]) -> Callable[P, R]:
    """A function of :mod:`ebda.kernels.loops`, compiled and cached on disk."""
    numba: Any = import_module("numba")
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    # Without a folder that can be written to there is no cache.
    with suppress(Exception):
        compiled._cache = _lenient_cache(function)
    return cast(Callable[P, R], compiled)


def _lenient_cache(function: Callable[..., Any]) -> Any:
    """Numba's cache on disk, without which a fit goes on where it fails.

    Numba's own raises whatever unpickling a damaged file raises, and does not notice a
    change of the machine code in it. Here each data file ends with its checksum. What
    cannot be read is compiled again, and what cannot be written is not.
    """
    caching: Any = import_module("numba.core.caching")

    class Checked(caching.IndexDataCacheFile):
        def _dump(self, obj: Any) -> bytes:
            data: bytes = super()._dump(obj)
            return data + sha256(data).digest()

        def _load_data(self, name: str) -> Any:
            data = Path(self._data_path(name)).read_bytes()
            if sha256(data[:-32]).digest() != data[-32:]:
                raise ValueError(f"{name} is damaged")
            return super()._load_data(name)

    class Lenient(caching.FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:
                with suppress(Exception):
                    self.flush()  # so that the new one can be saved
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(Exception):
                super().save_overload(sig, data)

    cache = Lenient(function)
    cache._cache_file.__class__ = Checked
    return cache


def for_each_block(
    vectorised: Callable[..., R], loop: Callable[..., R], size: int, *arguments: Any
) -> list[R]:
    """Call one of the two versions of a kernel for each block of ``range(size)``.

    Parameters
    ----------
    vectorised, loop : callable
        The NumPy version, and the function of :mod:`ebda.kernels.loops`. Both take the
        arguments, then the ends of a block, and write to arrays among the arguments.
    size : int
        Length of the vectors.
    *arguments
        Passed on.

    Returns
    -------
    list
        What was returned for each block, in order.
    """
    if suits_vectors(size):
        compiled = compile_loop(loop)
        return over_blocks(
            lambda block: compiled(*arguments, block.start, block.stop),
            size,
            releases_lock=True,
        )
    return over_blocks(
        lambda block: vectorised(*arguments, block.start, block.stop), size
    )
