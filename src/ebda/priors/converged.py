"""The same variational posterior as Algorithm 1, fitted until it has converged.

What differs is only how the maximum of the lower bound is looked for:

- The components start spread over the range of the data, and one at zero with most
  of the mass, so that none has to be found by breaking a symmetry.
- They are kept in order of size. For adjacent sticks with counts a before b the
  bound is larger when a >= b, so sorting never lowers it.
- Statistics are extrapolated along their path (Anderson acceleration, with the
  bound as the judge as in Henderson and Varadhan 2019): where the extrapolation is
  lower, the plain step is taken instead, which never is.
- Two components are merged wherever that raises the bound. Coordinate ascent cannot
  do this by itself, and without it the null values end up shared by several atoms
  just off zero that no amount of data could tell from it.
- A component is born wherever the likelihood most wants one, if that raises the
  bound: the result does not hang on where the components started.
- An atom just off zero that holds most values is tried again as zero with a few
  effects. The bound is loose where components overlap, so these two optima are
  compared by their evidence (:mod:`ebda.priors.evidence`).
- Many values are grouped into narrow cells (:mod:`ebda.priors.cells`), so that an
  iteration costs the same for 10^4 values as for 10^8.

Within a climb each step is accepted by the lower bound alone; it rises monotonically.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import betaln

from ebda.arrays import FloatArray
from ebda.priors.cells import Cells
from ebda.priors.discrete import DiscretePrior
from ebda.priors.evidence import log_evidence
from ebda.priors.variational import (
    Components,
    Model,
    VariationalFit,
    components,
    evaluate,
    responsibilities,
    statistics,
)

# Start values are spread over the half-unit cells of z that hold any value, so that
# one wild value does not leave all others to a single component.
_START_CELL = 0.5
# Share of the mass that the component at zero starts with.
_START_ZERO = 0.9
# Components this far apart in order of location are tried for merging.
_MERGE_REACH = 3
# Steps of the last climb after which mergers are tried again; more each time.
_MERGE_AFTER = 25
# Points of the path that an extrapolation combines.
_MEMORY = 10
# Relative gain of the bound at which to look for mergers and births.
_LOOSE = 1e-5
# Steps that a newborn component has to prove itself.
_BIRTH_STEPS = 30
# Residuals at which a fixed point is exact, and at which it is reached; and steps
# without a smaller one to wait for.
_POLISHED = 1e-14
_CLOSE = 1e-9
# Relative gain of the bound at which a start near the optimum is close to it.
_NEAR = 1e-8
_POLISH_PATIENCE = 12
# Effects, in standard errors, that an atom just off zero may stand for.
_SPLIT_EFFECTS = (0.5, 1.0, 2.0)


def _occupied(value: FloatArray) -> FloatArray:
    """Middles of the half-unit cells that hold any value."""
    return (np.unique(np.floor(value / _START_CELL)) + 0.5) * _START_CELL


def start_atoms(value: FloatArray, n_components: int) -> FloatArray:
    """Zero, and T - 1 locations spread evenly over where there are data."""
    occupied = _occupied(value)
    place = np.linspace(0, len(occupied) - 1, n_components - 1)
    return np.append(0.0, np.interp(place, np.arange(len(occupied)), occupied))


def _start(cells: Cells, n_components: int) -> FloatArray:
    atoms = start_atoms(cells.value, n_components)
    log_weight = np.full(n_components, np.log((1 - _START_ZERO) / n_components))
    log_weight[0] = np.log(_START_ZERO)
    square = (cells.value - atoms[:, None]) ** 2
    phi, _ = responsibilities(log_weight[:, None] - 0.5 * cells.precision * square)
    return statistics(phi, cells)


def _log_stick_evidence(count: FloatArray, alpha: float) -> float:
    later = np.cumsum(count[::-1])[::-1][1:]
    return float(betaln(1 + count[:-1], alpha + later).sum())


def order_by_size(stats: FloatArray, alpha: float) -> np.ndarray:
    """Permutation to decreasing counts, or none where that would lower the bound.

    The exception is the last pair of sticks, for which ``V_T = 1`` and, with
    alpha > 1, the smaller component is better placed first.
    """
    order = np.argsort(-stats[:, 0], kind="stable")
    current = _log_stick_evidence(stats[:, 0], alpha)
    if _log_stick_evidence(stats[order, 0], alpha) < current:
        return np.arange(len(stats))
    return order


def extrapolate(path: list[tuple[FloatArray, FloatArray]]) -> FloatArray | None:
    """Anderson's guess at the fixed point from points x and their images g(x).

    The combination of the last images whose residual ``g(x) - x`` is smallest, each
    component measured in units of the standard error of its count.
    """
    x, g = (np.stack(part) for part in zip(*path, strict=True))
    if len(x) < 2:
        return None
    residual = (g - x) / np.sqrt(1 + x[-1, :, :1])
    if not np.isfinite(residual).all():
        return None
    change = np.diff(residual, axis=0).reshape(len(x) - 1, -1)
    length = np.linalg.norm(change, axis=1)
    if not length.all():
        return None
    share, *_ = np.linalg.lstsq(
        (change / length[:, None]).T, residual[-1].ravel(), rcond=1e-8
    )
    guess: FloatArray = g[-1] - np.tensordot(share / length, np.diff(g, axis=0), 1)
    outside = (guess[:, :2] <= 0).any(axis=1)
    guess[outside] = 0.0
    return guess if np.isfinite(guess).all() else None


class _Ascent:
    """The state of the climb: statistics, their image, and the bound at them."""

    def __init__(self, cells: Cells, model: Model, stats: FloatArray) -> None:
        self.cells, self.model = cells, model
        self._jump_to(stats[order_by_size(stats, model.alpha)])
        self.bounds = [self.bound]
        self.leaping = False
        self.longest = 16.0  # length of a leap; adapts to what succeeds

    def _image(self, stats: FloatArray) -> tuple[FloatArray, float]:
        image, bound, _ = evaluate(stats, self.cells, self.model)
        return image, float(bound)

    def _move_to(
        self, stats: FloatArray, image: FloatArray | None = None, bound: float = 0.0
    ) -> None:
        if image is None:
            image, bound = self._image(stats)
        self.stats, self.image, self.bound = stats, image, bound

    def _jump_to(
        self, stats: FloatArray, image: FloatArray | None = None, bound: float = 0.0
    ) -> None:
        """Move off the path: what was learnt along it no longer holds."""
        self._move_to(stats, image, bound)
        self.path: list[tuple[FloatArray, FloatArray]] = []

    def step(self) -> None:
        """Move to the extrapolation if it is no lower, else to the plain image."""
        order = order_by_size(self.image, self.model.alpha)
        self.path = [(x[order], g[order]) for x, g in self.path[-_MEMORY:]]
        self.path.append((self.stats[order], self.image[order]))
        if self.leaping:
            self._leap()
            return
        guess = extrapolate(self.path)
        if guess is None:
            self._move_to(self.path[-1][1])
            return
        image, bound = self._image(guess)
        if bound >= self.bound:
            self._move_to(guess, image, bound)
        else:
            self._leap()

    def _leap(self) -> None:
        """A plain step, and on along its direction if that is higher still.

        Near a saddle the nearest fixed point lies behind, and only going on in the
        direction of ascent gets away from it (the step length is SQUAREM's).
        """
        first, second = self.path[-1]
        self._jump_to(second)
        velocity = second - first
        curvature = self.image - second - velocity
        bend = float(np.linalg.norm(curvature))
        wanted = float(np.linalg.norm(velocity)) / bend if bend > 0 else np.inf
        length = min(wanted, self.longest)
        self.leaping = False
        if length <= 1:
            return
        guess = first + 2 * length * velocity + length**2 * curvature
        guess[(guess[:, :2] <= 0).any(axis=1)] = 0.0
        image, bound = self._image(guess)
        if bound >= self.bound:
            self._jump_to(guess, image, bound)
            self.leaping = True
            self.longest *= 4 if length < wanted else 1
        else:
            self.longest = max(length / 4, 2.0)

    def gain(self, share: float) -> float:
        """A share of the bound or of the number of values, whichever is smaller.

        For z-scores the two are alike, and a wild value makes only the bound large.
        """
        return share * min(abs(self.bound), float(self.cells.count.sum()))

    def climb(self, tol: float, max_iter: int) -> bool:
        """Step until the bound gains less than `tol`; False if the steps ran out."""
        while len(self.bounds) <= max_iter:
            before = self.bound
            self.step()
            self.bounds.append(self.bound)
            if self.bound - before <= tol:
                return True
        return False

    def _residual(self, stats: FloatArray, image: FloatArray) -> float:
        """Distance of statistics from their image, as a share of their size."""
        return float(np.abs((image - stats) / (1 + stats[:, :1])).max())

    def polish(self) -> bool:
        """Go on to the fixed point itself, to the last digits; whether it was reached.

        Near the top the bound no longer tells, while the atoms may still move by
        its square root; the residual does. Where the fixed point is not isolated it
        stops falling, and the best point is kept.
        """
        best = self._residual(self.stats, self.image)
        stats, image, bound = self.stats, self.image, self.bound
        path = [(stats, image)]
        left = _POLISH_PATIENCE
        while best > _POLISHED and left > 0:
            guess = extrapolate(path[-_MEMORY:])
            stats = image if guess is None else guess
            image, bound = self._image(stats)
            path.append((stats, image))
            residual = self._residual(stats, image)
            left -= 1
            if residual < best and bound >= self.bound - self.gain(1e-12):
                best, left = residual, _POLISH_PATIENCE
                self._jump_to(stats, image, bound)
        return best < _CLOSE

    def merge(self) -> bool:
        """Merge pairs of components, best first, while that raises the bound."""
        merged = False
        while self._merge_round():
            merged = True
        return merged

    def _merge_round(self) -> bool:
        q = components(self.stats, self.model)
        used = np.flatnonzero(q.used)
        by_place = used[np.argsort(q.atoms[used], kind="stable")]
        for reach in range(1, _MERGE_REACH + 1):
            pairs = list(zip(by_place[:-reach], by_place[reach:], strict=True))
            trials = [self._merged(self.stats, *pair) for pair in pairs]
            bounds = [
                self._image(t[order_by_size(t, self.model.alpha)])[1] for t in trials
            ]
            better = [k for k in np.argsort(bounds)[::-1] if bounds[k] > self.bound]
            if better:
                self._apply([pairs[k] for k in better])
                return True
        return False

    def _apply(self, pairs: list[tuple[int, int]]) -> None:
        """Merge disjoint pairs in turn, each while it still raises the bound."""
        stats = self.stats
        gone: set[int] = set()
        for i, j in pairs:
            if gone & {i, j}:
                continue
            trial = self._merged(stats, i, j)
            order = order_by_size(trial, self.model.alpha)
            image, bound = self._image(trial[order])
            if bound > self.bound:
                self._jump_to(trial[order], image, bound)
                self.bounds.append(bound)
                stats = trial
                gone |= {i, j}

    def _merged(self, stats: FloatArray, i: int, j: int) -> FloatArray:
        stats = stats.copy()
        stats[i] += stats[j]
        stats[j] = 0.0
        return stats

    def birth(self, tol: float) -> bool:
        """Put an unused component where the data want one, if that raises the bound."""
        q = components(self.stats, self.model)
        unused = np.flatnonzero(~q.used)
        if unused.size == 0:
            return False
        for phi in _births(self.cells, q):
            born = statistics(phi[None, :], self.cells)[0]
            stats = self.stats * (1 - born[0] / self.cells.count.sum())
            stats[unused[-1]] = born
            trial = _Ascent(self.cells, self.model, stats)
            trial.climb(tol, _BIRTH_STEPS)
            trial.merge()
            if trial.bound > self.bound + tol:
                self._jump_to(trial.stats, trial.image, trial.bound)
                self.bounds.append(self.bound)
                return True
        return False


def _births(cells: Cells, q: Components) -> Iterator[FloatArray]:
    """Responsibilities of components that the mixture lacks, the most wanted first.

    The directional derivative of the log-likelihood towards an atom at a is
    ``sum_k (r_k(a) - 1)`` with ``r_k(a) = N(Y_k; a) / f(Y_k)``: where it is positive
    and largest, on either side of zero, an atom is wanted, and its mass is the
    omega that maximises ``sum_k log(1 - omega + omega r_k)``.
    """
    prior = DiscretePrior(q.atoms[q.used], q.count[q.used])
    log_f = prior.logpdf(cells.value, cells.precision**-0.5)
    half_log = 0.5 * (np.log(cells.precision) - np.log(2 * np.pi))
    grid = _occupied(cells.value)
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
        mass = omega[np.argmax(likelihood)]
        yield mass * ratio[t] / (1 - mass + mass * ratio[t])


def _splits(ascent: _Ascent) -> Iterator[FloatArray]:
    """Statistics with the component just off zero split into zero and effects.

    The effects lie at a few places further out, in the share that keeps the mean.
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


def _climb(
    cells: Cells, model: Model, stats: FloatArray, tol: float, max_iter: int
) -> tuple[_Ascent, bool]:
    """Climb, merge and bear until the bound gains less than `tol` of itself."""
    ascent = _Ascent(cells, model, stats)
    changed = True
    while changed:
        done = ascent.climb(ascent.gain(_LOOSE), max_iter)
        changed = done and (ascent.merge() or ascent.birth(ascent.gain(_LOOSE)))
    patience = _MERGE_AFTER
    while done:
        # A component that nothing needs dies slowly: mergers do not wait for that.
        settled = ascent.climb(
            ascent.gain(tol), min(len(ascent.bounds) + patience, max_iter)
        )
        if not ascent.merge():
            if settled:
                break
            patience *= 2
        done = len(ascent.bounds) <= max_iter
    return ascent, done


def nearest(
    start: DiscretePrior,
    cells: Cells,
    model: Model,
    n_components: int,
    tol: float,
    max_iter: int,
) -> VariationalFit:
    """The optimum of the lower bound that a mixture near it leads to.

    One climb, with no births, mergers or splits: for values that differ little from
    those that `start` was fitted to.
    """
    log_weight = np.log(np.maximum(start.weights, 1e-300))
    square = (cells.value - start.atoms[:, None]) ** 2
    phi, _ = responsibilities(log_weight[:, None] - 0.5 * cells.precision * square)
    stats = np.zeros((max(n_components, len(phi)), 3))
    stats[: len(phi)] = statistics(phi, cells)
    ascent = _Ascent(cells, model, stats)
    # The start is close already: the bound need not say more before the polish.
    done = ascent.climb(ascent.gain(max(tol, _NEAR)), max_iter)
    done = ascent.polish() or done
    return VariationalFit(
        components(ascent.stats, model), np.array(ascent.bounds), done
    )


def converged(
    cells: Cells, model: Model, n_components: int, tol: float, max_iter: int
) -> VariationalFit:
    """The best optimum of the lower bound that is found.

    A climb from spread start values, and from each split of its largest component
    where that is not at zero; the evidence chooses.
    """
    best, done = _climb(cells, model, _start(cells, n_components), tol, max_iter)
    done = best.polish() or done
    q = components(best.stats, model)
    evidence = log_evidence(cells, q, model)
    for stats in _splits(best):
        # No mergers: by the bound they would undo the split.
        ascent = _Ascent(cells, model, stats)
        finished = ascent.climb(ascent.gain(tol), max_iter)
        finished = ascent.polish() or finished
        split = components(ascent.stats, model)
        its_evidence = log_evidence(cells, split, model)
        if its_evidence > evidence:
            best, done, q, evidence = ascent, finished, split, its_evidence
    return VariationalFit(q, np.array(best.bounds), done)
