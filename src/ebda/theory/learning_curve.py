"""How an error falls as the training set grows, by way of the separation.

K classes of equal shares are equally far from each other: class k has the mean
``sqrt(2) d e_k``, with e_k the k-th unit vector, and standard normal noise. The
distance between any two means is then 2d standard deviations, and the best rule has the
error

    ``e(d) = 1 - int phi(t) Phi(t + sqrt(2) d)^(K - 1) dt``,

which is ``Phi(-d)`` for two classes. So d, the separation, stands for an error between
nothing, at d = infinity, and that of guessing, at d = 0.

Theory says how d grows with the number of samples. Of p independent features with known
variances and differences ``delta``, the rule whose weights are the differences between
the means of n + n samples has, with many features,

    ``d(n)^2 = (Delta / 2)^2 n / (n + c)``, ``Delta^2 = sum_j delta_j^2``,
    ``c = 2 p / Delta^2``.

With c samples per class half of what could be had is there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from ebda.theory.quadrature import panel_rule
from ebda.typing import FloatArray

# Range of the integral over t, which is smooth on the scale of one.
_EDGES = np.arange(-13.0, 9.5)
# The separations between which others are interpolated.
_TABLE = np.concatenate([[0.0], np.geomspace(1e-2, 12.0, 400)])


def error_of_separation(d: npt.ArrayLike, n_classes: int = 2) -> FloatArray:
    """Error of the best rule for equally distant classes.

    Parameters
    ----------
    d : array-like
        Half the distance between any two class means, in standard deviations.
    n_classes : int
        K.

    Returns
    -------
    ndarray
        Of the shape of `d`.

    Examples
    --------
    >>> error_of_separation([0, 1, 2]).round(4)
    array([0.5   , 0.1587, 0.0228])
    >>> error_of_separation([0, 1, 2], n_classes=4).round(4)
    array([0.75  , 0.3222, 0.0575])
    """
    separation = np.asarray(d, dtype=np.float64)
    t, width = panel_rule(_EDGES)
    mass = width * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    log_right = (n_classes - 1) * log_ndtr(t + np.sqrt(2) * separation[..., None])
    # Not one less the probability of being right, which would lose small errors.
    return np.asarray(-np.expm1(log_right) @ mass)


def gain(n: npt.ArrayLike, start: float, half: npt.ArrayLike) -> FloatArray:
    """``d(n)^2 / d(start)^2`` of a rule that has half of all with c samples per class.

    Parameters
    ----------
    n, start : float or array-like
        Samples per class.
    half : array-like
        c; zero for a rule that has all from the start.

    Examples
    --------
    >>> gain(40, 20, [0, 20, 1e9]).round(3)
    array([1.   , 1.333, 2.   ])
    """
    c = np.asarray(half, dtype=np.float64)
    return np.asarray((1 + c / start) / (1 + c / np.asarray(n, dtype=np.float64)))


def grown_error(
    error: npt.ArrayLike, factor: npt.ArrayLike, n_classes: int = 2
) -> FloatArray:
    """What an error becomes when ``d^2`` grows by a factor.

    An error that is no better than guessing stands for no separation, and stays as it
    is. Separations are interpolated, with a relative error of the result below 1e-3.

    Parameters
    ----------
    error, factor : array-like
        Errors and factors, which broadcast against each other.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> grown_error([0.6, 0.1587, 0.0228], 4.0).round(4)
    array([0.6   , 0.0228, 0.    ])
    """
    log_error = np.log(np.asarray(error, dtype=np.float64))
    table = np.log(error_of_separation(_TABLE, n_classes))
    # From the largest separation down, errors rise.
    d = np.interp(log_error, table[::-1], _TABLE[::-1])
    new = np.interp(d * np.sqrt(np.asarray(factor, dtype=np.float64)), _TABLE, table)
    return np.exp(np.where(log_error >= table[0], log_error, new))
