"""Rules that know more than the data: bounds for all other rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.baselines import IndependenceRule
from ebda.baselines.base import SampleClassifier
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts, class_contrasts
from ebda.moments.variance import pooled
from ebda.rule.linear_rule import LinearRule
from ebda.theory import as_covariance
from ebda.typing import FloatArray, IntArray


class SupportOracle(IndependenceRule):
    """The independence rule on the features that truly differ: the oracle of study 3.

    Parameters
    ----------
    support : array-like of bool of shape (n_features,)
        Whether each feature has different means in the two classes.
    variance, priors
        As in :class:`~ebda.baselines.IndependenceRule`.

    Examples
    --------
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=100, n_signals=5, effect=2, random_state=0)
    >>> oracle = SupportOracle(sim.means[1] != 0).fit(sim.data, sim.target)
    >>> oracle.selected_.sum().item()
    5
    """

    def __init__(
        self,
        support: npt.ArrayLike | None = None,
        variance: str = "pooled",
        priors: Any = None,
    ) -> None:
        super().__init__(variance=variance, priors=priors)
        self.support = support

    def _estimate(self, contrasts: Contrasts) -> FloatArray:
        return on_support(self.support, contrasts)


class ScriptsOracle(SampleClassifier):
    """The oracle of the authors' script of study 3.

    It knows the features that differ, as `SupportOracle` does, but its weights are
    ``d / s`` on X itself, without a second division by the standard deviation. All
    features of study 3 have variance one, so that the two differ by the noise of s.

    Parameters
    ----------
    support : array-like of bool of shape (n_features,)
        Whether each feature has different means in the two classes.

    Examples
    --------
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=100, n_signals=5, effect=2, random_state=0)
    >>> oracle = ScriptsOracle(sim.means[1] != 0).fit(sim.data, sim.target)
    >>> int((oracle.coef_ != 0).sum())
    5
    """

    _many_classes = False

    def __init__(self, support: npt.ArrayLike | None = None) -> None:
        self.support = support

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        contrasts = class_contrasts(moments, pooled(moments))
        coef = on_support(self.support, contrasts)
        return LinearRule(coef, -coef @ moments.means.mean(axis=0))


def on_support(support: Any, contrasts: Contrasts) -> FloatArray:
    """The contrasts of the features that differ, and zero for all others."""
    differs = np.asarray(support, dtype=bool)
    if differs.shape != contrasts.constant.shape:
        raise ValueError(
            f"support has shape {differs.shape}, but there are "
            f"{len(contrasts.constant)} features"
        )
    return np.where(differs, contrasts.z, 0.0)


def optimal_rule(
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: Any,
    class_prior: tuple[float, float] = (0.5, 0.5),
) -> LinearRule:
    """The Bayes rule for known parameters (equation 1).

    Parameters
    ----------
    mean1, mean2 : array-like of shape (n_features,)
        True means of the first and the second class.
    covariance : float, array-like or Covariance
        As in :func:`ebda.theory.error_rate`.
    class_prior : tuple of two floats
        Class probabilities.

    Examples
    --------
    >>> optimal_rule([0.0, 0.0], [2.0, 0.0], 1.0).coef
    array([[2., 0.]])
    """
    first = np.asarray(mean1, dtype=np.float64)
    second = np.asarray(mean2, dtype=np.float64)
    coef = as_covariance(covariance, len(first)).solve(second - first)
    odds = np.log(class_prior[1] / class_prior[0])
    intercept = odds - coef @ (first + second) / 2
    return LinearRule(coef[None, :], np.array([intercept]))
