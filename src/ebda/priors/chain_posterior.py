"""The posterior of effects along an order (:mod:`ebda.priors.chain`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.cached import cached_property
from ebda.priors.posterior import tail_probability
from ebda.storage.fields import NOT_NEGATIVE, VALUES, Array
from ebda.storage.objects import Lengths, Schema, register
from ebda.typing import FloatArray


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
