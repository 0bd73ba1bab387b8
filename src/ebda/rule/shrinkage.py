"""From the posterior to the estimate of eta that the rule uses (Section 3.3).

`SHRINKAGES` is the registry that the `shrinkage` parameter of the classifier names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.priors.posterior import Posterior
from ebda.registry import Entry, Registry
from ebda.typing import FloatArray


@dataclass(frozen=True)
class Shrinkage(Entry):
    """A way to estimate eta.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`.
    estimate : callable
        From z, its posterior and kappa to the estimate.
    slope : callable, optional
        Derivative of the estimate by z, from the posterior. None where it has jumps.
    """

    estimate: Callable[[FloatArray, Posterior, float], FloatArray]
    slope: Callable[[Posterior], FloatArray] | None = None

    @property
    def thresholds(self) -> bool:
        """Whether it sets estimates to zero, so that it matters where the null is."""
        return self.slope is None


def none(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
    """z itself: no shrinkage."""
    return z


def _one(posterior: Posterior) -> FloatArray:
    return np.ones_like(posterior.mean)


def _posterior_variance(posterior: Posterior) -> FloatArray:
    """Tweedie's formula, once more: the derivative of the posterior mean."""
    return posterior.sd**2


def mean(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
    """The posterior mean: the paper's DP estimator."""
    return posterior.mean


def sparse(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
    """The posterior mean, and zero where P(eta = 0 | z) exceeds kappa: Sparse DP.

    >>> from ebda.priors import DiscretePrior
    >>> z = np.array([0.5, 4.0])
    >>> sparse(z, DiscretePrior([0, 4], [0.9, 0.1]).posterior(z), kappa=0.5).round(2)
    array([0.  , 3.99])
    """
    return np.where(posterior.prob_zero > kappa, 0.0, posterior.mean)


def hard(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
    """z itself, and zero where P(eta = 0 | z) exceeds kappa: Hard Thresh DP."""
    return np.where(posterior.prob_zero > kappa, 0.0, z)


SHRINKAGES: Registry[Shrinkage] = Registry(
    "shrinkage",
    Shrinkage(
        "mean",
        "posterior mean",
        mean,
        _posterior_variance,
    ),
    Shrinkage(
        "sparse", "posterior mean, or zero where no difference is more probable", sparse
    ),
    Shrinkage("hard", "z itself, or zero where no difference is more probable", hard),
    Shrinkage("none", "z itself, not shrunken", none, _one),
)
