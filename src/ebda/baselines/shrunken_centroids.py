"""Nearest shrunken centroids (Tibshirani et al. 2002), from scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestCentroid

from ebda.baselines.base import SampleClassifier
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import Array
from ebda.storage.objects import register
from ebda.typing import IntArray


class ShrunkenCentroids(SampleClassifier):
    """scikit-learn's ``NearestCentroid(shrink_threshold=...)`` as a linear rule.

    The squared distances to the shrunken centroids, in units of the pooled standard
    deviation, share a quadratic term that cancels. The rule is therefore linear, with
    ``coef_`` and ``intercept_`` like the others.

    Parameters
    ----------
    shrink_threshold : float
        How far each feature of a centroid is moved towards the overall mean, in
        standard errors; a feature that is closer than that is set to the mean.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.

    Attributes
    ----------
    centroids_ : ndarray of shape (n_classes, n_features)
        The shrunken centroids.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import ShrunkenCentroids
    >>> from ebda.datasets import load_khan
    >>> khan = load_khan()
    >>> model = ShrunkenCentroids(shrink_threshold=4.0).fit(khan.data, khan.target)
    >>> bool(model.selected_.sum() < 200)
    True
    """

    def __init__(self, shrink_threshold: float = 1.0, priors: Any = None) -> None:
        self.shrink_threshold = shrink_threshold
        self.priors = priors

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        prior = validation.class_prior(self.priors, moments.counts)
        varies = (moments.centred_squares > 0).any(axis=0)
        data = X[:, varies].astype(np.float64)
        shrunken = NearestCentroid(shrink_threshold=self.shrink_threshold)
        shrunken.fit(data, codes)
        pooled = moments.centred_squares[:, varies].sum(axis=0)
        pooled /= len(codes) - len(prior)
        # scikit-learn measures distances in units of s, without its median offset.
        centre = moments.counts @ moments.means[:, varies] / len(codes)
        from_centre = shrunken.centroids_ - centre
        from_centre[shrunken.deviations_ == 0] = 0.0  # exactly, not to rounding
        weights = np.zeros((len(prior), X.shape[1]))
        weights[:, varies] = from_centre / pooled
        half = 0.5 * np.einsum("kj,kj->k", weights[:, varies], from_centre)
        constant = np.log(prior) - half - weights[:, varies] @ centre
        if len(prior) == 2:
            weights, constant = np.diff(weights, axis=0), np.diff(constant)
        self.centroids_ = moments.means.copy()
        self.centroids_[:, varies] = shrunken.centroids_
        self.selected_, self.class_prior_ = (weights != 0).any(axis=0), prior
        return LinearRule(weights, constant)


register(
    linear_schema(
        ShrunkenCentroids,
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        centroids_=Array(("k", "p")),
    )
)
