"""Nearest shrunken centroids (Tibshirani et al. 2002), R's ``pamr``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ebda.baselines.base import SampleClassifier
from ebda.baselines.folds import splits
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import NOT_NEGATIVE, Array, Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class ShrunkenCentroids(SampleClassifier):
    """The class with the nearest shrunken centroid, as in R's pamr.

    With the mean ``m_kj`` of class k, the mean ``m_j`` of all samples, the pooled
    standard deviation ``s_j`` and the median ``s_0`` of these, class k differs in
    feature j by

        ``d_kj = (m_kj - m_j) / (c_k (s_j + s_0))``, ``c_k^2 = 1/n_k - 1/n``.

    The differences are moved towards zero by the threshold, and stay there once they
    reach it: ``d'_kj``. Centroids are ``m_j + c_k (s_j + s_0) d'_kj``, and a sample
    has the scores (equation 6 of the paper)

        ``-1/2 sum_j (x_j - centroid_kj)^2 / (s_j + s_0)^2 + log pi_k``.

    Their quadratic term is the same in all classes and cancels: the rule is linear,
    with `coef_` and `intercept_` like the others. scikit-learn's ``NearestCentroid``
    has the same centroids, but measures distances in units of ``s_j``.

    A feature without variance where half of all features have none differs from no
    class here; R divides by zero there.

    Parameters
    ----------
    shrink_threshold : float or "cv"
        The threshold, in standard errors. "cv": the largest of those with the fewest
        errors in cross-validation, of `n_thresholds` from zero to where no feature is
        left.
    n_thresholds : int
        Number of thresholds for "cv".
    cv : int, cross-validation splitter or iterable
        Number of folds, which are then stratified and shuffled, or the splits.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.
    random_state : int, RandomState or None
        Determines the folds if `cv` is a number.

    Attributes
    ----------
    threshold_ : float
        The threshold of the rule.
    thresholds_, errors_ : ndarray of shape (n_thresholds,) or None
        Thresholds that were compared, and the share of samples that are misclassified
        in cross-validation.
    centroids_ : ndarray of shape (n_classes, n_features)
        The shrunken centroids.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import ShrunkenCentroids
    >>> from ebda.datasets import load_khan
    >>> khan = load_khan()
    >>> model = ShrunkenCentroids(random_state=0).fit(khan.data, khan.target)
    >>> model.errors_.min().item(), bool(model.selected_.sum() < 100)
    (0.0, True)
    """

    def __init__(
        self,
        shrink_threshold: Any = "cv",
        n_thresholds: int = 30,
        cv: Any = 10,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.shrink_threshold = shrink_threshold
        self.n_thresholds = n_thresholds
        self.cv = cv
        self.priors = priors
        self.random_state = random_state

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        prior = validation.class_prior(self.priors, moments.counts)
        error = np.sqrt(1 / moments.counts - 1 / moments.counts.sum())
        centroids = Centroids.of(moments, error)
        self.thresholds_: FloatArray | None = None
        self.errors_: FloatArray | None = None
        if isinstance(self.shrink_threshold, str):
            validation.one_of("shrink_threshold", self.shrink_threshold, ["cv"])
            largest = np.abs(centroids.differences).max()
            thresholds = np.linspace(0, largest, self.n_thresholds)
            errors = self._held_out(X, codes, thresholds, error, prior)
            fewest = np.flatnonzero(errors == errors.min())
            self.threshold_ = float(thresholds[fewest[-1]])
            self.thresholds_, self.errors_ = thresholds, errors
        else:
            self.threshold_ = float(self.shrink_threshold)
            if not 0 <= self.threshold_ < np.inf:
                raise ValueError(
                    "shrink_threshold must be 'cv' or a number that is not negative, "
                    f"got {self.shrink_threshold!r}"
                )
        shrunken = centroids.shrunken(self.threshold_)
        self.centroids_ = centroids.centre + shrunken * centroids.unit
        self.selected_, self.class_prior_ = shrunken.any(axis=0), prior
        weights, constant = centroids.rule(shrunken, prior)
        if len(prior) == 2:
            weights, constant = np.diff(weights, axis=0), np.diff(constant)
        return LinearRule(weights, constant)

    def _held_out(
        self,
        X: Any,
        codes: IntArray,
        thresholds: FloatArray,
        error: FloatArray,
        prior: FloatArray,
    ) -> FloatArray:
        """Share of the held-out samples that each threshold misclassifies.

        As in pamr, all folds have the standard errors and the class probabilities of
        all samples.
        """
        wrong, total = np.zeros(len(thresholds)), 0
        for train, test in splits(X, codes, self.cv, self.random_state):
            moments = class_moments(X[train], codes[train], len(prior))
            centroids = Centroids.of(moments, error)
            for i, threshold in enumerate(thresholds):
                shrunken = centroids.shrunken(threshold)
                weights, constant = centroids.rule(shrunken, prior)
                scores = X[test] @ weights.T + constant
                wrong[i] += np.count_nonzero(scores.argmax(axis=1) != codes[test])
            total += len(test)
        return wrong / total


@dataclass(frozen=True, eq=False)
class Centroids:
    """What the thresholds of the same samples have in common.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
        Means of all samples.
    unit : ndarray of shape (n_features,)
        ``s_j + s_0``.
    differences : ndarray of shape (n_classes, n_features)
        ``d_kj``.
    error : ndarray of shape (n_classes,)
        ``c_k``.
    """

    centre: FloatArray
    unit: FloatArray
    differences: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, moments: ClassMoments, error: FloatArray) -> Centroids:
        """Centroids from moments, and the standard errors of their differences."""
        n, classes = moments.counts.sum(), len(moments.counts)
        s = np.sqrt(moments.centred_squares.sum(axis=0) / (n - classes))
        unit = s + np.median(s)
        centre = moments.counts @ moments.means / n
        differences = (moments.means - centre) / error[:, None]
        differences = np.divide(
            differences, unit, out=np.zeros_like(differences), where=unit > 0
        )
        return cls(centre, unit, differences, error)

    def shrunken(self, threshold: float) -> FloatArray:
        """``c_k d'_kj``: what of the differences is beyond the threshold."""
        beyond = np.maximum(np.abs(self.differences) - threshold, 0.0)
        return np.sign(self.differences) * beyond * self.error[:, None]

    def rule(
        self, shrunken: FloatArray, prior: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and constant of the score of each class."""
        weights = np.divide(
            shrunken, self.unit, out=np.zeros_like(shrunken), where=shrunken != 0
        )
        half = 0.5 * np.einsum("kj,kj->k", shrunken, shrunken)
        return weights, np.log(prior) - half - weights @ self.centre


register(
    linear_schema(
        ShrunkenCentroids,
        optional=("thresholds_", "errors_"),
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        centroids_=Array(("k", "p")),
        threshold_=Scalar((float,), least=0),
        thresholds_=Array(("t",), NOT_NEGATIVE),
        errors_=Array(("t",), NOT_NEGATIVE),
    )
)
