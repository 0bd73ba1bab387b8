"""Tail probabilities of t and F as logarithms, also where they underflow.

The order of the strongest features must not end where a probability is smaller than
any floating-point number. Both tails are incomplete beta functions,

    P(|T| > t) = I_x(df / 2, 1 / 2),          x = df / (df + t^2),
    P(F > f)   = I_x(df2 / 2, df1 / 2),       x = df2 / (df2 + df1 f),

whose logarithm follows from a continued fraction where the value itself is too small.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincc, betaln, ndtri_exp

from ebda.typing import FloatArray

# Smaller values of the incomplete beta function come from the continued fraction.
_SMALL = 1e-280
_STEPS = 500
_TINY = 1e-300


def log_f_tail(f: FloatArray, df1: float, df2: FloatArray | float) -> FloatArray:
    """``log P(F > f)`` for the F distribution.

    Parameters
    ----------
    f : ndarray
        Values, zero or more.
    df1 : float
        Degrees of freedom of the numerator.
    df2 : ndarray or float
        Degrees of freedom of the denominator; one for each value, or for all.

    Examples
    --------
    >>> log_f_tail(np.array([0.0, 4.0, 1e200]), 2, 10).round(3)
    array([    0.   ,    -2.939, -2294.538])
    """
    df2 = np.broadcast_to(df2, np.shape(f))
    with np.errstate(over="ignore"):
        ratio = df1 * np.asarray(f, dtype=np.float64) / df2
    rest = 1 / (1 + ratio)
    # 1 - x, without a loss of digits where f is small.
    p = betaincc(df1 / 2, df2 / 2, np.where(ratio < 1, ratio * rest, 1 - rest))
    small = p < _SMALL
    with np.errstate(divide="ignore"):
        log_p: FloatArray = np.log(p)
    if small.any():
        log_p[small] = _log_incomplete_beta(
            np.log1p(ratio[small]), df2[small] / 2, df1 / 2
        )
    return log_p


def _log_incomplete_beta(log_odds: FloatArray, a: FloatArray, b: float) -> FloatArray:
    """``log I_x(a, b)`` for x far below its mean, by the continued fraction of Lentz.

    Parameters
    ----------
    log_odds : ndarray
        ``-log x``, which keeps its digits for any x.
    a : ndarray
        The first parameter of each.
    b : float
        The second.
    """
    x = np.exp(-log_odds)
    front = -a * log_odds + b * np.log(-np.expm1(-log_odds)) - np.log(a) - betaln(a, b)
    c = np.ones_like(x)
    d = 1 / _away(1 - (a + b) * x / (a + 1))
    value = d.copy()
    for m in range(1, _STEPS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + numerator * d)
            c = _away(1 + numerator / c)
            step = c * d
            value *= step
        if np.abs(step - 1).max() < 1e-13:
            break
    log_value: FloatArray = front + np.log(value)
    return log_value


def _away(x: FloatArray) -> FloatArray:
    """Values away from zero, which the fraction divides by."""
    return np.where(np.abs(x) < _TINY, _TINY, x)


def log_t_tail(t: FloatArray, df: FloatArray | float) -> FloatArray:
    """``log P(|T| > |t|)`` for the t distribution.

    Examples
    --------
    >>> log_t_tail(np.array([0.0, -2.228, 1e100]), 10).round(2)
    array([    0.  ,    -3.  , -2292.47])
    """
    with np.errstate(over="ignore"):
        return log_f_tail(np.square(t), 1.0, df)


def normal_score(t: FloatArray, df: FloatArray | float) -> FloatArray:
    """The normal value with the tail probability of each t.

    >>> normal_score(np.array([-2.228139, 0.0, 2.228139]), 10).round(3)
    array([-1.96,  0.  ,  1.96])
    """
    score: FloatArray = -np.sign(t) * ndtri_exp(log_t_tail(t, df) - np.log(2))
    return score + 0.0
