"""The Dirichlet process prior as an estimator: parameters, batches, averaging."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ebda.jobs import map_batches
from ebda.kernels.threads import allow_threads, one_blas_thread
from ebda.priors.base import (
    BasePriorEstimator,
    PriorFamily,
    check_values,
    divide_by_median_scale,
)
from ebda.priors.cells import Cells, each_value, group
from ebda.priors.discrete import DiscretePrior
from ebda.priors.dp.algorithm1 import fit_algorithm1
from ebda.priors.dp.converged import fit_converged, fit_from
from ebda.priors.dp.unseen import unseen_effects
from ebda.priors.dp.variational import Model, VariationalFit
from ebda.priors.normal import PointNormalPrior
from ebda.sizes import sizes
from ebda.storage.fields import Array, Scalar
from ebda.typing import FloatArray

Inference = Callable[..., list[VariationalFit]]


def _converged(
    batches: list[Cells], *settings: Any, start: DiscretePrior | None = None
) -> list[VariationalFit]:
    fit = fit_converged if start is None else partial(fit_from, start)
    return [fit(cells, *settings) for cells in batches]


# name: (how values are grouped, the iteration, its default weights and tolerance)
INFERENCES: dict[
    str, tuple[Callable[[FloatArray, FloatArray], Cells], Inference, str, float]
] = {
    "paper": (each_value, fit_algorithm1, "map", 1e-3),
    "converged": (group, _converged, "mean", 1e-12),
}
# Components with a smaller mean are zero for "merged": the authors' choice in study 3.
_MERGED = 0.6
WEIGHTS: dict[str, Callable[[VariationalFit, Cells], DiscretePrior]] = {
    "map": lambda fit, cells: fit.map_prior(cells),
    "merged": lambda fit, cells: fit.map_prior(cells, merge_below=_MERGED),
    "mean": lambda fit, cells: fit.mean_prior(),
}


def _fit_batches(
    batches: list[Cells],
    inference: str,
    weights: str,
    settings: tuple[Model, int, float, int],
    **start: DiscretePrior,
) -> list[tuple[VariationalFit, DiscretePrior]]:
    """The posterior of each batch, and the prior that follows; may run on a worker."""
    iteration = INFERENCES[inference][1]
    # The order in which BLAS adds depends on its threads: with one the result does not
    # depend on n_jobs.
    with one_blas_thread():
        fits = iteration(batches, *settings, **start)
        return list(zip(fits, map(WEIGHTS[weights], fits, batches), strict=True))


# The least default tolerance for more values than `sizes.loose_values`: what their
# bound gains below it says nothing about them.
_LOOSE_TOL = 1e-9

_ALL_ZERO = DiscretePrior([0.0], [1.0])


class DirichletProcess(BasePriorEstimator):
    """Dirichlet process prior with a point mass at zero, by variational Bayes.

    ``z_k ~ N(eta_k, scale_k**2)``, ``eta_k ~ G``, ``G ~ DP(alpha, G0)`` with
    ``G0 = w delta_0 + (1 - w) N(0, sigma**2)`` (Ouyang and Liang, Section 3). The
    fitted factorised posterior is summarised as a discrete prior.

    Parameters
    ----------
    alpha : float
        Concentration: larger values expect more components.
    sigma : float
        Standard deviation of the non-zero part of the base measure, in units of the
        noise (of the median noise, where values differ in it). A single outlier
        is multiplied by ``sigma**2 / (sigma**2 + 1)``.
    zero_weight : float
        w, the prior probability that a component is at zero, between 0 and 1. The
        default was chosen by the error on the paper's study 1
        (``benchmarks/study1.py --sweep``), which changes by 3 % from 0.5 to 0.9.
    n_components : int
        T, the truncation. With converged inference, too many do no harm; effects with
        very heavy tails may need more.
    n_batches : int
        I, the number of random batches that are fitted separately and averaged. The
        paper needs them; converged inference does not.
    inference : {"converged", "paper"}
        "converged": ascent of the lower bound from spread start values, with merge
        and birth moves (:mod:`ebda.priors.dp.converged`). "paper": Algorithm 1 to the
        letter.
    weights : {"mean", "map", "merged"}, optional
        "mean": expected weights of the components. "map": hard assignments, as in
        the paper. "merged": the same, with components within 0.6 noise standard
        deviations of zero counted as zero, as in the authors' study 3. By default
        "map" for "paper" and "mean" for "converged".
    tol : float, optional
        "converged": stop when the relative gain of the bound is smaller, by default
        1e-12, or 1e-9 for more than 100,000 values. "paper": stop when no
        responsibility changes by more, by default 1e-3.
    max_iter : int
        Maximum number of iterations for each batch.
    start : DiscretePrior or PointNormalPrior, optional
        "converged": a prior fitted to similar values. Ten rounds of the ascent start
        there, and nothing else is searched for.
    unseen : bool
        What follows where every component ends at zero. False: a point mass at zero.
        True: the mass away from zero that is expected all the same
        (:mod:`ebda.priors.dp.unseen`), so that the largest values keep some weight.
        `EBClassifier` sets it for ``prior="dp"``.
    n_jobs : int, optional
        Number of batches that are fitted at a time, as joblib counts. The result does
        not depend on it.
    random_state : int, RandomState or None
        Determines the batches; not used if there is only one.

    Attributes
    ----------
    prior_ : DiscretePrior or PointNormalPrior
        The estimate of G; the latter only with `unseen`.
    lower_bound_ : float
        Evidence lower bound, summed over batches.
    lower_bounds_ : ndarray
        The bound after each iteration; for a batch that stops early the last one is
        repeated.
    n_iter_ : int
        Length of `lower_bounds_`: iterations of the slowest batch, including merge
        and birth moves.
    converged_ : bool
        Whether every batch met the stopping rule.
    batches_ : list of VariationalFit
        The variational posterior of each batch.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import DirichletProcess
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=2000) + np.repeat([0, 4], [1900, 100])
    >>> prior = DirichletProcess().fit(z).prior_
    >>> prior.atoms.round(1), prior.weights.round(2)
    (array([0. , 3.9]), array([0.95, 0.05]))
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
        start: DiscretePrior | PointNormalPrior | None = None,
        unseen: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.sigma = sigma
        self.zero_weight = zero_weight
        self.n_components = n_components
        self.n_batches = n_batches
        self.inference = inference
        self.weights = weights
        self.tol = tol
        self.max_iter = max_iter
        self.start = start
        self.unseen = unseen
        self.n_jobs = n_jobs
        self.random_state = random_state

    def for_similar_values(self) -> DirichletProcess:
        """An unfitted copy, which starts at this estimate if that is what it can do."""
        copy: DirichletProcess = clone(self)
        if self.inference == "converged":
            copy.set_params(start=self.prior_)
        return copy

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> DirichletProcess:
        """Estimate the prior of eta.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        with allow_threads(self.n_jobs):
            return self._fit(*check_values(z, scale))

    def _fit(self, values: FloatArray, scales: FloatArray) -> DirichletProcess:
        self._check_parameters(len(values))
        values, scales, unit = divide_by_median_scale(values, scales)
        batches = self._batches(len(values))
        # Batches are grouped here, because cells are what is sent to another process
        # or machine, and there are far fewer of them than values.
        with one_blas_thread():
            grouping = INFERENCES[self.inference][0]
            cells = [grouping(values[rows], scales[rows]) for rows in batches]
        fitting = self._fitting(-(-len(values) // len(batches)), unit)
        fits = map_batches(fitting, cells, self.n_jobs)
        self.batches_ = [fit for fit, _ in fits]
        prior = DiscretePrior.average(prior for _, prior in fits)
        self.prior_: DiscretePrior | PointNormalPrior = (
            prior if unit == 1 else prior.rescale(unit)
        )
        if self.unseen and prior == _ALL_ZERO:
            self.prior_ = self._unseen(values, scales, unit)
        self._summarise_bounds(len(values) * np.log(unit))
        if not self.converged_:
            warnings.warn(
                f"the variational posterior had not converged after max_iter="
                f"{self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _unseen(
        self, values: FloatArray, scales: FloatArray, unit: float
    ) -> PointNormalPrior:
        model = Model(self.alpha, self.sigma, self.zero_weight)
        prior = unseen_effects(group(values, scales), model)
        return PointNormalPrior(prior.pi0, prior.tau * unit)

    def _fitting(
        self, largest: int, unit: float
    ) -> Callable[[list[Cells]], list[tuple[VariationalFit, DiscretePrior]]]:
        """A function that fits batches, the largest of which has so many values."""
        _, _, weights, tol = INFERENCES[self.inference]
        if largest > sizes.loose_values:
            tol = max(tol, _LOOSE_TOL)
        start: dict[str, Any] = {}
        if isinstance(self.start, DiscretePrior):
            start["start"] = self.start.rescale(1 / unit)
        elif self.start is not None:  # nothing was seen in similar values
            start["start"] = _ALL_ZERO
        settings = (
            Model(self.alpha, self.sigma, self.zero_weight),
            self.n_components,
            tol if self.tol is None else self.tol,
            self.max_iter,
        )
        return partial(
            _fit_batches,
            inference=self.inference,
            weights=self.weights or weights,
            settings=settings,
            **start,
        )

    def _batches(self, n_values: int) -> list[Any]:
        if self.n_batches == 1:
            return [slice(None)]
        order = check_random_state(self.random_state).permutation(n_values)
        return list(np.array_split(order, self.n_batches))

    def _summarise_bounds(self, log_unit: float) -> None:
        longest = max(len(fit.lower_bounds) for fit in self.batches_)
        total = np.full(longest, -log_unit)
        for fit in self.batches_:
            held = longest - len(fit.lower_bounds)
            total += np.pad(fit.lower_bounds, (0, held), mode="edge")
        self.lower_bounds_ = total
        self.lower_bound_ = float(total[-1])
        self.n_iter_ = longest
        self.converged_ = all(fit.converged for fit in self.batches_)

    def _check_parameters(self, n_values: int) -> None:
        self._check_positive("alpha", "sigma")
        if not 0 < self.zero_weight < 1:
            raise ValueError(
                f"zero_weight must lie between 0 and 1, got {self.zero_weight!r}"
            )
        self._check_whole(n_components=1, n_batches=1, max_iter=1)
        if self.n_batches > n_values:
            raise ValueError(
                f"n_batches={self.n_batches} is more than the {n_values} values"
            )
        if self.tol is not None and not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")
        if self.start is not None and self.inference != "converged":
            raise ValueError("start is for inference='converged'")
        for name, known in (("inference", INFERENCES), ("weights", WEIGHTS)):
            value = getattr(self, name)
            if value not in known and not (name == "weights" and value is None):
                raise ValueError(
                    f"{name} must be one of {sorted(known)}, got {value!r}"
                )


FAMILY = PriorFamily(
    "dp",
    "Dirichlet process with a point mass at zero",
    DirichletProcess,
    # The last tenth of a nat of the bound, which takes hundreds of steps where it is
    # flat, says nothing about the data.
    # And a rule for new samples wants the most promising features even where there
    # is no evidence for any; held-out samples tell whether it is of use.
    classifier_settings={"tol": 1e-7, "unseen": True},
    fitted={
        "lower_bounds_": Array(("i",), ("free of NaN",)),
        "lower_bound_": Scalar((float,), finite=False),
        "n_iter_": Scalar((int,), least=0),
        "converged_": Scalar((bool,)),
    },
)
