"""Fits that know groups and covariates, and predictions that take covariates.

A sample x with the covariates c has the score of ``x - (c - mean) B``, which is that of
x less ``(c - mean) B coef'``: one number for each contrast, and x is used as it is.
Without covariates the mean is taken for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ebda.covariance import Summary
from ebda.data import Samples
from ebda.estimators.annotated import resolved
from ebda.estimators.arrangement import (
    adjust,
    correlation_in,
    design_for,
    grouping,
    weigh,
)
from ebda.estimators.covariates import Covariates, Variables
from ebda.estimators.linear_classifier import of_scores
from ebda.estimators.moment_classifier import MomentClassifier
from ebda.estimators.training import Training, check_enough
from ebda.estimators.validation import check_finite_scores, naming
from ebda.moments import ClassMoments
from ebda.moments.groups import Grouping
from ebda.rule.expected import OffsetGaps
from ebda.rule.linear_rule import LinearRule, slope_covariance
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Covaried:
    """Samples with their covariates."""

    X: Any
    covariates: Any


class AdjustingClassifier(MomentClassifier):
    """A classifier whose fits know groups, and whose predictions take covariates."""

    covariates_: Covariates | None = None
    groups_: Grouping | None = None

    def partial_fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        groups: None = None,
        covariates: None = None,
    ) -> Self:
        """Add a batch of samples; any stream of batches gives the model of one fit.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A batch may lack classes.
        classes : array-like of shape (n_classes,), optional
            All labels that will ever occur; needed in the first call.
        groups, covariates : None
            Not possible in batches: what a sample counts depends on all of its group,
            and what it is adjusted by on all samples.
        """
        for name, value in (("groups", groups), ("covariates", covariates)):
            if value is not None:
                raise ValueError(
                    f"partial_fit takes no {name}, which need all samples at once; "
                    "give these to fit, which reads data on disk or on a cluster in "
                    "blocks"
                )
        if self.covariates_ is not None:
            raise ValueError(
                "partial_fit cannot go on after a fit with covariates; give all "
                "samples to fit"
            )
        return super().partial_fit(X, y, classes, sample_weight)

    def _arranged(
        self, given: Training
    ) -> tuple[Training, ClassMoments, Samples | None]:
        """Moments of adjusted data, in which samples count as far as groups let them.

        Also the training data that they are of.
        """
        n_classes = len(given.classes)
        counts = np.bincount(given.codes, given.weight, n_classes).astype(np.float64)
        check_enough(given.classes, counts, self.variance)
        self.groups_, icc = None, 0.0
        training, self.covariates_ = adjust(given, self._names())
        if given.groups is None:
            moments, samples = self._summarise(training)
        else:
            moments, samples = self._summarise(training, keep=True)
            moments = replace(moments, design=design_for(training, 0.0))
            contrasts = self._contrasts(training, moments)
            data = Summary(moments, contrasts, samples, covariates=training.covariates)
            icc = correlation_in(data, given.groups)
            self.groups_ = grouping(given, icc)
            given = replace(given, counts=counts)
            training, self.covariates_ = adjust(weigh(given, icc), self._names())
            moments, samples = self._summarise(training)
        as_given = replace(training, weight=given.weight)
        return (
            training,
            replace(moments, design=design_for(as_given, icc)),
            samples,
        )

    def _keep_rule(self, rule: LinearRule) -> None:
        super()._keep_rule(rule)
        design, found = self.moments_.design, self.covariates_
        if found is None or design is None or rule.divergence is None:
            return
        between = slope_covariance(self.contrasts_, design)
        if between is not None:
            self.covariates_ = found.with_bias(between, rule.divergence)

    def _leave_out(self, gone: IntArray, factor: float) -> None:
        super()._leave_out(gone, factor)
        found = self.covariates_
        if found is not None and found.divergence is not None:
            rest = factor * found.divergence
            rest[:, gone] = 0.0
            self.covariates_ = replace(found, divergence=rest)

    def _like(self, X: Any, result: Any) -> Any:
        return super()._like(X.X if isinstance(X, Covaried) else X, result)

    def _scores(self, X: Any) -> Any:
        if not isinstance(X, Covaried):
            return super()._scores(X)
        check_is_fitted(self)
        found = self.covariates_
        if found is None:
            raise ValueError(
                "the model was fitted without covariates that vary; predict without "
                "covariates, or fit(X, y, covariates=...)"
            )
        data = self._as_data(X.X)
        columns = found.columns_of(Variables.of(X.covariates, data.shape[0]))
        offsets = found.offsets(self.coef_)
        rule = self._gap_rule()
        if rule is not None and self.expectation_ is not None:
            # What is missing is expected from values that are adjusted.
            data = data.adjusted(columns, found.slopes)
            offsets = found.offsets(np.zeros_like(self.coef_))
        c, q, p = offsets.shape
        rows = offsets.reshape(-1, p)
        # After the scores come the offsets, which missing values have no part in.
        coef = np.vstack([self.coef_, np.zeros((c * q, p))])
        intercept = np.append(self.intercept_, rows.sum(axis=1))
        of_gaps = None if rule is None else OffsetGaps(rule, rows)
        with naming(self._names()):
            wide = data.scores(coef, intercept, of_gaps)
        if isinstance(wide, np.ndarray):
            check_finite_scores(wide, data, self._names(), self._allow_missing)
            return _less_offsets(np.hstack([wide, columns]), c, q)
        from ebda.data.dask.arrays import with_rows

        less = partial(_less_offsets, n_contrasts=c, n_columns=q)
        return of_scores(less, with_rows(wide, columns), c, np.float64)

    def decision_function(self, X: Any, covariates: Any = None) -> FloatArray:
        """Scores: one per sample for two classes, else one per class and sample.

        They are linear in X. The most probable class is that of `predict_proba`; it
        has the largest score, except where the held-out samples have shown that a
        small difference of scores means less than the class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        covariates : array-like or data frame of shape (n_samples, n_covariates), \
