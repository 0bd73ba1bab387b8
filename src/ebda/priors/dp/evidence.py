"""The evidence for a fitted mixture by Laplace's method.

The variational bound treats the assignments as known when it accounts for the
uncertainty of the parameters. Where components overlap (nulls and effects of one
standard error) this costs the mixture several nats too many, and a single atom close to
zero can have a higher bound than zero with a few per cent of effects, though it is the
poorer model. Laplace's method uses the information in the values themselves:

    log p(z) ~ log p(z | theta) + log p(theta) + (k/2) log 2 pi - 1/2 log det H,

with theta the logits of the sticks V and the atoms that are not zero, and H the
information of theta in the values (the sum of the outer products of their scores) plus
that of its prior.
"""

from __future__ import annotations

import numpy as np

from ebda.priors.cells import Cells
from ebda.priors.dp.variational import Components, Model, responsibilities
from ebda.typing import FloatArray

_LOG_2PI = np.log(2 * np.pi)


def log_evidence(cells: Cells, q: Components, model: Model) -> float:
    """Laplace's approximation at the mixture that `q` stands for.

    Constants that depend on the values alone are left out, so only differences between
    mixtures for the same values are meaningful.
    """
    order = np.flatnonzero(q.used)[np.argsort(-q.count[q.used], kind="stable")]
    atoms, count = q.atoms[order], q.count[order]
    signal = atoms != 0
    weight = count / count.sum()
    log_phi = np.log(weight)[:, None] - 0.5 * cells.precision * (
        (cells.value - atoms[:, None]) ** 2
    )
    phi, log_total = responsibilities(log_phi)
    stick = (weight / np.cumsum(weight[::-1])[::-1])[:-1]

    later = np.cumsum(phi[::-1], axis=0)[::-1][1:]
    by_stick = phi[:-1] * (1 - stick[:, None]) - stick[:, None] * later
    by_atom = phi[signal] * cells.precision * (cells.value - atoms[signal, None])
    gradient = np.concatenate([by_stick, by_atom])
    information = (gradient * cells.count) @ gradient.T
    information[np.diag_indices_from(information)] += np.concatenate(
        [
            (1 + model.alpha) * stick * (1 - stick),
            np.full(np.count_nonzero(signal), model.sigma**-2.0),
        ]
    )
    fit = float(cells.count @ log_total)
    half_log_det = 0.5 * float(np.linalg.slogdet(information)[1])
    volume = float(0.5 * len(gradient) * _LOG_2PI) - half_log_det
    return fit + _log_prior(stick, atoms, model) + volume


def _log_prior(stick: FloatArray, atoms: FloatArray, model: Model) -> float:
    """Log density of the logits of the sticks and of the atoms."""
    signal = atoms[atoms != 0]
    n_zero = len(atoms) - len(signal)
    sticks = np.log(model.alpha) + np.log(stick) + model.alpha * np.log1p(-stick)
    normal = -0.5 * (_LOG_2PI + (signal / model.sigma) ** 2) - np.log(model.sigma)
    return float(
        sticks.sum()
        + normal.sum()
        + len(signal) * np.log1p(-model.zero_weight)
        + n_zero * np.log(model.zero_weight)
    )
