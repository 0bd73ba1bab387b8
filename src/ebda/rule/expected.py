"""What a missing value is expected to be, given the others of its sample.

Within the classes ``x = m + S (L f + e)``, with common factors f of unit variance and
independent e of variances psi. Given the values u of a sample that are there, in units
of S and about the midpoint m of a contrast, the factors are expected to be

    f = (I + L_o' Psi_o^-1 L_o)^-1 L_o' Psi_o^-1 u_o,

the sums over those features, and a missing value to be ``m + S L f``. Without factors
that is the midpoint, which adds nothing to a score.

A linear discriminant whose missing values are replaced so is the discriminant that the
other features alone would have: with ``w = R^-1 d``,

    w_o + R_oo^-1 R_om w_m = R_oo^-1 d_o.

So nothing else has to be known of a new sample: not its class, and not how many of its
values are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.cached import cached_property
from ebda.covariance.factor import Factors
from ebda.storage.fields import POSITIVE, Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Expectation:
    """Common factors that tell missing values from others.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_factors)
        L, in units of the standard deviations.
    specific : ndarray of shape (n_features,)
        Psi: what the factors leave of the variance.

    Examples
    --------
    Two features of correlation 0.8, the second one is missing:

    >>> L = np.full((2, 1), np.sqrt(0.8))
    >>> e = Expectation(L, np.full(2, 0.2))
    >>> u, missing = np.array([[1.0, 0.0]]), np.array([[False, True]])
    >>> f = e.factors(u @ e.for_values, missing @ e.information)
    >>> (f @ L[1]).round(3)
    array([0.8])
    """

    loadings: FloatArray
    specific: FloatArray

    @classmethod
    def of(cls, factors: Factors) -> Expectation:
        """That of a factor model."""
        return cls(factors.loadings, factors.specific)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return int(self.loadings.shape[1])

    @cached_property
    def for_values(self) -> FloatArray:
        """What the values are multiplied with: ``Psi^-1 L``."""
        return self.loadings / self.specific[:, None]

    @cached_property
    def information(self) -> FloatArray:
        """What each feature adds to the precision of the factors.

        Of shape (n_features, n_pairs): the upper triangle of ``L_j L_j' / psi_j``.
        """
        i, j = np.triu_indices(self.n_factors)
        return self.loadings[:, i] * self.for_values[:, j]

    def factors(self, values: FloatArray, lost: FloatArray) -> FloatArray:
        """Expected factors of samples.

        Parameters
        ----------
        values : ndarray of shape (n_samples, ..., n_factors)
            ``L_o' Psi_o^-1 u_o`` of each sample.
        lost : ndarray of shape (n_samples, n_pairs)
            Sum of `information` over the missing features of each sample.
        """
        k = self.n_factors
        i, j = np.triu_indices(k)
        left = self.information.sum(axis=0) - lost
        precision: FloatArray = np.empty((len(lost), k, k))
        precision[:, i, j] = precision[:, j, i] = left
        precision[:, range(k), range(k)] += 1.0
        columns = values.reshape(len(lost), -1, k).transpose(0, 2, 1)
        solved = np.linalg.solve(precision, columns)
        found: FloatArray = solved.transpose(0, 2, 1).reshape(values.shape)
        return found


register(
    Schema(
        Expectation,
        {"loadings": Array(("p", "f")), "specific": Array(("p",), POSITIVE)},
    )
)
