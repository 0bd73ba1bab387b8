"""Data in memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.data.protocols import Samples
from ebda.data.samples import RowSamples
from ebda.kernels.scores import scores
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class InMemory:
    """An array in memory (:class:`ebda.data.Data`).

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix of shape (n_samples, n_features)
        Samples in rows; already validated.
    names : ndarray, optional
        Names of the features.
    """

    X: Any
    names: npt.NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    def summarise(
        self,
        codes: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        keep: bool,
        first: int = 0,
    ) -> tuple[ClassMoments, Samples | None]:
        moments = class_moments(self.X, codes, n_classes, weight)
        return moments, RowSamples.of(self.X, codes, weight, first) if keep else None

    def scores(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        return scores(self.X, coef, intercept)

    def job_context(self) -> AbstractContextManager[Any]:
        return nullcontext()
