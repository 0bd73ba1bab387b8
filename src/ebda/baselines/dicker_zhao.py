"""The classifier of Dicker and Zhao (2016), with nonparametric priors of the means.

In units of the standard deviations and about the mean of all N samples, the mean of
class k in feature j is ``theta_kj ~ F_k``, and a sample of the class is
``t_j ~ N(theta_kj, 1)``. With F_k estimated by maximum likelihood from the class means,
the class of a sample has the log probability, up to what is common to all classes,

    log prior_k + sum_j log integral exp((t_j u - u^2 / 2) / v) dF_k(u | data),

where ``v = 1 + 1 / N`` counts the error of the mean of all, and ``F_k(. | data)`` is
the posterior of theta_kj. The rule is not linear, for a sample tells about theta, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ebda.baselines.nonlinear import NonlinearClassifier, nonlinear_schema
from ebda.covariance import Diagonal
from ebda.estimators import validation
from ebda.estimators.linear_classifier import SELECTED
from ebda.estimators.moment_classifier import squeeze
from ebda.moments import VARIANCES, ClassMoments, class_contrasts
from ebda.priors.discrete import DiscretePrior
from ebda.priors.npmle import NPMLE
from ebda.rule.linear_rule import LinearRule, linear_rule
from ebda.storage.fields import POSITIVE, SQUEEZED, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class DickerZhao(NonlinearClassifier):
    """Bayes rule under priors that are estimated by maximum likelihood.

    Features are independent and normal with the pooled variance. Each class has a
    prior of its means (of two classes, there is one prior of the differences, and the
    means follow from it), the nonparametric maximum likelihood estimate of Kiefer and
    Wolfowitz. "bayes" is the Bayes rule with these priors in place of the true ones.
    "linear" puts the posterior means of the differences into the independence rule, as
    ``EBClassifier(prior="npmle", shrinkage="mean", variance="pooled",
    covariance="diagonal", calibrate=False)`` does for classes of equal size. Both agree
    where the posterior of each difference is one point, up to ``N / (N + 1)``.

    Means are taken about the mean of all samples, and their priors are of one
    dimension. (Dicker and Zhao take the features as they come, which supposes that
    these have an origin in common.)

    Parameters
    ----------
    rule : {"bayes", "linear"}
        See above.
    n_grid, grid
        As in :class:`~ebda.priors.NPMLE`, in units of the standard error.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.

    Attributes
    ----------
    z_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Normalised differences, as in :class:`~ebda.EBClassifier`.
    atoms_, weights_, atom_contrasts_ : ndarray of shape (n_atoms,)
        Atoms of the priors of the means of `z_`, their weights, and the contrast that
        each belongs to; weights sum to 1 for each contrast.
    posterior_mean_ : ndarray, as `z_`
        Posterior means.
    centre_, scale_, counts_ : ndarray
        Mean of all samples, pooled standard deviation, and class sizes.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`; ``coef_`` and ``intercept_`` for "linear".

    References
    ----------
    Dicker and Zhao (2016), Biometrika 103, 21-34.

    Examples
    --------
    >>> from ebda.baselines import DickerZhao
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=2000, effect=0.8, random_state=0)
    >>> model = DickerZhao().fit(sim.data, sim.target)
    >>> model.score(sim.data, sim.target)
    1.0
    """

    def __init__(
        self,
        rule: str = "bayes",
        n_grid: int = 300,
        grid: Any = None,
        priors: Any = None,
    ) -> None:
        self.rule = rule
        self.n_grid = n_grid
        self.grid = grid
        self.priors = priors

    def _learn_classes(
        self, X: FloatArray, codes: IntArray, moments: ClassMoments
    ) -> LinearRule | None:
        validation.one_of("rule", self.rule, ["bayes", "linear"])
        self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        self.counts_ = moments.counts
        self.centre_ = moments.counts @ moments.means / len(codes)
        contrasts = class_contrasts(moments, VARIANCES["pooled"].estimate(moments))
        self.scale_, self.selected_ = np.sqrt(contrasts.variance), ~contrasts.constant
        self.z_ = squeeze(contrasts.z)
        found = [self._fit_prior(z[self.selected_]) for z in contrasts.z]
        self.atoms_ = np.concatenate([prior.atoms for prior in found])
        self.weights_ = np.concatenate([prior.weights for prior in found])
        sizes = [len(prior.atoms) for prior in found]
        self.atom_contrasts_ = np.repeat(np.arange(len(found)), sizes)
        eta = np.array(
            [
                prior.posterior(z).mean
                for prior, z in zip(found, contrasts.z, strict=True)
            ]
        )
        self.posterior_mean_ = squeeze(eta)
        if self.rule == "bayes":
            return None
        return linear_rule(moments, contrasts, eta, Diagonal(), self.class_prior_)

    def _fit_prior(self, z: FloatArray) -> DiscretePrior:
        return NPMLE(n_grid=self.n_grid, grid=self.grid).fit(z).prior_

    def _log_joint(self, X: FloatArray) -> FloatArray:
        used, total = self.selected_, self.counts_.sum()
        t = (X[:, used] - self.centre_[used]) / self.scale_[used]
        z = np.atleast_2d(self.z_)[:, used]
        joint = np.empty((len(X), len(self.counts_)))
        for k, (contrast, unit) in enumerate(self._means_of_classes()):
            own = self.atom_contrasts_ == contrast
            atoms, prior = self.atoms_[own], np.log(self.weights_[own])
            posterior = log_posterior(z[contrast], atoms, prior)
            joint[:, k] = log_integral(t, unit * atoms, posterior, 1 + 1 / total)
        return joint + np.log(self.class_prior_)

    def _means_of_classes(self) -> list[tuple[int, float]]:
        """For each class the contrast, and its mean for each unit of eta."""
        n, total = self.counts_, self.counts_.sum()
        if len(n) == 2:
            root = np.sqrt(total / (n[0] * n[1]))
            return [(0, -root * n[1] / total), (0, root * n[0] / total)]
        return list(enumerate(np.sqrt(1 / n - 1 / total)))


def log_posterior(
    z: FloatArray, atoms: FloatArray, log_prior: FloatArray
) -> FloatArray:
    """Log posterior weights of the atoms: one row per atom, one column per value.

    >>> log_posterior(np.array([0.0]), np.array([-1.0, 1.0]), np.log([0.5, 0.5]))
    array([[-0.69314718],
           [-0.69314718]])
    """
    joint = log_prior[:, None] - (z - atoms[:, None]) ** 2 / 2
    normalised: FloatArray = joint - np.logaddexp.reduce(joint, axis=0)
    return normalised


def log_integral(
    t: FloatArray, means: FloatArray, log_weights: FloatArray, variance: float
) -> FloatArray:
    """``sum_j log sum_a w_aj exp((t_j u_a - u_a^2 / 2) / v)`` of each row of t.

    Parameters
    ----------
    t : ndarray of shape (n_samples, n_features)
        Samples.
    means : ndarray of shape (n_atoms,)
        u_a.
    log_weights : ndarray of shape (n_atoms, n_features)
        Log of w_aj.
    variance : float
        v.
    """

    def logs() -> Iterator[FloatArray]:
        for mean, weight in zip(means, log_weights, strict=True):
            yield weight + (t - mean / 2) * (mean / variance)

    # The largest is taken out, for which the logs are formed twice: that is cheap.
    top, total = np.full(t.shape, -np.inf), np.zeros(t.shape)
    for log in logs():
        np.maximum(top, log, out=top)
    for log in logs():
        log -= top
        total += np.exp(log, out=log)
    summed: FloatArray = (top + np.log(total)).sum(axis=1)
    return summed


_ATOMS = ("a",)
register(
    nonlinear_schema(
        DickerZhao,
        selected_=SELECTED,
        z_=Array(SQUEEZED),
        posterior_mean_=Array(SQUEEZED),
        atoms_=Array(_ATOMS),
        weights_=Array(_ATOMS, POSITIVE),
        atom_contrasts_=Array(_ATOMS, ("zero or more",), np.intp),
        centre_=Array(("p",)),
        scale_=Array(("p",), POSITIVE),
        counts_=Array(("k",), POSITIVE),
    )
)
