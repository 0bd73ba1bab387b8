"""Small atoms of a fitted prior set to zero, as the authors do in study 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.priors import (
    BasePriorEstimator,
    DirichletProcess,
    DiscretePrior,
    make_prior,
)


class SmallAtomsMerged(BasePriorEstimator):
    """A discrete prior whose atoms below a size are moved to zero after the fit.

    The default inference of :class:`~ebda.priors.DirichletProcess` needs no such
    threshold; this is for reproduction.

    Parameters
    ----------
    prior : prior estimator, optional
        What is fitted; by default a Dirichlet process.
    below : float
        Atoms of smaller absolute value become zero.

    Attributes
    ----------
    prior_ : DiscretePrior
        The prior after merging.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=500) + 0.3
    >>> SmallAtomsMerged(below=0.6).fit(z).prior_.pi0
    1.0
    """

    def __init__(self, prior: Any = None, below: float = 0.6) -> None:
        self.prior = prior
        self.below = below

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> SmallAtomsMerged:
        """Estimate the prior, then merge its small atoms into zero.

        Parameters
        ----------
        z : array-like
            Values.
        scale : float or array-like
            Their noise standard deviation.
        """
        inner = DirichletProcess() if self.prior is None else self.prior
        fitted: Any = make_prior(inner).fit(z, scale).prior_
        small = np.abs(fitted.atoms) < self.below
        atoms = np.where(small, 0.0, fitted.atoms)
        self.prior_ = DiscretePrior(atoms, fitted.weights)
        return self
