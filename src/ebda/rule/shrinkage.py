"""From the posterior to the estimate of eta that the rule uses (Section 3.3).

`SHRINKAGES` is the registry that the `shrinkage` parameter of the classifier names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.priors.posterior import Posterior, mean_slope
from ebda.registry import Entry, Registry
from ebda.typing import FloatArray

# Absolute values this close, relative to each other, are ties.
_TIED = 1e-9


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
        Derivative of the estimate by z, from z and its posterior. None where it has
        jumps.
    needs_prior : bool
        Whether it looks at the posterior.
    n_largest : int, optional
        How many features keep an estimate, if that is fixed. Then the estimate of one
        feature depends on the others.
    head_start : float
        Logarithm of the odds with which it starts when candidates are weighted.
    """

    estimate: Callable[[FloatArray, Posterior, float], FloatArray]
    slope: Callable[[FloatArray, Posterior], FloatArray] | None = None
    needs_prior: bool = True
    n_largest: int | None = None
    head_start: float = 0.0

    @property
    def is_pointwise(self) -> bool:
        """Whether the estimate of a feature is a function of its own z."""
        return self.n_largest is None

    def on_part(self, share: float) -> Shrinkage:
        """What it is among a share of all features."""
        if self.n_largest is None:
            return self
        return largest(max(1, round(share * self.n_largest)))


def none(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
    """z itself: no shrinkage."""
    return z


def _one(z: FloatArray, posterior: Posterior) -> FloatArray:
    return np.ones_like(z)


def _mean_slope(z: FloatArray, posterior: Posterior) -> FloatArray:
    return mean_slope(posterior)


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


def threshold(z: FloatArray, n: int) -> FloatArray:
    """The (n + 1)-th largest absolute value of each row; 0 if there are no more than n.

    >>> threshold(np.array([3.0, -5.0, 1.0, 0.0]), 2)
    array([1.])
    """
    size = np.abs(z)
    p = size.shape[-1]
    if n >= p:
        return np.zeros((*size.shape[:-1], 1))
    place = p - n - 1
    cut: FloatArray = np.partition(size, place, axis=-1)[..., place, None]
    return cut


def largest(n: int) -> Shrinkage:
    """The n largest z of each contrast, less the largest of the others.

    It is the soft threshold that leaves n features, or fewer where they tie: what
    nearest shrunken centroids do, with the number of features in place of the
    threshold. Nothing of it comes from the prior, and so it holds up where the prior
    does not fit.

    >>> z = np.array([3.0, -5.0, 1.0, 0.0])
    >>> largest(2).estimate(z, None, 0.5)
    array([ 2., -4.,  0.,  0.])
    """

    def estimate(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
        left: FloatArray = np.abs(z) - threshold(z, n)
        return np.copysign(np.maximum(left, 0.0), z)

    def slope(z: FloatArray, posterior: Posterior) -> FloatArray:
        # Ties are ties whatever the last digits of z, which depend on the order.
        return (np.abs(z) > (1 + _TIED) * threshold(z, n)).astype(np.float64)

    line = f"the {n} largest z, less the largest of the others"
    return Shrinkage(f"top{n}", line, estimate, slope, needs_prior=False, n_largest=n)


# Posterior means are the best where the prior holds, and others must show that it does
# not: by two units of log-likelihood, since only half of it counts.
SHRINKAGES: Registry[Shrinkage] = Registry(
    "shrinkage",
    Shrinkage("mean", "posterior mean", mean, _mean_slope, head_start=1.0),
    Shrinkage(
        "sparse", "posterior mean, or zero where no difference is more probable", sparse
    ),
    Shrinkage("hard", "z itself, or zero where no difference is more probable", hard),
    Shrinkage("none", "z itself, not shrunken", none, _one, needs_prior=False),
    largest(10),
    largest(100),
    largest(1000),
)


def pointwise() -> dict[str, Shrinkage]:
    """The shrinkages that can be drawn as a function of z."""
    return {name: how for name, how in SHRINKAGES.items() if how.is_pointwise}
