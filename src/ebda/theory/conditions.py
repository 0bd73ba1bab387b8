"""Conditions 1 and 2 of the paper, for a given estimator of eta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from ebda.theory.covariances import vector
from ebda.theory.quadrature import Estimate, panel_rule, switch_points
from ebda.typing import FloatArray

# The range in which the threshold is sought, and the last shell of the tail.
_Z_MAX = 64.0
_GRID_STEP = 1 / 64
_LAST_SHELL = 40


@dataclass(frozen=True)
class Conditions:
    """What `check_conditions` found.

    Parameters
    ----------
    threshold : float
        The largest b_n such that ``eta_hat = 0`` whenever ``|z| <= b_n``; 0.0 if
        there is none.
    fourth_moment : float
        ``E eta_hat^4`` for a feature with ``eta = 0``; may be infinite.
    """

    threshold: float
    fourth_moment: float

    @property
    def condition1(self) -> bool:
        """Whether the estimator is zero for small ``|z|``."""
        return self.threshold > 0

    @property
    def condition2(self) -> bool:
        """Whether the fourth moment of the estimator is finite where eta is zero."""
        return bool(np.isfinite(self.fourth_moment))


def check_conditions(
    eta_hat: Estimate | npt.ArrayLike,
    z: npt.ArrayLike | None = None,
    df: float | None = None,
) -> Conditions:
    """Check whether an estimator of eta meets Conditions 1 and 2 of Theorem 1.

    Condition 1: there is a ``b_n > 0`` with ``eta_hat = 0`` for all ``|z| <= b_n``
    (the theorem also requires b_n to grow faster than ``sqrt(log p)`` and slower than
    ``sqrt(n)``).
    Condition 2: ``E eta_hat^4 < inf`` where ``eta = 0``, with z from N(0, 1) or, for
    estimated variances, from the t distribution.

    Parameters
    ----------
    eta_hat : function, or array-like of shape (p,)
        A function that maps an array of z to the estimates, or the estimates
        themselves. These are interpolated linearly in z and extrapolated with slope
        one; the threshold is then the largest observed ``|z|`` below all of those
        with a nonzero estimate.
    z : array-like of shape (p,), optional
        The values that the estimates were computed from; not for a function.
    df : float, optional
        Degrees of freedom of z, ``2n - 2`` in the paper. By default z is normal.

    Returns
    -------
    Conditions

    Notes
    -----
    The threshold is sought in steps of 1/64 up to ``|z| = 64``, which is returned for
    an estimator that is zero throughout, and then refined by bisection. The fourth
    moment is computed by Gauss-Legendre quadrature, on panels that end where the
    estimator becomes zero and on shells ``2^j < |z| <= 2^(j+1)`` in the tail. It is
    infinite if the contributions of the last shells do not decrease; otherwise the
    remainder is a geometric series.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.theory import check_conditions
    >>> def hard(z):
    ...     return np.where(abs(z) > 3.0, z, 0.0)
    >>> found = check_conditions(hard)
    >>> found.threshold, round(found.fourth_moment, 4), found.condition2
    (3.0, 0.3272, True)
    >>> check_conditions(hard, df=4)
    Conditions(threshold=3.0, fourth_moment=inf)
    >>> check_conditions(np.tanh).condition1
    False
    """
    if df is not None and not df > 0:
        raise ValueError(f"df must be positive, got {df!r}")
    if callable(eta_hat):
        if z is not None:
            raise ValueError("z must not be given if eta_hat is a function")
        half = np.arange(_GRID_STEP, _Z_MAX + _GRID_STEP, _GRID_STEP)
        zero, _ = switch_points(eta_hat, np.concatenate([-half[::-1], [0.0], half]))
        threshold = _threshold(eta_hat, zero)
        return Conditions(threshold, _fourth_moment(eta_hat, zero, df))
    if z is None:
        raise ValueError("z must be given if eta_hat is an array")
    values = vector("z", z)
    estimates = vector("eta_hat", eta_hat, values.size)
    size, nonzero = np.abs(values), estimates != 0
    first = size[nonzero].min(initial=np.inf)
    threshold = float(size[size < first].max(initial=0.0))
    moment = _fourth_moment(_interpolated(values, estimates), values, df)
    return Conditions(threshold, moment)


def _threshold(eta_hat: Estimate, zero: FloatArray) -> float:
    if eta_hat(np.zeros(1))[0] != 0:
        return 0.0
    return float(np.abs(zero).min(initial=_Z_MAX))


def _fourth_moment(eta_hat: Estimate, jumps: FloatArray, df: float | None) -> float:
    """``E eta_hat(z)^4`` for null z."""
    core = np.arange(0.0, 16.5, 0.5)
    shells = 2.0 ** np.arange(5, _LAST_SHELL + 1)
    half = np.concatenate([core[1:], shells])
    edges = np.unique(np.concatenate([-half, [0.0], half, jumps]))
    nodes, weights = panel_rule(edges)
    fourth = eta_hat(nodes) ** 4
    if not np.isfinite(fourth).all():
        raise ValueError("eta_hat must be finite for every finite z")
    null = stats.norm if df is None else stats.t(df)
    terms = weights * fourth * null.pdf(nodes)
    far = np.abs(nodes)
    last, before = (
        float(terms[(far > shells[-j - 1]) & (far < shells[-j])].sum()) for j in (1, 2)
    )
    ratio = last / before if before > 0 else 0.0
    if ratio > 1 - 1e-6:
        return float("inf")
    return float(terms.sum()) + last * ratio / (1 - ratio)


def _interpolated(z: FloatArray, estimates: FloatArray) -> Estimate:
    order = np.argsort(z, kind="stable")
    x, y = z[order], estimates[order]

    def function(values: FloatArray) -> FloatArray:
        beyond = values - np.clip(values, x[0], x[-1])
        result: FloatArray = np.interp(values, x, y) + beyond
        return result

    return function
