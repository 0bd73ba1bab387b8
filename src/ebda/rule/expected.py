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
values are missing. That is so for a rule under these factors. In a sum of rules under
several covariances the factors are not what all of them were solved with, and the
midpoint alone was as good in real data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.cached import cached_property
from ebda.storage.fields import POSITIVE, Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray


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
        return solve_packed(self.information.sum(axis=0) - lost, values)

    def without(self, gone: IntArray) -> Expectation:
        """The same where some features tell nothing, whatever their values are."""
        loadings = self.loadings.copy()
        loadings[gone] = 0.0
        return Expectation(loadings, self.specific)


def solve_packed(information: FloatArray, values: FloatArray) -> FloatArray:
    """``(I + A_i)^-1 v`` for symmetric A_i that are given by their upper triangles.

    Parameters
    ----------
    information : ndarray of shape (n_samples, n_pairs)
        A_i, row after row.
    values : ndarray of shape (n_samples, ..., n_factors)
        One vector v or several for each sample.

    >>> solve_packed(np.array([[1.0, 0.0, 3.0]]), np.array([[2.0, 4.0]]))
    array([[1., 1.]])
    """
    n, k = len(values), int(values.shape[-1])
    i, j = np.triu_indices(k)
    precision = np.zeros((n, k, k))
    precision[:, i, j] = precision[:, j, i] = information
    precision += np.eye(k)
    columns = values.reshape(n, -1, k).transpose(0, 2, 1)
    solved: FloatArray = np.asarray(np.linalg.solve(precision, columns), np.float64)
    found: FloatArray = solved.transpose(0, 2, 1).reshape(values.shape)
    return found


@dataclass(frozen=True, eq=False)
class Finish:
    """The last step of the scores of samples with missing values.

    Parameters
    ----------
    intercept : ndarray of shape (n_contrasts,)
        Of the linear rule.
    at_middle : ndarray of shape (n_contrasts, n_factors)
        ``L' Psi^-1`` times the midpoints of the contrasts.
    information : ndarray of shape (n_pairs,)
        That of all features.
    """

    intercept: FloatArray
    at_middle: FloatArray
    information: FloatArray

    def __call__(self, sums: FloatArray) -> FloatArray:
        """Scores, from the sums over the features that `GapScores` asks for."""
        c, k = self.at_middle.shape
        widths = [c, k, c, c * k, c * k, len(self.information)]
        parts = np.split(sums, np.cumsum(widths)[:-1], axis=1)
        score, values, middle, middles, weights, lost = parts
        score = score + middle + self.intercept
        if not k:
            return score
        shape = len(sums), c, k
        # The values about the midpoints: those of the missing ones are taken back.
        about = values[:, None] - self.at_middle + middles.reshape(shape)
        factors = solve_packed(self.information - lost, about)
        score += np.einsum("ick,ick->ic", weights.reshape(shape), factors)
        return score


@dataclass(frozen=True, eq=False)
class WithoutOffsets:
    """The last step of scores, and of what features add to the offsets of samples.

    Parameters
    ----------
    finish : callable
        The last step of the scores.
    total : ndarray of shape (n_offsets,)
        Offsets of samples without missing values.
    """

    finish: Callable[[FloatArray], FloatArray]
    total: FloatArray

    def __call__(self, sums: FloatArray) -> FloatArray:
        """Scores, and the offsets less those of the features that are missing."""
        of_rule, lost = np.split(sums, [sums.shape[1] - len(self.total)], axis=1)
        return np.hstack([self.finish(of_rule), self.total - lost])


@dataclass(frozen=True, eq=False)
class OffsetGaps:
    """A rule for missing values that also adds up offsets over the others.

    Parameters
    ----------
    rule : GapScores
        For the scores.
    offsets : ndarray of shape (n_offsets, n_features)
        What each feature adds, where its value is there.
    """

    rule: GapScores
    offsets: FloatArray

    @property
    def values(self) -> FloatArray:
        """What the values that are there are multiplied with."""
        return self.rule.values

    @cached_property
    def gaps(self) -> FloatArray:
        """What is added up over the features that are missing."""
        return np.vstack([self.rule.gaps, self.offsets])

    @property
    def finish(self) -> WithoutOffsets:
        """From these sums to scores and offsets."""
        return WithoutOffsets(self.rule.finish, self.offsets.sum(axis=1))


@dataclass(frozen=True, eq=False)
class GapScores:
    """Scores of a linear rule for samples with missing values.

    They are made of sums over the features, so that X can be cut into blocks anyhow:
    what has one row per contrast or factor is multiplied with the values that are
    there, or added up over the features that are missing.

    Parameters
    ----------
    coef : ndarray of shape (n_contrasts, n_features)
        Coefficients.
    intercept : ndarray of shape (n_contrasts,)
        Intercepts.
    middle : ndarray of shape (n_contrasts, n_features)
        Midpoint of each contrast: a missing value is expected there without factors.
    scale : ndarray of shape (n_features,)
        Standard deviations within the classes.
    correction : ndarray of shape (n_contrasts, n_features), optional
        What each feature has added to the intercept for itself.
    expectation : Expectation, optional
        Common factors.

    Examples
    --------
    >>> coef, middle = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    >>> rule = GapScores(coef, np.array([-13.0]), middle, np.ones(2))
    >>> from ebda.kernels.scores import gap_sums
    >>> rule.finish(gap_sums(np.array([[4.0, np.nan]]), rule.values, rule.gaps))
    array([[1.]])
    """

    coef: FloatArray
    intercept: FloatArray
    middle: FloatArray
    scale: FloatArray
    correction: FloatArray | None = None
    expectation: Expectation | None = None

    @cached_property
    def _known(self) -> Expectation:
        """The factors, or none."""
        p = len(self.scale)
        return self.expectation or Expectation(np.zeros((p, 0)), np.ones(p))

    @cached_property
    def _for_values(self) -> FloatArray:
        rows: FloatArray = (self._known.for_values / self.scale[:, None]).T
        return rows

    @cached_property
    def values(self) -> FloatArray:
        """What the values that are there are multiplied with."""
        return np.vstack([self.coef, self._for_values])

    @cached_property
    def gaps(self) -> FloatArray:
        """What is added up over the features that are missing."""
        at_middle = self.coef * self.middle
        if self.correction is not None:
            at_middle -= self.correction
        p = len(self.scale)
        middles = self.middle[:, None] * self._for_values
        loadings = self._known.loadings.T * self.scale
        weights = self.coef[:, None] * loadings
        return np.vstack(
            [
                at_middle,
                middles.reshape(-1, p),
                weights.reshape(-1, p),
                self._known.information.T,
            ]
        )

    @property
    def finish(self) -> Finish:
        """The last step, which needs nothing of the size of the features."""
        information = self._known.information.sum(axis=0)
        return Finish(self.intercept, self.middle @ self._for_values.T, information)


register(
    Schema(
        Expectation,
        {"loadings": Array(("p", "f")), "specific": Array(("p",), POSITIVE)},
    )
)
