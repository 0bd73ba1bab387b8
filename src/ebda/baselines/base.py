"""What the baselines share that are fitted to the samples, not to their moments."""

from __future__ import annotations

from typing import Any, Self

import numpy.typing as npt

from ebda.estimators.linear_classifier import LinearClassifier
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.typing import IntArray


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
