"""The same variational posterior as Algorithm 1, fitted until it has converged.

What differs is only how the maximum of the lower bound is looked for:

- The components start spread over the range of the data, and one at zero with most
  of the mass, so that none has to be found by breaking a symmetry.
- They are kept in order of size. For adjacent sticks with counts a before b the
  bound is larger when a >= b, so sorting never lowers it.
- Statistics are extrapolated along their path (:mod:`ebda.priors.dp.ascent`).
- Two components are merged wherever that raises the bound. Coordinate ascent cannot
  do this by itself, and without it the null values end up shared by several atoms
  just off zero that no amount of data could tell from it.
- A component is born wherever the likelihood most wants one, if that raises the
  bound: the result does not hang on where the components started.
- An atom just off zero that holds most values is tried again as zero with a few
  effects. The bound is loose where components overlap, so these two optima are
  compared by their evidence (:mod:`ebda.priors.dp.evidence`).
- Many values are grouped into narrow cells (:mod:`ebda.priors.cells`), so that an
  iteration costs the same for 10^4 values as for 10^8; and where there are very many,
  mergers and births are tried on wider cells first.

Each step is accepted by the lower bound alone; it rises monotonically.
"""

from __future__ import annotations

import numpy as np

from ebda.priors.cells import Cells
from ebda.priors.discrete import DiscretePrior
from ebda.priors.dp.ascent import Ascent
from ebda.priors.dp.evidence import log_evidence
from ebda.priors.dp.moves import birth, merge, occupied, splits
from ebda.priors.dp.variational import (
    Model,
    VariationalFit,
    components,
    responsibilities,
    statistics,
)
from ebda.typing import FloatArray

# Share of the mass that the component at zero starts with.
_START_ZERO = 0.9
# Steps of the last climb after which mergers are tried again; more each time.
_MERGE_AFTER = 25
# Relative gain of the bound at which to look for mergers and births.
_LOOSE = 1e-5
# Relative gain of the bound at which a start near the optimum is close to it.
_NEAR = 1e-8
# More values than this are searched in wider cells first.
MANY = 100_000


def start_atoms(value: FloatArray, n_components: int) -> FloatArray:
    """Zero, and T - 1 locations spread evenly over where there are data."""
    middles = occupied(value)
    place = np.linspace(0, len(middles) - 1, n_components - 1)
    return np.append(0.0, np.interp(place, np.arange(len(middles)), middles))


def _start(cells: Cells, n_components: int) -> FloatArray:
    atoms = start_atoms(cells.value, n_components)
    log_weight = np.full(n_components, np.log((1 - _START_ZERO) / n_components))
    log_weight[0] = np.log(_START_ZERO)
    square = (cells.value - atoms[:, None]) ** 2
    phi, _ = responsibilities(log_weight[:, None] - 0.5 * cells.precision * square)
    return statistics(phi, cells)


def _search(ascent: Ascent, max_iter: int) -> bool:
    """Climb, merge and bear while that raises the bound; False if steps ran out."""
    changed = True
    while changed:
        done = ascent.climb(ascent.gain(_LOOSE), max_iter)
        changed = done and (merge(ascent) or birth(ascent, ascent.gain(_LOOSE)))
    return done


def _settle(ascent: Ascent, tol: float, max_iter: int) -> bool:
    """Climb and merge until the bound gains less than `tol` of itself."""
    patience = _MERGE_AFTER
    while len(ascent.bounds) <= max_iter:
        # A component that nothing needs dies slowly: mergers do not wait for that.
        settled = ascent.climb(
            ascent.gain(tol), min(len(ascent.bounds) + patience, max_iter)
        )
        if not merge(ascent):
            if settled:
                return True
            patience *= 2
    return False


def _finer(ascent: Ascent, cells: Cells) -> Ascent:
    """The climb goes on in narrower cells: statistics are sums over values."""
    if ascent.cells is cells:
        return ascent
    finer = Ascent(cells, ascent.model, ascent.stats)
    finer.bounds = ascent.bounds + finer.bounds
    return finer


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
    ascent = Ascent(cells, model, stats)
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
    where that is not at zero; the evidence chooses. Of very many values wider cells
    are looked at first.
    """
    wide = cells.wider() if cells.count.sum() > MANY else cells
    first_tol = tol if wide is cells else max(tol, _NEAR)
    best = Ascent(wide, model, _start(wide, n_components))
    done = _search(best, max_iter) and _settle(best, first_tol, max_iter)
    if wide is not cells:
        best = _finer(best, cells)
        done = done and _settle(best, tol, max_iter)
    rivals = []
    for stats in splits(best):
        # No mergers: by the bound they would undo the split.
        rival = Ascent(wide, model, stats)
        rivals.append((rival.climb(rival.gain(first_tol), max_iter), rival))
    if rivals:
        evidence = [
            log_evidence(wide, components(ascent.stats, model), model)
            for ascent in (best, *(rival for _, rival in rivals))
        ]
        winner = int(np.argmax(evidence))
        if winner:
            done, best = rivals[winner - 1]
            best = _finer(best, cells)
            done = (wide is cells and done) or best.climb(best.gain(tol), max_iter)
    done = best.polish() or done
    q = components(best.stats, model)
    return VariationalFit(q, np.array(best.bounds), done)
