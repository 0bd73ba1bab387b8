"""Effects along an order: a prior under which neighbours tend to be alike.

The effects follow a renewal chain over the atoms of a discrete prior G: with
probability 1 - q the next effect is the same as the last, else it is drawn anew,

    eta_1 ~ G,    eta_j = eta_{j-1} or, with probability q, a new draw from G.

Every effect by itself has the prior G, and q = 1 makes them independent. The noise of
the values is an autoregression, ``corr(z_i, z_j) = rho^|i - j|``, so that the whitened
value depends on two neighbouring effects,

    (z_j - rho z_{j-1}) / s ~ N((eta_j - rho eta_{j-1}) / s, 1),    s^2 = 1 - rho^2,

and the posterior given all values follows from the forward and the backward recursion
of a Markov chain (:mod:`ebda.kernels.chain`): its density is a product of

    exp(eta_j (R^-1 z)_j - (1 - rho) eta_j^2 / (1 + rho) / 2)

over the effects (the first and the last have 1 in place of 1 - rho) and of the
probabilities of the steps times ``exp(-rho (eta_j - eta_{j-1})^2 / 2 s^2)``. q, the
weights and the atoms but for zero are those of maximum likelihood, by the EM algorithm.

The estimate of an effect then leans on as many neighbours as the values themselves
show to be alike. By Tweedie's formula for normal noise with the correlation R,

    d E(eta_j | z) / d z_j = sum_k cov(eta_j, eta_k | z) (R^-1)_kj,

where the sum has three terms, because the inverse of R is zero beyond neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.kernels.chain import Smoothed, smooth
from ebda.priors.discrete import DiscretePrior
from ebda.priors.posterior import Posterior, Prior, tail_probability
from ebda.sizes import sizes
from ebda.storage.fields import NOT_NEGATIVE, VALUES, Array
from ebda.storage.objects import Lengths, Schema, register
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


@dataclass(frozen=True, eq=False)
class RenewalChain:
    """The prior of effects along an order, and the correlation of their noise.

    Parameters
    ----------
    distribution : DiscretePrior
        G, with an atom at zero.
    renewal : float
        q, above 0 and at most 1.
    rho : float
        Correlation of the noise of neighbours.
    constant : ndarray of bool of shape (n_features,)
        Features that are skipped; their effect is zero.
    """

    distribution: DiscretePrior
    renewal: float
    rho: float
    constant: npt.NDArray[np.bool_]

    @property
    def transition(self) -> FloatArray:
        """Probability of each atom (columns) after another (rows)."""
        g = self.distribution.weights
        change: FloatArray = (1 - self.renewal) * np.eye(len(g)) + self.renewal * g
        return change

    def smooth(self, rows: FloatArray) -> Smoothed:
        """The chain given values.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_varying)
            Without the values of constant features; each row is a chain.
        """
        atoms, rho = self.distribution.atoms, self.rho
        # z' R^-1 z of the values less the effects, sorted by effects and by pairs.
        sites = np.multiply.outer(atoms, precise(rows, rho))
        curvature = np.full(rows.shape[1], (1 - rho) / (1 + rho))
        curvature[[0, -1]] = 1 / (1 + rho)
        sites -= np.multiply.outer(0.5 * atoms**2, curvature)[:, None]
        sites[..., 0] += np.log(self.distribution.weights)[:, None]
        apart = (atoms[:, None] - atoms) ** 2
        pair = np.log(self.transition) - 0.5 * rho / (1 - rho**2) * apart
        return smooth(sites, pair, atoms)

    def posterior(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Posterior:
        """Posterior of the effects, given all values of a row.

        Parameters
        ----------
        z : array-like of shape (..., n_features)
            Values, in order.
        scale : float
            Noise standard deviation; it must be 1.
        """
        if np.any(np.asarray(scale) != 1):
            raise ValueError("values along an order must have noise of scale 1")
        values = np.asarray(z, dtype=np.float64)
        atoms, varying = self.distribution.atoms, ~self.constant
        weights = np.zeros((*values.shape, len(atoms)))
        weights[..., atoms == 0] = 1.0
        slope = np.zeros(values.shape)
        shape = values[..., varying].shape
        found = self.smooth(values[..., varying].reshape(-1, shape[-1]))
        weights[..., varying, :] = found.weights.reshape(*shape, -1)
        slope[..., varying] = self._slope(found).reshape(shape)
        return ChainPosterior(
            values.shape, atoms, weights.reshape(-1, len(atoms)), slope
        )

    def _slope(self, found: Smoothed) -> FloatArray:
        """Derivative of each posterior mean by its own value."""
        atoms, rho = self.distribution.atoms, self.rho
        mean = found.weights @ atoms
        variance = np.maximum(found.weights @ atoms**2 - mean**2, 0.0)
        covariance = found.products - mean[:, 1:] * mean[:, :-1]
        slope = _diagonal(mean.shape[1], rho) * variance
        beside = rho / (1 - rho**2) * covariance
        slope[:, 1:] -= beside
        slope[:, :-1] -= beside
        return slope

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log of the marginal density of each value by itself."""
        return self.distribution.logpdf(z, scale)

    def step(self, rows: FloatArray) -> tuple[RenewalChain, float]:
        """One step of the EM algorithm, and the log-likelihood before it.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_varying)
            As in `smooth`.
        """
        atoms, g, rho = self.distribution.atoms, self.distribution.weights, self.rho
        found, diagonal = self.smooth(rows), _diagonal(rows.shape[1], rho)
        # Draws from G: the first of each row, and the steps that renew.
        drawn = (found.pairs * (self.renewal * g / self.transition)).sum(axis=0)
        renewal = float(drawn.sum()) / (rows.size - len(rows))
        drawn += found.weights[:, 0].sum(axis=0)
        # The normal equations of the atoms: weighted least squares of the values.
        target = np.einsum("cj,cjt->t", precise(rows, rho), found.weights)
        normal = np.diag(np.einsum("j,cjt->t", diagonal, found.weights))
        normal = normal - rho / (1 - rho**2) * (found.pairs + found.pairs.T)
        free = (atoms != 0) & (found.weights.sum(axis=(0, 1)) > _FEWEST)
        moved = atoms.copy()
        if free.any():
            moved[free] = np.linalg.solve(normal[np.ix_(free, free)], target[free])
        # Zero stays an atom whatever its weight.
        weights = np.maximum(drawn, np.where(atoms == 0, _LEAST_RENEWAL, 0.0))
        better = replace(
            self,
            distribution=DiscretePrior(moved, weights),
            renewal=float(np.clip(renewal, _LEAST_RENEWAL, 1.0)),
        )
        return better, found.log_likelihood

    def climb(self, rows: FloatArray, n_steps: int) -> tuple[RenewalChain, float]:
        """Several steps, and the log-likelihood before the last of them."""
        chain, best = self.step(rows)
        for _ in range(n_steps - 1):
            better, log_likelihood = chain.step(rows)
            gain, best, chain = log_likelihood - best, log_likelihood, better
            if gain < _TOLERANCE:
                break
        return chain, best

    def simpler(self, size: int) -> RenewalChain:
        """The same without atoms that so many values cannot tell apart."""
        atoms, weights = self.distribution.atoms, self.distribution.weights
        other = atoms != 0
        left, mass = merged(atoms[other], size * weights[other], _MOST_STATES)
        zero = size * self.distribution.pi0
        G = DiscretePrior(np.append(left, 0.0), np.append(mass, zero))
        return replace(self, distribution=G)


