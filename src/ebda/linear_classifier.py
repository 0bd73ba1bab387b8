"""What all linear classifiers of the package share: input, scores, probabilities.

:class:`LinearClassifier` predicts from ``coef_`` and ``intercept_``, however they were
found. :class:`MomentClassifier` is one whose rule is a function of the class moments,
and perhaps of samples that were kept, so that it can be fitted to a stream of batches.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ebda import validation
from ebda.arrays import FloatArray
from ebda.calibration import Calibration
from ebda.contrasts import Contrasts, class_contrasts
from ebda.covariance import Diagonal
from ebda.linear_rule import LinearRule, linear_rule, scores
from ebda.moments import ClassMoments, class_moments
from ebda.samples import Samples
from ebda.threads import allow_threads
from ebda.variance import MIN_SAMPLES, VARIANCES

_SPARSE = ["csr", "csc"]


class LinearClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
    """Predicts from ``classes_``, ``coef_`` and ``intercept_``; `fit` is to add."""

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    _accepts_sparse = True
    _many_classes = True

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        validation.check_feature_names(X)
        if y is not None:
            validation.check_labels_present(y)
        # Finiteness is read off what X is summed to: no pass over X for it alone.
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse=_SPARSE if self._accepts_sparse else False,
            dtype="numeric",
            ensure_all_finite=False,
            y_numeric=False,
        )
        return X, column_or_1d(y, warn=True)

    def _moments(
        self, X: Any, codes: npt.NDArray[np.intp], n_classes: int, weight: Any = None
    ) -> ClassMoments:
        with allow_threads(getattr(self, "n_jobs", None)):
            moments = class_moments(X, codes, n_classes, weight)
            validation.check_finite_moments(moments, X, self._names())
        return moments

    def _read(
        self, X: Any, y: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.intp], ClassMoments]:
        """Checked data, classes, codes and moments, for rules that need X itself."""
        X, y = self._validate(X, y, reset=True)
        classes, codes = validation.encode_labels(y)
        validation.several_classes(classes)
        if not self._many_classes:
            validation.two_classes(classes)
        moments = self._moments(X, codes, len(classes))
        if len(codes) <= len(classes):
            raise ValueError(
                f"{len(codes)} samples of {len(classes)} classes tell no variance; "
                "more samples than classes are needed"
            )
        if not moments.centred_squares.any():
            raise ValueError("the features do not vary within the classes")
        return X, classes, codes, moments

    def _names(self) -> npt.NDArray[Any] | None:
        return getattr(self, "feature_names_in_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    @property
    def _n_features_out(self) -> int:
        return len(self.coef_)

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        validation.check_feature_names(X)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=_SPARSE if self._accepts_sparse else False,
            dtype="numeric",
            ensure_all_finite=False,
        )
        with np.errstate(invalid="ignore", over="ignore"):
            score = scores(X, self.coef_, self.intercept_)
        validation.check_finite_scores(score, X, self._names())
        return score

    def decision_function(self, X: Any) -> FloatArray:
        """Scores: one a sample for two classes, else one a class and sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        score = self._scores(X)
        return score[:, 0] if score.shape[1] == 1 else score

    def transform(self, X: Any) -> FloatArray:
        """The same scores as columns, to use the rule as a projection.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        return self._scores(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        score = self._scores(X)
        if score.shape[1] == 1:
            place = (score[:, 0] > 0).astype(np.intp)
        else:
            place = score.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[place]
        return labels

    def _calibration(self) -> Calibration:
        """From scores to probabilities; scores are log-odds where not said else."""
        return getattr(self, "calibration_", None) or Calibration.none()

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log probability of each class; finite however far a sample lies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        return self._calibration().log_probabilities(self._scores(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, as the model has it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        return np.exp(self.predict_log_proba(X))

    def to_onnx(self, dtype: npt.DTypeLike = np.float32) -> Any:
        """The fitted rule as an ONNX model (:func:`ebda.to_onnx`).

        Parameters
        ----------
        dtype : {float32, float64}
            Type of the input and of the probabilities.
        """
        from ebda.onnx import to_onnx

        return to_onnx(self, dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.classifier_tags.multi_class = self._many_classes
        return tags


class MomentClassifier(LinearClassifier):
    """A rule that is a function of the class moments: ``coef = D^-1 (scale eta)``.

    A subclass stores the parameters `variance` and `priors`, and says how eta is
    estimated in `_estimate`; or makes the rule itself in `_rule`, from the samples too
    where `_needs_samples` says so.
    """

    variance: str
    priors: Any
    samples_: Samples | None

    def _estimate(self, contrasts: Contrasts) -> FloatArray:
        """The estimate of eta for each contrast and feature."""
        raise NotImplementedError

    def _rule(
        self,
        moments: ClassMoments,
        contrasts: Contrasts,
        samples: Samples | None,
        class_prior: FloatArray,
    ) -> LinearRule:
        """The rule, from what was summed up."""
        eta = self._estimate(contrasts)
        covariance = Diagonal(contrasts.variance)
        return linear_rule(moments, contrasts, eta, covariance, class_prior)

    def _needs_samples(self) -> bool:
        return False

    def _check_parameters(self) -> None:
        validation.one_of("variance", self.variance, VARIANCES)

    def fit(
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the rule.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data; float32, integers, CSR and CSC are used as they are.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights: 2 counts as two equal samples.
        """
        self._check_parameters()
        X, y = self._validate(X, y, reset=True)
        classes, codes = validation.encode_labels(y)
        validation.several_classes(classes)
        weight = validation.check_sample_weight(sample_weight, X.shape[0])
        moments = self._timed_moments(X, codes, len(classes), weight)
        samples = Samples.of(X, codes, weight) if self._needs_samples() else None
        self.samples_, self.n_seen_ = None, len(codes)  # fit does not keep the data
        lacking = self._fit_rule(classes, moments, samples)
        if lacking is not None:
            raise ValueError(f"cannot fit: {lacking}")
        return self

    def partial_fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add a batch of samples; any stream of batches gives the model of one fit.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A batch may lack classes.
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come; needed in the first call.
        """
        self._check_parameters()
        first = not hasattr(self, "moments_")
        X, y = self._validate(X, y, reset=first)
        known = self._known_classes(classes, first)
        _, codes = validation.encode_labels(y, known)
        weight = validation.check_sample_weight(sample_weight, X.shape[0])
        moments = self._timed_moments(X, codes, len(known), weight)
        samples = self._more_samples(X, codes, weight, first)
        if not first:
            moments = self.moments_.merge(moments)
        # A batch that fails has changed nothing so far, and can be given again.
        self.samples_ = samples
        self.n_seen_ = len(codes) + (0 if first else self.n_seen_)
        self.lacking_ = self._fit_rule(known, moments, samples)
        return self

    def _more_samples(
        self, X: Any, codes: npt.NDArray[np.intp], weight: Any, first: bool
    ) -> Samples | None:
        """The samples kept so far and those of a batch, where any are needed.

        `fit` keeps none: after it, factors and folds are those of the batches since.
        """
        if not self._needs_samples():
            return None
        kept = None if first else self.samples_
        if kept is None and not first:
            warnings.warn(
                "fit keeps no samples: factors and the comparison of rules rest on the "
                "batches since. Start with partial_fit to have all of them",
                UserWarning,
                stacklevel=3,
            )
        seen = 0 if first else self.n_seen_
        batch = Samples.of(X, codes, weight, seen)
        return batch.copy() if kept is None else kept.append(batch)

    def _known_classes(
        self, classes: npt.ArrayLike | None, first: bool
    ) -> npt.NDArray[Any]:
        if classes is None:
            if first:
                raise ValueError("the first call of partial_fit needs classes")
            return self.classes_
        given, _ = validation.encode_labels(column_or_1d(classes))
        if len(given) < 2:
            raise ValueError("classes must name at least two classes")
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes {given.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}"
            )
        return given

    def _timed_moments(
        self, X: Any, codes: npt.NDArray[np.intp], n_classes: int, weight: Any
    ) -> ClassMoments:
        start = time.perf_counter()
        moments = self._moments(X, codes, n_classes, weight)
        self._say(f"moments of {X.shape[0]} x {X.shape[1]}", start)
        return moments

    def _lacking(self, classes: npt.NDArray[Any], counts: FloatArray) -> str | None:
        """What the samples lack for a rule, if anything."""
        least = MIN_SAMPLES[self.variance]
        few = classes[counts < least] if least > 1 else classes[counts <= 0]
        if few.size:
            names = ", ".join(map(repr, few.tolist()))
            if least == 1:
                return f"no sample of class {names}"
            return (
                f"variance={self.variance!r} needs {least} samples in every class, and "
                f"class {names} has fewer"
            )
        if counts.sum() <= len(counts):
            return (
                f"{counts.sum():g} samples of {len(counts)} classes tell no variance; "
                "more samples than classes are needed (weights are counts)"
            )
        return None

    def _fit_rule(
        self,
        classes: npt.NDArray[Any],
        moments: ClassMoments,
        samples: Samples | None,
    ) -> str | None:
        """Moments to rule: the way of the data. What is lacking, if no rule."""
        prior = validation.class_prior(self.priors, moments.counts)
        lacking = self._lacking(classes, moments.counts)
        if lacking is None:
            with allow_threads(getattr(self, "n_jobs", None)):
                contrasts = class_contrasts(moments, VARIANCES[self.variance](moments))
            if contrasts.constant.all():
                p = len(contrasts.constant)
                lacking = f"all {p} features are constant, nothing to classify by"
        self.classes_, self.moments_ = classes, moments
        if lacking is not None:
            return lacking
        self.class_prior_ = prior
        self.contrasts_ = contrasts
        self.z_ = squeeze(contrasts.z)
        with allow_threads(getattr(self, "n_jobs", None)):
            rule = self._rule(moments, contrasts, samples, prior)
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        self.selected_ = (rule.coef != 0).any(axis=0)
        return None

    def _say(self, what: str, start: float) -> None:
        if getattr(self, "verbose", 0):
            name = type(self).__name__
            print(f"[{name}] {what}: {time.perf_counter() - start:.3f} s")

    def _scores(self, X: Any) -> FloatArray:
        if not hasattr(self, "coef_") and hasattr(self, "moments_"):
            raise NotFittedError(f"cannot predict yet: {self.lacking_}")
        return super()._scores(X)


def squeeze(rows: FloatArray) -> FloatArray:
    """A vector for the one contrast of two classes."""
    return rows[0] if len(rows) == 1 else rows
