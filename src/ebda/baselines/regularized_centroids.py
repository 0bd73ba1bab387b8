"""Shrunken centroids with a regularised covariance (Guo, Hastie and Tibshirani 2007).

In units of the root of the target T, with the covariance ``C = (1 - g) R + g I`` and
the class means m_k less the overall mean, the weights of class k are

    w_k = soft(C^-1 m_k, threshold)
    score_k(x) = x' w_k - w_k' C w_k / 2 + log prior_k

(R's package rda has this, where T is the identity in the units of X).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.baselines.regularized_covariance import CentredSamples, Spectrum, spectrum
from ebda.rule.linear_rule import LinearRule
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Centroids:
    """Class means about the overall mean, and the pooled covariance.

    Parameters
    ----------
    means : ndarray of shape (n_classes, n_features)
        Class means less the overall mean.
    centre : ndarray of shape (n_features,)
        The overall mean.
    spectrum : Spectrum
        Of the pooled covariance.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities.
    """

    means: FloatArray
    centre: FloatArray
    spectrum: Spectrum
    class_prior: FloatArray

    @classmethod
    def of(
        cls, X: FloatArray, codes: IntArray, class_prior: FloatArray, diagonal: bool
    ) -> Centroids:
        """From training samples, whose features vary within the classes."""
        samples = CentredSamples.of(X, codes, len(class_prior), X.shape[1])
        pooled = spectrum(samples, 0, 1.0, diagonal)
        if pooled is None:
            raise ValueError("the features do not vary within the classes")
        centre = X.mean(axis=0)
        return cls(samples.means - centre, centre, pooled, class_prior)

    def weights(self, shrinkage: float) -> FloatArray:
        """Weights without threshold, in units of the root of the target."""
        weights: FloatArray = self.spectrum.solve(self.means, shrinkage)
        return weights * self.spectrum.root

    def largest(self, shrinkages: FloatArray) -> FloatArray:
        """The largest weight for each amount; 0 where the covariance is singular."""
        regular = self.spectrum.is_regular
        return np.array(
            [np.abs(self.weights(g)).max() if regular(g) else 0.0 for g in shrinkages]
        )

    def rule(self, shrinkage: float, threshold: float) -> LinearRule:
        """The linear rule; with two classes the difference of their scores."""
        weights = soft_threshold(self.weights(shrinkage), threshold)
        coef, constant = self._scores_of(weights, shrinkage)
        constant = constant - coef @ self.centre
        if len(coef) == 2:
            coef, constant = np.diff(coef, axis=0), np.diff(constant)
        return LinearRule(coef, constant)

    def errors(
        self,
        points: FloatArray,
        codes: IntArray,
        shrinkages: FloatArray,
        thresholds: FloatArray,
    ) -> FloatArray:
        """Errors among held-out samples, infinite where the covariance is singular.

        Parameters
        ----------
        points, codes : ndarray
            Held-out samples and their classes.
        shrinkages : ndarray of shape (n_shrinkages,)
            Amounts.
        thresholds : ndarray of shape (n_shrinkages, n_thresholds)
            Thresholds to try with each.
        """
        errors = np.full(thresholds.shape, np.inf)
        centred = points - self.centre
        for row, g in enumerate(shrinkages):
            if not self.spectrum.is_regular(g):
                continue
            weights = self.weights(g)
            for column, threshold in enumerate(thresholds[row]):
                shrunken = soft_threshold(weights, threshold)
                coef, constant = self._scores_of(shrunken, g)
                winner = (centred @ coef.T + constant).argmax(axis=1)
                errors[row, column] = (winner != codes).sum()
        return errors

    def _scores_of(
        self, weights: FloatArray, shrinkage: float
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients and constants of the scores of centred samples."""
        along = (weights @ self.spectrum.axes.T) ** 2 @ self.spectrum.eigenvalues
        squares = np.einsum("kj,kj->k", weights, weights)
        variance = (1 - shrinkage) * along + shrinkage * squares
        return weights / self.spectrum.root, np.log(self.class_prior) - variance / 2


def soft_threshold(values: FloatArray, threshold: float) -> FloatArray:
    """Values moved towards zero by the threshold.

    >>> soft_threshold(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    moved: FloatArray = values - np.clip(values, -threshold, threshold)
    return moved