optional
            As in `fit`; without them their mean is used.
        """
        return super().decision_function(_with(X, covariates))

    def transform(self, X: Any, covariates: Any = None) -> FloatArray:
        """The same scores as columns, to use the rule as a projection.

        Parameters
        ----------
        X, covariates
            As in `decision_function`.
        """
        return super().transform(_with(X, covariates))

    def predict(self, X: Any, covariates: Any = None) -> npt.NDArray[Any]:
        """Most probable class of each sample.

        Parameters
        ----------
        X, covariates
            As in `decision_function`.
        """
        return super().predict(_with(X, covariates))

    def predict_log_proba(self, X: Any, covariates: Any = None) -> FloatArray:
        """Log probability of each class; finite however far a sample lies.

        Parameters
        ----------
        X, covariates
            As in `decision_function`.
        """
        return super().predict_log_proba(_with(X, covariates))

    def predict_proba(self, X: Any, covariates: Any = None) -> FloatArray:
        """Probability of each class, as the model has it.

        Parameters
        ----------
        X, covariates
            As in `decision_function`.
        """
        return super().predict_proba(_with(X, covariates))

    def score(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        covariates: Any = None,
    ) -> float:
        """Share of samples that are classified correctly.

        Parameters
        ----------
        X, covariates
            As in `decision_function`.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.
        """
        y, _, covariates = resolved(X, y, covariates=covariates)
        return super().score(_with(X, covariates), y, sample_weight)


def _less_offsets(wide: FloatArray, n_contrasts: int, n_columns: int) -> FloatArray:
    """Scores less offsets, from scores, offsets for each unit, and covariates."""
    c, q = n_contrasts, n_columns
    score, each, columns = np.split(wide, [c, c + c * q], axis=1)
    offset = np.einsum("icq,iq->ic", each.reshape(-1, c, q), columns)
    less: FloatArray = score - offset
    return less


def _with(X: Any, covariates: Any) -> Any:
    if covariates is None:
        return X
    return Covaried(X, resolved(X, None, covariates=covariates)[2])
