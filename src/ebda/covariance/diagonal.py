"""No correlation: the independence rule of Bickel and Levina."""

from __future__ import annotations

from ebda.covariance.base import Covariance, CovarianceEstimator, Decorrelated
from ebda.covariance.summary import Summary
from ebda.typing import FloatArray


class Diagonal(Covariance):
    """R is the identity."""

    is_diagonal = True
    n_factors = 0

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(z)

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return e

    def solve(self, rows: FloatArray) -> FloatArray:
        return rows


def diagonal(data: Summary) -> Diagonal:
    """Independent features."""
    return Diagonal()


# Beside a correlation the posterior mean, which takes every feature for independent,
# adds nothing; the largest differences alone do.
DIAGONAL = CovarianceEstimator(
    "diagonal",
    "features one by one",
    diagonal,
    compared=("mean", "top10", "top100"),
    beside_others=("top10", "top100"),
)
