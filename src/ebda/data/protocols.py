"""What a classifier asks of its X, wherever X is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebda.data.samples import Samples
from ebda.moments.classwise import ClassMoments
from ebda.typing import FloatArray, IntArray


class Data(Protocol):
    """Samples in rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def names(self) -> npt.NDArray[Any] | None:
        """Names of the features, where they have any."""

    def summarise(
        self,
        codes: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        keep: bool,
        first: int = 0,
    ) -> tuple[ClassMoments, Samples | None]:
        """Class moments; and samples to look at again, if they are to be kept.

        Parameters
        ----------
        codes : ndarray of int of shape (n_samples,)
            Classes.
        n_classes : int
            Number of classes.
        weight : ndarray of shape (n_samples,), optional
            Frequency weights.
        keep : bool
            Whether samples are needed.
        first : int
            Number of the first row in the stream of all samples.
        """

    def scores(self, coef: FloatArray, intercept: FloatArray) -> Any:
        """``X @ coef.T + intercept``."""

    def job_context(self) -> AbstractContextManager[Any]:
        """Inside of this block jobs are run by whatever works on the data."""
