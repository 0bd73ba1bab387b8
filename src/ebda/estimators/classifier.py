"""EBClassifier: empirical Bayes discriminant analysis, without tuning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from ebda.covariance.base import COVARIANCES, FactorCovariance
from ebda.data.samples import Samples
from ebda.estimators import validation
from ebda.estimators.moment_classifier import MomentClassifier, squeeze
from ebda.kernels.threads import one_blas_thread
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts, by_hash
from ebda.moments.variance import MIN_SAMPLES
from ebda.priors import PriorEstimator, make_prior
from ebda.priors.posterior import Posterior, Prior
from ebda.rule.effects import Effects
from ebda.rule.linear_rule import LinearRule, log_odds
from ebda.rule.ranking import Ranking, rank_features
from ebda.rule.shrinkage import SHRINKAGES
from ebda.selection.candidates import Name, Recipe, drop_redundant, shrinkages_for
from ebda.selection.weights import Selection, combine, select
from ebda.typing import FloatArray, IntArray

# What "auto" compares.
AUTO_COVARIANCES = ("diagonal", "factor", "neighbours")


# Parameters of a prior given by name. The last tenth of a nat of the bound, which
# takes hundreds of steps where it is flat, says nothing about the data.
_BY_NAME = {"dp": {"tol": 1e-9}}
# Rules are compared on at most so many features, and values of the samples kept; on at
# least so many features. More would tell little more about which rule suits the data,
# and a fit would no longer take about as long as reading them.
MOST_COMPARED, LEAST_COMPARED = 1 << 15, 1 << 12
_COMPARED_VALUES = 1 << 22


class EBClassifier(MomentClassifier):
    """Empirical Bayes linear classifier for few samples and many features.

    The normalised differences between the class means are shrunk with a prior that
    is estimated from all of them, and classify by a linear rule (Ouyang and Liang,
    *An Empirical Bayes Approach for High Dimensional Classification*). Common factors
    within the classes are found and taken into account, variances are moderated, and
    what suits the data is chosen inside `fit` by cross-validation. Nothing has to be
    tuned.

    Parameters
    ----------
    prior : str, prior estimator or prior
        How the prior of the differences is estimated: "dp", a Dirichlet process
        mixture with a point mass at zero; an estimator such as
        ``DirichletProcess(zero_weight=0.9)``; or a known prior.
    shrinkage : {"auto", "mean", "sparse", "hard"}
        "auto": "mean" and "sparse" are compared and combined (:mod:`ebda.selection.weights`);
        beside factors also "mean" with an empirical null ("centred"), "sparse" with a
        fifth of the threshold ("strict"), both thresholds with an empirical null
        (:mod:`ebda.priors.null`), and "mean" with a kernel prior ("smooth").
        "mean": posterior means (the paper's DP). "sparse": the same, and zero where
        the probability of being zero exceeds `zero_threshold` (Sparse DP). "hard":
        the raw differences where "sparse" keeps them (Hard Thresh DP).
    zero_threshold : float
        kappa, between 0 and 1, for "sparse" and "hard".
    variance : {"moderated", "pooled", "separate"}
        "moderated": one variance a feature, shrunken to what is usual among the
        features. "pooled": the same without shrinkage. "separate": one for each
        class, averaged as in Welch's test.
    covariance : {"auto", "diagonal", "factor", "neighbours"}
        Within-class covariance. "diagonal" treats features as independent. "factor":
        common factors and an independent rest (:mod:`ebda.covariance.factors`). "neighbours":
        an autoregression along features that have an order, such as the points of a
        spectrum (:mod:`ebda.covariance.autoregressive`). "auto": all are compared and combined; what
        finds no factors or no order is left out. With fewer than ten samples that
        could be held out "auto" stands for "factor", and shrinkage="auto" for "mean".
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities, in the order of `classes_`. None and "empirical" take
        the shares of the training data.
    n_jobs : int, optional
        Folds fitted at a time, and batches of a prior given by name; the result does
        not depend on it.
    random_state : int, RandomState or None
        Deals out the folds, and is for a prior given by name where it needs random
        numbers. None deals them out the same way each time.
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
        the mean of all samples; free of common factors where there are any.
        (``contrasts_.z`` are the plain ones.)
    prior_ : DiscretePrior
        The estimated prior of their means.
    posterior_mean_, prob_zero_ : ndarray, as `z_`
        Posterior mean of each difference and its probability of being zero.
    ranking_ : Ranking
        All features by the evidence that they differ, with q-values.
    selection_ : Selection
        What was compared and with what weight; ``print(model.selection_)``.
    calibration_ : Calibration
        From decisions to probabilities, as far as held-out samples can tell.
    n_factors_ : int
        Common factors that were found; 0 with covariance="diagonal".
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
    >>> import numpy as np
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> train, test = golub.split == "train", golub.split == "test"
    >>> X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    >>> model = EBClassifier().fit(X[train], golub.target[train])
    >>> model.coef_.shape
    (1, 7129)
    >>> bool(model.score(X[test], golub.target[test]) > 0.8)
    True
    >>> str(golub.feature_names[model.ranking_.order[0]])  # CD33, a marker of AML
    'M23197_at'
    """

    # The paper cuts at the midpoint of the sample means; `paper` sets this to False.
    _unbiased_midpoint = True

    def __init__(
        self,
        prior: Any = "dp",
        shrinkage: str = "auto",
        zero_threshold: float = 0.5,
        variance: str = "moderated",
        covariance: str = "auto",
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
        validation.one_of("shrinkage", self.shrinkage, ["auto", *SHRINKAGES])
        validation.one_of("covariance", self.covariance, ["auto", *COVARIANCES])
        if not (
            isinstance(self.zero_threshold, Real) and 0 <= self.zero_threshold <= 1
        ):
            raise ValueError(
                f"zero_threshold must lie between 0 and 1, got {self.zero_threshold!r}"
            )

    def _recipe(self, quick: bool = False) -> Recipe:
        """The candidates; `quick` is for folds, where a few digits are enough."""
        auto = self.covariance == "auto"
        covariances = AUTO_COVARIANCES if auto else (self.covariance,)
        candidates = {
            (covariance, name): shrinkage
            for covariance in covariances
            for name, shrinkage in shrinkages_for(
                covariance, self.shrinkage, self.zero_threshold
            ).items()
        }
        return Recipe(
            self.variance,
            candidates,
            {
                "main": partial(self._make_prior, quick),
                "kernel": lambda start: make_prior("kernel"),
            },
            self._unbiased_midpoint,
        )

    def _make_prior(self, quick: bool, start: Prior | None) -> PriorEstimator:
        settings = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        if isinstance(self.prior, str):
            settings |= _BY_NAME.get(self.prior, {})
            settings |= {"n_jobs": 1, "start": start} if quick else {}
        return make_prior(self.prior, **settings)

    def _needs_samples(self) -> bool:
        return self._recipe().needs_samples

    def _rule(
        self,
        moments: ClassMoments,
        contrasts: Contrasts,
        samples: Samples | None,
        class_prior: FloatArray,
    ) -> LinearRule:
        """Effects under each covariance, the choice between them, and the rule."""
        recipe = self._recipe()
        compared = self._compared(recipe, moments, samples)
        data = moments, contrasts, samples
        if compared is not None and samples is not None:
            recipe = recipe.without_order() if self.covariance == "auto" else recipe
            chosen = moments.features(compared)
            data = chosen, recipe.contrasts(chosen), samples.features(compared)

        start = time.perf_counter()
        effects = drop_redundant(recipe.effects(*data))
        recipe = recipe.only(list(effects))
        flat = np.ones_like(class_prior)
        rules = recipe.rules(effects, data[0], flat)
        units = np.array([rules[name].spread for name in recipe.names])
        self._say("covariance, prior and posterior", start)

        start = time.perf_counter()
        self.selection_, spread = self._select(effects, *data)
        self.calibration_ = self.selection_.calibration
        self._say(f"choice of the rule\n{self.selection_}", start)

        reported = self._reported(effects)
        rule_of = rules.__getitem__
        if compared is not None:
            recipe = recipe.only(self.selection_.used(reported))
            effects = recipe.effects(moments, contrasts, samples)
            rule_of = partial(recipe.rule, effects=effects, moments=moments, prior=flat)
        self._keep(effects[reported])
        found = [getattr(e.covariance, "n_factors", 0) for e in effects.values()]
        self.n_factors_ = max(found)
        odds = log_odds(class_prior)
        if self.selection_.n_folds:
            return combine(rule_of, self.selection_, spread, units, odds)
        rule = rule_of(self.selection_.best)
        return LinearRule(rule.coef, rule.intercept + odds)

    def _compared(
        self, recipe: Recipe, moments: ClassMoments, samples: Samples | None
    ) -> IntArray | None:
        """Features that rules are compared on, where all would be too many."""
        if samples is None or len(recipe.names) == 1:
            return None
        most = max(LEAST_COMPARED, min(MOST_COMPARED, _COMPARED_VALUES // len(samples)))
        return None if moments.means.shape[1] <= most else by_hash(moments, most)

    def _select(
        self,
        effects: dict[Name, Effects],
        moments: ClassMoments,
        contrasts: Contrasts,
        samples: Samples | None,
    ) -> tuple[Selection, FloatArray]:
        names = list(effects)
        if len(names) == 1:
            reason = "There was one rule, and nothing to compare it with."
            return Selection.without_folds(names, names[0], reason), np.ones(1)
        assert samples is not None
        state = self.random_state
        seed = 0 if state is None else check_random_state(state).randint(2**31 - 1)
        return select(
            self._recipe(quick=True).starting_at(effects),
            samples,
            samples.fingerprint(moments.means, np.sqrt(contrasts.variance)),
            len(moments.counts),
            MIN_SAMPLES[self.variance],
            seed,
            self._run,
        )

    def _run(
        self, function: Callable[..., FloatArray], jobs: Iterable[tuple[Any, ...]]
    ) -> list[FloatArray]:
        """Call a function for each job, on threads: most of it runs without the GIL.

        Never on other processes, whatever the backend around a fit: all jobs look at
        the same samples, which may be as large as X.

        One limit of BLAS threads for all of them: it belongs to the process, and jobs
        that set and reset it each for itself would leave it wrong.
        """
        parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        with one_blas_thread():
            return list(parallel(delayed(function)(*job) for job in jobs))

    def _reported(self, effects: dict[Name, Effects]) -> Name:
        """The candidate whose effects attributes and ranking are about.

        Where common factors were found, those beside them, and with the empirical null
        if there is a choice: what factors leave behind would look like thousands of
        small differences. Else those of the candidate with the largest weight.
        """
        beside = {
            name[1]: name
            for name, e in effects.items()
            if isinstance(e.covariance, FactorCovariance)
        }
        if beside:
            return beside.get("centred", next(iter(beside.values())))
        return self.selection_.best

    def _keep(self, effects: Effects) -> None:
        self.prior_estimator_ = effects.prior_estimator
        self.prior_ = effects.prior_estimator.prior_
        self.posterior_ = effects.posterior
        self.z_ = squeeze(effects.z)

    def _fitted_posterior(self) -> Posterior:
        if "posterior_" not in vars(self):
            raise AttributeError("fit first: there is no posterior yet")
        posterior: Posterior = self.posterior_
        return posterior

    # What the rule may do without is computed when it is asked for, and kept there.

    @property
    def posterior_mean_(self) -> FloatArray:
        """Posterior mean of each difference."""
        return squeeze(self._fitted_posterior().mean)

    @property
    def prob_zero_(self) -> FloatArray:
        """Probability of each difference to be zero."""
        return squeeze(self._fitted_posterior().prob_zero)

    @property
    def ranking_(self) -> Ranking:
        """All features by the evidence that they differ between the classes."""
        posterior = self._fitted_posterior()
        z = np.atleast_2d(self.z_)
        constant = self.contrasts_.constant
        return rank_features(z, posterior, constant, self._names())
