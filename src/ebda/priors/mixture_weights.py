"""Maximum likelihood of the weights of a mixture, by constrained Newton steps.

The components are given, and have likelihoods ``L_kt = f(z_k | t)``. With
``f_w(z_k) = sum_t w_t L_kt``, shares ``c_k`` of the values (sum one) and

    D_t = sum_k c_k L_kt / f_w(z_k),

weights w maximise the average log-likelihood ``sum_k c_k log f_w(z_k)`` exactly when
``D_t <= 1`` for all components (Lindsay 1983). Away from the maximum,
``max_t D_t - 1`` bounds what is still to be gained, by concavity: the duality gap.

A step maximises the second order expansion of the log-likelihood over non-negative
weights (Kim, Carbonetto, Stephens and Anitescu 2020 call it mixsqp). With
``S_kt = L_kt / f_w(z_k)`` that is the least squares problem
``min sum_k c_k (S_k. v - 2)**2 + (sum_t v_t)**2``, ``v >= 0``, whose columns are the
components in use and the local maxima of D (Wang 2007); then the step is halved until
the likelihood rises enough. Values pass in blocks, and only a triangular factor of the
few columns is kept, so memory grows neither with the values nor with the components.

References
----------
Kim, Carbonetto, Stephens and Anitescu (2020), Journal of Computational and Graphical
Statistics 29, 261-273.
Lindsay (1983), Annals of Statistics 11, 86-94.
Wang (2007), Journal of the Royal Statistical Society B 69, 185-198.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Share of the first order gain that a step must reach.
_ARMIJO = 1e-4
# Rounding error of an average log-likelihood: smaller losses cannot be told from gains.
_ROUNDING = 1e-14
# Steps with neither a gain nor a smaller gap after which only rounding is left.
_PATIENCE = 5
# Part of its density that a step leaves to every value: the expansion says nothing
# about values that it leaves out.
_LEAST_RATIO = 1e-3
# Limit of steps of non-negative least squares per column; a handful is usual.
_NNLS_STEPS = 50
# Halvings after which the search for a step gives up.
_MAX_HALVINGS = 30
# Weights below this part of tol / n cannot move the gap by 1 % of tol and are dropped.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the components, their duality gap, and the number of steps."""

    weights: FloatArray
    gap: float
    n_iter: int


