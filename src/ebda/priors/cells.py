"""Values grouped into narrow cells, so that fitting a prior stops growing with p.

A prior sees the values only through sums over them. Values that lie close together are
therefore replaced by their common mean and their number; what is lost is the variance
within a cell, which is at most ``width**2 / 12`` of a noise variance of one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.kernels.cells import cell_sums, round_to_steps
from ebda.priors.posterior import all_equal
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# A cell is this wide up to `_LINEAR`, and grows in proportion to z beyond: no data have
# more than 13,000 cells up to z = 1e6. Posterior means of a converged Dirichlet process
# then differ by less than 1e-3 (tests/test_dirichlet_process.py), where both fits end
# in the same optimum.
_WIDTH = 0.02
_LINEAR = 10.0
# Squares of values up to this, in units of the noise, keep twelve digits behind the
# point.
_NEAR = 64.0
# Cells that make a wider one.
_WIDER = 4
# Values are rounded to this part of the noise scale, far below what matters.
_STEP = 2.0**-24
# Relative width of a cell in the noise scale, where values differ in it.
_SCALE_WIDTH = 0.02


@dataclass(frozen=True, eq=False)
class Cells:
    """Values, grouped: `count` values at `value` with noise `precision` each.

    `within` is the sum of ``lambda (Y - value)**2`` lost by grouping. With phi equal
    within a cell the bound below is exact, so that of binned values is still a lower
    bound of their evidence.
    """

    value: FloatArray
    count: FloatArray
    precision: FloatArray
    within: float = 0.0

    def wider(self) -> Cells:
        """The same values in cells `_WIDER` times as wide, up to `_LINEAR`.

        For a first search, whose result is refined on the cells themselves. Farther
        out they are not made wider.
        """
        if np.ptp(self.precision) > 0:
            return self
        place = _place(self.value)
        near = np.abs(self.value) <= _LINEAR
        place[near] //= _WIDER
        starts = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
        count = np.add.reduceat(self.count, starts)
        value = np.add.reduceat(self.count * self.value, starts) / count
        members = np.diff(starts, append=len(place))
        lost = self.count @ (self.value - np.repeat(value, members)) ** 2
        within = self.within + float(self.precision[0] * lost)
        return Cells(value, count, self.precision[starts], within)

    @cached_property
    def columns(self) -> FloatArray:
        """Terms of statistics, one row per cell: count times 1, lambda, lambda Y."""
        weight = self.count * self.precision
        return np.stack([self.count, weight, weight * self.value], axis=-1)

    @cached_property
    def is_far(self) -> npt.NDArray[np.bool_]:
        """Whether the square of a value loses digits that matter."""
        far: npt.NDArray[np.bool_] = self.precision * self.value**2 > _NEAR**2
        return far

    @cached_property
    def powers(self) -> FloatArray:
        """1, lambda, lambda Y and ``-lambda/2 Y**2``, one column per cell."""
        weighted = self.precision * self.value
        square = -0.5 * weighted * self.value
        return np.stack([np.ones_like(square), self.precision, weighted, square])

    @cached_property
    def log_noise(self) -> FloatArray:
        """Log of the constants of the normal densities, summed."""
        log_noise = 0.5 * (np.log(self.precision) - np.log(2 * np.pi))
        total: FloatArray = np.sum(self.count * log_noise, axis=-1)
        return total


def each_value(z: FloatArray, scale: FloatArray) -> Cells:
    """A cell for each value."""
    return Cells(z, np.ones(len(z)), scale**-2.0)


def group(z: FloatArray, scale: FloatArray) -> Cells:
    """Values as cells: one per value if there are few, else binned with equal sums.

    Values are rounded to `_STEP` and sorted. The last digits of z depend on the order
    in which the data were added up, and where two optima are close such digits could
    decide between them.
    """
    equal = all_equal(scale)
    if len(z) < sizes.binned_values:
        z = round_to_steps(z, _STEP)
        order = np.argsort(z, kind="stable") if equal else np.lexsort((scale, z))
        return each_value(z[order], scale[order])
    return _group_equal(z, float(scale[0])) if equal else _group_mixed(z, scale)


def _place(z: FloatArray) -> IntArray:
    """Number of the cell that a value lies in."""
    place = z * (1 / _WIDTH)
    if max(-z.min(), z.max()) > _LINEAR:
        far = np.flatnonzero(np.abs(z) > _LINEAR)
        size = np.abs(z[far])
        place[far] = np.sign(z[far]) * (1 + np.log(size / _LINEAR)) * _LINEAR / _WIDTH
    return np.floor(place, out=place).astype(np.int64)


def _group_equal(z: FloatArray, scale: float) -> Cells:
    """Cells of equal width up to `_LINEAR`; what lies farther out is sorted first."""
    size = 2 * int(np.ceil(_LINEAR / _WIDTH)) + 3
    sums = cell_sums(z, _STEP, _WIDTH, _LINEAR, size)
    used = np.flatnonzero(sums.counts)
    members, excess = (row[used].astype(float) for row in (sums.counts, sums.excess))
    left = np.rint((used - size // 2) * (_WIDTH / _STEP))
    value = (left * members + excess) * _STEP / members
    lost = max(sums.squares - float(excess @ (excess / members)), 0.0) * _STEP**2
    far = np.sort(sums.beyond)
    sides = _group_far(far[far < 0]), (value, members, lost), _group_far(far[far > 0])
    values, numbers = (np.concatenate([side[k] for side in sides]) for k in (0, 1))
    precision = scale**-2.0
    within = sum(lost for *_, lost in sides) * precision
    return Cells(values, numbers, np.full(len(values), precision), within)


def _group_far(x: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Means, counts and sum of squares within, for sorted values of one sign."""
    if not len(x):
        return x, x, 0.0
    starts = np.flatnonzero(np.diff(_place(x), prepend=np.nan))
    count = np.diff(starts, append=len(x))
    value = np.add.reduceat(x, starts) / count
    lost = float(np.sum((x - np.repeat(value, count)) ** 2))
    return value, count.astype(np.float64), lost


def _group_mixed(z: FloatArray, scale: FloatArray) -> Cells:
    z = round_to_steps(z, _STEP)
    cell = _place(z)
    cell -= cell.min()
    layer = np.floor(np.log(scale) / _SCALE_WIDTH).astype(np.int64)
    layer -= layer.min()
    cell += layer * (cell.max() + 1)
    if cell.max() > 16 * len(z):
        _, cell = np.unique(cell, return_inverse=True)
    count = np.bincount(cell)
    used = count > 0
    members = count[used].astype(np.float64)
    precision = scale**-2.0
    weight = np.bincount(cell, weights=precision)[used]
    value = np.bincount(cell, weights=precision * z)[used] / weight
    square = np.bincount(cell, weights=precision * z * z)[used]
    within = float(np.maximum(square - weight * value * value, 0).sum())
    return Cells(value, members, weight / members, within)