def precise(rows: FloatArray, rho: float) -> FloatArray:
    """The inverse of the correlation of an autoregression, times each row.

    >>> precise(np.array([[1.0, 0.5, 0.25]]), 0.5).round(12) + 0.0
    array([[1., 0., 0.]])
    """
    out = _diagonal(rows.shape[1], rho) * rows
    out[:, 1:] -= rho / (1 - rho**2) * rows[:, :-1]
    out[:, :-1] -= rho / (1 - rho**2) * rows[:, 1:]
    return out


def _diagonal(p: int, rho: float) -> FloatArray:
    """Diagonal of the inverse of the correlation of an autoregression."""
    diagonal = np.full(p, (1 + rho**2) / (1 - rho**2))
    diagonal[[0, -1]] = 1 / (1 - rho**2)
    return diagonal


def fit_chain(
    z: FloatArray,
    rho: float,
    prior: Prior,
    constant: npt.NDArray[np.bool_],
    rough: bool = False,
) -> RenewalChain:
    """Fit a renewal chain to values along an order.

    Parameters
    ----------
    z : ndarray of shape (n_rows, n_features)
        Values; each row is a chain by itself, and all have the same prior.
    rho : float
        Correlation of the noise of neighbours.
    prior : Prior
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
    rows = some_runs(z[:, ~constant], most)
    G = coarse(prior, rows)
    starts = (RenewalChain(G, q, rho, constant) for q in _STARTS)
    chain, _ = most_likely(start.climb(rows, n_first) for start in starts)
    chain = chain.simpler(rows.size)
    return chain.climb(rows, n_more)[0].simpler(rows.size)


def some_runs(rows: FloatArray, at_most: int) -> FloatArray:
    """Runs of neighbours, spread evenly over all rows, if there are very many values.

    >>> some_runs(np.arange(2048.0)[None], 1024)[:, :2].tolist()[:3]
    [[0.0, 1.0], [256.0, 257.0], [512.0, 513.0]]
    """
    n = rows.shape[1] // _RUN
    wanted = at_most // _RUN
    if rows.size <= at_most or n == 0 or len(rows) * n <= wanted:
        return rows
    runs = rows[:, : n * _RUN].reshape(-1, _RUN)
    return runs[np.arange(wanted) * len(runs) // wanted]


def most_likely(
    found: Iterable[tuple[RenewalChain, float]],
) -> tuple[RenewalChain, float]:
    """The first of the chains with the largest log-likelihood."""
    return max(found, key=lambda pair: pair[1])


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
    while len(atoms) > 1:
        together = mass[:-1] + mass[1:]
        lost = np.diff(atoms) ** 2 * mass[:-1] * mass[1:] / together
        k = int(np.argmin(lost))
        if len(atoms) <= at_most and lost[k] > _NEGLIGIBLE:
            break
        mean = (mass[k] * atoms[k] + mass[k + 1] * atoms[k + 1]) / together[k]
        atoms, mass = np.delete(atoms, k), np.delete(mass, k)
        atoms[k], mass[k] = mean, together[k]
    return atoms, mass


@dataclass(frozen=True, eq=False)
class ChainPosterior:
    """Posterior of effects along an order.

    Parameters
    ----------
    shape : tuple of int
        Of the values.
    atoms : ndarray of shape (n_atoms,)
        What the effects can be, ascending.
    weights : ndarray of shape (n_values, n_atoms)
        Posterior probability of each, for every value in turn.
    mean_slope : ndarray
        Derivative of each posterior mean by its own value.
    """

    shape: tuple[int, ...]
    atoms: FloatArray
    weights: FloatArray
    mean_slope: FloatArray

    @cached_property
    def mean(self) -> FloatArray:
        return self._shaped(self.weights @ self.atoms)

    @cached_property
    def prob_zero(self) -> FloatArray:
        return self._shaped(self.weights @ (self.atoms == 0))

    @cached_property
    def sd(self) -> FloatArray:
        from_mean = self.atoms - (self.weights @ self.atoms)[:, None]
        variance = np.einsum("kt,kt,kt->k", self.weights, from_mean, from_mean)
        return self._shaped(np.sqrt(variance))

    @cached_property
    def lfsr(self) -> FloatArray:
        not_positive = self.weights @ (self.atoms <= 0)
        not_negative = self.weights @ (self.atoms >= 0)
        return self._shaped(np.minimum(np.minimum(not_positive, not_negative), 1.0))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the equal-tailed credible interval: quantiles of the posterior.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        tail = min(tail_probability(level), np.nextafter(0.5, 0))
        lower = np.argmax(np.cumsum(self.weights, axis=1) > tail, axis=1)
        above = np.cumsum(self.weights[:, ::-1], axis=1)
        upper = len(self.atoms) - 1 - np.argmax(above > tail, axis=1)
        return self._shaped(self.atoms[lower]), self._shaped(self.atoms[upper])

    def _shaped(self, flat: FloatArray) -> FloatArray:
        return flat.reshape(self.shape)


register(
    Schema(
        ChainPosterior,
        {
            "shape": Lengths(),
            "atoms": Array(("t",), ("finite", "ascending")),
            "weights": Array(
                ("flat", "t"), (*NOT_NEGATIVE, "a distribution in each row")
            ),
            "mean_slope": Array(VALUES),
        },
        role="posterior",
    )
)
