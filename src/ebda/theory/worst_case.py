"""Worst-case errors over the paper's parameter space, and Theorem 1.

The space fixes ``C_p = d' D^-1 d`` and bounds the largest eigenvalue of the correlation
matrix R by lambda_1 (its bounds on the variances matter only in the limit).

Taken literally, ``max over theta of W(rule, theta)`` says nothing about a given rule:
C_p determines neither the sign of d nor the location of the means, and a rule that was
trained on one theta misclassifies nearly every sample of another. The proof of
Theorem 1 keeps the means and D fixed, and takes the maximum over all correlation
matrices R with ``lambda_max(R) <= lambda_1``; that is `worst_case_error`. The optimal
rule knows theta, so that for it the maximum over the whole space is meaningful:
`optimal_worst_case`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ebda.theory.rates import bayes_error, check_class_prior, class_errors, rule_margins
from ebda.typing import FloatArray


def optimal_worst_case(
    c_p: float, lambda_1: float, class_prior: tuple[float, float] = (0.5, 0.5)
) -> float:
    """Worst-case error of the optimal rule (equation 6).

    ``Phi(-sqrt(C_p) / (2 sqrt(lambda_1)))``, since ``d' S^-1 d >= C_p / lambda_1``.
    It is attained when ``D^-1/2 d`` is an eigenvector of R with eigenvalue lambda_1.
    For unequal class probabilities it is the error of the Bayes rule at that distance,
    by the same argument.

    Parameters
    ----------
    c_p : float
        ``d' D^-1 d``; see `ebda.theory.c_p`.
    lambda_1 : float
        Bound on the largest eigenvalue of the correlation matrix, at least 1.
    class_prior : tuple of two floats
        Class probabilities.

    Examples
    --------
    >>> from ebda.theory import optimal_worst_case
    >>> round(optimal_worst_case(c_p=16.0, lambda_1=4.0), 4)
    0.1587
    """
    _check_space(c_p, lambda_1)
    return bayes_error(c_p / lambda_1, check_class_prior(class_prior))


def worst_case_error(
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    mean1: npt.ArrayLike,
    mean2: npt.ArrayLike,
    variance: npt.ArrayLike,
    lambda_1: float,
    class_prior: tuple[float, float] = (0.5, 0.5),
) -> float:
    """Worst-case error of a given rule over the correlations of the features.

    The maximum of `error_rate` over all R with ``lambda_max(R) <= lambda_1``, for the
    given means and variances D.

    Parameters
    ----------
    coef, intercept, mean1, mean2, class_prior
        As for `error_rate`.
    variance : float or array-like of shape (n_features,)
        D, the variances of the features.
    lambda_1 : float
        Bound on the largest eigenvalue of the correlation matrix, at least 1.

    Notes
    -----
    The error depends on R only through ``v = u' R u`` with ``u = D^1/2 a``. The largest
    v subject to ``R_ii <= 1, R <= lambda_1 I`` is a semidefinite program whose dual
    has a closed-form solution:

        ``v_max = (w' |u|)^2``, ``w_i = min(1, t |u_i|)``, ``sum_i w_i^2 = lambda_1``

    where w is one on the support of u if that has fewer than lambda_1 elements.
    Therefore ``v_max <= min(lambda_1 ||u||^2, ||u||_1^2)``. The first term is the bound
    in the proof of Theorem 1, with equality when no weight dominates
    (``u_i^2 <= ||u||^2 / lambda_1``). The smallest v follows from the same argument for
    ``(lambda_1 I - R) / (lambda_1 - 1)``, and all values in between are attained.

    Both ends are attained by a correlation matrix, and the result is then the exact
    maximum, if the features with ``w_i < 1`` can cancel in the remaining variance: none
    of the lengths ``|u_i| sqrt(1 - w_i^2)`` exceeds the sum of the others. Otherwise
    (for example if a single feature remains) the result is an upper bound.

    The error in a class whose mean is on the correct side of the boundary is largest at
    v_max, and in a class on the wrong side at v_min. With one of each, the maximum may
    lie in between, where the derivative of the average vanishes.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.theory import error_rate, worst_case_error
    >>> rule = np.ones(4), 0.0, np.full(4, -1.0), np.full(4, 1.0)
    >>> round(error_rate(*rule, 1.0), 4)
    0.0228
    >>> round(worst_case_error(*rule, variance=1.0, lambda_1=4.0), 4)
    0.1587
    """
    pi1, pi2 = check_class_prior(class_prior)
    _check_space(0.0, lambda_1)
    if np.ndim(variance) > 1:
        raise ValueError("variance must be a number or a vector, the diagonal of D")
    first, second, a, D = rule_margins(coef, intercept, mean1, mean2, variance)
    low, high = variance_range(np.sqrt(D.diagonal(a.size)) * a, lambda_1)
    m1, m2 = -first, second
    candidates = [low, high]
    # Zero of the derivative of the average error, for margins of opposite sign.
    if m1 * m2 < 0 and pi1 * pi2 > 0 and abs(m1) != abs(m2):
        balance = 2 * np.log(pi1 * abs(m1) / (pi2 * abs(m2)))
        middle = (m1**2 - m2**2) / balance if balance else np.inf
        candidates += [middle] if low < middle < high else []
    errors = (class_errors(first, second, np.sqrt(v)) for v in candidates)
    return max(pi1 * e1 + pi2 * e2 for e1, e2 in errors)


def variance_range(u: FloatArray, lambda_1: float) -> tuple[float, float]:
    """Smallest and largest ``u' R u`` over correlation matrices with R <= lambda_1 I.

    >>> low, high = variance_range(np.array([1.0, 1.0]), lambda_1=1.5)
    >>> round(low, 12), round(high, 12)
    (1.0, 3.0)
    """
    u = np.sort(np.abs(u[u != 0]))[::-1]
    total = float(u @ u)
    if lambda_1 == 1 or u.size == 0:
        return total, total
    mirrored = _largest_form(u, lambda_1 / (lambda_1 - 1))
    low = lambda_1 * total - (lambda_1 - 1) * mirrored
    return max(low, 0.0), _largest_form(u, lambda_1)


def theorem1_bound(
    n: npt.ArrayLike,
    c_p: npt.ArrayLike,
    s_n: npt.ArrayLike,
    eps_n: npt.ArrayLike,
    lambda_1: npt.ArrayLike,
    constant: float = 1.0,
) -> FloatArray:
    """Leading term of the bound of Theorem 1 on the worst-case error.

    With k = `constant` in place of every ``O_p(1)``,

        ``Phi(-(sqrt(n/8) C_p - k sqrt(s_n eps_n / n) - k sqrt(eps_n C_p)
        - k sqrt(C_p)) / (sqrt(lambda_1) (sqrt(n C_p / 2) + k sqrt(eps_n))))``.

    The theorem gives no constants: k = 1 shows the relative size of the terms, and is
    no guarantee for a given n. (In the proof each of the five error terms of the
    numerator has a factor of one half before its own O_p.) With ``constant=0`` the
    result is the limit ``Phi(-sqrt(C_p) / (2 sqrt(lambda_1)))`` in the second part of
    the theorem, which is `optimal_worst_case`. The bound converges to it if
    ``eps_n / n``, ``sqrt(s_n eps_n) / n`` and ``1 / n`` are small compared to C_p.

    Parameters
    ----------
    n : array-like
        Samples per class. All parameters broadcast against each other.
    c_p : array-like
        ``d' D^-1 d``; positive.
    s_n : array-like
        Number of features that differ between the classes.
    eps_n : array-like
        ``E ||eta_hat - eta||^2`` over those features.
    lambda_1 : array-like
        Bound on the largest eigenvalue of the correlation matrix.
    constant : float
        The constant k.

    Returns
    -------
    float or ndarray
        Above one half where the bound is vacuous.

    Examples
    --------
    >>> from ebda.theory import theorem1_bound
    >>> theorem1_bound([100, 10_000, 10**8], 16.0, 10, 20, 1.0).round(4)
    array([0.1549, 0.0292, 0.0228])
    """
    xi, tau = bound_terms(n, c_p, s_n, eps_n, lambda_1, constant)
    bound: FloatArray = ndtr(-np.sqrt(xi) * (1 - tau))
    return bound


def bound_terms(
    n: npt.ArrayLike,
    c_p: npt.ArrayLike,
    s_n: npt.ArrayLike,
    eps_n: npt.ArrayLike,
    lambda_1: npt.ArrayLike,
    constant: float,
) -> tuple[FloatArray, FloatArray]:
    """xi and tau, with which the bound of Theorem 1 is ``Phi(-sqrt(xi) (1 - tau))``.

    ``xi = C_p / (4 lambda_1)``. tau is computed from its terms: as a difference it
    would lose the digits that Theorem 2 is about.

    Parameters
    ----------
    n, c_p, s_n, eps_n, lambda_1, constant
        As for `theorem1_bound`.
    """
    n, c, s, eps, lam = (
        np.asarray(x, dtype=np.float64) for x in (n, c_p, s_n, eps_n, lambda_1)
    )
    if not ((n > 0).all() and (c > 0).all() and (s >= 0).all() and (eps >= 0).all()):
        raise ValueError("n and c_p must be positive, s_n and eps_n non-negative")
    if not (lam >= 1).all():
        raise ValueError("lambda_1 must be at least 1, because R has trace p")
    of_signal, of_noise = np.sqrt(n / 2) * c, np.sqrt(eps * c)
    lost = np.sqrt(s * eps / n) + of_noise + np.sqrt(c)
    tau = constant * (of_noise + 2 * lost) / (of_signal + constant * of_noise)
    return c / (4 * lam), tau


def _largest_form(u: FloatArray, lambda_1: float) -> float:
    """``(w' u)^2`` of the notes above, for positive u in descending order."""
    if lambda_1 >= u.size:
        return float(u.sum() ** 2)
    tail = np.cumsum((u * u)[::-1])[::-1]
    # w_i = 1 for the first k features: the smallest k that leaves w < 1 to the next.
    k = np.arange(u.size)
    square_of_t = (lambda_1 - k) / tail
    capped = int(np.argmax(square_of_t * u * u <= 1))
    t = np.sqrt(square_of_t[capped])
    return float((u[:capped].sum() + t * tail[capped]) ** 2)


def _check_space(c_p: float, lambda_1: float) -> None:
    if not c_p >= 0:
        raise ValueError(f"c_p must be non-negative, got {c_p!r}")
    if not lambda_1 >= 1:
        raise ValueError(
            f"lambda_1 must be at least 1, because R has trace p; got {lambda_1!r}"
        )
