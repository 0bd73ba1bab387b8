"""A hash of whole numbers."""

from __future__ import annotations

import numpy as np


def hash_integers(number: np.ndarray) -> np.ndarray:
    """A hash of whole numbers, the finaliser of splitmix64: neighbours go far apart."""
    h = number.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = h ^ (h >> np.uint64(31))
    return mixed
