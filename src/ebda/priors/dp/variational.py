"""The variational posterior of the Dirichlet process mixture, as functions on arrays.

The model (the paper's Section 3.2), truncated at T components, with a noise
precision ``lambda_k`` for each value (1 in the paper):

    V_t ~ Beta(1, alpha),  pi_t = V_t prod_{j<t} (1 - V_j),  V_T = 1
    xi_t ~ Bernoulli(w),   eta*_t = 0 if xi_t = 1, else N(0, sigma**2)
    Z_k ~ Multinomial(pi), Y_k ~ N(eta*_{Z_k}, 1 / lambda_k)

and its factorised posterior ``q(eta*, xi) q(V) q(Z)`` (Appendix B). The optimal
factors depend on the responsibilities phi only through three sums per component,

    n_t = sum_k phi_kt,  h_t = sum_k lambda_k phi_kt,  s_t = sum_k lambda_k phi_kt Y_k,

so these (T, 3) statistics are the state of an iteration, and one evaluation maps
them to the next ones together with the evidence lower bound. All functions take stacks
of problems of equal size along leading axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, expit, rel_entr

from ebda.cached import cached_property
from ebda.priors.cells import Cells
from ebda.priors.discrete import DiscretePrior
from ebda.typing import FloatArray

# Responsibilities of a stack in a block: 1 MiB of float64.
_STACK_ELEMENTS = 1 << 17
# Sums of densities below this have lost digits.
_LEAST_TOTAL = 1e-280


@dataclass(frozen=True)
class Model:
    """Concentration alpha, and the base measure ``w delta_0 + (1-w) N(0, sigma^2)``."""

    alpha: float
    sigma: float
    zero_weight: float

    @cached_property
    def log_odds_zero(self) -> float:
        """log w / (1 - w)."""
        return float(np.log(self.zero_weight) - np.log1p(-self.zero_weight))


@dataclass(frozen=True, eq=False)
class Components:
    """Optimal q(eta*, xi) q(V) for given statistics, one entry per component.

    ``q(eta*_t) = p_t delta_0 + (1 - p_t) N(m_t, tau_t**2)`` with p `prob_zero`,
    ``1 - p`` `prob_signal`, m `mean`, tau**2 `variance`; `count` is n_t and
    ``q(V_t) = Beta(gamma1_t, gamma2_t)`` has T - 1 entries.
    """

    count: FloatArray
    mean: FloatArray
    variance: FloatArray
    prob_zero: FloatArray
    prob_signal: FloatArray
    gamma1: FloatArray
    gamma2: FloatArray

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Components that hold at least a tenth of a value, or as much as any other.

        The others are the unused part of the truncation.
        """
        least = min(0.1, float(self.count.max()))
        return self.count >= least

    @cached_property
    def log_pi(self) -> FloatArray:
        """E log pi_t: that of V_t, and those of the 1 - V_j before it."""
        both = digamma(self.gamma1 + self.gamma2)
        log_pi = np.zeros(self.count.shape)
        log_pi[..., :-1] = digamma(self.gamma1) - both
        log_pi[..., 1:] += np.cumsum(digamma(self.gamma2) - both, axis=-1)
        return log_pi

    @property
    def atoms(self) -> FloatArray:
        """0 or m_t, by the more probable state of xi_t.

        All members of a component share one eta*, so it is zero as a whole or not at
        all: no part of a null component is left at a small m_t without a meaning.
        """
        return np.where(self.prob_zero > 0.5, 0.0, self.mean)


