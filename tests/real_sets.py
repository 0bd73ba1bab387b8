"""Real sets that are too large for the package, for tests that have values of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest


def folder() -> Path:
    """Where the sets lie: EBDA_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("EBDA_DATA", beside))


def load(name: str) -> npt.NDArray[Any]:
    """X of a set; the test is skipped where it is absent."""
    path = folder() / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name}.npz is not in {folder()}; set EBDA_DATA to its folder")
    with np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays["X"], dtype=np.float64)
