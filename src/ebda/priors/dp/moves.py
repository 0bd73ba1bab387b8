"""Merge, birth and split moves: what coordinate ascent cannot do by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ebda.priors.cells import Cells
from ebda.priors.discrete import DiscretePrior
from ebda.priors.dp.ascent import Ascent, order_by_size
from ebda.priors.dp.variational import Components, bounds_at, components, statistics
from ebda.typing import FloatArray

# Width of the cells of z in which an atom may lie if they hold any value.
_WIDTH = 0.5
# Components are merged with their neighbours in order of location, and only if none of
# these merges helps with the second and third next.
_MERGE_REACHES = ((1,), (2, 3))
# Steps after which a birth must have raised the bound.
_BIRTH_STEPS = 30
# A birth is not tried if the likelihood gains less than what the bound must gain,
# divided by this. In births that succeeded it never gained less than 0.9 times that.
_HOPELESS = 3.0
# Effects, in standard errors, that an atom close to zero may stand for.
_SPLIT_EFFECTS = (0.5, 1.0, 2.0)


def occupied(value: FloatArray) -> FloatArray:
    """Middles of the cells that hold any value."""
    return (np.unique(np.floor(value / _WIDTH)) + 0.5) * _WIDTH


def merge(ascent: Ascent) -> bool:
    """Merge pairs of components, best first, while that raises the bound; any done."""
    merged = False
    while _merge_round(ascent):
        merged = True
    return merged


def _merge_round(ascent: Ascent) -> bool:
    q = components(ascent.stats, ascent.model)
    used = np.flatnonzero(q.used)
    by_location = used[np.argsort(q.atoms[used], kind="stable")]
    for reaches in _MERGE_REACHES:
        pairs = [
            pair
            for reach in reaches
            for pair in zip(by_location[:-reach], by_location[reach:], strict=True)
        ]
        if not pairs:
            break
        trials = np.stack([_merged(ascent.stats, *pair) for pair in pairs])
        order = order_by_size(trials, ascent.model.alpha)
        trials = np.take_along_axis(trials, order[..., None], axis=1)
        bounds = bounds_at(trials, ascent.cells, ascent.model)
        better = [k for k in np.argsort(bounds)[::-1] if bounds[k] > ascent.bound]
        if better and _apply(ascent, [pairs[k] for k in better]):
            return True
    return False


def _apply(ascent: Ascent, pairs: list[tuple[int, int]]) -> bool:
    """Merge disjoint pairs in turn, each while it still raises the bound; any done."""
    stats = ascent.stats
    gone: set[int] = set()
    for i, j in pairs:
        if gone & {i, j}:
            continue
        trial = _merged(stats, i, j)
        if ascent.try_jump(trial):
            stats = trial
            gone |= {i, j}
    return bool(gone)


def _merged(stats: FloatArray, i: int, j: int) -> FloatArray:
    stats = stats.copy()
    stats[i] += stats[j]
    stats[j] = 0.0
    return stats


def birth(ascent: Ascent, tol: float) -> bool:
    """Add a component where the likelihood gains most, if that raises the bound."""
    q = components(ascent.stats, ascent.model)
    unused = np.flatnonzero(~q.used)
    if unused.size == 0:
        return False
    for phi in _candidates(ascent.cells, q, tol / _HOPELESS):
        born = statistics(phi[None, :], ascent.cells)[0]
        stats = ascent.stats * (1 - born[0] / ascent.cells.count.sum())
        stats[unused[-1]] = born
        trial = Ascent(ascent.cells, ascent.model, stats)
        trial.climb(tol, _BIRTH_STEPS)
        merge(trial)
        if trial.bound > ascent.bound + tol:
            ascent.jump_to(trial.stats, trial.image, trial.bound)
            ascent.bounds.append(ascent.bound)
            return True
    return False


def _candidates(cells: Cells, q: Components, least: float) -> Iterator[FloatArray]:
    """Responsibilities of components that might be added, the most promising first.

    The directional derivative of the log-likelihood towards an atom at a is
    ``sum_k (r_k(a) - 1)`` with ``r_k(a) = N(Y_k; a) / f(Y_k)``. The candidates are the
    atoms where it is largest on either side of zero, if it is positive. The mass of
    such an atom is the omega that maximises ``sum_k log(1 - omega + omega r_k)``, and
    that maximum must be at least `least`.
    """
    prior = DiscretePrior(q.atoms[q.used], q.count[q.used])
    log_f = prior.logpdf(cells.value, cells.precision**-0.5)
    half_log = 0.5 * (np.log(cells.precision) - np.log(2 * np.pi))
    grid = occupied(cells.value)
    square = (cells.value - grid[:, None]) ** 2
    log_ratio = half_log - log_f - 0.5 * cells.precision * square
    ratio = np.exp(np.minimum(log_ratio, 600.0))
    gain = ratio @ cells.count / cells.count.sum() - 1
    best = [
        side[np.argmax(gain[side])]
        for side in (np.flatnonzero(grid < 0), np.flatnonzero(grid > 0))
        if side.size
    ]
    for t in sorted(best, key=lambda t: -gain[t]):
        if gain[t] <= 0:
            return
        omega = np.geomspace(1 / cells.count.sum(), 0.5, 24)
        likelihood = np.log1p(np.outer(omega, ratio[t] - 1)) @ cells.count
        if likelihood.max() < least:
            continue
        mass = omega[np.argmax(likelihood)]
        yield mass * ratio[t] / (1 - mass + mass * ratio[t])


def splits(ascent: Ascent) -> Iterator[FloatArray]:
    """Statistics with the largest component split into zero and effects.

    A few places of the effects are tried, farther from zero than the component and
    with the share of its values that keeps the mean.
    """
    q = components(ascent.stats, ascent.model)
    largest = int(np.argmax(q.count))
    unused = np.flatnonzero(~q.used)
    mean = q.atoms[largest]
    if mean == 0 or not unused.size:
        return
    for effect in np.copysign(_SPLIT_EFFECTS, mean):
        share = mean / effect
        if share >= 1:
            continue
        stats = ascent.stats.copy()
        n, h, _ = stats[largest]
        stats[largest] = (1 - share) * n, (1 - share) * h, 0.0
        stats[unused[0]] = share * n, share * h, share * h * effect
        yield stats
