"""Estimators of mixtures whose components lie on a grid: convex maximum likelihood."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ebda.kernels.threads import one_blas_thread
from ebda.priors.base import (
    BasePriorEstimator,
    divide_by_median_scale,
    sorted_values,
)
from ebda.priors.cells import Cells, group
from ebda.priors.mixture_weights import LikelihoodMatrix, maximise
from ebda.priors.mixtures import MixturePrior
from ebda.storage.fields import Kind, Scalar
from ebda.typing import FloatArray

# Fitted attributes that a model file holds.
CERTIFICATE: dict[str, Kind] = {
    "duality_gap_": Scalar((float,), finite=False),
    "log_likelihood_": Scalar((float,), finite=False),
    "n_iter_": Scalar((int,), least=0),
    "converged_": Scalar((bool,)),
}


class MixtureEstimator(BasePriorEstimator):
    """Weights of given components, by maximum likelihood; subclasses define these."""

    zero_count: float
    tol: float
    max_iter: int
    prior_: MixturePrior

    def _grid(self, x: FloatArray, noise: FloatArray, unit: float) -> FloatArray:
        """What tells the components apart, in units of the noise; zero is an atom.

        Ordered, so that neighbours are similar.
        """
        raise NotImplementedError

    @staticmethod
    def _prior(grid: FloatArray, weights: FloatArray) -> MixturePrior:
        """The mixture of these components with these weights."""
        raise NotImplementedError

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> MixtureEstimator:
        """Estimate the prior of eta.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values, scales = sorted_values(z, scale)
        self._check_whole(max_iter=1)
        self._check_positive("tol")
        if not (np.isfinite(self.zero_count) and self.zero_count >= 0):
            raise ValueError(
                f"zero_count must be zero or more, got {self.zero_count!r}"
            )
        x, noise, unit = divide_by_median_scale(values, scales)
        self._fit_cells(group(x, noise), self._grid(x, noise, unit), unit)
        self.log_likelihood_ = float(self.prior_.logpdf(values, scales).sum())
        return self

    def fit_counted(self, z: FloatArray, count: FloatArray) -> MixtureEstimator:
        """Estimate the prior from values that were counted, with noise 1.

        Parameters
        ----------
        z : ndarray of shape (n_cells,)
            Distinct values.
        count : ndarray of shape (n_cells,)
            How often each occurs, above zero.
        """
        cells = Cells(z, count, np.ones(len(z)))
        self._fit_cells(cells, self._grid(z, np.ones(1), 1.0), 1.0)
        self.log_likelihood_ = float(count @ self.prior_.logpdf(z))
        return self

    def _fit_cells(self, cells: Cells, grid: FloatArray, unit: float) -> None:
        """Weights that maximise the likelihood of grouped values."""
        equal = np.full(len(grid), 1 / len(grid))
        every = self._prior(grid, equal)
        parts = every.components(cells.value, cells.precision**-0.5)
        pseudo = np.where(every.point_masses == 0, self.zero_count, 0.0)
        matrix = LikelihoodMatrix.of(parts.log_density, cells.count, pseudo)
        # The order in which BLAS adds depends on its threads.
        with one_blas_thread():
            fit = maximise(matrix, equal, self.tol, self.max_iter)
        self.prior_ = self._prior(grid * unit, fit.weights)
        self.duality_gap_, self.n_iter_ = fit.gap, fit.n_iter
        self.converged_ = fit.gap <= self.tol
        if not self.converged_:
            warnings.warn(
                f"the duality gap is {fit.gap:.2g} after {fit.n_iter} Newton steps and "
                f"not tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
