"""Hard thresholding at b_n (Remark 2), and the tail of t that it rests on.

The theorems take any estimator that meets Conditions 1 and 2. Remark 2 shows that the
simplest one does: an effect is its contrast if that is beyond b_n, and zero otherwise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr

from ebda.typing import FloatArray


def hard_threshold(z: npt.ArrayLike, b_n: float) -> FloatArray:
    """``z`` where ``|z| > b_n``, and zero elsewhere.

    The paper prints the indicator of Remark 2 the other way round,
    ``1{|z| <= b_n} z``, which would not meet Condition 1.

    Parameters
    ----------
    z : array-like
        Normalised differences, the paper's Y.
    b_n : float
        The threshold; not negative.

    Examples
    --------
    >>> from ebda.theory import hard_threshold
    >>> hard_threshold([-4.0, -1.0, 3.0, 3.5], 3.0).tolist()
    [-4.0, 0.0, 0.0, 3.5]
    """
    values = np.asarray(z, dtype=np.float64)
    return np.where(np.abs(values) > _threshold(b_n), values, 0.0)


def hard_threshold_risk(eta: npt.ArrayLike, b_n: float) -> FloatArray:
    """``E (eta_hat - eta)^2`` of hard thresholding, for z from N(eta, 1).

    With ``u = b_n - eta``, ``l = -b_n - eta`` and ``P0 = Phi(u) - Phi(l)``, the
    probability of an estimate of zero, it is

        ``1 - P0 + u phi(u) - l phi(l) + eta^2 P0``.

    Summed over the features that differ it is the ``eps_n`` of the theorems. It tends
    to one for an effect far beyond the threshold, so that ``eps_n ~ s_n``, as
    Remark 2 says.

    Parameters
    ----------
    eta : array-like
        Effects.
    b_n : float
        The threshold; not negative.

    Examples
    --------
    >>> from ebda.theory import hard_threshold_risk
    >>> hard_threshold_risk([0.0, 3.0, 9.0], 3.0).round(4)
    array([0.0293, 5.    , 1.    ])
    """
    effect = np.asarray(eta, dtype=np.float64)
    upper, lower = _threshold(b_n) - effect, -b_n - effect
    zero = ndtr(upper) - ndtr(lower)
    kept = 1 - zero + upper * _density(upper) - lower * _density(lower)
    risk: FloatArray = kept + effect**2 * zero
    return risk


def t_tail_bound(b_n: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Bound on ``P(|Y| >= b_n)`` for a feature that does not differ.

    Y has the t distribution with ``v = 2n - 2`` degrees of freedom, whose density is
    ``c (1 + t^2/v)^(-(v+1)/2)``. Since ``1 <= t / b_n`` in the tail,

        ``P(|Y| >= b_n) <= 2 c v / (v - 1) (1/b_n) (1 + b_n^2/v)^(-(v-1)/2)``.

    In the proof of Theorem 1 the exponent is ``-(v+1)/2`` and the factor 2 is missing
    at first, which is no bound; both disappear in the limit, where ``b_n^2/n -> 0``.

    Parameters
    ----------
    b_n : array-like
        Thresholds; positive.
    n : array-like
        Samples per class, at least 2; broadcast against b_n.

    Examples
    --------
    >>> from scipy import stats
    >>> from ebda.theory import t_tail_bound
    >>> t_tail_bound([3.0, 5.0], 25).round(7)
    array([4.7622e-03, 8.5000e-06])
    >>> (2 * stats.t(48).sf([3.0, 5.0])).round(7)
    array([4.2717e-03, 8.1000e-06])
    """
    b, size = np.asarray(b_n, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not (b > 0).all():
        raise ValueError("b_n must be positive")
    if not (size >= 2).all():
        raise ValueError("n must be at least 2 samples per class")
    v = 2 * size - 2
    constant = gammaln((v + 1) / 2) - gammaln(v / 2) - np.log(np.pi * v) / 2
    tail = -np.log(b) - (v - 1) / 2 * np.log1p(b**2 / v)
    bound: FloatArray = np.exp(np.log(2 * v / (v - 1)) + constant + tail)
    return bound


def null_effects_bound(
    b_n: float, n: int, n_null: int, size: float, fourth_moment: float | None = None
) -> float:
    """Bound on the probability that null features matter, from the proof of Theorem 1.

    By the inequalities of Markov and of Cauchy and Schwarz,

        ``P(||eta_hat_2||^2 > size) <= n_null sqrt(E eta_hat^4 P(|Y| >= b_n)) / size``

    for the estimates ``eta_hat_2`` of features that do not differ, with `t_tail_bound`
    for the last probability. It tends to zero if ``sqrt(log(p - s_n)) = o(b_n)``.

    Parameters
    ----------
    b_n : float
        The threshold; positive.
    n : int
        Samples per class.
    n_null : int
        ``p - s_n``, the number of features that do not differ.
    size : float
        The paper's epsilon; positive.
    fourth_moment : float, optional
        ``E eta_hat^4`` of such a feature (Condition 2). By default that of Y itself,
        ``3 v^2 / ((v - 2) (v - 4))`` with ``v = 2n - 2``, which no threshold exceeds.

    Returns
    -------
    float
        Above one where the bound is vacuous.

    Examples
    --------
    >>> from ebda.theory import null_effects_bound
    >>> round(null_effects_bound(8.0, n=100, n_null=10_000, size=0.1), 4)
    0.0569
    """
    if not size > 0:
        raise ValueError(f"size must be positive, got {size!r}")
    if fourth_moment is None:
        v = 2 * n - 2
        fourth_moment = 3 * v**2 / ((v - 2) * (v - 4)) if v > 4 else np.inf
    tail = float(t_tail_bound(b_n, n))
    return float(n_null * np.sqrt(fourth_moment * tail) / size)


def _threshold(b_n: float) -> float:
    if not 0 <= b_n < np.inf:
        raise ValueError(f"b_n must be finite and not negative, got {b_n!r}")
    return float(b_n)


def _density(x: FloatArray) -> FloatArray:
    density: FloatArray = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    return density
