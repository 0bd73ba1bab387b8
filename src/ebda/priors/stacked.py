"""Atoms of a Dirichlet process and a scale mixture of normals, as the values need them.

A few atoms are best for effects of a few sizes, and a smooth prior for effects of all
sizes: where the other is right each costs up to a third in squared error. Both are
fitted, and the prior is ``v G_dp + (1 - v) G_normals`` with the share v that makes
held-out values most likely (stacking; Wolpert 1992). The shares maximise
``sum_k log(v f_dp(z_k) + (1 - v) f_normals(z_k))``, where the densities of value k are
estimated without its fold: a convex problem (:mod:`ebda.priors.mixture_weights`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from ebda.priors.base import BasePriorEstimator, PriorFamily, sorted_values
from ebda.priors.discrete import DiscretePrior
from ebda.priors.dp.dirichlet_process import DirichletProcess
from ebda.priors.mixture_weights import LikelihoodMatrix, maximise
from ebda.priors.normal_mixture import NormalMixture, NormalMixturePrior
from ebda.storage.fields import Array, Scalar
from ebda.typing import FloatArray

# Folds of at most so many values decide: more would hardly change the shares.
_MOST = 20_000
# With fewer values in a fold it says nothing, and both have the same share.
_FEWEST = 4
_TOL = 1e-7


def _members(n_jobs: int | None) -> list[Any]:
    return [DirichletProcess(tol=_TOL, n_jobs=n_jobs), NormalMixture(tol=_TOL)]


class Stacked(BasePriorEstimator):
    """Dirichlet process and scale mixture of normals, by what predicts held-out values.

    The default of `NormalMeans`. ``G = v G_dp + (1 - v) G_normals`` of the priors that
    `DirichletProcess` and `NormalMixture` estimate; v is chosen by cross-validation of
    the likelihood.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    n_jobs : int, optional
        Parallel jobs of the Dirichlet process.
    random_state : int, RandomState or None
        Determines the folds; None is always the same ones.

    Attributes
    ----------
    prior_ : NormalMixturePrior
        The estimate. Components with a standard deviation of zero are the atoms of the
        Dirichlet process.
    shares_ : ndarray of shape (2,)
        v and 1 - v.
    log_likelihood_ : float
        ``sum_k log f(z_k)``.

    References
    ----------
    Wolpert (1992), Neural Networks 5, 241-259.

    Examples
    --------
    >>> from ebda.datasets import make_normal_means
    >>> from ebda.priors import Stacked
    >>> points = make_normal_means("points", n_values=2000, random_state=0)
    >>> smooth = make_normal_means("laplace", n_values=2000, random_state=0)
    >>> [bool(Stacked().fit(sim.x).shares_[0] > 0.5) for sim in (points, smooth)]
    [True, False]
    """

    def __init__(
        self, n_folds: int = 5, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Stacked:
        """Estimate the prior of eta.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values, scales = sorted_values(z, scale)
        self._check_whole(n_folds=2)
        points, normals = (
            member.fit(values, scales).prior_ for member in _members(self.n_jobs)
        )
        self.shares_ = self._shares(values, scales)
        self.prior_ = _mixed(points, normals, self.shares_)
        self.log_likelihood_ = float(self.prior_.logpdf(values, scales).sum())
        return self

    def _shares(self, values: FloatArray, scales: FloatArray) -> FloatArray:
        """Shares of the members that make held-out values most likely."""
        state = 0 if self.random_state is None else self.random_state
        order = check_random_state(state).permutation(len(values))[:_MOST]
        equal = np.full(2, 0.5)
        if len(order) < _FEWEST * self.n_folds:
            return equal
        held_out = []
        for fold in np.array_split(order, self.n_folds):
            rest = np.setdiff1d(order, fold, assume_unique=True)
            fold.sort()
            held_out.append(
                [
                    member.fit(values[rest], scales[rest]).prior_.logpdf(
                        values[fold], scales[fold]
                    )
                    for member in _members(self.n_jobs)
                ]
            )
        log_density = np.concatenate(held_out, axis=1)
        ones = np.ones(log_density.shape[1])
        matrix = LikelihoodMatrix.of(log_density, ones, np.zeros(2))
        return maximise(matrix, equal, _TOL, 100).weights


def _mixed(
    points: DiscretePrior, normals: NormalMixturePrior, shares: FloatArray
) -> NormalMixturePrior:
    """The mixture of both."""
    return NormalMixturePrior(
        np.append(np.zeros(len(points.atoms)), normals.sds),
        np.append(shares[0] * points.weights, shares[1] * normals.weights),
        np.append(points.atoms, normals.locs),
    )


FAMILY = PriorFamily(
    "stacked",
    "Dirichlet process and normal mixture, by what predicts held-out values",
    Stacked,
    fitted={
        "shares_": Array(("m",), ("zero or more", "a distribution")),
        "log_likelihood_": Scalar((float,), finite=False),
    },
)
