"""Logistic regression with a lasso penalty along glmnet's path.

The path is solved by celer (Massias, Gramfort and Salmon 2018), whose working sets and
dual extrapolation solve hundreds of problems with 10^4 features in about a second. It
does not fit an intercept; a column with a large constant, whose penalty is negligible,
stands in for it. adelie, by the authors of glmnet, would be the obvious choice but
requires NumPy 1, to which it would bind all users of the extra.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning

from ebda.baselines.base import SampleClassifier
from ebda.baselines.folds import splits
from ebda.estimators import validation
from ebda.estimators.linear_classifier import SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import NOT_NEGATIVE, NUMBER, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray

# Value of the column that stands in for the intercept: 1e-6 of the usual penalty.
_INTERCEPT_SCALE = 1e6
# Where glmnet ends a path, after five lambdas at least: at this share of the deviance
# explained, or at a lambda that adds less than this to it.
_MOST_EXPLAINED, _LEAST_GAIN, _LEAST_LAMBDAS = 0.999, 1e-5, 5
# glmnet's bounds of the probabilities in a held-out deviance.
_LEAST_PROBABILITY = 1e-5
# Lambdas that are solved between two looks at the deviance.
_CHUNK = 10
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


@dataclass(frozen=True)
class Path:
    """Lasso fits at a descending sequence of lambdas.

    Parameters
    ----------
    lambdas : ndarray of shape (n_lambdas,)
        The penalties.
    coef, intercept : ndarray of shape (n_features, n_lambdas) and (n_lambdas,)
        The fits to standardised data.
    centre, scale : ndarray of shape (n_features,)
        What the data were standardised by; a constant feature has scale 1.
    """

    lambdas: FloatArray
    coef: FloatArray
    intercept: FloatArray
    centre: FloatArray
    scale: FloatArray

    def scores(self, X: FloatArray, lambdas: FloatArray) -> FloatArray:
        """Log-odds of the second class at other lambdas, interpolated linearly.

        Beyond its ends a path has the scores of the last lambda.
        """
        scores = ((X - self.centre) / self.scale) @ self.coef + self.intercept
        ascending = self.lambdas[::-1]
        return np.array([np.interp(lambdas, ascending, row[::-1]) for row in scores])


def fit_path(X: FloatArray, codes: IntArray, n_lambdas: int, tol: float) -> Path:
    """The path of some samples, standardised by themselves.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data.
    codes : ndarray of shape (n_samples,)
        Classes, 0 or 1.
    n_lambdas : int
        Largest number of lambdas.
    tol : float
        Duality gap at which the solver stops.
    """
    centre, scale = X.mean(axis=0), X.std(axis=0)
    varies = X.max(axis=0) > X.min(axis=0)
    scale = np.where(varies, scale, 1.0)
    data = np.asfortranarray(np.where(varies, X - centre, 0.0) / scale)
    sign, share = np.where(codes == 1, 1.0, -1.0), codes.mean()
    largest = np.abs(data.T @ (codes - share)).max() / len(codes)
    ratio = 0.01 if data.shape[0] < data.shape[1] else 1e-4
    lambdas = largest * np.geomspace(1, ratio, n_lambdas)
    if largest == 0:  # no feature separates the classes in any way
        none = np.zeros((data.shape[1], n_lambdas))
        return Path(lambdas, none, np.full(n_lambdas, logit(share)), centre, scale)

    null = -2 * (share * np.log(share) + (1 - share) * np.log1p(-share))
    explained = np.empty(0)
    coefs: list[FloatArray] = []
    intercepts: list[FloatArray] = []
    coef, intercept = np.zeros((data.shape[1], 1)), np.zeros(1)
    for first in range(0, n_lambdas, _CHUNK):
        part = lambdas[first : first + _CHUNK]
        start = coef[:, -1], intercept[-1]
        coef, intercept = logistic_path(data, sign, part, tol, start)
        coefs.append(coef)
        intercepts.append(intercept)
        margin = sign[:, None] * (data @ coef + intercept)
        deviance = 2 * np.logaddexp(0, -margin).mean(axis=0)
        explained = np.append(explained, 1 - deviance / null)
        end = _end(explained)
        if end < len(explained):
            break
    coef, intercept = np.hstack(coefs)[:, :end], np.hstack(intercepts)[:end]
    return Path(lambdas[:end], coef, intercept, centre, scale)


def _end(explained: FloatArray) -> int:
    """How many lambdas glmnet keeps, from the shares of the deviance explained.

    >>> _end(np.array([0.0, 0.2, 0.4, 0.6, 0.9, 0.9995, 0.9999]))
    6
    """
    gain = np.diff(explained, prepend=-np.inf)
    last = (gain < _LEAST_GAIN) | (explained > _MOST_EXPLAINED)
    last[: _LEAST_LAMBDAS - 1] = False
    return int(np.argmax(last)) + 1 if last.any() else len(explained)


def logistic_path(
    X: FloatArray,
    sign: FloatArray,
    lambdas: FloatArray,
    tol: float,
    start: tuple[FloatArray, float] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (n_features, n_lambdas) and intercepts along a path of lambdas.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data in columns, as Fortran has them.
    sign : ndarray of shape (n_samples,)
        Classes, -1 or 1.
    lambdas : ndarray of shape (n_lambdas,)
        Penalties in descending order.
    tol : float
        Duality gap at which the solver stops.
    start : tuple of (n_features,) ndarray and float, optional
        Coefficients and intercept to start from.
    """
    try:
        from celer import celer_path
    except ImportError as error:
        raise ImportError(
            "LassoLogistic needs celer: pip install 'ebda[lasso]'"
        ) from error
    n = len(X)
    design = np.asfortranarray(np.column_stack([X, np.full(n, _INTERCEPT_SCALE)]))
    before = None if start is None else np.append(start[0], start[1] / _INTERCEPT_SCALE)
    with warnings.catch_warnings():
        # Beyond the end of a path the classes are separated and the gap closes slowly.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        _, coef, _ = celer_path(
            design,
            sign,
            pb="logreg",
            alphas=lambdas * n,
            tol=tol,
            max_iter=50,
            use_PN=True,
            coef_init=before,
        )
    return coef[:-1], coef[-1] * _INTERCEPT_SCALE


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
