"""A prior with finitely many atoms: what every fitted mixture ends as."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.kernels.atoms import weight_blocks
from ebda.priors.posterior import (
    DiscretePosterior,
    as_values,
    broadcast_scale,
    finite_values,
)
from ebda.storage.fields import Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False, init=False)
class DiscretePrior:
    """The prior ``G = sum_t w_t delta(a_t)`` of eta.

    Parameters
    ----------
    atoms : array-like of shape (n_atoms,)
        Locations. Stored ascending, equal ones merged.
    weights : array-like of shape (n_atoms,)
        Non-negative, not all zero; stored with sum one. Atoms of weight zero are
        dropped.

    Examples
    --------
    >>> from ebda.priors import DiscretePrior
    >>> prior = DiscretePrior([0, 3], [9, 1])
    >>> prior
    DiscretePrior(atoms=[0, 3], weights=[0.9, 0.1])
    >>> posterior = prior.posterior([0.0, 3.0, 1e6])
    >>> posterior.mean.round(3)
    array([0.004, 2.727, 3.   ])
    >>> posterior.prob_zero.round(3)
    array([0.999, 0.091, 0.   ])
    """

    atoms: FloatArray
    weights: FloatArray

    def __init__(self, atoms: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        atoms = np.array(atoms, dtype=np.float64, ndmin=1)
        weights = np.array(weights, dtype=np.float64, ndmin=1)
        if atoms.ndim != 1 or atoms.shape != weights.shape or atoms.size == 0:
            raise ValueError(
                f"atoms and weights must be vectors of one length, at least one each; "
                f"got shapes {atoms.shape} and {weights.shape}"
            )
        if not np.isfinite(atoms).all():
            raise ValueError("atoms must be finite")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise ValueError("weights must be finite, non-negative and not all zero")
        locations, where = np.unique(atoms, return_inverse=True)
        # A power of two is exact, and keeps the sum in range.
        scaled = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
        mass = np.bincount(where, weights=scaled) / scaled.sum()
        keep = mass > 0
        mass = mass[keep]
        locations = locations[keep] + 0.0  # -0.0 becomes 0.0
        for name, value in (("atoms", locations), ("weights", mass)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        atoms = ", ".join(f"{a:.4g}" for a in self.atoms)
        weights = ", ".join(f"{w:.4g}" for w in self.weights)
        return f"DiscretePrior(atoms=[{atoms}], weights=[{weights}])"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DiscretePrior):
            return NotImplemented
        return np.array_equal(self.atoms, other.atoms) and np.array_equal(
            self.weights, other.weights
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal, not hashable

    def __setstate__(self, state: dict[str, FloatArray]) -> None:
        # Pickle does not keep the read-only flag.
        for name, value in state.items():
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def pi0(self) -> float:
        """The mass at zero."""
        return float(self.weights[self.atoms == 0].sum())

    def posterior(
        self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0
    ) -> DiscretePosterior:
        """Posterior of eta for each z ~ N(eta, scale**2).

        Parameters
        ----------
        z : array-like of any shape, or a number
            Observed values.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values = as_values(z)
        posterior = DiscretePosterior(
            values,
            broadcast_scale(values, scale),
            self.atoms,
            np.log(self.weights),
        )
        if not posterior.is_tabulated:  # else their range is known to be finite
            finite_values(values)
        return posterior

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log marginal density: the normal mixture with this G, at each z.

        >>> DiscretePrior([0.0], [1.0]).logpdf(0.0).round(4)
        np.float64(-0.9189)
        """
        values = finite_values(z)
        s = broadcast_scale(values, scale)
        out = np.empty(values.size)
        log_weights = np.log(self.weights)
        for rows, _, log_density in weight_blocks(
            values.ravel(), s.ravel(), self.atoms, log_weights
        ):
            out[rows] = log_density
        return out.reshape(values.shape)[()]

    def rescale(self, factor: float) -> DiscretePrior:
        """The prior of ``factor * eta``."""
        return DiscretePrior(self.atoms * factor, self.weights)

    @staticmethod
    def average(priors: Iterable[DiscretePrior]) -> DiscretePrior:
        """The equally weighted mixture of several priors (the paper's batches).

        >>> halves = [DiscretePrior([0], [1]), DiscretePrior([0, 2], [1, 1])]
        >>> DiscretePrior.average(halves)
        DiscretePrior(atoms=[0, 2], weights=[0.75, 0.25])
        """
        parts = list(priors)
        if not parts:
            raise ValueError("cannot average no priors")
        return DiscretePrior(
            np.concatenate([part.atoms for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )


def _from_fields(fields: dict[str, FloatArray]) -> DiscretePrior:
    # Its own __init__ would divide by the sum of the weights once more.
    prior = DiscretePrior.__new__(DiscretePrior)
    prior.__setstate__(fields)
    return prior


register(
    Schema(
        DiscretePrior,
        {
            "atoms": Array(("t",), ("finite", "ascending")),
            "weights": Array(("t",), ("finite", "positive", "a distribution")),
        },
        build=_from_fields,
        is_parameter=True,
        role="prior",
    )
)
