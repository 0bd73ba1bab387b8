"""What all linear classifiers of the package share: input, scores, probabilities.

:class:`LinearClassifier` predicts from ``coef_`` and ``intercept_``, however they were
found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ebda.data import Data, GapRule, InMemory, as_data, like
from ebda.data.structure import check_structure
from ebda.estimators import validation
from ebda.estimators.annotated import aligned, is_annotated, resolved
from ebda.moments import ClassMoments, class_moments
from ebda.selection.calibration import Calibration, ScaledCalibration
from ebda.storage.fields import Array, Kind, Labels, Scalar
from ebda.storage.objects import Schema
from ebda.typing import FloatArray

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
    _allow_missing = False

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        validation.check_in_memory(X, type(self).__name__)
        validation.check_feature_names(X)
        check_structure(X)
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

    def _read(
        self, X: Any, y: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.intp], ClassMoments]:
        """Checked data, classes, codes and moments, for rules that need X itself."""
        if is_annotated(X):
            y, X = resolved(X, y)[0], X.to_df()
        X, y = self._validate(X, y, reset=True)
        classes, codes = validation.encode_labels(y)
        validation.several_classes(classes)
        if not self._many_classes:
            validation.two_classes(classes)
        moments = class_moments(X, codes, len(classes))
        validation.check_finite_moments(moments, X, self._names())
        if len(codes) <= len(classes):
            raise ValueError(validation.too_few_samples(len(codes), len(classes)))
        if not moments.centred_squares.any():
            raise ValueError("the features do not vary within the classes")
        return X, classes, codes, moments

    def _open(self, X: Any, y: Any, reset: bool) -> tuple[Data, npt.NDArray[Any]]:
        """X, in memory or not, and the labels, checked."""
        validation.check_dispatch(X)
        y, data = resolved(X, y)[0], as_data(X)
        if data is None:
            X, y = self._validate(X, y, reset)
            return InMemory(X), y
        validation.check_header(self, data, reset)
        return data, validation.check_labels_of(y, data.shape[0])

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Leave the estimator as it was if the block fails.

        Fitted attributes are replaced, and never changed in place.
        """
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _names(self) -> npt.NDArray[Any] | None:
        return getattr(self, "feature_names_in_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    @property
    def _n_features_out(self) -> int:
        return len(self.coef_)

    def _scores(self, X: Any) -> Any:
        """Scores; a lazy array for a Dask array, else an ndarray."""
        check_is_fitted(self)
        data = self._as_data(X)
        with validation.naming(self._names()):
            score = data.scores(self.coef_, self.intercept_, self._gap_rule())
        if isinstance(score, np.ndarray):
            names, allow_missing = self._names(), self._allow_missing
            validation.check_finite_scores(score, data, names, allow_missing)
        return score

    def _gap_rule(self) -> GapRule | None:
        """How samples with missing values are scored; None where they are refused."""
        return None

    def _judged(self, X: Any) -> Any:
        """What labels and probabilities are made of, by `_calibration`."""
        return self._scores(X)

    def _as_data(self, X: Any) -> Data:
        """New samples, in memory or not, checked; AnnData with the genes of the fit."""
        validation.check_dispatch(X)
        data = as_data(aligned(X, self._names()))
        if data is None:
            return InMemory(self._validate_samples(X))
        validation.check_header(self, data, reset=False)
        return data

    def _validate_samples(self, X: Any) -> Any:
        validation.check_in_memory(X, type(self).__name__)
        validation.check_feature_names(X)
        check_structure(X)
        return validate_data(
            self,
            X,
            reset=False,
            accept_sparse=_SPARSE if self._accepts_sparse else False,
            dtype="numeric",
            ensure_all_finite=False,
        )

    def decision_function(self, X: Any) -> FloatArray:
        """Scores: one per sample for two classes, else one per class and sample.

        They are linear in X. The most probable class is that of `predict_proba`; it
        has the largest score, except where the held-out samples have shown that a
        small difference of scores means less than the class probabilities, or where the
        sample is noisier than others and the scores say less.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        score: FloatArray = self._scores(X)
        flat = score[:, 0] if score.shape[1] == 1 else score
        result: FloatArray = self._like(X, flat)
        return result

    def transform(self, X: Any) -> FloatArray:
        """The same scores as columns, to use the rule as a projection.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        score: FloatArray = self._like(X, self._scores(X))
        return score

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        score = self._judged(X)
        function = partial(
            label_of, classes=self.classes_, calibration=self._calibration()
        )
        labels = of_scores(function, score, None, self.classes_.dtype)
        result: npt.NDArray[Any] = self._like(X, labels)
        return result

    def _calibration(self) -> Calibration | ScaledCalibration:
        """From scores to probabilities; without a calibration, scores are log-odds."""
        return getattr(self, "calibration_", None) or Calibration.none()

    def _like(self, X: Any, result: Any) -> Any:
        """Results for X in its library and on its device."""
        return like(X, result)

    def _log_probabilities(self, X: Any) -> FloatArray:
        score = self._judged(X)
        function, width = self._calibration().log_probabilities, len(self.classes_)
        logarithms: FloatArray = of_scores(function, score, width, np.float64)
        return logarithms

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log probability of each class; finite however far a sample lies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        logarithms: FloatArray = self._like(X, self._log_probabilities(X))
        return logarithms

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, as the model has it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        p: FloatArray = self._like(X, np.exp(self._log_probabilities(X)))
        return p

    def score(
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Share of samples that are classified correctly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or str
            True labels; of AnnData also the name of a column of its ``obs``.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.
        """
        return float(super().score(X, resolved(X, y)[0], sample_weight))

    def to_onnx(self, dtype: npt.DTypeLike = np.float32) -> Any:
        """The fitted rule as an ONNX model (:func:`ebda.to_onnx`).

        Parameters
        ----------
        dtype : {float32, float64}
            Type of the input and of the probabilities.
        """
        from ebda.estimators.onnx import to_onnx

        return to_onnx(self, dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.allow_nan = self._allow_missing
        tags.classifier_tags.multi_class = self._many_classes
        return tags


def with_column(score: Any, last: Any) -> Any:
    """Scores and one more column; a lazy array of lazy arrays."""
    if isinstance(score, np.ndarray):
        return np.column_stack([score, last])
    from ebda.data.dask.arrays import join_columns

    return join_columns(score, last)


def label_of(
    score: FloatArray,
    classes: npt.NDArray[Any],
    calibration: Calibration | ScaledCalibration,
) -> npt.NDArray[Any]:
    """The class with the largest probability; the first of those that tie.

    >>> score = np.array([[-1.0], [2.0]])
    >>> label_of(score, np.array(["a", "b"]), Calibration.none()).tolist()
    ['a', 'b']
    """
    # Of what predict_proba returns, to the bit.
    p = np.exp(calibration.log_probabilities(score))
    labels: npt.NDArray[Any] = classes[p.argmax(axis=1)]
    return labels


def of_scores(
    function: Callable[[FloatArray], npt.NDArray[Any]],
    score: Any,
    width: int | None,
    dtype: Any,
) -> Any:
    """A function of the scores, now or when a lazy array of them is computed.

    Parameters
    ----------
    function : callable
        From the scores of some samples to a row or a value for each.
    score : ndarray or dask.array.Array
        Scores.
    width : int or None
        Columns of the result; None for a vector.
    dtype : dtype
        Type of the result.
    """
    if isinstance(score, np.ndarray):
        return function(score)
    from ebda.data.dask.arrays import map_rows

    return map_rows(function, score, width, dtype)


# What a model file holds of most classifiers.
CLASS_PRIOR = Array(("k",), ("positive", "a distribution"))
SELECTED = Array(("p",), (), np.bool_)


def linear_schema(
    model: type[LinearClassifier],
    finish: Callable[[Any], None] | None = None,
    optional: tuple[str, ...] = (),
    **fields: Kind,
) -> Schema:
    """What a model file holds of a linear classifier.

    Parameters
    ----------
    model : type
        The class.
    finish : callable, optional
        Completes a model that was read.
    optional : tuple of str
        Names of those that may be None.
    **fields
        Fitted attributes besides those that all of them have.
    """
    common: dict[str, Kind] = {
        "classes_": Labels(),
        "n_features_in_": Scalar((int,), least=1, dimension="p"),
        "feature_names_in_": Array(("p",), ("free of duplicates",), object),
        "coef_": Array(("c", "p")),
        "intercept_": Array(("c",)),
    }
    may_lack = frozenset({"feature_names_in_", *optional})
    return Schema(model, common | fields, may_lack, finish=finish, role="model")
