"""Features annealed independence rules (Fan and Fan 2008)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.baselines.base import SampleClassifier
from ebda.covariance import Diagonal
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts, class_contrasts
from ebda.moments.variance import pooled
from ebda.rule.linear_rule import LinearRule, linear_rule
from ebda.sizes import sizes
from ebda.storage.fields import COUNT, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class FAIR(SampleClassifier):
    """The independence rule on the features with the largest t-statistics.

    Their number m minimises the estimated bound of the error (Fan and Fan, equation
    4.3): it maximises

        n (sum_j T_j**2 + m (n1 - n2)/n)**2
        / (lambda_m m n1 n2 + lambda_m n1 n2 sum_j T_j**2),

    where the sums run over the m largest ``|T|`` and lambda_m is the largest
    eigenvalue of the pooled correlation matrix of these features. Two classes only;
    the first of `classes_` has n1 samples. As in R's HiDimDA, T has the pooled
    variance, and the residuals whose correlations these are have as their unit the
    root of the mean of both class variances, whatever the class sizes are.

    Parameters
    ----------
    max_features : int, optional
        Largest number of features to consider; all by default.
    priors : None, "empirical", "uniform" or array-like of shape (2,)
        Class probabilities.

    Attributes
    ----------
    n_selected_ : int
        m, the number of features in the rule.
    criterion_ : ndarray
        The quantity to maximise for 1, 2, ... features, up to the point from which no
        larger number of features can win.
    classes_, coef_, intercept_, z_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import FAIR
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=1000, n_signals=10, effect=2, random_state=0)
    >>> FAIR().fit(sim.data, sim.target).selected_.nonzero()[0].tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    _many_classes = False

    def __init__(self, max_features: int | None = None, priors: Any = None) -> None:
        self.max_features = max_features
        self.priors = priors

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        if self.max_features is not None and self.max_features < 1:
            raise ValueError(
                f"max_features must be at least 1, got {self.max_features!r}"
            )
        prior = validation.class_prior(self.priors, moments.counts)
        contrasts = class_contrasts(moments, pooled(moments))
        order = np.argsort(-np.abs(contrasts.z[0]), kind="stable")
        order = order[~contrasts.constant[order]][: self.max_features]
        self.criterion_ = _criterion(X, codes, moments, contrasts, order)
        self.n_selected_ = int(np.argmax(self.criterion_)) + 1
        self.selected_ = np.zeros(X.shape[1], dtype=bool)
        self.selected_[order[: self.n_selected_]] = True
        self.z_, self.class_prior_ = contrasts.z[0], prior
        eta = np.where(self.selected_, contrasts.z, 0.0)
        return linear_rule(moments, contrasts, eta, Diagonal(), prior)


def _criterion(
    X: npt.NDArray[Any],
    codes: npt.NDArray[np.intp],
    moments: ClassMoments,
    contrasts: Contrasts,
    order: npt.NDArray[np.intp],
) -> FloatArray:
    """The quantity that Fan and Fan maximise, for the first 1, 2, ... features.

    The largest eigenvalue, that of the n x n Gram matrix of the residuals, never
    decreases as features are added. The current one therefore bounds the criterion for
    all larger numbers of features, and the search stops where none of them can win.
    """
    n1, n2 = moments.counts
    n = len(X)
    m = np.arange(1, len(order) + 1)
    unit = np.sqrt(_mean_variance(moments))
    squares = np.cumsum(contrasts.z[0, order] ** 2)
    without_eigenvalue = n * (squares + m * (n1 - n2) / n) ** 2
    without_eigenvalue /= n1 * n2 * (m + squares)
    criterion = np.empty(len(order))
    gram = np.zeros((n, n))
    size = max(1, sizes.gram_elements // n**2)
    for start in range(0, len(order), size):
        rows = slice(start, min(start + size, len(order)))
        block = order[rows]
        residual = X[:, block].astype(np.float64) - moments.means[:, block][codes]
        residual /= unit[block] * np.sqrt(n - 2)
        grams = np.einsum("ij,kj->jik", residual, residual)
        grams[0] += gram
        np.cumsum(grams, axis=0, out=grams)
        eigenvalue = np.linalg.eigvalsh(grams)[:, -1]
        criterion[rows] = without_eigenvalue[rows] / eigenvalue
        gram = grams[-1].copy()
        rest = without_eigenvalue[rows.stop :].max(initial=0.0) / eigenvalue[-1]
        if rest <= criterion[: rows.stop].max():
            return criterion[: rows.stop]
    return criterion


def _mean_variance(moments: ClassMoments) -> FloatArray:
    """Mean of the variances of the classes, of those that have more than one sample."""
    several = moments.counts > 1
    squares = moments.centred_squares[several]
    mean: FloatArray = (squares.T / (moments.counts[several] - 1)).mean(axis=1)
    return mean


register(
    linear_schema(
        FAIR,
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        z_=Array(("p",)),
        n_selected_=COUNT,
        criterion_=Array(("s",)),
    )
)
