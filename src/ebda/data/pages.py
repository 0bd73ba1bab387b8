"""Memory of files that are mapped: pages that were read are handed back.

Pages of a memory map count as resident until the system wants them back, so that a
pass over a large file would fill all memory that is free. They stay in the system's
cache of the file, and reading them again is cheap.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

# Maps below this many bytes are left as they are.
_SMALL = 1 << 25
# Modes of a shared map. Pages of a private one ("c") may hold changes of their own.
_SHARED = ("r", "r+", "w+")


def is_mapped(X: Any) -> bool:
    """Whether X is a file that is mapped into memory, and not small."""
    return isinstance(X, np.memmap) and X.nbytes > _SMALL


def release(X: Any) -> None:
    """Hand back the pages of X that are in memory; its values stay what they are.

    >>> release(np.zeros(3))  # not a mapped file: nothing to do
    """
    if not is_mapped(X) or X.mode not in _SHARED:
        return
    pages = X
    while pages is not None and not isinstance(pages, mmap.mmap):
        pages = getattr(pages, "base", None)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
