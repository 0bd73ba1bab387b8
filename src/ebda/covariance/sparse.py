"""Few correlated pairs of features: an empirical Bayes threshold of the correlations.

The differences between the classes have a prior with a point mass at zero, which tells
how much of each is chance. So have the correlations of all pairs of features here
(:mod:`ebda.covariance.correlation_prior`): the Bayes procedure "to threshold both the
mean difference and the sample covariance matrix" that the paper asks for. Correlations
that are more probable than chance make a sparse matrix, which is completed to a
positive definite one (:mod:`ebda.covariance.completion`). All others are zero, and a
feature without partners is independent.

The correlations of all pairs are formed in blocks, counted and forgotten. What is kept
are the residuals in single precision, the correlated pairs, and L with at most ten
entries beside the diagonal in each row: never a p x p matrix.

Contrasts are decorrelated by the symmetric root, ``R^-1/2 z``, as under the shrunken
covariance (:mod:`ebda.covariance.shrunken`). It takes some hundred products with L
(:mod:`ebda.covariance.matrix_power`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ebda.cached import cached_property
from ebda.covariance.base import Covariance, CovarianceEstimator
from ebda.covariance.completion import Pairs, inverse_root
from ebda.covariance.correlation_prior import fit_correlations
from ebda.covariance.diagonal import Diagonal
from ebda.covariance.matrix_power import power
from ebda.covariance.spectrum import degrees_of_freedom
from ebda.covariance.summary import Summary
from ebda.covariance.symmetric_root import SymmetricRoot
from ebda.kernels.correlations import strong_pairs, unit_columns
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# With fewer degrees of freedom no correlation is told from chance.
_LEAST_DF = 3


@dataclass(frozen=True, eq=False)
class Sparse(SymmetricRoot):
    """``R^-1 = L' L`` for the features that have partners; the others are independent.

    Parameters
    ----------
    connected : ndarray of int of shape (n_connected,)
        Features that have partners.
    root : csr_array of shape (n_connected, n_connected)
        L, sparse.
    n_pairs : int
        Number of correlated pairs.
    """

    connected: IntArray
    root: Any
    n_pairs: int

    @cached_property
    def _transposed(self) -> Any:
        return self.root.T.tocsr()

    def solve(self, rows: FloatArray) -> FloatArray:
        out = rows.copy()
        own = rows[:, self.connected].T
        out[:, self.connected] = (self._transposed @ (self.root @ own)).T
        return out

    def power(self, exponent: float, rows: FloatArray) -> FloatArray:
        out = rows.copy()
        for row in out:
            row[self.connected] = power(self._inverse, -exponent, row[self.connected])
        return out

    def _inverse(self, vector: FloatArray) -> FloatArray:
        product: FloatArray = self._transposed @ (self.root @ vector)
        return product


def sparse(data: Summary) -> Covariance:
    """A sparse correlation, or the diagonal where no pair is correlated."""
    if data.has_missing:
        raise ValueError(
            "covariance='sparse' needs all values, and X has missing ones; fill them "
            "in, or use covariance='shrunken' or 'factor'"
        )
    if data.p > sizes.paired_features:
        raise ValueError(
            f"covariance='sparse' compares all pairs of features, and {data.p} are too "
            f"many: {sizes.paired_features} are the limit; choose some of them, or use "
            "covariance='shrunken' or 'factor'"
        )
    residuals = data.residuals
    df = degrees_of_freedom(residuals, data.n_covariates)
    if df < _LEAST_DF or data.n_varying < 2:
        return Diagonal()
    rows = residuals.expand(np.eye(residuals.n_rows))
    rows[:, data.contrasts.constant] = 0.0
    unit = unit_columns(rows)
    prior = fit_correlations(unit, df)
    if prior.bound == 1:
        return Diagonal()
    first, second, correlation = strong_pairs(unit, prior.bound)
    if not len(first):
        return Diagonal()
    pairs = Pairs(first, second, prior.shrink(correlation))
    return Sparse(pairs.features, inverse_root(pairs, unit, prior), len(pairs))


# Where partners differ alike, their common difference is lost in what they have in
# common by chance, and even the true correlation does harm: held-out samples tell.
SPARSE = CovarianceEstimator(
    "sparse",
    "few correlated pairs",
    sparse,
    needs_samples=True,
    compared=("mean", "sparse"),
    in_auto=False,
    and_others=(("diagonal", "mean"),),
)
