"""Memory that a mapped file takes up: pages that were read are released.

The pages of a memory map count as resident until the system needs them, so that a pass
over a large file would fill all memory that is free. Released pages stay in the
system's file cache, and reading them again is cheap.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from ebda.sizes import sizes

# Modes of a shared map. The pages of a private one ("c") may contain changes that are
# nowhere else.
_SHARED = ("r", "r+", "w+")


def is_mapped(X: Any) -> bool:
    """Whether X is a mapped file of more than `sizes.mapped_bytes`."""
    return isinstance(X, np.memmap) and X.nbytes > sizes.mapped_bytes


def release(X: Any) -> None:
    """Release the pages of X that are in memory; its values do not change.

    >>> release(np.zeros(3))  # not a mapped file: nothing happens
    """
    if not is_mapped(X) or X.mode not in _SHARED:
        return
    pages = X
    while pages is not None and not isinstance(pages, mmap.mmap):
        pages = getattr(pages, "base", None)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
