"""Mixtures that store their weights: in order, read-only, without idle components."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from ebda.priors.mixtures import MixturePrior
from ebda.storage.fields import Array, Kind
from ebda.storage.objects import Schema
from ebda.typing import FloatArray


class WeightedMixture(MixturePrior):
    """A mixture of components that are told apart by vectors.

    Subclasses are frozen dataclasses whose fields are these vectors and `weights`; they
    call `_store` where they are made.
    """

    weights: FloatArray

    def _store(self, weights: npt.ArrayLike, **parts: FloatArray) -> None:
        """Keep the components that have any weight, in the order of the parts.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            Non-negative, not all zero; stored with sum one.
        **parts : ndarray of shape (n_components,)
            What tells the components apart.
        """
        weight = np.array(weights, dtype=np.float64, ndmin=1)
        shapes = [part.shape for part in parts.values()]
        if weight.ndim != 1 or set(shapes) != {weight.shape} or not weight.size:
            raise ValueError(
                f"{', '.join(parts)} and weights must be vectors of one length, at "
                "least one each; got shapes "
                f"{', '.join(map(str, shapes))} and {weight.shape}"
            )
        if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
            raise ValueError("weights must be finite, non-negative and not all zero")
        order = np.lexsort(tuple(parts.values())[::-1])
        order = order[weight[order] > 0]
        mass = weight[order] / weight.max()
        # -0.0 becomes 0.0.
        kept = {name: part[order] + 0.0 for name, part in parts.items()}
        self.__setstate__({**kept, "weights": mass / mass.sum()})

    def __setstate__(self, state: dict[str, FloatArray]) -> None:
        # Pickle does not keep the read-only flag.
        for name, value in state.items():
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def _from_fields(cls, fields: dict[str, FloatArray]) -> Self:
        """As it was: ``__init__`` would divide by the sum of the weights once more."""
        prior = cls.__new__(cls)
        prior.__setstate__(fields)
        return prior

    @property
    def log_weights(self) -> FloatArray:
        return np.log(self.weights)


def mixture_schema(prior: type[WeightedMixture], **parts: Kind) -> Schema:
    """How a mixture is stored: what tells its components apart, and their weights."""
    weights = Array(("t",), ("finite", "positive", "a distribution"))
    return Schema(
        prior,
        {**parts, "weights": weights},
        build=prior._from_fields,
        is_parameter=True,
        role="prior",
    )
