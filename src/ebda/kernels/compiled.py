"""Compiled loops: where Numba is installed, and by the time that they are worth it.

NumPy makes several passes over a block of the data, with temporaries; a compiled loop
(:mod:`ebda.kernels.loops`) makes one, needs none, and lets go of the interpreter's lock. At
60 x 2,000,000 it halves the time of a fit (``benchmarks/speed.py``). But Numba (the
extra ``ebda[fast]``) takes a third of a second to load, and five seconds at the very
first use on a machine, when the loops are compiled and kept on disk. So a process
counts the numbers that it has been through, and begins to use the loops when they would
have saved as much as they cost; or at once, after :func:`load`. The results are the
same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

P = ParamSpec("P")
R = TypeVar("R")

# Elements of a matrix, and of a vector, from which loops are used.
LARGE, LONG = 1 << 22, 1 << 16
# Numbers that a process has been through when loops are worth their loading.
WORTH = 1 << 30
# Elements of a tile of a matrix: it is read twice, and stays in the second cache.
_TILE = 1 << 15


@dataclass
class _Use:
    """What this process has done so far."""

    numbers: int = 0
    loaded: bool = False
    refused: bool = False


_use = _Use()


def load() -> None:
    """Use the loops from now on.

    >>> from ebda.kernels import compiled
    >>> compiled.load()  # doctest: +SKIP
    """
    try:
        import_module("numba")
    except ImportError as error:
        raise ImportError(
            f"compiled loops need Numba: pip install 'ebda[fast]' ({error})"
        ) from error
    _use.loaded = True


def _worth(size: int) -> bool:
    if _use.loaded or _use.refused:
        return _use.loaded
    _use.numbers += size
    if _use.numbers >= WORTH:
        try:
            load()
        except ImportError:  # not there, or not for this NumPy: it goes without
            _use.refused = True
    return _use.loaded


def suits(X: npt.NDArray[Any]) -> bool:
    """Whether to use loops for this matrix."""
    return (
        X.size >= LARGE
        and X.dtype in (np.float32, np.float64)
        and X.dtype.isnative
        and X.flags.c_contiguous
        and _worth(X.size)
    )


def suit_vectors(size: int) -> bool:
    """Whether to use loops for vectors of this length."""
    return size >= LONG and _worth(size)


def tile_columns(n_rows: int) -> int:
    """Columns of a tile of so many rows."""
    return max(64, _TILE // max(n_rows, 1))


@cache
def loop(function: Callable[P, R]) -> Callable[P, R]:
    """A function of :mod:`ebda.kernels.loops`, compiled; it is kept on disk."""
    import numba

    compiled: Callable[P, R]
    try:
        compiled = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # there is no place to keep it
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled
