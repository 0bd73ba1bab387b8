"""What all arrays of samples have in common, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.listing import counted


@dataclass(frozen=True, eq=False)
class Matrix:
    """An array with samples in rows.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of whatever kind; it has a shape and a dtype.
    names : ndarray, optional
        Names of the features.
    """

    X: Any
    names: npt.NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of features."""
        return in_two_dimensions(self.X.shape, f"the {type(self.X).__name__}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        dtype: np.dtype[Any] = self.X.dtype
        return dtype


def in_two_dimensions(shape: tuple[int, ...], what: str) -> tuple[int, int]:
    """The shape, or an error if there are not two dimensions."""
    if len(shape) != 2:
        raise ValueError(
            f"{what} has {counted(len(shape), 'dimension')}; X must have two, samples "
            "and features"
        )
    return int(shape[0]), int(shape[1])
