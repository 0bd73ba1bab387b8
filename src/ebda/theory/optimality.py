"""Theorem 2: when a rule is asymptotically as good as the optimal one.

Theorem 1 bounds the worst-case error of a rule by ``Phi(-sqrt(xi) (1 - tau))``, with
``sqrt(xi) = sqrt(C_p) / (2 sqrt(lambda_1))`` and a relative loss ``tau``; that of the
optimal rule is ``Phi(-sqrt(xi))``. If ``C_p`` tends to infinity both errors vanish, and
their ratio tends to one if ``tau xi`` vanishes (Lemma 1 of Shao et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, log_ndtr

from ebda.theory.worst_case import bound_terms
from ebda.typing import FloatArray

# The logarithm of the largest number, nearly: beyond it the ratio is that number.
_LARGEST = 709.0


@dataclass(frozen=True, eq=False)
class Optimality:
    """What `theorem2` finds, one entry per case.

    Parameters
    ----------
    xi : ndarray
        ``C_p / (4 lambda_1)``: the worst-case error of the optimal rule is
        ``Phi(-sqrt(xi))``.
    tau : ndarray
        Relative loss of the bound of Theorem 1, ``Phi(-sqrt(xi) (1 - tau))``.
    ratio : ndarray
        The bound over the worst-case error of the optimal rule; at least one, and at
        most ``exp(709)``.
    """

    xi: FloatArray
    tau: FloatArray
    ratio: FloatArray


def theorem2(
    n: npt.ArrayLike,
    c_p: npt.ArrayLike,
    s_n: npt.ArrayLike,
    eps_n: npt.ArrayLike,
    lambda_1: npt.ArrayLike,
    constant: float = 1.0,
) -> Optimality:
    """How far a rule may be from the optimal one, in terms of Theorem 2.

    The theorem says that the ratio tends to one as n, p and C_p tend to infinity, if
    ``eps_n C_p = o(n)`` and ``sqrt(eps_n s_n) = o(n)``, with the assumptions of
    Theorem 1 on p and b_n. (The paper's proof ends with a ratio that tends to 0, a
    misprint.) As in `theorem1_bound`, k = `constant` stands for every ``O_p(1)``, and
    the values for a given n are no guarantee.

    Parameters
    ----------
    n, c_p, s_n, eps_n, lambda_1, constant
        As for `theorem1_bound`.

    Examples
    --------
    With ``C_p`` of the order ``sqrt(n)`` the ratio tends to one; with that of n, which
    the theorem rules out, it does not.

    >>> import numpy as np
    >>> from ebda.theory import theorem2
    >>> n = np.array([1e4, 1e8, 1e12])
    >>> theorem2(n, np.sqrt(n), s_n=10, eps_n=10, lambda_1=1.0).ratio.round(3)
    array([1.517, 1.041, 1.004])
    >>> theorem2(n, n, s_n=10, eps_n=10, lambda_1=1.0).ratio.round(1)
    array([57.9, 58. , 58. ])
    """
    xi, tau = np.broadcast_arrays(*bound_terms(n, c_p, s_n, eps_n, lambda_1, constant))
    return Optimality(xi, tau, np.exp(np.minimum(_log_ratio(xi, tau), _LARGEST)))


def _log_ratio(xi: FloatArray, tau: FloatArray) -> FloatArray:
    """``log Phi(-sqrt(xi) (1 - tau)) - log Phi(-sqrt(xi))``, from tau where it counts.

    ``Phi(-a) = exp(-a^2/2) erfcx(a / sqrt(2)) / 2``, and the difference of the squares
    is ``xi tau (2 - tau)``.
    """
    optimal = np.sqrt(xi)
    bound = optimal * (1 - tau)
    near = bound > 0
    scaled = np.log(erfcx(np.where(near, bound, 0.0) / np.sqrt(2)))
    scaled -= np.log(erfcx(optimal / np.sqrt(2)))
    far = log_ndtr(-bound) - log_ndtr(-optimal)
    log_ratio: FloatArray = np.where(near, xi * tau * (2 - tau) / 2 + scaled, far)
    return log_ratio


@dataclass(frozen=True)
class Growth:
    """The quantities that the theorems need to vanish, one for each assumption.

    Parameters
    ----------
    dimension : float
        ``log(p) / n``.
    separation : float
        ``sqrt(log(p - s_n)) / b_n``: no null feature is beyond the threshold.
    threshold : float
        ``b_n^2 / n``.
    estimation : float
        ``eps_n / (n C_p)``, for Theorem 1.
    sparsity : float
        ``sqrt(s_n eps_n) / (n C_p)``, for Theorem 1.
    signal : float
        ``1 / (n C_p)``, for Theorem 1.
    fast_signal : float
        ``eps_n C_p / n``, for Theorem 2.
    fast_sparsity : float
        ``sqrt(s_n eps_n) / n``, for Theorem 2.

    Attributes
    ----------
    theorem1, theorem2 : float
        The largest quantity that each theorem needs to vanish.
    """

    dimension: float
    separation: float
    threshold: float
    estimation: float
    sparsity: float
    signal: float
    fast_signal: float
    fast_sparsity: float

    @property
    def _common(self) -> float:
        return max(self.dimension, self.separation, self.threshold)

    @property
    def theorem1(self) -> float:
        """The largest quantity that Theorem 1 needs to vanish."""
        return max(self._common, self.estimation, self.sparsity, self.signal)

    @property
    def theorem2(self) -> float:
        """The largest quantity that Theorem 2 needs to vanish, ``1 / C_p`` left out."""
        return max(self._common, self.fast_signal, self.fast_sparsity)


def growth(
    n: float, p: float, c_p: float, s_n: float, eps_n: float, b_n: float
) -> Growth:
    """How small the quantities are that Theorems 1 and 2 need to vanish.

    They are compared between designs, or along a sequence of them: the theorems are
    about limits, and no value is small enough by itself.

    Parameters
    ----------
    n : float
        Samples per class.
    p : float
        Number of features.
    c_p : float
        ``d' D^-1 d``; positive.
    s_n : float
        Number of features that differ between the classes, fewer than p.
    eps_n : float
        ``E ||eta_hat - eta||^2`` over those features; of the order of s_n for hard
        thresholding (`hard_threshold_risk`).
    b_n : float
        The threshold of Condition 1; positive.

    Examples
    --------
    >>> from ebda.theory import growth
    >>> small = growth(n=1e4, p=1e6, c_p=4.0, s_n=10, eps_n=10, b_n=20.0)
    >>> large = growth(n=1e6, p=1e8, c_p=4.0, s_n=10, eps_n=10, b_n=60.0)
    >>> small.theorem1 > large.theorem1, small.theorem2 > large.theorem2
    (True, True)
    """
    if not (min(n, c_p, b_n) > 0 and min(s_n, eps_n) >= 0):
        raise ValueError("n, c_p and b_n must be positive, s_n and eps_n not negative")
    if not p - s_n >= 1:
        raise ValueError(f"s_n must be less than p, got {s_n!r} and {p!r}")
    return Growth(
        dimension=float(np.log(p) / n),
        separation=float(np.sqrt(np.log(p - s_n)) / b_n),
        threshold=b_n**2 / n,
        estimation=eps_n / (n * c_p),
        sparsity=float(np.sqrt(s_n * eps_n) / (n * c_p)),
        signal=1 / (n * c_p),
        fast_signal=eps_n * c_p / n,
        fast_sparsity=float(np.sqrt(s_n * eps_n) / n),
    )
