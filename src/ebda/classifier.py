"""EBClassifier: validates, composes the steps, keeps what they return."""

from __future__ import annotations

import time
from typing import Any

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
from ebda.contrasts import class_contrasts
from ebda.covariance import COVARIANCES
from ebda.linear_rule import linear_rule, log_probabilities, scores
from ebda.moments import ClassMoments, FloatArray, class_moments
from ebda.priors import make_prior
from ebda.shrinkage import SHRINKAGES
from ebda.variance import VARIANCES


class EBClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
    """Empirical Bayes linear classifier for few samples and many features.

    The normalised differences between the class means are shrunk with a prior that
    is estimated from all of them, and classify by a linear rule (Ouyang and Liang,
    *An Empirical Bayes Approach for High Dimensional Classification*). Nothing has
    to be tuned.

    Parameters
    ----------
    prior : str, prior estimator or prior
        How the prior of the differences is estimated: "dp", a Dirichlet process
        mixture with a point mass at zero; an estimator such as
        ``DirichletProcess(zero_weight=0.9)``; or a known prior.
    shrinkage : {"mean", "sparse", "hard"}
        "mean": posterior means (the paper's DP). "sparse": the same, and zero where
        the probability of being zero exceeds `zero_threshold` (Sparse DP). "hard":
        the raw differences where "sparse" keeps them (Hard Thresh DP).
    zero_threshold : float
        kappa, between 0 and 1, for "sparse" and "hard".
    variance : {"pooled", "separate"}
        "pooled": one variance a feature. "separate": one for each class, averaged
        as in Welch's test.
    covariance : {"diagonal"}
        Within-class covariance; "diagonal" treats features as independent.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities, in the order of `classes_`. None and "empirical" take
        the shares of the training data.
    n_jobs : int, optional
        Parallel jobs, for a prior given by name; the result does not depend on it.
    random_state : int, RandomState or None
        For a prior given by name, where it needs random numbers.
    verbose : int
        1 prints the steps and their times.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; a positive decision of two classes means ``classes_[1]``.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the units of X: the decision is ``X @ coef_.T + intercept_``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant of the decision.
    z_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Normalised differences: the second class less the first, or each class less
        the mean of all samples.
    prior_ : DiscretePrior
        The estimated prior of their means.
    posterior_mean_, prob_zero_ : ndarray, as `z_`
        Posterior mean of each difference and its probability of being zero.
    selected_ : ndarray of bool of shape (n_features,)
        Features with any weight in the rule. None, where the prior cannot tell any
        difference from zero: then every sample gets the most probable class, with
        the class probabilities.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities that the intercept holds.
    moments_, contrasts_, posterior_, prior_estimator_
        What the steps returned.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : ndarray
        Their names, where X had string names.

    Examples
    --------
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> train, test = golub.split == "train", golub.split == "test"
    >>> model = EBClassifier().fit(golub.data[train], golub.target[train])
    >>> model.coef_.shape
    (1, 7129)
    >>> bool(model.score(golub.data[test], golub.target[test]) > 0.6)
    True
    """

    def __init__(
        self,
        prior: Any = "dp",
        shrinkage: str = "mean",
        zero_threshold: float = 0.5,
        variance: str = "pooled",
        covariance: str = "diagonal",
        priors: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.zero_threshold = zero_threshold
        self.variance = variance
        self.covariance = covariance
        self.priors = priors
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> EBClassifier:
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
        X, y = self._validate(X, y, reset=True)
        classes, codes = validation.encode_labels(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes[0]!r}); a classifier needs two"
            )
        self.classes_ = classes
        self.moments_ = self._moments(X, codes, sample_weight)
        self._fit_rule()
        return self

    def partial_fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> EBClassifier:
        """Add a batch of samples; any stream of batches gives the model of one fit.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A batch may lack classes.
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come; needed in the first call.
        """
        first = not hasattr(self, "moments_")
        X, y = self._validate(X, y, reset=first)
        if first:
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes")
            self.classes_, _ = validation.encode_labels(column_or_1d(classes))
            if len(self.classes_) < 2:
                raise ValueError("classes must name at least two classes")
            self.moments_ = ClassMoments.empty(len(self.classes_), X.shape[1])
        elif classes is not None and not np.array_equal(
            np.unique(classes), self.classes_
        ):
            raise ValueError(
                f"classes {np.unique(classes).tolist()} differ from those of the first "
                f"call, {self.classes_.tolist()}"
            )
        _, codes = validation.encode_labels(y, self.classes_)
        batch = self._moments(X, codes, sample_weight)
        self.moments_ = self.moments_.merge(batch)
        if self._missing() is None:
            self._fit_rule()
        return self

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        self._check_parameters()
        validation.check_feature_names(X)
        # Finiteness is read off the moments: no pass over X for it alone.
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse=["csr", "csc"],
            dtype="numeric",
            ensure_all_finite=False,
            y_numeric=False,
        )
        return X, column_or_1d(y, warn=True)

    def _check_parameters(self) -> None:
        validation.one_of("shrinkage", self.shrinkage, SHRINKAGES)
        validation.one_of("variance", self.variance, VARIANCES)
        validation.one_of("covariance", self.covariance, COVARIANCES)
        if not 0 <= self.zero_threshold <= 1:
            raise ValueError(
                f"zero_threshold must lie between 0 and 1, got {self.zero_threshold!r}"
            )

    def _moments(
        self, X: Any, codes: npt.NDArray[np.intp], weight: Any
    ) -> ClassMoments:
        start = time.perf_counter()
        weight = validation.check_sample_weight(weight, X.shape[0])
        moments = class_moments(X, codes, len(self.classes_), weight)
        names = getattr(self, "feature_names_in_", None)
        validation.check_finite_moments(moments, X, names)
        self._say(f"moments of {X.shape[0]} x {X.shape[1]}", start)
        return moments

    def _missing(self) -> str | None:
        """What the moments lack for a rule, if anything."""
        counts = self.moments_.counts
        if (counts <= 0).any():
            absent = self.classes_[counts <= 0].tolist()
            return f"no sample of class {', '.join(map(repr, absent))} yet"
        if counts.sum() <= len(counts):
            return "only one sample of each class yet, so no variance"
        return None

    def _fit_rule(self) -> None:
        """Moments to rule: the way of the data, a line a step."""
        if (missing := self._missing()) is not None:
            raise ValueError(f"cannot fit: {missing.removesuffix(' yet')}")
        start = time.perf_counter()
        moments = self.moments_
        self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        contrasts = class_contrasts(moments, VARIANCES[self.variance](moments))
        used = ~contrasts.constant
        if not used.any():
            raise ValueError(
                f"all {len(used)} features are constant: there is nothing to "
                "classify by"
            )
        estimator = make_prior(
            self.prior, n_jobs=self.n_jobs, random_state=self.random_state
        )
        self.prior_estimator_ = estimator.fit(contrasts.z[:, used])
        self.prior_ = self.prior_estimator_.prior_
        self._say(f"prior {self.prior_!r}", start)

        start = time.perf_counter()
        self.contrasts_ = contrasts
        self.posterior_ = self.prior_.posterior(contrasts.z)
        shrink = SHRINKAGES[self.shrinkage]
        eta = shrink(contrasts.z, self.posterior_, self.zero_threshold)
        covariance = COVARIANCES[self.covariance](contrasts)
        rule = linear_rule(moments, contrasts, eta, covariance, self.class_prior_)
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        self.selected_ = (rule.coef != 0).any(axis=0)
        self.z_ = _squeeze(contrasts.z)
        self.posterior_mean_ = _squeeze(self.posterior_.mean)
        self.prob_zero_ = _squeeze(self.posterior_.prob_zero)
        self._n_features_out = len(rule.coef)
        self._say(f"rule with {int(self.selected_.sum())} features", start)

    def _say(self, what: str, start: float) -> None:
        if self.verbose:
            print(f"[EBClassifier] {what}: {time.perf_counter() - start:.3f} s")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _scores(self, X: Any) -> FloatArray:
        if not hasattr(self, "coef_") and hasattr(self, "moments_"):
            raise NotFittedError(f"cannot predict: partial_fit saw {self._missing()}")
        check_is_fitted(self)
        validation.check_feature_names(X)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=["csr", "csc"],
            dtype="numeric",
            ensure_all_finite=False,
        )
        with np.errstate(invalid="ignore", over="ignore"):
            score = scores(X, self.coef_, self.intercept_)
        names = getattr(self, "feature_names_in_", None)
        validation.check_finite_scores(score, X, names)
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

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log probability of each class; finite however far a sample lies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        return log_probabilities(self._scores(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, as the model has it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        return np.exp(self.predict_log_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _squeeze(rows: FloatArray) -> FloatArray:
    """A vector for the one contrast of two classes."""
    return rows[0] if len(rows) == 1 else rows
