"""EBClassifier: the paper's rules, with a prior estimated from the data."""

from __future__ import annotations

import time
from numbers import Real
from typing import Any

from ebda import validation
from ebda.arrays import FloatArray
from ebda.contrasts import Contrasts
from ebda.covariance import COVARIANCES, Covariance
from ebda.linear_classifier import MomentClassifier, squeeze
from ebda.priors import make_prior
from ebda.shrinkage import SHRINKAGES


class EBClassifier(MomentClassifier):
    """Empirical Bayes linear classifier for few samples and many features.

    The normalised differences between the class means are shrunk with a prior that
    is estimated from all of them, and classify by a linear rule (Ouyang and Liang,
    *An Empirical Bayes Approach for High Dimensional Classification*). Nothing has
    to be tuned.

    Parameters
    ----------
    prior : str, prior estimator or prior
        How the prior of the differences is estimated: "dp", a Dirichlet process
        mixture with a point mass at zero; an estimator such as
        ``DirichletProcess(zero_weight=0.9)``; or a known prior.
    shrinkage : {"mean", "sparse", "hard"}
        "mean": posterior means (the paper's DP). "sparse": the same, and zero where
        the probability of being zero exceeds `zero_threshold` (Sparse DP). "hard":
        the raw differences where "sparse" keeps them (Hard Thresh DP).
    zero_threshold : float
        kappa, between 0 and 1, for "sparse" and "hard".
    variance : {"pooled", "separate"}
        "pooled": one variance a feature. "separate": one for each class, averaged
        as in Welch's test.
    covariance : {"diagonal"}
        Within-class covariance; "diagonal" treats features as independent.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities, in the order of `classes_`. None and "empirical" take
        the shares of the training data.
    n_jobs : int, optional
        Parallel jobs, for a prior given by name; the result does not depend on it.
    random_state : int, RandomState or None
        For a prior given by name, where it needs random numbers.
    verbose : int
        1 prints the steps and their times.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; a positive decision of two classes means ``classes_[1]``.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights in the units of X: the decision is ``X @ coef_.T + intercept_``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant of the decision.
    z_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Normalised differences: the second class less the first, or each class less
        the mean of all samples.
    prior_ : DiscretePrior
        The estimated prior of their means.
    posterior_mean_, prob_zero_ : ndarray, as `z_`
        Posterior mean of each difference and its probability of being zero.
    selected_ : ndarray of bool of shape (n_features,)
        Features with any weight in the rule. None, where the prior cannot tell any
        difference from zero: then every sample gets the most probable class, with
        the class probabilities.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities that the intercept holds.
    moments_, contrasts_, posterior_, prior_estimator_
        What the steps returned.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : ndarray
        Their names, where X had string names.

    Examples
    --------
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> train, test = golub.split == "train", golub.split == "test"
    >>> model = EBClassifier().fit(golub.data[train], golub.target[train])
    >>> model.coef_.shape
    (1, 7129)
    >>> bool(model.score(golub.data[test], golub.target[test]) > 0.6)
    True
    """

    def __init__(
        self,
        prior: Any = "dp",
        shrinkage: str = "mean",
        zero_threshold: float = 0.5,
        variance: str = "pooled",
        covariance: str = "diagonal",
        priors: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.zero_threshold = zero_threshold
        self.variance = variance
        self.covariance = covariance
        self.priors = priors
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.one_of("shrinkage", self.shrinkage, SHRINKAGES)
        validation.one_of("covariance", self.covariance, COVARIANCES)
        if not (
            isinstance(self.zero_threshold, Real) and 0 <= self.zero_threshold <= 1
        ):
            raise ValueError(
                f"zero_threshold must lie between 0 and 1, got {self.zero_threshold!r}"
            )

    def _covariance(self, contrasts: Contrasts) -> Covariance:
        return COVARIANCES[self.covariance](contrasts)

    def _estimate(self, contrasts: Contrasts) -> FloatArray:
        """z to prior to posterior to eta."""
        start = time.perf_counter()
        estimator = make_prior(
            self.prior, n_jobs=self.n_jobs, random_state=self.random_state
        )
        self.prior_estimator_ = estimator.fit(contrasts.z[:, ~contrasts.constant])
        self.prior_ = self.prior_estimator_.prior_
        self._say(f"prior {self.prior_!r}", start)

        start = time.perf_counter()
        self.posterior_ = self.prior_.posterior(contrasts.z)
        self.posterior_mean_ = squeeze(self.posterior_.mean)
        self.prob_zero_ = squeeze(self.posterior_.prob_zero)
        shrink = SHRINKAGES[self.shrinkage]
        eta = shrink(contrasts.z, self.posterior_, self.zero_threshold)
        self._say(f"posterior, {int((eta != 0).sum())} differences kept", start)
        return eta
