"""The chain of effects along an order that makes the values most likely.

q, the weights and the atoms but for zero (:mod:`ebda.priors.chain`) are those of
maximum likelihood, by the EM algorithm. The chains of all folds, and those from several
starts, climb side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ebda.priors.chain import Chains, RenewalChain, precise, precision_diagonal
from ebda.priors.discrete import DiscretePrior
from ebda.priors.posterior import Prior
from ebda.sizes import sizes
from ebda.typing import FloatArray

# Posterior means are sorted into so many cells before they are merged.
_CELLS = 128
# More states would tell little more, and take longer with their square.
_MOST_STATES = 6
# Atoms start spread by this share of what the values differ from their means under the
# prior: what the order tells apart may be one atom of a prior that knows of no order.
_SPREAD = 0.5
# Sum of squares, in units of the noise, that groups of values may lose by a merger.
_NEGLIGIBLE = 1.0
# The search starts from chains that are renewed so often: from long runs of equal
# effects to effects that know nothing of each other. Few steps show which is right.
_STARTS = (0.02, 0.2, 1.0)
# A fold does not start at the chain of all samples: even from its q alone, held-out
# samples were separated where there was no signal.
_FIRST_STEPS, _STEPS = 3, 10
_ROUGH_FIRST_STEPS, _ROUGH_STEPS = 2, 3
# Values of a run, where a chain is fitted to some of very many values.
_RUN = 128
# Gain in the log-likelihood that is worth another step.
_TOLERANCE = 0.05
_LEAST_RENEWAL = 1e-6
# Expected number of effects at an atom, below which it is left where it is.
_FEWEST = 1.0


def fit_chains(
    z: Sequence[FloatArray],
    rho: Sequence[float],
    priors: Sequence[Prior],
    constant: npt.NDArray[np.bool_],
    rough: bool = False,
) -> list[RenewalChain]:
    """Fit renewal chains to values along an order, each to its own.

    Parameters
    ----------
    z : list of ndarray of shape (n_rows, n_features)
        Values of each chain, all of the same shape; each row is a path by itself, and
        all of a chain have the same prior.
    rho : list of float
        Correlation of the noise of neighbours.
    priors : list of Prior
        Of the values without regard to their order: where the search starts.
    constant : ndarray of bool of shape (n_features,)
        Features to skip.
    rough : bool
        Whether a few steps are enough.
    """
    if rough:
        n_first, n_more, most = _ROUGH_FIRST_STEPS, _ROUGH_STEPS, sizes.rough_values
    else:
        n_first, n_more, most = _FIRST_STEPS, _STEPS, sizes.chain_values
    rows = np.stack([some_runs(values[:, ~constant], most, rough) for values in z])
    size = rows[0].size
    distributions = [coarse(*pair) for pair in zip(priors, rows, strict=True)]
    starts = [
        RenewalChain(distribution, q, r, constant)
        for distribution, r in zip(distributions, rho, strict=True)
        for q in _STARTS
    ]
    found = climb(starts, np.repeat(rows, len(_STARTS), axis=0), n_first)
    # The first of those with the largest log-likelihood.
    best = [
        simpler(max(found[k : k + len(_STARTS)], key=lambda pair: pair[1])[0], size)
        for k in range(0, len(found), len(_STARTS))
    ]
    return [simpler(chain, size) for chain, _ in climb(best, rows, n_more)]


def climb(
    chains: Sequence[RenewalChain], rows: FloatArray, n_steps: int
) -> list[tuple[RenewalChain, float]]:
    """Several steps, and the log-likelihoods before the last of them.

    A chain that gains next to nothing stays where it is.
    """
    now, best = step(Chains.of(chains), rows)
    climbing = np.arange(len(chains))
    for _ in range(n_steps - 1):
        better, log_likelihood = step(_some(now, climbing), rows[climbing])
        gain = log_likelihood - best[climbing]
        best[climbing] = log_likelihood
        for old, new in zip(_fields(now), _fields(better), strict=True):
            old[climbing] = new
        climbing = climbing[gain >= _TOLERANCE]
        if not climbing.size:
            break
    return [
        (
            replace(
                chain,
                distribution=DiscretePrior(atoms[weights > 0], weights[weights > 0]),
                renewal=float(renewal),
            ),
            float(log_likelihood),
        )
        for chain, atoms, weights, renewal, log_likelihood in zip(
            chains, now.atoms, now.weights, now.renewal, best, strict=True
        )
    ]


def step(chains: Chains, rows: FloatArray) -> tuple[Chains, FloatArray]:
    """One step of the EM algorithm, and the log-likelihoods before it.

    Parameters
    ----------
    chains : Chains
        Where it starts.
    rows : ndarray of shape (n_chains, n_rows, n_varying)
        As in :meth:`Chains.smooth`.
    """
    atoms, g, rho = chains.atoms, chains.weights, chains.rho
    exists = g > 0
    found, n = chains.smooth(rows), rows.shape[2]
    # Draws from G: the first of each row, and the steps that renew.
    transition = np.where(found.pairs > 0, chains.transition, 1.0)
    share = chains.renewal[:, None, None] * g[:, None] / transition
    drawn = (found.pairs * share).sum(axis=1)
    renewal = drawn.sum(axis=1) / (rows.shape[1] * (n - 1))
    drawn += found.weights[..., 0].sum(axis=2)
    # The normal equations of the atoms: weighted least squares of the values.
    target = np.einsum("xcj,xtcj->xt", precise(rows, rho), found.weights)
    by_place = found.weights.sum(axis=2)
    own = np.einsum("xj,xtj->xt", precision_diagonal(n, rho), by_place)
    normal = found.pairs + found.pairs.transpose(0, 2, 1)
    normal *= -(rho / (1 - rho**2))[:, None, None]
    normal += own[:, :, None] * np.eye(atoms.shape[1])
    free = exists & (atoms != 0) & (by_place.sum(axis=2) > _FEWEST)
    # Atoms that stay have an equation of their own.
    normal = np.where(free[:, :, None] & free[:, None], normal, np.eye(atoms.shape[1]))
    target = np.where(free, target, atoms)
    moved = np.linalg.solve(normal, target[..., None])[..., 0]
    # Zero stays an atom whatever its weight.
    weights = np.maximum(drawn, np.where(exists & (atoms == 0), _LEAST_RENEWAL, 0.0))
    better = Chains(
        np.where(free, moved, atoms),
        weights / weights.sum(axis=1, keepdims=True),
        np.clip(renewal, _LEAST_RENEWAL, 1.0),
        rho,
    )
    return better, found.log_likelihood


def _fields(chains: Chains) -> tuple[FloatArray, FloatArray, FloatArray]:
    return chains.atoms, chains.weights, chains.renewal


def _some(chains: Chains, which: npt.NDArray[np.intp]) -> Chains:
    atoms, weights, renewal = (own[which] for own in _fields(chains))
    return Chains(atoms, weights, renewal, chains.rho[which])


def simpler(chain: RenewalChain, size: int) -> RenewalChain:
    """The same without atoms that so many values cannot tell apart."""
    atoms, weights = chain.distribution.atoms, chain.distribution.weights
    other = atoms != 0
    left, mass = merged(atoms[other], size * weights[other], _MOST_STATES)
    zero = size * chain.distribution.pi0
    G = DiscretePrior(np.append(left, 0.0), np.append(mass, zero))
    return replace(chain, distribution=G)


def some_runs(rows: FloatArray, at_most: int, rough: bool = False) -> FloatArray:
    """Runs of neighbours, spread evenly over all rows, if there are very many values.

    Where it need not be exact they are runs in any case: short paths side by side take
    less time than long ones.

    >>> some_runs(np.arange(2048.0)[None], 1024)[:, :2].tolist()[:3]
    [[0.0, 1.0], [256.0, 257.0], [512.0, 513.0]]
    >>> some_runs(np.arange(300.0)[None], 1024, rough=True).shape
    (2, 150)
    """
    n, wanted = rows.shape[1] // _RUN, at_most // _RUN
    if n == 0 or not (rough or (rows.size > at_most and len(rows) * n > wanted)):
        return rows
    length = rows.shape[1] // n
    runs = rows[:, : n * length].reshape(-1, length)
    if len(runs) <= wanted:
        return runs
    return runs[np.arange(wanted) * len(runs) // wanted]


def coarse(prior: Prior, z: FloatArray) -> DiscretePrior:
    """A few atoms, zero among them, that stand for a prior.

    What the values are expected to be if they are not zero, halfway from the posterior
    mean to the value itself, is merged to groups.
    The mass of zero is the expected number of zeros.

    Parameters
    ----------
    prior : Prior
        Any.
    z : ndarray
        Values that it was fitted to.

    >>> prior = DiscretePrior([0, 9], [0.5, 0.5])
    >>> coarse(prior, np.array([0.0, 9.0, 9.0, 0.0]))
    DiscretePrior(atoms=[0, 9], weights=[0.5, 0.5])
    """
    posterior = prior.posterior(z)
    other = 1 - np.ravel(posterior.prob_zero)
    total = np.ravel(posterior.mean)
    # The mean of an effect that is not zero, as often as there is one.
    level = np.divide(total, other, out=np.zeros_like(total), where=other > 0)
    level += _SPREAD * (np.ravel(z) - level)
    low, high = float(level.min()), float(level.max())
    width = (high - low) / _CELLS or 1.0
    cell = np.minimum(((level - low) / width).astype(np.intp), _CELLS - 1)
    mass = np.asarray(np.bincount(cell, other, _CELLS), dtype=np.float64)
    sums = np.bincount(cell, other * level, _CELLS)
    kept = mass > 0
    atoms, mass = merged(sums[kept] / mass[kept], mass[kept], _MOST_STATES - 1)
    zero = max(total.size - mass.sum(), 1.0)
    return DiscretePrior(np.append(atoms, 0.0), np.append(mass, zero))


def merged(
    atoms: FloatArray, mass: FloatArray, at_most: int
) -> tuple[FloatArray, FloatArray]:
    """Fewer atoms: those are merged whose squared distances from their mean are least.

    Those that the values could hardly tell apart are merged in any case.

    >>> merged(np.array([0.0, 0.1, 5.0]), np.array([1.0, 1.0, 1.0]), 3)
    (array([0.05, 5.  ]), array([2., 1.]))
    """
    # Lists: there are few, and one is taken out at a time.
    left, weight = atoms.tolist(), mass.tolist()
    lost = [_loss(left, weight, k) for k in range(len(left) - 1)]
    while lost:
        least = min(lost)
        if len(left) <= at_most and least > _NEGLIGIBLE:
            break
        k = lost.index(least)
        together = weight[k] + weight[k + 1]
        left[k] = (weight[k] * left[k] + weight[k + 1] * left[k + 1]) / together
        weight[k] = together
        del left[k + 1], weight[k + 1], lost[k]
        for beside in (k - 1, k):
            if 0 <= beside < len(lost):
                lost[beside] = _loss(left, weight, beside)
    return np.array(left), np.array(weight)


def _loss(atoms: list[float], mass: list[float], k: int) -> float:
    """Sum of squares that is lost when an atom is merged with the next."""
    together = mass[k] + mass[k + 1]
    return (atoms[k + 1] - atoms[k]) ** 2 * mass[k] * mass[k + 1] / together
