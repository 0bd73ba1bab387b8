"""What the baselines share whose scores need not be linear in X."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ebda.baselines.base import SampleClassifier
from ebda.data import InMemory
from ebda.estimators import validation
from ebda.estimators.linear_classifier import (
    CLASS_PRIOR,
    LinearClassifier,
    linear_schema,
)
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.sizes import sizes
from ebda.storage.fields import Kind
from ebda.storage.objects import Schema
from ebda.typing import FloatArray, IntArray


class NonlinearClassifier(SampleClassifier):
    """A rule from a dense array in memory that may be, but need not be, linear.

    A subclass implements `_learn_classes`, which returns a rule where it is linear and
    None elsewhere, and `_log_joint`. Where the rule is linear there are ``coef_`` and
    ``intercept_``, and elsewhere there are not.
    """

    class_prior_: FloatArray

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        with self._unchanged_on_error():
            X, self.classes_, codes, moments = self._read(X, y)
            self.__dict__.pop("coef_", None)
            self.__dict__.pop("intercept_", None)
            rule = self._learn_classes(X.astype(np.float64), codes, moments)
            if rule is not None:
                self.coef_, self.intercept_ = rule.coef, rule.intercept
        return self

    def _learn_classes(
        self, X: FloatArray, codes: IntArray, moments: ClassMoments
    ) -> LinearRule | None:
        """Set the fitted attributes; the rule, if it is linear."""
        raise NotImplementedError

    def _log_joint(self, X: FloatArray) -> FloatArray:
        """Log of class probability times density, one column per class.

        What is common to all classes may be left out.
        """
        raise NotImplementedError

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        if "coef_" in vars(self):
            linear: FloatArray = super()._scores(X)
            return linear
        X = self._validate_samples(X)
        rows = max(1, sizes.score_elements // X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            score = np.concatenate(
                [
                    self._log_joint(X[start : start + rows].astype(np.float64))
                    for start in range(0, len(X), rows)
                ]
            )
            if score.shape[1] == 2:
                score = np.diff(score, axis=1)
        validation.check_finite_scores(score, InMemory(X), self._names())
        return score

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "class_prior_")

    @property
    def _n_features_out(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)


def between_classes(
    weights: FloatArray, means: FloatArray, class_prior: FloatArray
) -> LinearRule:
    """The linear rule of weights that are ``S^-1 (m_k - m)``, m the mean of all.

    The score of class k is ``w_k' (x - (m_k + m) / 2) + log prior_k``; with two classes
    there is the difference of the two.

    Parameters
    ----------
    weights, means : ndarray of shape (n_classes, n_features)
        Weights, and the means that they are made of.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities; m is the mean with these shares.
    """
    middle = (means + class_prior @ means) / 2
    constant = np.log(class_prior) - np.einsum("kj,kj->k", weights, middle)
    if len(class_prior) == 2:
        weights, constant = np.diff(weights, axis=0), np.diff(constant)
    return LinearRule(weights, constant)


def nonlinear_schema(
    model: type[LinearClassifier], optional: tuple[str, ...] = (), **fields: Kind
) -> Schema:
    """What a model file holds of a classifier that need not be linear.

    Parameters
    ----------
    model : type
        The class.
    optional : tuple of str
        Names of those that may be None or absent.
    **fields
        Fitted attributes besides those that all of them have.
    """
    return linear_schema(
        model,
        None,
        ("coef_", "intercept_", *optional),
        class_prior_=CLASS_PRIOR,
        **fields,
    )
