"""What the baselines share that are fitted to the samples, not to their moments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ebda.estimators.linear_classifier import LinearClassifier
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import contrast_weights
from ebda.rule.linear_rule import LinearRule, log_odds
from ebda.typing import FloatArray, IntArray


class SampleClassifier(LinearClassifier):
    """A linear rule learned from a dense array in memory.

    A subclass implements `_learn`, which checks the parameters, sets the fitted
    attributes that are its own and returns the rule.
    """

    _accepts_sparse = False

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Fit the rule.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        with self._unchanged_on_error():
            X, self.classes_, codes, moments = self._read(X, y)
            rule = self._learn(X, codes, moments)
            self.coef_, self.intercept_ = rule.coef, rule.intercept
        return self

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        """The rule, from checked samples, the codes of their classes and moments."""
        raise NotImplementedError


def midpoint_rule(
    coef: FloatArray, moments: ClassMoments, class_prior: FloatArray
) -> LinearRule:
    """The rule with given coefficients that cuts at the midpoint of each contrast.

    Parameters
    ----------
    coef : ndarray of shape (n_contrasts, n_features)
        Coefficients, for the contrasts of :mod:`ebda.moments.contrasts`.
    moments : ClassMoments
        With the class means.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities.
    """
    positive, negative = contrast_weights(moments.counts)
    middle = (positive + negative) / 2
    at_middle = np.einsum("ck,ck->c", coef @ moments.means.T, middle)
    return LinearRule(coef, log_odds(class_prior) - at_middle)
