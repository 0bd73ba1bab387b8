"""No correlation: the independence rule of Bickel and Levina."""

from __future__ import annotations

from ebda.covariance.base import CovarianceEstimator, Decorrelated
from ebda.data import Samples
from ebda.moments import ClassMoments, Contrasts
from ebda.typing import FloatArray


class Diagonal:
    """R is the identity."""

    is_diagonal = True
    n_factors = 0

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(z)

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return e

    def solve(self, rows: FloatArray) -> FloatArray:
        return rows


def diagonal(
    moments: ClassMoments, contrasts: Contrasts, samples: Samples | None
) -> Diagonal:
    """Independent features."""
    return Diagonal()


DIAGONAL = CovarianceEstimator("diagonal", "features one by one", diagonal)
