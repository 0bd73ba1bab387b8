"""Maximum likelihood of a mixing distribution on a grid, by constrained Newton steps.

With ``f_w(z) = sum_t w_t f(z | a_t)``, shares ``c_k`` of the values (sum one) and

    D(a) = sum_k c_k f(z_k | a) / f_w(z_k),

weights w maximise the average log-likelihood ``sum_k c_k log f_w(z_k)`` exactly when
``D(a_t) <= 1`` on the whole grid (Lindsay 1983). Away from the maximum,
``max_t D(a_t) - 1`` bounds what is still to be gained, by concavity: the duality gap.

A step maximises the second order expansion of the log-likelihood over non-negative
weights. With ``S_kt = f(z_k | a_t) / f_w(z_k)`` that is the least squares problem
``min sum_k c_k (S_k. v - 2)**2 + (sum_t v_t)**2``, ``v >= 0``, whose columns are the
atoms in use and the local maxima of D (Wang 2007); then the step is halved until the
likelihood rises enough. Values pass in blocks, and only a triangular factor of the few
columns is kept, so memory grows neither with the values nor with the grid.

References
----------
Kiefer and Wolfowitz (1956), Annals of Mathematical Statistics 27, 887-906.
Lindsay (1983), Annals of Statistics 11, 86-94.
Wang (2007), Journal of the Royal Statistical Society B 69, 185-198.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from ebda.kernels.atoms import weight_blocks
from ebda.typing import FloatArray

# Share of the first order gain that a step must reach.
_ARMIJO = 1e-4
# Rounding error of an average log-likelihood: smaller losses cannot be told from gains.
_ROUNDING = 1e-14
# Steps with neither a gain nor a smaller gap after which only rounding is left.
_PATIENCE = 5
# Limit of steps of non-negative least squares per column; a handful is usual.
_NNLS_STEPS = 50
# Halvings after which the search for a step gives up.
_MAX_HALVINGS = 30
# A value whose log-likelihood is lower by this under the nearest atom in use than under
# the nearest one of the grid gets some weight there before the first step.
_UNCOVERED = 30.0
# Weights below this part of tol / n cannot move the gap by 1 % of tol and are dropped.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, eq=False)
class WeightedValues:
    """Values, the noise scale of each, and their shares, which sum to one."""

    value: FloatArray
    scale: FloatArray
    share: FloatArray


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the atoms on the grid, their duality gap, and the number of steps."""

    weights: FloatArray
    gap: float
    n_iter: int


def occupied_grid(value: FloatArray, scale: FloatArray, n_grid: int) -> FloatArray:
    """About `n_grid` points, one of them zero, evenly spread over where atoms can be.

    The likelihood ``f(z | a)`` is convex in a beyond one noise scale of z, so D has no
    maximum, and the unrestricted estimate no atom, where no value is that near. The
    points are spread over the rest of the data's range: for most data all of it, but
    an outlier takes no points from the others.

    >>> occupied_grid(np.array([-1.0, 1.0, 2.5]), np.ones(3), 8)
    array([-1. , -0.5,  0. ,  0.5,  1. ,  1.5,  2. ,  2.5])
    >>> occupied_grid(np.array([-1.0, 1.0, 1e6]), np.ones(3), 9).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 999999.0, 999999.5, 1000000.0]
    """
    first, last = value.min(), value.max()
    order = np.argsort(value - scale, kind="stable")
    left = np.maximum(value - scale, first)[order]
    right = np.maximum.accumulate(np.minimum(value + scale, last)[order])
    gap = left[1:] > right[:-1]
    left, right = left[np.append(True, gap)], right[np.append(gap, True)]
    # Places along the intervals laid end to end; zero is on the lattice of places.
    start = np.append(0.0, np.cumsum(right - left))
    length = start[-1]
    step = length / (n_grid - 1)
    if step == 0:
        return np.union1d(value, 0.0)
    zero = float(np.clip(-left, 0, right - left).sum())
    begin = round(-zero / step)
    count = round((length - zero) / step) - begin + 1
    place = np.clip(zero + (begin + np.arange(count)) * step, 0, length)
    piece = np.searchsorted(start[:-1], place, side="right") - 1
    points = left[piece] + (place - start[piece])
    points[0], points[-1] = first, last
    points[np.abs(points) < 1e-6 * step] = 0.0
    return np.union1d(points, 0.0)


def nearest(grid: FloatArray, value: FloatArray) -> npt.NDArray[np.intp]:
    """Index of the nearest point of an ascending grid."""
    return np.searchsorted((grid[1:] + grid[:-1]) / 2, value)


