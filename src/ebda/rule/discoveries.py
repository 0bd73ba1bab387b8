"""From p-values to q-values and local false discovery rates, by empirical Bayes.

Of p features the share pi0 does not differ, and has uniform p-values; the others have
smaller ones. pi0 and the distribution F of all p-values are estimated from them, and
Bayes' rule gives

    P(no difference | p-value <= x) = pi0 x / F(x),      the q-value (Storey 2002),
    P(no difference | p-value = x)  = pi0 / f(x),        the local rate (Efron 2001),

with f the decreasing density below the least concave majorant of F (Grenander 1956), so
that neither has a parameter to choose. With pi0 = 1 the q-values are those of Benjamini
and Hochberg.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from ebda.typing import FloatArray

# p-values beyond this are those of features without a difference.
_LAMBDA = 0.5
# With fewer features, all are taken to be without one.
_FEWEST = 50
_LEAST = 0.5
_SMALLEST = -700.0


def null_share(log_p: FloatArray) -> float:
    """pi0: the density of the p-values beyond a half (Storey 2002), at least a half.

    With less, what they were compared with would not be the bulk of the features.

    >>> null_share(np.log((np.arange(1000) + 0.5) / 1000))
    1.0
    """
    n = log_p.size
    if n < _FEWEST:
        return 1.0
    # One more, so that chance leaves no set without any.
    beyond = np.count_nonzero(log_p > np.log(_LAMBDA)) + 1
    return float(np.clip(beyond / ((1 - _LAMBDA) * n), _LEAST, 1.0))


def q_values(log_p: FloatArray, pi0: float) -> FloatArray:
    """Expected share of false discoveries among all with such a p-value or a smaller.

    >>> q_values(np.log([0.01, 0.9, 0.02, 0.02]), 1.0).round(3)
    array([0.027, 0.9  , 0.027, 0.027])
    """
    n = log_p.size
    if not n:
        return np.empty(0)
    order = np.argsort(log_p, kind="stable")
    ordered = log_p[order]
    # Equal p-values have the rank of the last of them.
    rank = np.searchsorted(ordered, ordered, side="right")
    rate = np.exp(np.minimum(ordered + np.log(pi0 * n / rank), 0.0))
    q = np.empty(n)
    q[order] = np.minimum.accumulate(rate[::-1])[::-1]
    return q


def local_rates(log_p: FloatArray, pi0: float) -> FloatArray:
    """Probability that each feature does not differ, given its p-value.

    It never decreases with the p-value.

    >>> local_rates(np.log([1e-6, 0.2, 0.4, 0.6, 0.8, 1.0]), 1.0).round(3)
    array([0., 1., 1., 1., 1., 1.])
    """
    n = log_p.size
    if not n:
        return np.empty(0)
    p = np.exp(np.maximum(log_p, _SMALLEST))
    value, place, count = np.unique(p, return_inverse=True, return_counts=True)
    gap = np.diff(value, prepend=0.0)
    density = isotonic_regression(count / (n * gap), weights=gap, increasing=False).x
    rate = np.minimum(pi0 / density, 1.0)
    local: FloatArray = np.maximum.accumulate(rate)[place.reshape(p.shape)]
    return local
