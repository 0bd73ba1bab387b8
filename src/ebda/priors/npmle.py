"""The nonparametric maximum likelihood prior as an estimator."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ebda.kernels.threads import one_blas_thread
from ebda.priors.base import (
    BasePriorEstimator,
    PriorFamily,
    divide_by_median_scale,
    sorted_values,
)
from ebda.priors.cells import group
from ebda.priors.discrete import DiscretePrior
from ebda.priors.kiefer_wolfowitz import (
    WeightedValues,
    histogram,
    maximise_on_grid,
    occupied_grid,
)
from ebda.priors.mixture_weights import Weights
from ebda.storage.fields import Array, Scalar
from ebda.typing import FloatArray


class NPMLE(BasePriorEstimator):
    """Nonparametric maximum likelihood (Kiefer and Wolfowitz 1956) on a grid of atoms.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ G = sum_t w_t delta(a_t)``, with the
    weights that maximise ``(1/p) sum_k log f_G(z_k)``. The maximum is certified: with
    ``D(a) = (1/p) sum_k f(z_k | a) / f_G(z_k)``, the average log-likelihood of any
    weights on the grid exceeds that of the weights found by at most
    ``max_t D(a_t) - 1``, the duality gap. In `EBClassifier` this is the linear form of
    the classifier of Dicker and Zhao (2016), and on a grid from the smallest value to
    the largest the general maximum likelihood estimate of Jiang and Zhang (2009), who
    find it by EM.

    Parameters
    ----------
    n_grid : int
        About how many atoms the grid has. They are spread evenly over the range of
        the data, except where no atom can lie, and always include zero.
    grid : array-like, optional
        The grid itself; zero is not added.
    tol : float
        Duality gap to reach, in average log-likelihood.
    max_iter : int
        Maximum number of Newton steps.

    Attributes
    ----------
    prior_ : DiscretePrior
        The estimate of G: the few atoms that have any weight.
    duality_gap_ : float
        Upper bound of what other weights on the grid could gain in average
        log-likelihood. It holds for the values themselves, which are grouped only to
        find a start.
    log_likelihood_ : float
        ``sum_k log f_G(z_k)``.
    grid_ : ndarray
        The grid.
    n_iter_ : int
        Number of Newton steps.
    converged_ : bool
        Whether the duality gap reached `tol`.

    References
    ----------
    Dicker and Zhao (2016), Biometrika 103, 21-34.
    Jiang and Zhang (2009), Annals of Statistics 37, 1647-1684.
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
        values, scales = sorted_values(z, scale)
        self._check_whole(n_grid=3, max_iter=1)
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")
        z, noise, unit = divide_by_median_scale(values, scales)
        sample = WeightedValues(z, noise, np.full(len(z), 1 / len(z)))
        self.grid_ = self._grid(values, scales)
        # The order in which BLAS adds depends on its threads: with one the result is
        # always the same, to the bit.
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

    def _maximise(self, sample: WeightedValues, grid: FloatArray) -> Weights:
        """Newton steps on grouped values first, and the last ones on all values."""
        cells = group(sample.value, sample.scale)
        grouped = WeightedValues(
            cells.value, cells.precision**-0.5, cells.count / cells.count.sum()
        )
        start = histogram(grouped, grid)
        first = maximise_on_grid(grouped, grid, start, self.tol, self.max_iter)
        last = maximise_on_grid(
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


_LIKELIHOOD = Scalar((float,), finite=False)
FAMILY = PriorFamily(
    "npmle",
    "nonparametric maximum likelihood on a grid",
    NPMLE,
    fitted={
        "grid_": Array(("g",)),
        "duality_gap_": _LIKELIHOOD,
        "log_likelihood_": _LIKELIHOOD,
        "n_iter_": Scalar((int,), least=0),
        "converged_": Scalar((bool,)),
    },
)
