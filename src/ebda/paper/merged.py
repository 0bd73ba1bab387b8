"""The Dirichlet process with small atoms set to zero, as the authors do in study 3."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ebda.priors import DirichletProcess, DiscretePrior


class MergedDirichletProcess(DirichletProcess):
    """A Dirichlet process whose fitted atoms below a size are moved to zero.

    The default inference of :class:`~ebda.priors.DirichletProcess` needs no such
    threshold; this is for reproduction.

    Parameters
    ----------
    merge_below : float
        Atoms of smaller absolute value become zero; 0 changes nothing.
    alpha, sigma, zero_weight, n_components, n_batches, inference, weights, tol,
    max_iter, n_jobs, random_state
        As in :class:`~ebda.priors.DirichletProcess`.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=500) + 0.3
    >>> MergedDirichletProcess(merge_below=0.6).fit(z).prior_.pi0
    1.0
    """

    def __init__(
        self,
        alpha: float = 1.0,
        sigma: float = 4.0,
        zero_weight: float = 0.8,
        n_components: int = 20,
        n_batches: int = 1,
        inference: str = "converged",
        weights: str | None = None,
        tol: float | None = None,
        max_iter: int = 2000,
        n_jobs: int | None = None,
        random_state: Any = None,
        merge_below: float = 0.0,
    ) -> None:
        super().__init__(
            alpha=alpha,
            sigma=sigma,
            zero_weight=zero_weight,
            n_components=n_components,
            n_batches=n_batches,
            inference=inference,
            weights=weights,
            tol=tol,
            max_iter=max_iter,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.merge_below = merge_below

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Self:
        """Estimate the prior, then merge its small atoms into zero.

        Parameters
        ----------
        z : array-like
            Values.
        scale : float or array-like
            Their noise standard deviation.
        """
        super().fit(z, scale)
        atoms = self.prior_.atoms
        kept = np.where(np.abs(atoms) < self.merge_below, 0.0, atoms)
        self.prior_ = DiscretePrior(kept, self.prior_.weights)
        return self
