"""Linear discriminant analysis with a pseudo-inverse, as the paper describes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.baselines.base import SampleClassifier
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import contrast_weights
from ebda.rule.linear_rule import LinearRule, log_odds
from ebda.storage.fields import COUNT
from ebda.storage.objects import register
from ebda.typing import IntArray


class PseudoInverseLDA(SampleClassifier):
    """LDA with the Moore-Penrose inverse of the pooled covariance (Section 1).

    With more features than samples the pooled covariance is singular. Its inverse is
    then taken in the space spanned by the residuals, from their singular values, and
    is never formed. Bickel and Levina (2004) show that this is no better than guessing
    when there are very many features.

    Parameters
    ----------
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.

    Attributes
    ----------
    rank_ : int
        Rank of the pooled covariance.
    classes_, coef_, intercept_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import PseudoInverseLDA
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=500, effect=0.5, random_state=0)
    >>> PseudoInverseLDA().fit(sim.data, sim.target).rank_
    48
    """

    def __init__(self, priors: Any = None) -> None:
        self.priors = priors

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        prior = validation.class_prior(self.priors, moments.counts)
        df = len(codes) - len(prior)
        residual = X.astype(np.float64) - moments.means[codes]
        _, singular, axes = np.linalg.svd(residual / np.sqrt(df), full_matrices=False)
        cut = singular.max(initial=0.0) * max(X.shape) * np.finfo(np.float64).eps
        kept = singular > cut
        positive, negative = contrast_weights(moments.counts)
        d = (positive - negative) @ moments.means
        coef = (d @ axes[kept].T / singular[kept] ** 2) @ axes[kept]
        middle = (positive + negative) / 2
        at_middle = np.einsum("ck,ck->c", coef @ moments.means.T, middle)
        self.rank_, self.class_prior_ = int(kept.sum()), prior
        return LinearRule(coef, log_odds(prior) - at_middle)


register(linear_schema(PseudoInverseLDA, class_prior_=CLASS_PRIOR, rank_=COUNT))
