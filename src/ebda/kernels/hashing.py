"""Hashes of whole numbers and of columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.kernels.threads import over_blocks
from ebda.typing import FloatArray

# The last bits of a number, which its hash ignores: 18 of the mantissa are left.
_DROPPED_BITS = 34


def hash_integers(number: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: hashes of close integers lie far apart."""
    h = number.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = h ^ (h >> np.uint64(31))
    return mixed


def hash_columns(rows: FloatArray) -> npt.NDArray[np.uint64]:
    """A hash of each column, which ignores the last digits of its numbers."""
    key = np.empty(rows.shape[1], dtype=np.uint64)

    def mix(cols: slice) -> None:
        mixed = np.zeros(cols.stop - cols.start, dtype=np.uint64)
        for row in rows[:, cols]:
            leading = row.view(np.int64) >> _DROPPED_BITS
            mixed = hash_integers(mixed ^ leading.view(np.uint64))
        key[cols] = mixed

    over_blocks(mix, len(key))
    return key
