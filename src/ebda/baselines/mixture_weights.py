"""Maximum likelihood weights of a mixture of given densities, with a certificate.

With the likelihoods ``L_it`` of value i under atom t and ``f_i = sum_t w_t L_it``, the
weights maximise ``mean_i log f_i`` exactly when ``D_t = mean_i L_it / f_i <= 1`` for
all t, and ``max_t D_t - 1`` bounds what is still to be gained (Lindsay 1983): the
duality gap. Steps of EM from equal weights are followed by Newton steps over the atoms
in use and the local maxima of D on the grid (Wang 2007), as for one dimension and
normal noise in :mod:`ebda.priors.kiefer_wolfowitz`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter
from scipy.optimize import nnls

from ebda.typing import FloatArray

_EM_STEPS = 30
# After EM, atoms below this part of equal weights are left to come back as maxima.
_DROPPED = 0.01
_UNCOVERED = 1e-12
_ARMIJO = 1e-4
_ROUNDING = 1e-14
_MAX_HALVINGS = 30
_PATIENCE = 5
_NNLS_STEPS = 50


@dataclass(frozen=True, eq=False)
class MixtureWeights:
    """Weights, their duality gap, and the number of Newton steps."""

    weights: FloatArray
    gap: float
    n_iter: int


def mixture_weights(
    log_likelihood: FloatArray, shape: tuple[int, ...], tol: float, max_iter: int
) -> MixtureWeights:
    """Maximise the likelihood of a mixture over its weights.

    Parameters
    ----------
    log_likelihood : ndarray of shape (n_values, n_atoms)
        Logs of densities, up to a constant for each value.
    shape : tuple of int
        The grid that the atoms form, in C order.
    tol : float
        Duality gap to reach.
    max_iter : int
        Most Newton steps.

    Examples
    --------
    >>> L = np.log([[0.9, 0.1], [0.8, 0.3], [0.1, 0.9]])
    >>> found = mixture_weights(L, (2,), 1e-10, 50)
    >>> found.weights.round(3), found.gap < 1e-10
    (array([0.648, 0.352]), True)
    """
    top = log_likelihood.max(axis=1, keepdims=True)
    L = np.exp(log_likelihood - top)
    weights = _start(L)
    best, best_gap, idle = weights, np.inf, 0
    for n_iter in range(max_iter + 1):
        ratio = 1 / (L @ weights)
        d = ratio @ L / len(L)
        gap = float(d.max()) - 1
        if gap < best_gap:
            best, best_gap, idle = weights, gap, 0
        if gap <= tol or idle > _PATIENCE or n_iter == max_iter:
            break
        columns = np.flatnonzero((weights > 0) | _peaks(d, shape))
        scaled = L[:, columns] * ratio[:, None]
        target = _newton_target(scaled)
        gain, step = _step(scaled @ target)
        idle = idle + 1 if gain <= _ROUNDING else 0
        moved = (1 - step) * weights[columns] + step * target
        weights = np.zeros(L.shape[1])
        weights[columns] = moved
    return MixtureWeights(best, best_gap, n_iter)


def _start(L: FloatArray) -> FloatArray:
    """Some steps of EM; the larger weights, and enough for every value."""
    n, n_atoms = L.shape
    weights = np.full(n_atoms, 1 / n_atoms)
    for _ in range(_EM_STEPS):
        weights *= (1 / (L @ weights)) @ L / n
    weights[weights < _DROPPED / n_atoms] = 0.0
    uncovered = L @ weights < _UNCOVERED
    nearest = L[uncovered].argmax(axis=1)
    weights += np.bincount(nearest, minlength=n_atoms) / n
    total: FloatArray = weights / weights.sum()
    return total


def _peaks(d: FloatArray, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Local maxima above one."""
    on_grid = d.reshape(shape)
    peaks = (on_grid > 1) & (on_grid == maximum_filter(on_grid, 3, mode="nearest"))
    flat: npt.NDArray[np.bool_] = peaks.ravel()
    return flat


def _newton_target(scaled: FloatArray) -> FloatArray:
    """Weights that maximise the second order expansion of the likelihood.

    ``min mean_i (sum_t S_it v_t - 2)**2 + (sum_t v_t)**2`` with ``v >= 0`` (Wang 2007),
    by a triangular factor.
    """
    n, q = scaled.shape
    system = np.column_stack([scaled, np.full(n, 2.0)]) / np.sqrt(n)
    system = np.vstack([np.append(np.ones(q), 0.0), system])
    factor = np.asarray(np.linalg.qr(system, mode="r"))
    target: FloatArray = nnls(factor[:, :-1], factor[:, -1], maxiter=_NNLS_STEPS * q)[0]
    target /= target.sum()
    return target


def _step(ratio: FloatArray) -> tuple[float, float]:
    """The gain of the longest of 1, 1/2, 1/4, ... that gains enough, and the step."""
    change = ratio - 1
    slope = float(change.mean())
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        if 1 + step * change.min() > 0:
            gain = float(np.log1p(step * change).mean())
            if gain >= _ARMIJO * step * slope - _ROUNDING:
                return gain, step
        step /= 2
    return 0.0, 0.0
