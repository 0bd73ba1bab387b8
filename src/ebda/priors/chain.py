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
weights and the atoms but for zero are fitted in :mod:`ebda.priors.chain_fit`.

The estimate of an effect then leans on as many neighbours as the values themselves
show to be alike. By Tweedie's formula for normal noise with the correlation R,

    d E(eta_j | z) / d z_j = sum_k cov(eta_j, eta_k | z) (R^-1)_kj,

where the sum has three terms, because the inverse of R is zero beyond neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.kernels.chain import Smoothed, smooth
from ebda.priors.chain_posterior import ChainPosterior
from ebda.priors.discrete import DiscretePrior
from ebda.priors.posterior import Posterior
from ebda.typing import FloatArray


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

    def smooth(self, rows: FloatArray) -> Smoothed:
        """The chain given values.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_varying)
            Without the values of constant features; each row is a path of its own.
        """
        return Chains.of([self]).smooth(rows[None])

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
        weights[..., varying, :] = (
            found.weights[0].transpose(1, 2, 0).reshape(*shape, -1)
        )
        slope[..., varying] = self._slope(found).reshape(shape)
        return ChainPosterior(
            values.shape, atoms, weights.reshape(-1, len(atoms)), slope
        )

    def _slope(self, found: Smoothed) -> FloatArray:
        """Derivative of each posterior mean by its own value."""
        atoms, rho = self.distribution.atoms, self.rho
        mean, square = np.tensordot(np.stack([atoms, atoms**2]), found.weights[0], 1)
        variance = np.maximum(square - mean**2, 0.0)
        covariance = found.products[0] - mean[:, 1:] * mean[:, :-1]
        slope: FloatArray = precision_diagonal(mean.shape[1], np.array([rho]))
        slope = slope * variance
        beside = rho / (1 - rho**2) * covariance
        slope[:, 1:] -= beside
        slope[:, :-1] -= beside
        return slope

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log of the marginal density of each value by itself."""
        return self.distribution.logpdf(z, scale)


@dataclass(frozen=True, eq=False)
class Chains:
    """Several chains side by side, such as those of folds.

    Parameters
    ----------
    atoms, weights : ndarray of shape (n_chains, n_states)
        G of each. States of weight zero fill up those with fewer atoms than others.
    renewal, rho : ndarray of shape (n_chains,)
        q, and the correlation of the noise.
    """

    atoms: FloatArray
    weights: FloatArray
    renewal: FloatArray
    rho: FloatArray

    @classmethod
    def of(cls, chains: Sequence[RenewalChain]) -> Chains:
        """Side by side."""
        most = max(len(chain.distribution.atoms) for chain in chains)
        atoms, weights = np.zeros((2, len(chains), most))
        for chain, a, w in zip(chains, atoms, weights, strict=True):
            k = len(chain.distribution.atoms)
            a[:k], w[:k] = chain.distribution.atoms, chain.distribution.weights
        renewal = np.array([chain.renewal for chain in chains])
        return cls(atoms, weights, renewal, np.array([chain.rho for chain in chains]))

    @property
    def transition(self) -> FloatArray:
        """Probability of each atom (columns) after another (rows)."""
        stays = (1 - self.renewal)[:, None, None] * np.eye(self.atoms.shape[1])
        changes: FloatArray = self.renewal[:, None, None] * self.weights[:, None]
        return stays + changes

    def smooth(self, rows: FloatArray) -> Smoothed:
        """Each chain given its own values.

        Parameters
        ----------
        rows : ndarray of shape (n_chains, n_rows, n)
            Values; each row is a path of its own.
        """
        atoms, rho, exists = self.atoms, self.rho, self.weights > 0
        # z' R^-1 z of the values less the effects, sorted by effects and by pairs.
        sites = atoms[:, :, None, None] * precise(rows, rho)[:, None]
        curvature = np.empty((len(rho), rows.shape[2]))
        curvature[:] = ((1 - rho) / (1 + rho))[:, None]
        curvature[:, [0, -1]] = (1 / (1 + rho))[:, None]
        sites -= (0.5 * atoms[:, :, None] ** 2 * curvature[:, None])[:, :, None]
        log_weights = np.log(np.where(exists, self.weights, 1.0))
        sites[..., 0] += log_weights[:, :, None]
        sites[~exists] = -np.inf
        apart = (atoms[:, :, None] - atoms[:, None]) ** 2
        both = exists[:, :, None] & exists[:, None]
        pair = np.log(np.where(both, self.transition, 1.0))
        pair -= 0.5 * (rho / (1 - rho**2))[:, None, None] * np.where(both, apart, 0.0)
        return smooth(sites, pair, atoms)


def precise(rows: FloatArray, rho: FloatArray) -> FloatArray:
    """The inverse of the correlation of an autoregression, times each row.

    Parameters
    ----------
    rows : ndarray of shape (n_chains, n_rows, n)
        Rows.
    rho : ndarray of shape (n_chains,)
        The correlation of each chain.

    >>> precise(np.array([[[1.0, 0.5, 0.25]]]), np.array([0.5])).round(12) + 0.0
    array([[[1., 0., 0.]]])
    """
    out = precision_diagonal(rows.shape[2], rho)[:, None] * rows
    beside = (rho / (1 - rho**2))[:, None, None]
    out[..., 1:] -= beside * rows[..., :-1]
    out[..., :-1] -= beside * rows[..., 1:]
    return out


def precision_diagonal(n: int, rho: FloatArray) -> FloatArray:
    """Diagonal of the inverse of the correlation of autoregressions of length n."""
    diagonal = np.empty((len(rho), n))
    diagonal[:] = ((1 + rho**2) / (1 - rho**2))[:, None]
    diagonal[:, [0, -1]] = (1 / (1 - rho**2))[:, None]
    return diagonal
