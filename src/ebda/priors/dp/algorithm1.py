"""Algorithm 1 of the paper to the letter, with its uniform start and stopping rule.

Kept for reproduction. From the start ``phi = 1/T`` all components are alike, and only
rounding and the order of the sticks separate them. The loop may therefore stop at once,
or end with all components at zero (see the reference cases in the tests);
:mod:`ebda.priors.dp.converged` fits the same posterior from other start values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from ebda.priors.cells import Cells
from ebda.priors.dp.variational import (
    Components,
    Model,
    VariationalFit,
    components,
    evaluate,
    statistics,
)
from ebda.typing import FloatArray

# Responsibilities in a stack of batches: 8 MiB of float64.
_STACK_ELEMENTS = 1 << 20


def fit_algorithm1(
    batches: Sequence[Cells], model: Model, n_components: int, tol: float, max_iter: int
) -> list[VariationalFit]:
    """Iterate each batch until no responsibility moves by more than `tol`.

    Batches of equal size run as a stack: the arithmetic of each is the same, and they
    share the cost of the calls.
    """
    fits: dict[int, VariationalFit] = {}
    for size in sorted({len(cells.value) for cells in batches}):
        same = [i for i, cells in enumerate(batches) if len(cells.value) == size]
        step = max(1, _STACK_ELEMENTS // (size * n_components))
        for start in range(0, len(same), step):
            part = same[start : start + step]
            stack = _stack([batches[i] for i in part])
            found = _iterate(stack, model, n_components, tol, max_iter)
            fits.update(zip(part, found, strict=True))
    return [fits[i] for i in range(len(batches))]


def _stack(batches: list[Cells]) -> Cells:
    each = [(cells.value, cells.count, cells.precision) for cells in batches]
    value, count, precision = map(np.stack, zip(*each, strict=True))
    return Cells(value, count, precision)


def _iterate(
    stack: Cells, model: Model, n_components: int, tol: float, max_iter: int
) -> list[VariationalFit]:
    """The loop, over those batches of the stack that have not converged.

    As in the authors' program, the m and p returned are those of the last iteration,
    from which the last phi was computed.
    """
    n, size = stack.value.shape
    phi = np.full((n, n_components, size), 1 / n_components)
    running = np.arange(n)
    stats = np.empty((n, n_components, 3))
    bounds: list[list[float]] = [[] for _ in range(n)]
    converged = np.zeros(n, dtype=bool)
    for _ in range(max_iter):
        current = statistics(phi, stack)
        stats[running] = current
        _, bound, new_phi = evaluate(current, stack, model)
        moved = np.abs(new_phi - phi).max(axis=(1, 2)) > tol
        for i, value in zip(running, bound, strict=True):
            bounds[i].append(float(value))
        converged[running[~moved]] = True
        if not moved.any():
            break
        if not moved.all():
            running, new_phi = running[moved], new_phi[moved]
            stack = Cells(
                stack.value[moved], stack.count[moved], stack.precision[moved]
            )
        phi = new_phi
    q = components(stats, model)
    return [
        VariationalFit(_entry(q, i), np.array(bounds[i]), bool(converged[i]))
        for i in range(n)
    ]


def _entry(q: Components, i: int) -> Components:
    parts: dict[str, FloatArray] = {f.name: getattr(q, f.name)[i] for f in fields(q)}
    return Components(**parts)
