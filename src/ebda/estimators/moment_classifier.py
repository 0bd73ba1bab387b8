"""Classifiers whose rule is a function of the class moments.

And perhaps of samples that were kept: so they can be fitted to data that is nowhere
together, and to a stream of batches.
"""

from __future__ import annotations

import time
import warnings
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import column_or_1d

from ebda.covariance.base import Diagonal
from ebda.data.memory import InMemory
from ebda.data.protocols import Data
from ebda.data.samples import Samples
from ebda.estimators import validation
from ebda.estimators.linear_classifier import LinearClassifier
from ebda.kernels.threads import allow_threads, over_blocks
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts, class_contrasts
from ebda.moments.variance import MIN_SAMPLES, VARIANCES
from ebda.rule.linear_rule import LinearRule, linear_rule
from ebda.typing import FloatArray


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
            Data; float32, integers, CSR and CSC are used as they are. Data that does
            not fit in memory is read in blocks: ``numpy.memmap``, Zarr, HDF5, AnnData
            in backed mode, Parquet (:mod:`ebda.data.disk`); or summed where it is: Dask
            (:mod:`ebda.data.dask`).
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights: 2 counts as two equal samples.
        """
        self._check_parameters()
        data, y = self._open(X, y, reset=True)
        classes, codes = validation.encode_labels(y)
        validation.several_classes(classes)
        weight = validation.check_sample_weight(sample_weight, data.shape[0])
        moments, samples = self._summarise(data, codes, len(classes), weight)
        self.samples_, self.n_seen_ = None, len(codes)  # fit does not keep the data
        with data.job_context():
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
        data, y = self._open(X, y, reset=first)
        known = self._known_classes(classes, first)
        _, codes = validation.encode_labels(y, known)
        weight = validation.check_sample_weight(sample_weight, data.shape[0])
        seen = 0 if first else self.n_seen_
        moments, batch = self._summarise(data, codes, len(known), weight, seen)
        samples = None if batch is None else self._more_samples(batch, first)
        if not first:
            moments = self.moments_.merge(moments)
        # A batch that fails has changed nothing so far, and can be given again.
        self.samples_ = samples
        self.n_seen_ = seen + len(codes)
        with data.job_context():
            self.unfitted_reason_ = self._fit_rule(known, moments, samples)
        return self

    def _more_samples(self, batch: Samples, first: bool) -> Samples:
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

    def _summarise(
        self,
        data: Data,
        codes: npt.NDArray[np.intp],
        n_classes: int,
        weight: FloatArray | None,
        seen: int = 0,
    ) -> tuple[ClassMoments, Samples | None]:
        """The one pass over the data: moments, and samples where they are needed."""
        start, keep = time.perf_counter(), self._needs_samples()
        with validation.naming(self._names()), self._threads():
            found = data.summarise(codes, n_classes, weight, keep, seen)
            X = data.X if isinstance(data, InMemory) else None
            validation.check_finite_moments(found[0], X, self._names())
        self._say(f"moments of {data.shape[0]} x {data.shape[1]}", start)
        return found

    def _threads(self) -> AbstractContextManager[None]:
        return allow_threads(getattr(self, "n_jobs", None))

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
            with self._threads():
                contrasts = class_contrasts(moments, VARIANCES[self.variance](moments))
            if contrasts.any_constant and contrasts.constant.all():
                p = len(contrasts.constant)
                lacking = f"all {p} features are constant, nothing to classify by"
        self.classes_, self.moments_ = classes, moments
        if lacking is not None:
            return lacking
        self.class_prior_ = prior
        self.contrasts_ = contrasts
        self.z_ = squeeze(contrasts.z)
        with self._threads():
            rule = self._rule(moments, contrasts, samples, prior)
            self.selected_ = _any_weight(rule.coef)
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        return None

    def _say(self, what: str, start: float) -> None:
        if getattr(self, "verbose", 0):
            name = type(self).__name__
            print(f"[{name}] {what}: {time.perf_counter() - start:.3f} s")

    def _scores(self, X: Any) -> Any:
        if not hasattr(self, "coef_") and hasattr(self, "moments_"):
            raise NotFittedError(f"cannot predict yet: {self.unfitted_reason_}")
        return super()._scores(X)


def _any_weight(coef: FloatArray) -> npt.NDArray[np.bool_]:
    """Features that have any weight."""
    selected = np.empty(coef.shape[1], dtype=bool)

    def part(cols: slice) -> None:
        coef[:, cols].any(axis=0, out=selected[cols])

    over_blocks(part, len(selected), long=True)
    return selected


def squeeze(rows: FloatArray) -> FloatArray:
    """A vector for the one contrast of two classes."""
    return rows[0] if len(rows) == 1 else rows
