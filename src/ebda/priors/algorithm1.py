"""Algorithm 1 of the paper, to the letter: uniform start, sup-norm stop.

Kept for reproduction. Started from ``phi = 1/T`` the components are all alike and
part only through rounding and the order of the sticks, so the loop can stop at once
or end with everything at zero (see the reference cases in the tests);
:mod:`ebda.priors.converged` fits the same posterior from spread start values.
"""

from __future__ import annotations

import numpy as np

from ebda.priors.cells import Cells
from ebda.priors.variational import (
    Model,
    VariationalFit,
    components,
    evaluate,
    statistics,
)


def algorithm1(
    cells: Cells, model: Model, n_components: int, tol: float, max_iter: int
) -> VariationalFit:
    """Iterate until no responsibility moves by more than `tol`.

    As in the authors' program, the m and p that are returned are those of the last
    round, from which the last phi was computed.
    """
    phi = np.full((n_components, len(cells.value)), 1 / n_components)
    bounds: list[float] = []
    moved = np.inf
    while moved > tol and len(bounds) < max_iter:
        stats = statistics(phi, cells)
        _, bound, new_phi = evaluate(stats, cells, model)
        moved = float(np.abs(new_phi - phi).max())
        phi = new_phi
        bounds.append(bound)
    return VariationalFit(components(stats, model), np.array(bounds), moved <= tol)
