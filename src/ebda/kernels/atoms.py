"""Posterior weights of the atoms of a discrete prior, and the marginal density.

Exponents are taken relative to the atom nearest to z, as
``(a_t - a*)(z - (a_t + a*)/2) / scale**2``: no square of z is ever formed and
cancelled again, so ``z = 1e6`` is as exact as ``z = 1``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ebda.sizes import sizes
from ebda.typing import FloatArray

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


def weight_blocks(
    z: FloatArray, scale: FloatArray, atoms: FloatArray, log_weights: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Posterior weights of the atoms, a block of values at a time.

    Parameters
    ----------
    z, scale : ndarray of shape (n,)
        Values and their noise scales.
    atoms, log_weights : ndarray of shape (n_atoms,)
        The prior, atoms ascending.

    Yields
    ------
    rows : slice
        The values of the block.
    weights : ndarray of shape (n_atoms, n_rows)
        Posterior probability of each atom. Atoms come first, so that sums over the
        few of them run along whole rows of memory.
    log_density : ndarray of shape (n_rows,)
        Log of the marginal density of the values.
    """
    middles = (atoms[1:] + atoms[:-1]) / 2
    size = max(1, sizes.posterior_elements // len(atoms))
    for start in range(0, len(z), size):
        rows = slice(start, min(start + size, len(z)))
        x, s = z[rows], scale[rows]
        nearest = atoms[np.searchsorted(middles, x)]
        exponent = ((x - nearest / 2) - atoms[:, None] / 2) / s
        exponent *= (atoms[:, None] - nearest) / s
        exponent += log_weights[:, None]
        top = exponent.max(axis=0)
        exponent -= top
        weights = np.exp(exponent, out=exponent)
        total = weights.sum(axis=0)
        weights /= total
        residual = (x - nearest) / s
        log_density = np.log(total) + top - 0.5 * residual * residual
        yield rows, weights, log_density - np.log(s) - _LOG_SQRT_2PI
