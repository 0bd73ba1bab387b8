"""Logistic regression with a lasso penalty, by cross-validation as glmnet has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from ebda.baselines.base import SampleClassifier
from ebda.baselines.folds import splits
from ebda.baselines.lasso_path import fit_path
from ebda.estimators import validation
from ebda.estimators.linear_classifier import SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import NOT_NEGATIVE, NUMBER, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray

# glmnet's bounds of the probabilities in a held-out deviance.
_LEAST_PROBABILITY = 1e-5
# Samples per fold from which the standard error is that of the means of the folds.
_GROUPED = 3


class LassoLogistic(SampleClassifier):
    """Lasso logistic regression with cross-validated lambda, as in ``cv.glmnet``.

    Minimises ``deviance / (2 n) + lambda sum_j |b_j| s_j``, where s_j is the standard
    deviation of feature j, on a path of lambdas: from the smallest one that selects no
    feature down to 1/100 of it (1/10,000 if there are more samples than features), or
    to where 99.9 % of the deviance are explained. Lambda is chosen by the
    cross-validated deviance. Each fold has standard deviations and a path of its own,
    and its scores at the lambdas of the whole path are interpolated, as R's glmnet has
    it. Two classes only.

    Parameters
    ----------
    rule : {"1se", "min"}
        "min": the lambda with the smallest deviance. "1se": the largest lambda whose
        deviance is within one standard error of the smallest.
    n_lambdas : int
        Largest number of lambdas on the path.
    cv : int, cross-validation splitter or iterable
        Number of folds, which are then stratified and shuffled, or the splits.
    tol : float
        Duality gap at which the solver stops.
    random_state : int, RandomState or None
        Determines the folds if `cv` is a number.

    Attributes
    ----------
    lambdas_ : ndarray of shape (n_lambdas,)
        The path, in descending order.
    deviances_, deviance_se_ : ndarray of shape (n_lambdas,)
        Cross-validated mean deviance per sample, and its standard error.
    lambda_ : float
        The chosen lambda.
    classes_, coef_, intercept_, selected_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import LassoLogistic
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=200, n_signals=5, effect=2, random_state=0)
    >>> model = LassoLogistic(random_state=0).fit(sim.data, sim.target)
    >>> model.selected_[:5].sum().item()
    5
    """

    _many_classes = False

    def __init__(
        self,
        rule: str = "1se",
        n_lambdas: int = 100,
        cv: Any = 10,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.n_lambdas = n_lambdas
        self.cv = cv
        self.tol = tol
        self.random_state = random_state

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        validation.one_of("rule", self.rule, ["1se", "min"])
        data = X.astype(np.float64)
        path = fit_path(data, codes, self.n_lambdas, self.tol)
        self.lambdas_ = path.lambdas
        best = self._choose(data, codes)
        weights = path.coef[:, best] / path.scale
        self.lambda_ = float(path.lambdas[best])
        self.selected_ = weights != 0
        constant = path.intercept[best] - weights @ path.centre
        return LinearRule(weights[None, :], np.array([constant]))

    def _choose(self, data: FloatArray, codes: IntArray) -> int:
        """Index of the chosen lambda on the path."""
        deviances = []
        for train, test in splits(data, codes, self.cv, self.random_state):
            path = fit_path(data[train], codes[train], self.n_lambdas, self.tol)
            scores = path.scores(data[test], self.lambdas_)
            deviances.append(_deviances(scores, codes[test]))
        summary = _of_folds(deviances)
        self.deviances_, self.deviance_se_ = mean, se = summary
        best = int(np.argmin(mean))
        if self.rule == "min":
            return best
        return int(np.argmax(mean <= mean[best] + se[best]))


def _deviances(scores: FloatArray, codes: IntArray) -> FloatArray:
    """Deviance of each held-out sample at each lambda."""
    bound = logit(1 - _LEAST_PROBABILITY)
    margin = np.where(codes == 1, 1.0, -1.0)[:, None] * np.clip(scores, -bound, bound)
    deviance: FloatArray = 2 * np.logaddexp(0, -margin)
    return deviance


def _of_folds(deviances: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Mean deviance of all held-out samples, and its standard error.

    The standard error is that of the means of the folds or, with fewer than three
    samples in a fold, that of the samples.
    """
    size = np.array([len(part) for part in deviances])
    if size.sum() < _GROUPED * len(size):
        values, weight = np.vstack(deviances), np.ones(size.sum())
    else:
        values, weight = np.array([part.mean(axis=0) for part in deviances]), size
    mean = np.average(values, axis=0, weights=weight)
    variance = np.average((values - mean) ** 2, axis=0, weights=weight)
    return mean, np.sqrt(variance / (len(values) - 1))


register(
    linear_schema(
        LassoLogistic,
        selected_=SELECTED,
        lambdas_=Array(("l",), NOT_NEGATIVE),
        deviances_=Array(("l",)),
        deviance_se_=Array(("l",), NOT_NEGATIVE),
        lambda_=NUMBER,
    )
)
