"""Misclassification rates where samples have scales of their own.

An elliptical distribution is a mixture of normal ones,

    x = mu_k + s Sigma^1/2 u,    u ~ N(0, I),

with a random scale s that u does not depend on. Given s the error of a linear rule is
that of equation 5 with the covariance ``s^2 Sigma``, and so it is ``E Phi(-m / s)``,
with m the distance of a class mean from the boundary in standard deviations: a function
of m and of the distribution of s alone, which :class:`Scale` provides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from scipy.stats import t

from ebda.theory.covariances import Covariance
from ebda.theory.rates import check_class_prior, rule_margins
from ebda.typing import FloatArray


class Scale(Protocol):
    """The distribution of the scales of samples."""

    def tail(self, margin: float) -> float:
        """``E Phi(-margin / s)``."""


@dataclass(frozen=True)
class StudentScale:
    """``s^2 = df / chi2(df)``: the multivariate t distribution.

    Parameters
    ----------
    df : float
        Degrees of freedom; infinite for the normal distribution.

    Examples
    --------
    >>> round(StudentScale(1).tail(1.0), 4), round(StudentScale(np.inf).tail(1.0), 4)
    (0.25, 0.1587)
    """

    df: float

    def __post_init__(self) -> None:
        if not self.df > 0:
            raise ValueError(f"df must be positive, got {self.df!r}")

    def tail(self, margin: float) -> float:
        if np.isinf(self.df):
            return float(ndtr(-margin))
        return float(t.cdf(-margin, self.df))


@dataclass(frozen=True, eq=False)
class MixedScale:
    """Scales with given probabilities, such as a contaminated normal distribution.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        Scales, above zero.
    probabilities : array-like of shape (n_values,)
        How probable each is.

    Examples
    --------
    >>> round(MixedScale([1.0, 10.0], [0.9, 0.1]).tail(2.0), 4)
    0.0625
    """

    values: npt.ArrayLike
    probabilities: npt.ArrayLike

    def __post_init__(self) -> None:
        values, shares = self._arrays()
        if values.ndim != 1 or values.shape != shares.shape or not (values > 0).all():
            raise ValueError("values must be positive, with a probability for each")
        if not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-8:
            raise ValueError("probabilities must not be negative, and sum to one")

    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        return np.asarray(self.values, float), np.asarray(self.probabilities, float)

    def tail(self, margin: float) -> float:
        values, shares = self._arrays()
        return float(shares @ ndtr(-margin / values))


def elliptical_error_rate(
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: npt.ArrayLike | Covariance,
    scale: Scale,
    class_prior: tuple[float, float] = (0.5, 0.5),
) -> float:
    """Misclassification probability of a linear rule under an elliptical distribution.

    With equal class probabilities the rule with ``coef = Sigma^-1 (mu_2 - mu_1)`` and
    the boundary halfway is the best there is, whatever the distribution of the scale.

    Parameters
    ----------
    coef, intercept, mean1, mean2, covariance, class_prior
        As for :func:`ebda.theory.error_rate`; the covariance is that at the scale 1.
    scale : Scale
        Distribution of the scales: a `StudentScale` or a `MixedScale`.

    Examples
    --------
    >>> from ebda.theory import StudentScale, elliptical_error_rate, error_rate
    >>> rule = [1.0, 0.0], -1.0, [0.0, 0.0], [2.0, 0.0], 1.0
    >>> round(elliptical_error_rate(*rule, StudentScale(3)), 4)
    0.1955
    >>> elliptical_error_rate(*rule, StudentScale(np.inf)) == error_rate(*rule)
    True
    """
    prior = check_class_prior(class_prior)
    first, second, a, sigma = rule_margins(coef, intercept, mean1, mean2, covariance)
    sd = float(np.sqrt(sigma.quadratic_form(a)))
    if sd == 0:
        return prior[0] * float(first > 0) + prior[1] * float(second <= 0)
    return prior[0] * scale.tail(-first / sd) + prior[1] * scale.tail(second / sd)
