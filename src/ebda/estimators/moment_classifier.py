"""Classifiers whose rule is a function of the class moments.

Some also look again at samples that were kept. Nothing else is asked of the data, so
that they can be fitted to data that is not in memory, and to a stream of batches.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ebda.covariance import Diagonal
from ebda.data import Labels, Samples
from ebda.data.distortion import LogarithmWarning, log_hint
from ebda.estimators import validation
from ebda.estimators.class_weight import class_weights, reweighted
from ebda.estimators.linear_classifier import (
    CLASS_PRIOR,
    SELECTED,
    LinearClassifier,
    linear_schema,
)
from ebda.estimators.progress import progress, step_is_over
from ebda.estimators.training import TooFewSamplesError, Training, check_enough
from ebda.kernels.rows import any_nonzero
from ebda.kernels.threads import allow_threads
from ebda.moments import VARIANCES, ClassMoments, Contrasts, class_contrasts
from ebda.rule.expected import Expectation, GapScores
from ebda.rule.linear_rule import LinearRule, linear_rule, log_odds
from ebda.storage.fields import COUNT, SQUEEZED, Array, Kind
from ebda.storage.objects import Nested, Schema
from ebda.typing import FloatArray, IntArray


class MomentClassifier(LinearClassifier):
    """A rule that is a function of the class moments.

    A subclass stores the parameters `variance` and `priors`, and says how eta is
    estimated in `_estimate`; or it makes the rule itself in `_fit_moments`, from the
    samples too where `_needs_samples` says so.
    """

    variance: str
    priors: Any
    class_weight: Any = None
    samples_: Samples | None
    n_seen_: int
    midpoint_correction_: FloatArray | None
    # Fitted attributes that may be None.
    _optional_results: tuple[str, ...] = ("midpoint_correction_",)
    # What a missing value is expected to be besides the midpoint, where it is known.
    expectation_: Expectation | None = None

    def _estimate(self, contrasts: Contrasts) -> FloatArray:
        """The estimate of eta for each contrast and feature."""
        raise NotImplementedError

    def _fit_moments(
        self, training: Training, moments: ClassMoments, samples: Samples | None
    ) -> None:
        """From moments to the rule."""
        contrasts = self._contrasts(training, moments)
        eta = self._estimate(contrasts)
        self._keep_rule(
            linear_rule(moments, contrasts, eta, Diagonal(), self.class_prior_)
        )

    def _needs_samples(self) -> bool:
        return False

    def _check_parameters(self) -> None:
        VARIANCES.find(self.variance)

    def fit(
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the rule.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data; float32, integers, CSR and CSC are used as they are. NaN is a missing
            value, for the classifiers that allow it. Data that does not fit in memory
            is read in blocks: ``numpy.memmap``, Zarr, HDF5, AnnData in backed mode,
            Parquet (:mod:`ebda.data.disk`); or summed where it is: Dask
            (:mod:`ebda.data.dask`).
        y : array-like of shape (n_samples,) or str
            Labels of any type; of AnnData also the name of a column of its ``obs``.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights: 2 counts as two equal samples.
        """
        with self._fitting():
            training = self._check_training(X, y, sample_weight)
            moments, samples = self._summarise(training)
            with training.data.job_context():
                self._fit_moments(training, moments, samples)
            self._forget_samples(training)
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
            All labels that will ever occur; needed in the first call.
        """
        with self._fitting():
            first = not hasattr(self, "moments_")
            seen = 0 if first else self.n_seen_
            training = self._check_training(X, y, sample_weight, classes, first)
            moments, batch = self._summarise(training, seen)
            samples = None if batch is None else self._add_samples(batch, first)
            if not first:
                moments = self.moments_.merge(moments)
            try:
                with training.data.job_context():
                    self._fit_moments(training, moments, samples)
            except TooFewSamplesError as error:  # there may be more to come
                self._unfitted_reason = error.reason
            self.samples_, self.n_seen_ = samples, seen + len(training.codes)
        return self

    def without(self, absent: npt.ArrayLike) -> Self:
        """A copy of the fitted classifier that does without some of the features.

        These features have no weight in it, and what they added to the intercept is
        removed: their part of the midpoint, and of the correction of its bias. So is
        their part of what covariates add to the scores, and of its bias. The
        scores keep their standard deviation, as far as features are independent, so
        that log-odds shrink as the separation of the classes does, and probabilities
        come closer to those of the classes. (Of ten real sets without 50, 80 and 95 %
        of their features the mean log-loss rises from 0.27 to 0.29, 0.35 and 0.48;
        with scores as they are left it is 0.32, 0.48 and 0.75.)

        Parameters
        ----------
        absent : array-like of bool of shape (n_features,)
            Features to do without; their values in X do not matter, but must not be
            infinite, nor NaN where missing values are refused.

        Examples
        --------
        >>> import numpy as np
        >>> from ebda import EBClassifier
        >>> X = np.array([[0.0, 1.0], [0.2, 3.0], [1.0, 2.0], [1.3, 4.0]])
        >>> model = EBClassifier().fit(X, ["a", "a", "b", "b"])
        >>> model.without([False, True]).predict([[0.1, 1e6]]).tolist()
        ['a']
        """
        check_is_fitted(self)
        gone = np.flatnonzero(np.asarray(absent, dtype=bool))
        middle = (self.contrasts_.positive + self.contrasts_.negative) / 2
        at_middle = middle @ self._rule_moments().means[:, gone]
        odds = log_odds(self.class_prior_)
        shift = self.intercept_ - odds
        shift += np.einsum("cj,cj->c", self.coef_[:, gone], at_middle)
        if self.midpoint_correction_ is not None:
            shift -= self.midpoint_correction_[:, gone].sum(axis=1)
        model = copy(self)
        model.coef_ = self.coef_.copy()
        model.coef_[:, gone] = 0.0
        before, after = (
            np.einsum("cj,cj,j->", w, w, self.contrasts_.variance)
            for w in (self.coef_, model.coef_)
        )
        scale = float(np.sqrt(before / after)) if after > 0 else 1.0
        model.coef_ *= scale
        model.intercept_ = scale * shift + odds
        model.selected_ = any_nonzero(model.coef_)
        model._leave_out(gone, scale)
        return model

    def _leave_out(self, gone: IntArray, factor: float) -> None:
        """Take away what features add to the scores besides their coefficients.

        Parameters
        ----------
        gone : ndarray of int
            The features.
        factor : float
            What the coefficients of the others were multiplied by.
        """
        if self.midpoint_correction_ is not None:
            self.midpoint_correction_ = factor * self.midpoint_correction_
            self.midpoint_correction_[:, gone] = 0.0
        if self.expectation_ is not None:
            self.expectation_ = self.expectation_.without(gone)

    def _rule_moments(self) -> ClassMoments:
        """The moments that the rule was made from."""
        return self.moments_

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Use threads and show progress; a fit that fails changes nothing."""
        name, verbose = type(self).__name__, getattr(self, "verbose", 0)
        with (
            self._unchanged_on_error(),
            allow_threads(getattr(self, "n_jobs", None)),
            progress(name, shown=verbose == 1),
        ):
            yield

    def _forget_samples(self, training: Training) -> None:
        """After `fit`: it keeps none of the data."""
        self.samples_, self.n_seen_ = None, len(training.codes)

    def _check_training(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        classes: npt.ArrayLike | None = None,
        first: bool | None = None,
    ) -> Training:
        """Check what was given; `first` is None unless it is a batch of a stream."""
        self._check_parameters()
        stream = first is not None
        data, y = self._open(X, y, reset=first is not False)
        known = self._known_classes(classes, bool(first)) if stream else None
        known, codes = validation.encode_labels(y, known)
        if not stream:
            validation.several_classes(known)
        weight = validation.check_sample_weight(sample_weight, data.shape[0])
        has_values = not stream and data.values is not None
        if has_values and (hint := log_hint(data.values)):
            warnings.warn(hint, LogarithmWarning, stacklevel=3)
        return Training(data, known, codes, weight)

    def _add_samples(self, batch: Samples, first: bool) -> Samples:
        """The samples kept so far and those of a batch.

        `fit` keeps none: after it, factors and folds are those of the batches since.
        """
        kept = None if first else self.samples_
        if kept is None and not first:
            warnings.warn(
                "fit keeps no samples: factors and the comparison of rules rest on the "
                "batches since. Start with partial_fit to have all of them",
                UserWarning,
                stacklevel=3,
            )
        if kept is None:
            return batch.copy()
        validation.check_places(batch.place, kept.place)
        return kept.append(batch)

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

    def _summarise(
        self, training: Training, seen: int = 0, keep: bool | None = None
    ) -> tuple[ClassMoments, Samples | None]:
        """The one pass over the data: moments, and samples where they are needed."""
        finished, data = self._timer(), training.data
        keep = self._needs_samples() if keep is None else keep
        n_classes, weight = len(training.classes), training.weight
        labels = Labels(training.codes, n_classes, weight, seen, self._allow_missing)
        with validation.naming(self._names()):
            found = data.summarise(labels, keep)
            validation.check_finite_moments(
                found[0], data.values, self._names(), self._allow_missing
            )
        finished(f"moments of {data.shape[0]} x {data.shape[1]}")
        return found

    def _contrasts(self, training: Training, moments: ClassMoments) -> Contrasts:
        """Normalised contrasts; an error where the samples are too few for any."""
        classes = training.classes
        self.classes_, self.moments_ = classes, moments
        counts = moments.counts if training.counts is None else training.counts
        weights = class_weights(self.class_weight, classes, counts)
        self.class_prior_ = reweighted(
            validation.class_prior(self.priors, counts), weights
        )
        check_enough(classes, moments.counts, self.variance)
        estimate = VARIANCES[self.variance].estimate
        contrasts = class_contrasts(moments, estimate(moments))
        if contrasts.any_constant and contrasts.constant.all():
            p = len(contrasts.constant)
            which = "the only feature is" if p == 1 else f"all {p} features are"
            few = "" if moments.observed is None else " or have too few values"
            raise TooFewSamplesError(f"{which} constant{few}, nothing to classify by")
        self.contrasts_, self.z_ = contrasts, squeeze(contrasts.z)
        return contrasts

    def _keep_rule(self, rule: LinearRule) -> None:
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        self.midpoint_correction_ = rule.correction
        self.selected_ = any_nonzero(rule.coef)

    def _timer(self) -> Callable[[str], None]:
        """A function that prints a step and its time, if `verbose` asks for it."""
        start = time.perf_counter()

        def finished(step: str) -> None:
            nonlocal start
            now = time.perf_counter()
            step_is_over()
            if getattr(self, "verbose", 0) > 1:
                print(f"[{type(self).__name__}] {step}: {now - start:.3f} s")
            start = now

        return finished

    def _gap_rule(self) -> GapScores | None:
        if not self._allow_missing:
            return None
        sides = (self.contrasts_.positive + self.contrasts_.negative) / 2
        return GapScores(
            self.coef_,
            self.intercept_,
            sides @ self._rule_moments().means,
            np.sqrt(self.contrasts_.variance),
            self.midpoint_correction_,
            self.expectation_,
        )

    def _scores(self, X: Any) -> Any:
        if not hasattr(self, "coef_") and hasattr(self, "moments_"):
            raise NotFittedError(f"cannot predict yet: {self._unfitted_reason}")
        return super()._scores(X)


def squeeze(rows: FloatArray) -> FloatArray:
    """A vector for the one contrast of two classes."""
    return rows[0] if len(rows) == 1 else rows


def moment_schema(model: type[MomentClassifier], **fields: Kind) -> Schema:
    """What a model file holds of a classifier that is fitted to moments."""
    return linear_schema(
        model,
        _finish,
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        n_seen_=COUNT,
        z_=Array(SQUEEZED),
        moments_=Nested(("ClassMoments",)),
        contrasts_=Nested(("Contrasts",)),
        midpoint_correction_=Array(("c", "p")),
        optional=model._optional_results,
        **fields,
    )


def _finish(model: MomentClassifier) -> None:
    """As after `fit`: `partial_fit` goes on from the moments, without samples."""
    model._check_parameters()
    model.samples_ = None
    for name in model._optional_results:
        if name not in vars(model):
            setattr(model, name, None)
