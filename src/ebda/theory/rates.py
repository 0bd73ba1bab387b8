"""Exact misclassification rates for two normal classes with a common covariance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ebda.theory.covariances import Covariance, as_covariance, vector
from ebda.typing import FloatArray


def error_rates(
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: npt.ArrayLike | Covariance,
) -> tuple[float, float]:
    """Misclassification probability of a linear rule in each class (equation 5).

    For the rule that assigns x to the second class if ``a' x + b > 0``, and for normal
    classes with means mu_1, mu_2 and covariance S,

        ``Phi((a' mu_1 + b) / s)`` and ``Phi(-(a' mu_2 + b) / s)``, ``s^2 = a' S a``.

    Parameters
    ----------
    coef, intercept, mean1, mean2, covariance
        As for `error_rate`.

    Returns
    -------
    first, second : float

    Examples
    --------
    >>> from ebda.theory import error_rates
    >>> first, second = error_rates([1.0, 0.0], 0.0, [-1.0, 0.0], [2.0, 0.0], 1.0)
    >>> round(first, 4), round(second, 4)
    (0.1587, 0.0228)
    """
    first, second, a, sigma = rule_margins(coef, intercept, mean1, mean2, covariance)
    return class_errors(first, second, np.sqrt(sigma.quadratic_form(a)))


def error_rate(
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: npt.ArrayLike | Covariance,
    class_prior: tuple[float, float] = (0.5, 0.5),
) -> float:
    """Misclassification probability of a linear rule (equation 5).

    The average of `error_rates` over two normal classes. Samples with
    ``x @ coef + intercept > 0`` are assigned to the second class, as in
    `decision_function`; a sample with score zero is assigned to the first.

    Parameters
    ----------
    coef : array-like of shape (n_features,) or (1, n_features)
        Weights of the rule.
    intercept : float or array-like of shape (1,)
        Intercept of the rule.
    mean1, mean2 : array-like of shape (n_features,)
        True means of the first and the second class.
    covariance : float, array-like of shape (n_features,) or (p, p), or Covariance
        The common covariance: a multiple of the identity, a diagonal, a matrix, `AR1`
        or `LowRank`.
    class_prior : tuple of two floats
        Class probabilities.

    Examples
    --------
    >>> from ebda.theory import AR1, error_rate
    >>> round(error_rate([1.0, 0.0], -1.0, [0.0, 0.0], [2.0, 0.0], 1.0), 4)
    0.1587
    >>> round(error_rate([1.0, 1.0], -1.0, [0.0, 0.0], [2.0, 0.0], AR1(0.5)), 4)
    0.2819
    """
    first, second = check_class_prior(class_prior)
    errors = error_rates(coef, intercept, mean1, mean2, covariance)
    return first * errors[0] + second * errors[1]


def optimal_error(
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: npt.ArrayLike | Covariance,
    class_prior: tuple[float, float] = (0.5, 0.5),
) -> float:
    """Error of the Bayes rule (equation 1), the smallest error of any rule.

    With ``Delta^2 = d' S^-1 d`` and ``l = log(pi_2 / pi_1)``,

        ``pi_1 Phi(-Delta/2 + l/Delta) + pi_2 Phi(-Delta/2 - l/Delta)``,

    which is ``Phi(-Delta/2)`` for equal class probabilities.

    Parameters
    ----------
    mean1, mean2, covariance, class_prior
        As for `error_rate`.

    Examples
    --------
    >>> from ebda.theory import optimal_error
    >>> round(optimal_error([0.0, 0.0], [2.0, 0.0], 1.0), 4)
    0.1587
    >>> round(optimal_error([0.0, 0.0], [2.0, 0.0], 1.0, class_prior=(0.9, 0.1)), 4)
    0.0701
    """
    prior = check_class_prior(class_prior)
    d = _difference(mean1, mean2)
    sigma = as_covariance(covariance, d.size)
    return bayes_error(float(d @ sigma.solve(d)), prior)


def c_p(
    mean1: npt.ArrayLike, mean2: npt.ArrayLike, covariance: npt.ArrayLike | Covariance
) -> float:
    """Squared distance of the means in standard deviations, ``C_p = d' D^-1 d``.

    Parameters
    ----------
    mean1, mean2, covariance
        As for `error_rate`; D is the diagonal of the covariance.

    Examples
    --------
    >>> from ebda.theory import AR1, c_p
    >>> c_p([0.0, 0.0], [2.0, 4.0], AR1(0.9, variance=4.0))
    5.0
    """
    d = _difference(mean1, mean2)
    return float(np.sum(d * d / as_covariance(covariance, d.size).diagonal(d.size)))


def rule_margins(
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: npt.ArrayLike | Covariance,
) -> tuple[float, float, FloatArray, Covariance]:
    """The scores of both means, the weights and the covariance, validated."""
    a = vector("coef", np.ravel(coef))
    b = np.asarray(intercept, dtype=np.float64)
    if b.size != 1:
        raise ValueError(f"intercept must be one number, got shape {b.shape}")
    first = float(a @ vector("mean1", mean1, a.size)) + b.item()
    second = float(a @ vector("mean2", mean2, a.size)) + b.item()
    return first, second, a, as_covariance(covariance, a.size)


def class_errors(first: float, second: float, sd: float) -> tuple[float, float]:
    """Errors in both classes, from the mean scores and their standard deviation."""
    if sd == 0:
        return float(first > 0), float(second <= 0)
    return float(ndtr(first / sd)), float(ndtr(-second / sd))


def bayes_error(delta2: float, prior: tuple[float, float]) -> float:
    """Error of the Bayes rule at squared Mahalanobis distance `delta2`."""
    if delta2 <= 0 or min(prior) == 0:
        return min(prior)
    delta = np.sqrt(delta2)
    shift = np.log(prior[1] / prior[0]) / delta
    errors = ndtr(-delta / 2 + shift), ndtr(-delta / 2 - shift)
    return float(prior[0] * errors[0] + prior[1] * errors[1])


def check_class_prior(class_prior: tuple[float, float]) -> tuple[float, float]:
    """Validate two probabilities that sum to one."""
    prior = np.asarray(class_prior, dtype=np.float64)
    if prior.shape != (2,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-8:
        raise ValueError(
            "class_prior must be two probabilities that sum to one, "
            f"got {class_prior!r}"
        )
    return float(prior[0]), float(prior[1])


def _difference(mean1: npt.ArrayLike, mean2: npt.ArrayLike) -> FloatArray:
    first = vector("mean1", mean1)
    return first - vector("mean2", mean2, first.size)
