"""Logistic regression with a lasso penalty along glmnet's path.

The path is solved by celer (Massias, Gramfort and Salmon 2018), whose working sets and
dual extrapolation solve hundreds of problems with 10^4 features in about a second. It
does not fit an intercept; a column with a large constant, whose penalty is negligible,
stands in for it. adelie, by the authors of glmnet, would be the obvious choice but
requires NumPy 1, to which it would bind all users of the extra.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from ebda.baselines.base import SampleClassifier
from ebda.estimators import validation
from ebda.estimators.linear_classifier import SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import NOT_NEGATIVE, NUMBER, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray

# Value of the column that stands in for the intercept: 1e-4 of the usual penalty.
_INTERCEPT_SCALE = 1e4


class LassoLogistic(SampleClassifier):
    """Lasso logistic regression with cross-validated lambda, as in ``cv.glmnet``.

    Minimises ``deviance / (2 n) + lambda sum_j |b_j| s_j``, where s_j is the standard
    deviation of feature j, on a path of lambdas: from the smallest one that selects no
    feature down to 1/100 of it (1/10,000 if there are more samples than features).
    Lambda is chosen by the cross-validated deviance. Two classes only.

    Parameters
    ----------
    rule : {"1se", "min"}
        "min": the lambda with the smallest deviance. "1se": the largest lambda whose
        deviance is within one standard error of the smallest.
    n_lambdas : int
        Number of lambdas on the path.
    cv : int
        Number of folds.
    tol : float
        Duality gap at which the solver stops.
    random_state : int, RandomState or None
        Determines the folds.

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
        cv: int = 10,
        tol: float = 1e-6,
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
        centre, scale = data.mean(axis=0), data.std(axis=0)
        varies = (moments.centred_squares > 0).any(axis=0)
        varies |= np.ptp(moments.means, axis=0) > 0
        scale = np.where(varies, scale, 1.0)
        data = np.asfortranarray((data - centre) / scale)

        sign = np.where(codes == 1, 1.0, -1.0)
        share = codes.mean()
        largest = np.abs(data.T @ (codes - share)).max() / len(codes)
        ratio = 0.01 if data.shape[0] < data.shape[1] else 1e-4
        self.lambdas_ = largest * np.geomspace(1, ratio, self.n_lambdas)
        best = self._choose(data, sign)
        coef, intercept = logistic_path(data, sign, self.lambdas_[: best + 1], self.tol)
        weights = np.where(varies, coef[:, -1] / scale, 0.0)
        self.lambda_ = float(self.lambdas_[best])
        self.selected_ = weights != 0
        return LinearRule(
            weights[None, :], np.array([intercept[-1] - weights @ centre])
        )

    def _choose(self, data: FloatArray, sign: FloatArray) -> int:
        """Index of the chosen lambda on the path."""
        folds = min(self.cv, int(np.unique(sign, return_counts=True)[1].min()))
        if folds < 2:
            raise ValueError(
                "cross-validation needs at least two samples in every class"
            )
        splits = StratifiedKFold(folds, shuffle=True, random_state=self.random_state)
        deviance, size = [], []
        for train, test in splits.split(data, sign):
            part = np.asfortranarray(data[train])
            coef, constant = logistic_path(part, sign[train], self.lambdas_, self.tol)
            margin = sign[test, None] * (data[test] @ coef + constant)
            deviance.append(2 * np.logaddexp(0, -margin).mean(axis=0))
            size.append(len(test))
        mean = np.average(deviance, axis=0, weights=size)
        variance = np.average((np.array(deviance) - mean) ** 2, axis=0, weights=size)
        self.deviances_ = mean
        self.deviance_se_ = np.sqrt(variance / (folds - 1))
        best = int(np.argmin(mean))
        if self.rule == "min":
            return best
        near = mean <= mean[best] + self.deviance_se_[best]
        return int(np.argmax(near))


def logistic_path(
    X: FloatArray, sign: FloatArray, lambdas: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (n_features, n_lambdas) and intercepts along a path of lambdas."""
    try:
        from celer import celer_path
    except ImportError as error:
        raise ImportError(
            "LassoLogistic needs celer: pip install 'ebda[lasso]'"
        ) from error
    n = len(X)
    design = np.asfortranarray(np.column_stack([X, np.full(n, _INTERCEPT_SCALE)]))
    with warnings.catch_warnings():
        # At the end of the path the classes are separated and the gap closes slowly;
        # glmnet stops there, and cross-validation does not choose such a lambda.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        _, coef, _ = celer_path(
            design, sign, pb="logreg", alphas=lambdas * n, tol=tol, max_iter=50
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
