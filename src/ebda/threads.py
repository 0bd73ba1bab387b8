"""One thread of BLAS where bits must not depend on how many there are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import scipy.linalg  # noqa: F401  # its BLAS is to be found too
from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes milliseconds; they stay where they are.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread: several add in another order.

    The limit belongs to the process: set it once around threads, not in each.

    >>> with one_blas_thread():
    ...     pass
    """
    limit: AbstractContextManager[object] = _libraries().limit(
        limits=1, user_api="blas"
    )
    return limit