def components(stats: FloatArray, model: Model) -> Components:
    """The updates of m, tau, p and gamma in Algorithm 1."""
    n, h, s = stats[..., 0], stats[..., 1], stats[..., 2]
    var = model.sigma**2
    k = var * h + 1
    shrunken = s / k
    log_odds_zero = 0.5 * (np.log(k) - var * s * shrunken) + model.log_odds_zero
    # gamma_2 sums the counts of the later components: the appendix has it right.
    later = np.cumsum(n[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return Components(
        count=n,
        mean=var * shrunken,
        variance=var / k,
        prob_zero=expit(log_odds_zero),
        prob_signal=expit(-log_odds_zero),
        gamma1=1 + n[..., :-1],
        gamma2=model.alpha + later,
    )


def log_joint(value: FloatArray, precision: FloatArray, q: Components) -> FloatArray:
    """S_kt of Algorithm 1, with the square of Y_k that is common to all t left in.

    Components come first, so that sums over them run along rows of memory. The entry
    is ``E log pi_t - lambda_k/2 E (Y_k - eta*_t)**2``; the square keeps the
    numbers small when Y_k is large and an atom is near it.
    """
    y = value[..., None, :]
    square = y - q.mean[..., None]
    square *= square
    square += q.variance[..., None]
    square *= q.prob_signal[..., None]
    square += y * y * q.prob_zero[..., None]
    square *= -0.5 * precision[..., None, :]
    square += q.log_pi[..., None]
    return square


def responsibilities(log_phi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """phi_kt proportional to exp(S_kt), in place, and the log of the sums."""
    top = log_phi.max(axis=-2, keepdims=True)
    log_phi -= top
    phi = np.exp(log_phi, out=log_phi)
    total = phi.sum(axis=-2, keepdims=True)
    phi /= total
    return phi, (top + np.log(total))[..., 0, :]


def _joint(cells: Cells, q: Components) -> tuple[FloatArray, FloatArray, FloatArray]:
    """exp(S_kt) up to a factor per cell, their sums over t, and log sums of exp(S_kt).

    S is a product of matrices, and where a value is close enough to some component, as
    nearly all are, exp(S) does not underflow and needs no factor. The rest, and values
    so far out that the product loses digits, have the largest of their exp(S_kt) as
    factor.
    """
    mean = q.prob_signal * q.mean
    square = -0.5 * (mean * q.mean + q.prob_signal * q.variance)
    one = np.ones_like(mean)
    phi = np.stack([q.log_pi, square, mean, one], axis=-1) @ cells.powers
    np.exp(phi, out=phi)
    total = phi.sum(axis=-2)
    lost = cells.is_far | (total < _LEAST_TOTAL).reshape(-1, len(cells.value)).any(0)
    if not lost.any():
        return phi, total, np.log(total)
    some = np.flatnonzero(lost)
    total[..., some] = 1.0
    log_total = np.log(total)
    phi[..., some], log_total[..., some] = responsibilities(
        log_joint(cells.value[some], cells.precision[some], q)
    )
    return phi, total, log_total


def statistics(phi: FloatArray, cells: Cells) -> FloatArray:
    """The (T, 3) sums n, h, s of the responsibilities."""
    return phi @ cells.columns


def lower_bound(
    log_total: FloatArray, cells: Cells, q: Components, model: Model
) -> FloatArray:
    """Evidence lower bound at the optimal q(Z): ``E log p - E log q``."""
    fit = (cells.count * log_total).sum(axis=-1) + cells.log_noise
    # The sum over sticks of (gamma1 - 1) E log V + (gamma2 - alpha) E log (1 - V).
    sticks = (q.count * q.log_pi).sum(axis=-1)
    sticks -= (betaln(q.gamma1, q.gamma2) + np.log(model.alpha)).sum(axis=-1)
    ratio = q.variance / model.sigma**2
    kl_normal = 0.5 * (q.mean * (q.mean / model.sigma**2) + ratio - 1 - np.log(ratio))
    kl_atoms = rel_entr(q.prob_zero, model.zero_weight)
    kl_atoms += rel_entr(q.prob_signal, 1 - model.zero_weight)
    kl_atoms += q.prob_signal * kl_normal
    bound: FloatArray = fit - 0.5 * cells.within - sticks - kl_atoms.sum(axis=-1)
    return bound


def evaluate(
    stats: FloatArray, cells: Cells, model: Model
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One round of coordinate ascent from given statistics.

    Returns
    -------
    new_stats : ndarray of shape (T, 3)
    bound : ndarray of shape ()
        The lower bound after this round's update of q(Z); it never falls.
    phi : ndarray of shape (T, n_cells)
    """
    q = components(stats, model)
    phi, log_total = responsibilities(log_joint(cells.value, cells.precision, q))
    return statistics(phi, cells), lower_bound(log_total, cells, q, model), phi


def ascend(
    stats: FloatArray, cells: Cells, model: Model
) -> tuple[FloatArray, FloatArray]:
    """What `evaluate` returns without phi, computed in fewer passes."""
    q = components(stats, model)
    phi, total, log_total = _joint(cells, q)
    new_stats = phi @ (cells.columns / total[:, None])
    return new_stats, lower_bound(log_total, cells, q, model)


def bounds_at(stats: FloatArray, cells: Cells, model: Model) -> FloatArray:
    """The bounds that `ascend` would return for a stack of statistics."""
    size = max(1, _STACK_ELEMENTS // (stats.shape[1] * len(cells.value)))
    bounds = np.empty(len(stats))
    for start in range(0, len(stats), size):
        some = slice(start, start + size)
        q = components(stats[some], model)
        _, _, log_total = _joint(cells, q)
        bounds[some] = lower_bound(log_total, cells, q, model)
    return bounds


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """A fitted variational posterior.

    Parameters
    ----------
    components : Components
        q(eta*, xi) and q(V).
    lower_bounds : ndarray
        The bound after each iteration.
    converged : bool
        Whether the stopping rule was met.
    """

    components: Components
    lower_bounds: FloatArray
    converged: bool

    def prob_zero(self, z: FloatArray, precision: FloatArray) -> FloatArray:
        """Variational P(eta_k = 0): ``sum_t phi_kt p_t``."""
        q = self.components
        phi, _ = responsibilities(log_joint(z, precision, q))
        return q.prob_zero @ phi

    def mean_prior(self) -> DiscretePrior:
        """G with the expected weights ``n_t / p`` of the components in use."""
        q = self.components
        return DiscretePrior(q.atoms[q.used], q.count[q.used])

    def map_prior(self, cells: Cells, merge_below: float = 0.0) -> DiscretePrior:
        """G from hard assignments, the paper's estimator (Section 3.3).

        Value k is assigned to the most probable of 0, with ``sum_t phi_kt p_t``, and
        the m_t, with ``phi_kt (1 - p_t)`` each. Where ``|m_t|`` is less than
        `merge_below`, the probability of m_t goes to 0 before values are assigned.
        """
        q = self.components
        phi, _ = responsibilities(log_joint(cells.value, cells.precision, q))
        signal = phi * q.prob_signal[:, None]
        small = np.abs(q.mean) < merge_below
        zero = q.prob_zero @ phi + signal[small].sum(axis=0)
        signal[small] = 0.0
        candidates = np.vstack([zero, signal])
        counts = np.bincount(
            candidates.argmax(axis=0), weights=cells.count, minlength=len(candidates)
        )
        return DiscretePrior(np.append(0.0, q.mean), counts)
