"""The mean and variance adaptive rule (Oh and Park 2024).

For feature j let X_j be the difference of the class means and V_j the pooled variance
with m degrees of freedom,

    X_j ~ N(mu_j, c v_j),  V_j ~ v_j chi2_m / m,  c = 1 / n_1 + 1 / n_2.

The priors of mu_j and v_j are estimated by maximum likelihood, and the weight of a
feature is the posterior mean of ``mu_j / v_j``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ebda.baselines.base import SampleClassifier, midpoint_rule
from ebda.baselines.mixture_weights import mixture_weights
from ebda.baselines.scaled_samples import ScaledSamples
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.estimators.moment_classifier import squeeze
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import contrast_weights
from ebda.rule.linear_rule import LinearRule
from ebda.sizes import sizes
from ebda.storage.fields import COUNT, NUMBER, POSITIVE, SQUEEZED, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class MeanVarianceAdaptive(SampleClassifier):
    """Weights from nonparametric priors of the differences and of the variances.

    The differences of the class means have a prior, and the variances within the
    classes have one, both arbitrary distributions on a grid, estimated by maximum
    likelihood (Oh and Park 2024): first that of the variances from the pooled sample
    variances, then that of the differences, given the other. The weight of a feature
    is the posterior mean of its difference over its variance. With ``joint=True``
    there is one prior of pairs, under which large differences may have large
    variances.

    Units of X do not matter, but those of a single feature do: the priors are
    distributions over features in the units that these are in. Memory is a multiple of
    the number of features times the number of points of the grid.

    Parameters
    ----------
    joint : bool
        Whether differences and variances are dependent.
    n_means, n_variances : int or None
        Points of the grids: differences evenly over their range, and variances evenly
        over the range of their logs. None for 200 and 50, or 40 and 20 for `joint`.
        ``n_variances=1`` stands for one common variance.
    tol : float
        Duality gap to reach, in average log-likelihood.
    max_iter : int
        Maximum number of Newton steps.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.

    Attributes
    ----------
    mean_atoms_, variance_atoms_, weights_ : ndarray of shape (n_atoms,)
        The prior of pairs of a difference and a variance; of all combinations, where
        they are independent.
    posterior_mean_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Posterior means of the differences, for the contrasts of
        :mod:`ebda.moments.contrasts`; zero for features that are constant within the
        classes, which have no weight.
    duality_gap_ : float
        Upper bound of what other weights on the grid could gain in average
        log-likelihood; the larger one of two.
    n_iter_ : int
        Number of Newton steps.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    References
    ----------
    Oh and Park (2024), Statistical Analysis and Data Mining 17, e11689.

    Examples
    --------
    >>> from ebda.baselines import MeanVarianceAdaptive
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=1000, effect=0.8, random_state=0)
    >>> model = MeanVarianceAdaptive().fit(sim.data, sim.target)
    >>> model.score(sim.data, sim.target), model.duality_gap_ < 1e-6
    (1.0, True)
    """

    def __init__(
        self,
        joint: bool = False,
        n_means: int | None = None,
        n_variances: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        priors: Any = None,
    ) -> None:
        self.joint = joint
        self.n_means = n_means
        self.n_variances = n_variances
        self.tol = tol
        self.max_iter = max_iter
        self.priors = priors

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        self._check_parameters()
        self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        samples = ScaledSamples.of(X, codes, False, moments)
        estimates = Estimates.of(samples)
        means, variances = self._grids(estimates)
        if self.joint:
            self._fit_joint(estimates, means, variances)
        else:
            self._fit_independent(estimates, means, variances)
        if self.duality_gap_ > self.tol:
            warnings.warn(
                f"the duality gap is {self.duality_gap_:.2g} after {self.n_iter_} "
                f"Newton steps and not tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        ratio, mean = estimates.posterior(
            self.mean_atoms_, self.variance_atoms_, np.log(self.weights_)
        )
        self.posterior_mean_ = squeeze(samples.coefficients(mean))
        rule = midpoint_rule(samples.coefficients(ratio), moments, self.class_prior_)
        self.selected_ = samples.used
        return rule

    def _check_parameters(self) -> None:
        for name in ("n_means", "n_variances", "max_iter"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")

    def _grids(self, estimates: Estimates) -> tuple[FloatArray, FloatArray]:
        """Points of the two grids; zero is one of the differences."""
        n_means, n_variances = (40, 20) if self.joint else (200, 50)
        n_means, n_variances = self.n_means or n_means, self.n_variances or n_variances
        first, last = estimates.difference.min(), estimates.difference.max()
        means = np.union1d(np.linspace(first, last, n_means), 0.0)
        least, most = estimates.variance.min(), estimates.variance.max()
        variances = np.geomspace(least, most, n_variances)
        if n_variances == 1:
            variances = np.array([estimates.variance.mean()])
        return means, np.unique(variances)

    def _fit_independent(
        self, estimates: Estimates, means: FloatArray, variances: FloatArray
    ) -> None:
        """The prior of the variances, and then that of the differences given it."""
        by_variance = estimates.log_density_of_variance(variances)
        of_variance = mixture_weights(
            by_variance, (len(variances),), self.tol, self.max_iter
        )
        kept = of_variance.weights > 0
        variances, log_weights = variances[kept], np.log(of_variance.weights[kept])
        by_mean = estimates.log_density_of_means(means, variances, log_weights)
        of_means = mixture_weights(by_mean, (len(means),), self.tol, self.max_iter)
        chosen = of_means.weights > 0
        means, weights = means[chosen], of_means.weights[chosen]
        self.mean_atoms_ = np.repeat(means, len(variances))
        self.variance_atoms_ = np.tile(variances, len(means))
        self.weights_ = np.multiply.outer(weights, np.exp(log_weights)).ravel()
        self.duality_gap_ = max(of_variance.gap, of_means.gap)
        self.n_iter_ = of_variance.n_iter + of_means.n_iter

    def _fit_joint(
        self, estimates: Estimates, means: FloatArray, variances: FloatArray
    ) -> None:
        """The prior of pairs."""
        u, v = (grid.ravel() for grid in np.meshgrid(means, variances, indexing="ij"))
        found = mixture_weights(
            estimates.log_density(u, v),
            (len(means), len(variances)),
            self.tol,
            self.max_iter,
        )
        kept = found.weights > 0
        self.mean_atoms_, self.variance_atoms_ = u[kept], v[kept]
        self.weights_ = found.weights[kept]
        self.duality_gap_, self.n_iter_ = found.gap, found.n_iter


@dataclass(frozen=True, eq=False)
class Estimates:
    """Differences and variances of the features.

    Parameters
    ----------
    difference : ndarray of shape (n_contrasts, n_features)
        X_j of each contrast.
    variance : ndarray of shape (n_features,)
        V_j.
    factor : ndarray of shape (n_contrasts,)
        c of each contrast.
    df : int
        m.
    """

    difference: FloatArray
    variance: FloatArray
    factor: FloatArray
    df: int

    @classmethod
    def of(cls, samples: ScaledSamples) -> Estimates:
        """From samples in the units of X."""
        positive, negative = contrast_weights(samples.moments.counts)
        factor = ((positive - negative) ** 2 / samples.moments.counts).sum(axis=1)
        residual = samples.residual
        variance = np.einsum("ij,ij->j", residual, residual) / samples.df
        return cls(samples.differences, variance, factor, samples.df)

    def log_density_of_variance(self, variances: FloatArray) -> FloatArray:
        """Of V_j: one row per feature, one column per variance, up to a constant."""
        ratio = self.variance[:, None] / variances
        logarithm: FloatArray = -self.df / 2 * (np.log(variances) + ratio)
        return logarithm

    def log_density(self, means: FloatArray, variances: FloatArray) -> FloatArray:
        """Of (X_j, V_j) for pairs of parameters: one row per contrast and feature."""
        by_variance = self.log_density_of_variance(variances)
        return np.vstack(
            [
                by_variance
                - (x[:, None] - means) ** 2 / (2 * c * variances)
                - np.log(variances) / 2
                for x, c in zip(self.difference, self.factor, strict=True)
            ]
        )

    def log_density_of_means(
        self, means: FloatArray, variances: FloatArray, log_weights: FloatArray
    ) -> FloatArray:
        """Of (X_j, V_j) for each mean, with a given prior of the variances."""
        n = self.difference.size
        total = np.full((n, len(means)), -np.inf)
        for variance, weight in zip(variances, log_weights, strict=True):
            one = self.log_density(means, np.full(len(means), variance))
            np.logaddexp(total, one + weight, out=total)
        return total

    def posterior(
        self, means: FloatArray, variances: FloatArray, log_weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Posterior means of mu_j / v_j and of mu_j, as `difference`."""
        p = len(self.variance)
        shape = self.difference.shape
        ratio, mean = np.empty(shape), np.empty(shape)
        step = max(1, sizes.posterior_elements // (len(means) * len(self.factor)))
        for start in range(0, p, step):
            block = slice(start, start + step)
            part = Estimates(
                self.difference[:, block], self.variance[block], self.factor, self.df
            )
            joint = part.log_density(means, variances) + log_weights
            weight = np.exp(joint - joint.max(axis=1, keepdims=True))
            weight /= weight.sum(axis=1, keepdims=True)
            ratio[:, block] = (weight @ (means / variances)).reshape(len(ratio), -1)
            mean[:, block] = (weight @ means).reshape(len(mean), -1)
        return ratio, mean


_ATOMS = ("a",)
register(
    linear_schema(
        MeanVarianceAdaptive,
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        mean_atoms_=Array(_ATOMS),
        variance_atoms_=Array(_ATOMS, POSITIVE),
        weights_=Array(_ATOMS, POSITIVE),
        posterior_mean_=Array(SQUEEZED),
        duality_gap_=NUMBER,
        n_iter_=COUNT,
    )
)
