"""The independence rule (Bickel and Levina 2004): no shrinkage, no correlation."""

from __future__ import annotations

from typing import Any

from ebda.estimators.moment_classifier import MomentClassifier, moment_schema
from ebda.moments.contrasts import Contrasts
from ebda.storage.objects import register
from ebda.typing import FloatArray


class IndependenceRule(MomentClassifier):
    """Linear discriminant analysis with a diagonal covariance (equation 3).

    The weights are ``d / s**2``, where d is the difference of the class means: every
    rule of the paper without its shrinkage.

    Parameters
    ----------
    variance : {"pooled", "separate"}
        As in :class:`~ebda.EBClassifier`.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.
    class_weight : None, "balanced" or dict
        What an error of each class costs, by its label; 1 where a label is absent.
        Class probabilities are multiplied by the weights; nothing else changes
        (:mod:`ebda.estimators.class_weight`). "balanced" makes the shares of the
        training data equal; with other `priors` it divides these by the shares.

    Attributes
    ----------
    classes_, coef_, intercept_, z_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import IndependenceRule
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=500, effect=0.5, random_state=0)
    >>> IndependenceRule().fit(sim.data, sim.target).coef_.shape
    (1, 500)
    """

    _allow_missing = True

    def __init__(
        self, variance: str = "pooled", priors: Any = None, class_weight: Any = None
    ) -> None:
        self.variance = variance
        self.priors = priors
        self.class_weight = class_weight

    def _estimate(self, contrasts: Contrasts) -> FloatArray:
        return contrasts.z


register(moment_schema(IndependenceRule))
