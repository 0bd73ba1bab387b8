"""The nonparametric maximum likelihood prior as an estimator."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ebda.kernels.threads import one_blas_thread
from ebda.priors.base import PriorFamily, check_values
from ebda.priors.cells import group
from ebda.priors.discrete import DiscretePrior
from ebda.priors.kiefer_wolfowitz import (
    Sample,
    Weights,
    histogram,
    maximise,
    occupied_grid,
)
from ebda.typing import FloatArray


class NPMLE(PriorFamily):
    """Nonparametric maximum likelihood (Kiefer and Wolfowitz 1956) on a grid of atoms.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ G = sum_t w_t delta(a_t)``, with the
    weights that maximise ``(1/p) sum_k log f_G(z_k)``. The maximum is certified: with
    ``D(a) = (1/p) sum_k f(z_k | a) / f_G(z_k)``, no weights on the grid are better in
    average log-likelihood than those found by more than ``max_t D(a_t) - 1``, the
    duality gap. In `EBClassifier` this is the classifier of Dicker and Zhao (2016).

    Parameters
    ----------
    n_grid : int
        About how many atoms are offered, spread evenly over the range of the data
        (without stretches that no atom can lie in), zero always among them.
    grid : array-like, optional
        The atoms that are offered, instead; zero only if it is among them.
    tol : float
        Duality gap to reach, in average log-likelihood.
    max_iter : int
        Newton steps at the most.

    Attributes
    ----------
    prior_ : DiscretePrior
        The estimate of G: the few atoms that have any weight.
    duality_gap_ : float
        What the best weights on the grid could gain over these in average
        log-likelihood, at the most. It holds for the values themselves: grouping
        them serves to find where to start.
    log_likelihood_ : float
        ``sum_k log f_G(z_k)``.
    grid_ : ndarray
        The atoms that were offered.
    n_iter_ : int
        Newton steps.
    converged_ : bool
        Whether the duality gap reached `tol`.

    References
    ----------
    Dicker and Zhao (2016), Biometrika 103, 21-34.
    Koenker and Mizera (2014), Journal of the American Statistical Association 109,
    674-685.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import NPMLE
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=2000) + np.repeat([0, 4], [1800, 200])
    >>> npmle = NPMLE().fit(z)
    >>> npmle.prior_.posterior([2.0, 3.0, 4.0]).mean.round(1)
    array([0.5, 3.3, 4. ])
    >>> npmle.duality_gap_ < 1e-8
    True
    """

    def __init__(
        self,
        n_grid: int = 300,
        grid: npt.ArrayLike | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self.n_grid = n_grid
        self.grid = grid
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> NPMLE:
        """Estimate the prior of eta.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values, scales = check_values(z, scale)
        self._check_parameters()
        # In one order, so that another one of the same values changes no bit.
        order = np.lexsort((scales, values))
        values, scales = values[order], scales[order]
        unit = float(np.median(scales))
        share = np.full(len(values), 1 / len(values))
        sample = Sample(values / unit, scales / unit, share)
        self.grid_ = self._grid(values, scales)
        # Threads of BLAS add in another order: with one, the bits are always the same.
        with one_blas_thread():
            fit = self._maximise(sample, self.grid_ / unit)
        self.prior_ = DiscretePrior(self.grid_, fit.weights)
        self.duality_gap_ = fit.gap
        self.log_likelihood_ = float(self.prior_.logpdf(values, scales).sum())
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.gap <= self.tol
        if not self.converged_:
            warnings.warn(
                f"the duality gap is {fit.gap:.2g} after {fit.n_iter} Newton steps and "
                f"not tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _maximise(self, sample: Sample, grid: FloatArray) -> Weights:
        """Newton steps on grouped values, then the last of them on all values."""
        cells = group(sample.value, sample.scale)
        grouped = Sample(
            cells.value, cells.precision**-0.5, cells.count / cells.count.sum()
        )
        start = histogram(grouped, grid)
        first = maximise(grouped, grid, start, self.tol, self.max_iter)
        last = maximise(
            sample, grid, first.weights, self.tol, self.max_iter - first.n_iter
        )
        return Weights(last.weights, last.gap, first.n_iter + last.n_iter)

    def _grid(self, values: FloatArray, scales: FloatArray) -> FloatArray:
        if self.grid is None:
            return occupied_grid(values, scales, int(self.n_grid))
        grid = np.unique(np.asarray(self.grid, dtype=np.float64))
        if grid.size == 0 or not np.isfinite(grid).all():
            raise ValueError("grid must hold finite numbers, at least one")
        return grid

    def _check_parameters(self) -> None:
        for name, least in (("n_grid", 3), ("max_iter", 1)):
            value = getattr(self, name)
            if value != int(value) or value < least:
                raise ValueError(
                    f"{name} must be a whole number >= {least}, got {value!r}"
                )
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")