class Likelihood(Protocol):
    """Likelihoods of the components, ordered so that neighbours are similar."""

    @property
    def size(self) -> int:
        """Number of components."""

    @property
    def least_share(self) -> float:
        """The smallest share of a value."""

    def blocks(
        self, columns: IntArray | slice
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Shares of some values, and likelihoods of the chosen components (rows).

        Likelihoods are known up to a factor for each value.
        """


@dataclass(frozen=True, eq=False)
class LikelihoodMatrix:
    """Likelihoods that are kept: few components, or values that were grouped.

    Parameters
    ----------
    share : ndarray of shape (n_values,)
        Shares of the values, with sum one.
    matrix : ndarray of shape (n_components, n_values)
        Likelihoods, up to a factor for each value.
    """

    share: FloatArray
    matrix: FloatArray

    @classmethod
    def of(
        cls, log_density: FloatArray, count: FloatArray, pseudo: FloatArray
    ) -> LikelihoodMatrix:
        """Likelihoods from their logarithms, with pseudo-counts for components.

        A pseudo-count of c for a component adds ``c log w_t`` to the log-likelihood:
        it counts as c values that are known to come from that component.

        Parameters
        ----------
        log_density : ndarray of shape (n_components, n_values)
            Log densities of the values.
        count : ndarray of shape (n_values,)
            How often each value occurs.
        pseudo : ndarray of shape (n_components,)
            Pseudo-counts.
        """
        matrix = np.exp(log_density - log_density.max(axis=0))
        extra = np.flatnonzero(pseudo)
        known = np.eye(len(pseudo))[:, extra]
        share = np.append(count, pseudo[extra])
        return cls(share / share.sum(), np.concatenate([matrix, known], axis=1))

    @property
    def size(self) -> int:
        return len(self.matrix)

    @property
    def least_share(self) -> float:
        return float(self.share.min())

    def blocks(
        self, columns: IntArray | slice
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        size = max(1, sizes.posterior_elements // self.size)
        for start in range(0, len(self.share), size):
            rows = slice(start, start + size)
            yield self.share[rows], self.matrix[columns, rows]


def gradient(likelihood: Likelihood, weights: FloatArray) -> FloatArray:
    """D of each component."""
    out = np.zeros(likelihood.size)
    for share, block in likelihood.blocks(slice(None)):
        out += block @ (share / (weights @ block))
    return out


def _newton_weights(
    likelihood: Likelihood, columns: IntArray, weights: FloatArray
) -> FloatArray:
    """The maximiser of the second order expansion at `weights`, not normalised."""
    factor: FloatArray = np.append(np.ones(len(columns)), 0.0)[None, :]
    for share, block in likelihood.blocks(columns):
        root = np.sqrt(share)
        ratio = block * (root / (weights @ block))
        system = np.vstack([ratio, 2 * root]).T
        factor = np.asarray(np.linalg.qr(np.vstack([factor, system]), mode="r"))
    # A value that the weights nearly left out makes a column as long as the inverse of
    # its density, beside which nnls would take all others for zero.
    length = np.linalg.norm(factor[:, :-1], axis=0)
    scaled = nnls(
        factor[:, :-1] / length, factor[:, -1], maxiter=_NNLS_STEPS * len(columns)
    )[0]
    solution: FloatArray = scaled / length
    return solution


def _density_ratio(
    likelihood: Likelihood,
    columns: IntArray,
    numerator: FloatArray,
    denominator: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Share of each value, and f_w / f_v there."""
    parts = [
        (share, (numerator @ block) / (denominator @ block))
        for share, block in likelihood.blocks(columns)
    ]
    shares, ratios = zip(*parts, strict=True)
    return np.concatenate(shares), np.concatenate(ratios)


def _step(share: FloatArray, ratio: FloatArray) -> tuple[float, float]:
    """Longest of 1, 1/2, 1/4, ... that raises the likelihood enough, and its gain."""
    change = ratio - 1
    slope = float(share @ change)
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        if 1 + step * change.min() > _LEAST_RATIO:
            gain = float(share @ np.log1p(step * change))
            if gain >= _ARMIJO * step * slope - _ROUNDING:
                return step, gain
        step /= 2
    return 0.0, 0.0


def _peaks(d: FloatArray) -> npt.NDArray[np.bool_]:
    """Local maxima above one, and those of their neighbours that are above one."""
    padded = np.pad(d, 1, constant_values=-np.inf)
    peak = (d > 1) & (d >= padded[:-2]) & (d >= padded[2:])
    beside = np.pad(peak, 1)
    return (d > 1) & (peak | beside[:-2] | beside[2:])


def maximise(
    likelihood: Likelihood, weights: FloatArray, tol: float, max_iter: int
) -> Weights:
    """Newton steps from given weights until the duality gap is at most `tol`.

    Stops early when no step helps any more. Returns the weights with the smallest gap.

    >>> matrix = LikelihoodMatrix(np.full(3, 1 / 3), np.array([[2, 2, 1], [1, 1, 2.0]]))
    >>> maximise(matrix, np.array([0.5, 0.5]), 1e-9, 20).weights.round(6)
    array([1., 0.])
    """
    negligible = _NEGLIGIBLE * min(tol, 1.0) * likelihood.least_share
    best, best_gap, idle = weights, np.inf, 0
    for n_iter in range(max_iter + 1):
        d = gradient(likelihood, weights)
        gap = float(d.max()) - 1
        if gap < best_gap:
            best, best_gap, idle = weights, gap, 0
        if gap <= tol or idle > _PATIENCE or n_iter == max_iter:
            break
        columns = np.flatnonzero((weights > 0) | _peaks(d))
        current = weights[columns]
        target = _newton_weights(likelihood, columns, current)
        target[target < negligible * target.sum()] = 0.0
        target /= target.sum()
        step, gain = _step(*_density_ratio(likelihood, columns, target, current))
        idle = idle + 1 if gain <= _ROUNDING else 0
        weights = np.zeros(likelihood.size)
        weights[columns] = (1 - step) * current + step * target
    return Weights(best, best_gap, n_iter)
