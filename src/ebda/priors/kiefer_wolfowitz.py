"""Maximum likelihood of a mixing distribution on a grid of atoms.

The components of :mod:`ebda.priors.mixture_weights` are the points of a grid: a value
has the likelihood ``f(z | a) = N(z; a, scale**2)``, and the optimality condition is
``D(a) = sum_k c_k f(z_k | a) / f_w(z_k) <= 1`` on the whole grid (Kiefer and Wolfowitz
1956). Likelihoods are computed anew in each pass, so that memory grows neither with the
values nor with the grid.

References
----------
Kiefer and Wolfowitz (1956), Annals of Mathematical Statistics 27, 887-906.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.kernels.atoms import weight_blocks
from ebda.priors.mixture_weights import Weights, maximise
from ebda.typing import FloatArray, IntArray

# A value whose log-likelihood is lower by this under the nearest atom in use than under
# the nearest one of the grid gets some weight there before the first step.
_UNCOVERED = 30.0


@dataclass(frozen=True, eq=False)
class WeightedValues:
    """Values, the noise scale of each, and their shares, which sum to one."""

    value: FloatArray
    scale: FloatArray
    share: FloatArray


@dataclass(frozen=True, eq=False)
class GridLikelihood:
    """Likelihoods of the points of a grid."""

    sample: WeightedValues
    grid: FloatArray

    @property
    def size(self) -> int:
        return len(self.grid)

    @property
    def least_share(self) -> float:
        return float(self.sample.share.min())

    def blocks(
        self, columns: IntArray | slice
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        sample, atoms = self.sample, self.grid[columns]
        no_weights = np.zeros(len(atoms))
        for rows, likelihood, _ in weight_blocks(
            sample.value, sample.scale, atoms, no_weights
        ):
            yield sample.share[rows], likelihood


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


def maximise_on_grid(
    sample: WeightedValues,
    grid: FloatArray,
    weights: FloatArray,
    tol: float,
    max_iter: int,
) -> Weights:
    """Weights of the atoms on the grid, from given ones."""
    start = _cover(sample, grid, weights)
    return maximise(GridLikelihood(sample, grid), start, tol, max_iter)
