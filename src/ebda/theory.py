"""Exact misclassification rates of linear rules (Section 2 of the paper)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr


def error_rate(
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    covariance: npt.ArrayLike,
    class_prior: tuple[float, float] = (0.5, 0.5),
) -> float:
    """Probability that a linear rule errs, for two normal classes (equation 5).

    Samples with ``x @ coef + intercept > 0`` go to the second class, as in
    `decision_function`; a sample of zero score goes to the first.

    Parameters
    ----------
    coef : array-like of shape (n_features,) or (1, n_features)
        Weights of the rule.
    intercept : float or array-like of shape (1,)
        Its constant.
    mean1, mean2 : array-like of shape (n_features,)
        True means of the first and the second class.
    covariance : float, or array-like of shape (n_features,) or (p, p)
        The common covariance: a number times the identity, a diagonal, or a matrix.
    class_prior : tuple of two floats
        Probabilities of the classes.

    Examples
    --------
    >>> from ebda.theory import error_rate
    >>> round(error_rate([1.0, 0.0], -1.0, [0.0, 0.0], [2.0, 0.0], 1.0), 4)
    0.1587
    """
    a = np.asarray(coef, dtype=np.float64).ravel()
    b = float(np.asarray(intercept, dtype=np.float64).ravel()[0])
    sigma = np.asarray(covariance, dtype=np.float64)
    spread = np.sqrt(a @ sigma @ a if sigma.ndim == 2 else np.sum(sigma * a * a))
    first = float(a @ np.asarray(mean1, dtype=np.float64)) + b
    second = float(a @ np.asarray(mean2, dtype=np.float64)) + b
    if spread == 0:
        errors = float(first > 0), float(second <= 0)
    else:
        errors = float(ndtr(first / spread)), float(ndtr(-second / spread))
    return class_prior[0] * errors[0] + class_prior[1] * errors[1]
