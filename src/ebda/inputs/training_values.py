"""What the values of each feature were in the data of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.sizes import sizes
from ebda.storage.fields import Array, Scalar
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class TrainingValues:
    """Location and range of each feature, which new samples are compared with.

    They are kept in model files. Missing values count nothing.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    low, high : ndarray of shape (n_features,)
        Smallest and largest value; zero for a feature without values.
    mean, sd : ndarray of shape (n_features,)
        Mean and standard deviation over all samples, whatever their class.
    median : ndarray of shape (n_features,), optional
        What missing values were filled with; None where they were left.

    Examples
    --------
    >>> known = TrainingValues.of(np.array([[0.0, 5.0], [2.0, np.nan]]))
    >>> known.low.tolist(), known.high.tolist(), known.sd.tolist()
    ([0.0, 5.0], [2.0, 5.0], [1.0, 0.0])
    """

    n_samples: int
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    sd: FloatArray
    median: FloatArray | None = None

    @classmethod
    def of(cls, X: Any, median: npt.ArrayLike | None = None) -> Self:
        """Of an array or a sparse matrix in memory.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of the fit, as the model saw them.
        median : array-like of shape (n_features,), optional
            What missing values were filled with.
        """
        X = sparse.csc_array(X) if sparse.issparse(X) else np.asarray(X)
        n, p = X.shape
        out = np.zeros((4, p))
        width = max(1, sizes.tile_elements // max(n, 1))
        for left in range(0, p, width):
            part = X[:, left : left + width]
            dense = part.toarray() if sparse.issparse(part) else part
            out[:, left : left + width] = _summary(np.asarray(dense, np.float64))
        filled = None if median is None else np.asarray(median, np.float64)
        low, high, mean, sd = out
        return cls(n, low, high, mean, sd, filled)


def _summary(values: FloatArray) -> FloatArray:
    """Minimum, maximum, mean and standard deviation of columns; zero without values."""
    missing = np.isnan(values)
    count = len(values) - missing.sum(axis=0)
    n = np.maximum(count, 1)
    mean = np.where(missing, 0.0, values).sum(axis=0) / n
    square = np.where(missing, 0.0, (values - mean) ** 2).sum(axis=0)
    low = np.where(missing, np.inf, values).min(axis=0, initial=np.inf)
    high = np.where(missing, -np.inf, values).max(axis=0, initial=-np.inf)
    found = np.stack([low, high, mean, np.sqrt(square / n)])
    found[:, count == 0] = 0.0
    return np.asarray(found)


_FINITE = Array(("p",), ("finite",))
register(
    Schema(
        TrainingValues,
        {
            "n_samples": Scalar((int,), least=1),
            "low": _FINITE,
            "high": _FINITE,
            "mean": _FINITE,
            "sd": Array(("p",), ("finite", "zero or more")),
            "median": _FINITE,
        },
        optional=frozenset({"median"}),
        role="training values",
    )
)
