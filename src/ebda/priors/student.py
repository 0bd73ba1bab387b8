"""t statistics as z: a value with the same tail probability.

A statistic with estimated standard error is ``t = x / se`` with d degrees of freedom
where nothing differs. Its normal equivalent ``z = Phi**-1(F_d(t))`` is N(0, 1) there
(limma's zscoreT). Read as z themselves, t statistics with few degrees of freedom have
many large values by chance, which a prior takes for effects.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammaln, ndtri_exp, stdtr

from ebda.typing import FloatArray

# Below this probability the continued fraction is used, because the distribution
# function itself rounds to zero soon.
_TINY = 1e-250
# Its terms; that far out a handful is enough.
_TERMS = 40
# Statistics this close to zero have the ratio of their z that they have at zero.
_STRAIGHT = 1e-5


def log_tail(t: FloatArray, df: FloatArray) -> FloatArray:
    """Log of P(T > t) for t >= 0, at any t.

    With ``x = d / (d + t**2)`` it is ``I_x(d/2, 1/2) / 2``, and far out the incomplete
    beta function's continued fraction (DLMF 8.17.22) converges fast.

    >>> log_tail(np.array([0.0, 1e6]), np.array([5.0, 5.0])).round(3).tolist()
    [-0.693, -66.827]
    """
    tail = stdtr(df, -t)
    out: FloatArray = np.log(np.maximum(tail, _TINY))
    far = np.flatnonzero(tail < _TINY)
    out[far] = _log_far_tail(t[far], df[far])
    return out


def _log_far_tail(t: FloatArray, df: FloatArray) -> FloatArray:
    # Logs of x and 1 - x, without loss or overflow.
    ratio = t / np.sqrt(df)
    with np.errstate(under="ignore"):
        log_y = -np.log1p(ratio**-2.0)
        log_x = log_y - 2 * np.log(ratio)
    x, a, b = np.exp(log_x), 0.5 * df, 0.5
    fraction = np.ones_like(x)
    for m in range(_TERMS, 0, -1):  # from its end
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (a + b) * x / (a + 1) / fraction
    log_beta = a * log_x + b * log_y - np.log(df) - betaln(a, b)
    tail: FloatArray = log_beta - np.log(fraction)
    return tail


def z_of_t(t: npt.ArrayLike, df: npt.ArrayLike) -> FloatArray:
    """The normal equivalent of t statistics.

    Parameters
    ----------
    t : array-like
        Statistics.
    df : float or array-like
        Degrees of freedom, positive; infinite for what is normal already.

    Returns
    -------
    ndarray
        ``Phi**-1(F_df(t))``, of the shape of t.

    Examples
    --------
    >>> z_of_t([-2.0, 0.0, 4.0, 1e6], 4).round(3).tolist()
    [-1.571, 0.0, 2.406, 10.092]
    """
    values = np.asarray(t, dtype=np.float64)
    degrees = np.broadcast_to(np.asarray(df, dtype=np.float64), values.shape)
    if not (degrees > 0).all():
        raise ValueError("degrees of freedom must be positive")
    z = values.flatten()
    d = degrees.ravel()
    finite = np.isfinite(d) & np.isfinite(z)
    size = np.abs(z[finite])
    z[finite] = -np.sign(z[finite]) * ndtri_exp(log_tail(size, d[finite]))
    return z.reshape(values.shape) + 0.0  # -0.0 becomes 0.0


def se_of_t(t: npt.ArrayLike, df: npt.ArrayLike) -> FloatArray:
    """Factor for estimated standard errors, so that ``t / factor`` is `z_of_t`.

    With ``s' = s t / z`` the estimate keeps its value and has the tail probability that
    its degrees of freedom give it. At t = 0 the factor is the ratio of the densities,
    ``phi(0) / f_d(0)``.

    Examples
    --------
    >>> se_of_t([0.0, 1e-9, 2.0], 5).round(4).tolist()
    [1.0509, 1.0509, 1.2229]
    """
    values = np.asarray(t, dtype=np.float64)
    z = z_of_t(values, df)
    degrees = np.broadcast_to(np.asarray(df, dtype=np.float64), values.shape)
    # Close to zero z and t are straight lines.
    near = np.abs(values) < _STRAIGHT
    d = np.where(np.isfinite(degrees), degrees, 1.0)
    at_zero = np.exp(0.5 * np.log(0.5 * d) + gammaln(0.5 * d) - gammaln(0.5 * d + 0.5))
    at_zero = np.where(np.isfinite(degrees), at_zero, 1.0)
    factor: FloatArray = np.where(near, at_zero, values / np.where(near, 1.0, z))
    return factor
