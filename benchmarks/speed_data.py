"""Data of the speed benchmark, and how memory is measured; needs NumPy alone."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MIB = 2**20


def data(n: int, p: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Two classes; one feature in fifty differs by 0.8 standard deviations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float32)
    y = np.arange(n) % 2
    X[y == 1, : p // 50] += 0.8
    return X, y


def peak_resident() -> float:
    """Largest resident size of this process so far, in MiB.

    On Linux the mark of its own memory: the one of ``getrusage`` starts at the size
    of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB
