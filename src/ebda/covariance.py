"""The within-class covariance that the rule divides by.

A covariance is a small object with ``solve``, the product of its inverse with rows
of differences. `COVARIANCES` is the registry that the `covariance` parameter of the
classifier names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ebda.arrays import FloatArray
from ebda.contrasts import Contrasts


class Covariance(Protocol):
    """A p x p matrix that is never formed."""

    def solve(self, rows: FloatArray) -> FloatArray:
        """The inverse times each row; may overwrite `rows`."""


@dataclass(frozen=True, eq=False)
class Diagonal:
    """No correlation: the independence rule of Bickel and Levina."""

    variance: FloatArray

    def solve(self, rows: FloatArray) -> FloatArray:
        rows /= self.variance
        return rows


def diagonal(contrasts: Contrasts) -> Covariance:
    """D, the diagonal of the estimated variances."""
    return Diagonal(contrasts.variance)


COVARIANCES: dict[str, Callable[[Contrasts], Covariance]] = {"diagonal": diagonal}