def histogram(sample: WeightedValues, grid: FloatArray) -> FloatArray:
    """Start weights: the share of the values that are nearest to each point."""
    weights = np.zeros(len(grid))
    np.add.at(weights, nearest(grid, sample.value), sample.share)
    return weights


def _cover(sample: WeightedValues, grid: FloatArray, weights: FloatArray) -> FloatArray:
    """Put some weight next to values whose likelihood is practically zero."""
    used = grid[weights > 0]
    closest = nearest(grid, sample.value)
    near = (sample.value - grid[closest]) / sample.scale
    far = (sample.value - used[nearest(used, sample.value)]) / sample.scale
    lost = (far - near) * (far + near) > 2 * _UNCOVERED
    added = np.bincount(closest[lost], weights=sample.share[lost], minlength=len(grid))
    total: FloatArray = (weights + added) / (1 + added.sum())
    return total


def gradient(
    sample: WeightedValues, grid: FloatArray, weights: FloatArray
) -> FloatArray:
    """D at each point of the grid."""
    out = np.zeros(len(grid))
    for rows, likelihood, _ in _blocks(sample, grid):
        out += likelihood @ (sample.share[rows] / (weights @ likelihood))
    return out


def _blocks(
    sample: WeightedValues, grid: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Likelihoods of the atoms (rows), up to a factor for each value."""
    return weight_blocks(sample.value, sample.scale, grid, np.zeros(len(grid)))


def _newton_weights(
    sample: WeightedValues, atoms: FloatArray, weights: FloatArray
) -> FloatArray:
    """The maximiser of the second order expansion at `weights`, not normalised."""
    factor: FloatArray = np.append(np.ones(len(atoms)), 0.0)[None, :]
    for rows, likelihood, _ in _blocks(sample, atoms):
        root = np.sqrt(sample.share[rows])
        ratio = likelihood * (root / (weights @ likelihood))
        system = np.vstack([ratio, 2 * root]).T
        factor = np.asarray(np.linalg.qr(np.vstack([factor, system]), mode="r"))
    solution: FloatArray = nnls(
        factor[:, :-1], factor[:, -1], maxiter=_NNLS_STEPS * len(atoms)
    )[0]
    return solution


def _density_ratio(
    sample: WeightedValues,
    atoms: FloatArray,
    numerator: FloatArray,
    denominator: FloatArray,
) -> FloatArray:
    """f_w / f_v at each value."""
    ratio = np.empty(len(sample.value))
    for rows, likelihood, _ in _blocks(sample, atoms):
        ratio[rows] = (numerator @ likelihood) / (denominator @ likelihood)
    return ratio


def _step(sample: WeightedValues, ratio: FloatArray) -> tuple[float, float]:
    """Longest of 1, 1/2, 1/4, ... that raises the likelihood enough, and its gain."""
    change = ratio - 1
    slope = float(sample.share @ change)
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        if 1 + step * change.min() > 0:
            gain = float(sample.share @ np.log1p(step * change))
            if gain >= _ARMIJO * step * slope - _ROUNDING:
                return step, gain
        step /= 2
    return 0.0, 0.0


def _peaks(d: FloatArray) -> npt.NDArray[np.bool_]:
    """Local maxima above one, and those of their neighbours that are above one."""
    padded = np.pad(d, 1, constant_values=-np.inf)
    peak = (d > 1) & (d >= padded[:-2]) & (d >= padded[2:])
    beside = np.pad(peak, 1)
    return (d > 1) & (peak | beside[:-2] | beside[2:])


def maximise(
    sample: WeightedValues,
    grid: FloatArray,
    weights: FloatArray,
    tol: float,
    max_iter: int,
) -> Weights:
    """Newton steps from given weights until the duality gap is at most `tol`.

    Stops early when no step helps any more. Returns the weights with the smallest gap.
    """
    weights = _cover(sample, grid, weights)
    negligible = _NEGLIGIBLE * min(tol, 1.0) * float(sample.share.min())
    best, best_gap, idle = weights, np.inf, 0
    for n_iter in range(max_iter + 1):
        d = gradient(sample, grid, weights)
        gap = float(d.max()) - 1
        if gap < best_gap:
            best, best_gap, idle = weights, gap, 0
        if gap <= tol or idle > _PATIENCE or n_iter == max_iter:
            break
        columns = np.flatnonzero((weights > 0) | _peaks(d))
        atoms, current = grid[columns], weights[columns]
        target = _newton_weights(sample, atoms, current)
        target[target < negligible * target.sum()] = 0.0
        target /= target.sum()
        step, gain = _step(sample, _density_ratio(sample, atoms, target, current))
        idle = idle + 1 if gain <= _ROUNDING else 0
        weights = np.zeros(len(grid))
        weights[columns] = (1 - step) * current + step * target
    return Weights(best, best_gap, n_iter)
