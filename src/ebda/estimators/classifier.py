"""EBClassifier: empirical Bayes discriminant analysis, without tuning."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from ebda.covariance import COVARIANCES, Summary
from ebda.covariance.sample_scale import SAMPLE_SCALES
from ebda.covariance.wild import WILD_VALUES
from ebda.data import Samples
from ebda.estimators.annotated import resolved
from ebda.estimators.arrangement import arranged
from ebda.estimators.every_sample import weigh_all
from ebda.estimators.moment_classifier import moment_schema
from ebda.estimators.posterior import PosteriorClassifier
from ebda.estimators.training import Training
from ebda.kernels.threads import run_on_threads
from ebda.moments import VARIANCES, ClassMoments
from ebda.priors import PriorEstimator, make_prior
from ebda.rule.bulk import mean_squared_correlation
from ebda.rule.effects import Effects
from ebda.rule.linear_rule import log_odds
from ebda.rule.shrinkage import SHRINKAGES
from ebda.selection.candidates import Recipe, candidates
from ebda.selection.choice import Chooser
from ebda.selection.combined import combine
from ebda.selection.selection import Selection
from ebda.selection.weights import select, without_folds
from ebda.storage.fields import COUNT, Array, Scalar
from ebda.storage.objects import Nested, register
from ebda.typing import FloatArray, IntArray


class EBClassifier(PosteriorClassifier):
    """Empirical Bayes linear classifier for few samples and many features.

    The normalised differences between the class means are shrunk with a prior that
    is estimated from all of them, and classify by a linear rule (Ouyang and Liang,
    *An Empirical Bayes Approach for High Dimensional Classification*). Common factors
    within the classes are found and taken into account, variances are moderated, and
    several rules are compared and combined inside `fit` by cross-validation
    (:mod:`ebda.selection.weights`). Nothing has to be tuned.

    Parameters
    ----------
    prior : str, prior estimator or prior
        How the prior of the differences is estimated: "dp", a Dirichlet process
        mixture with a point mass at zero; an estimator such as
        ``DirichletProcess(zero_weight=0.9)``; or a known prior.
    shrinkage : {"auto", "mean", "sparse", "hard", "none", "top10", "top100", "top1000"}
        "mean": posterior means (the paper's DP). "sparse": the same, and zero where
        the probability of being zero exceeds `zero_threshold` (Sparse DP). "hard":
        the raw differences where "sparse" keeps them (Hard Thresh DP). "none": the raw
        differences. "top10", "top100" and "top1000": the 10, 100 or 1000 largest
        differences of each contrast, less the next largest (a soft threshold); they
        need no prior. "auto": several are compared and combined, which ones depends on
        the covariance. "mean", "top10" and "top100" with "diagonal" and "shrunken";
        "mean", "sparse" and "top1000" with "factor"; "mean" with "neighbours"; "mean"
        and "sparse" with "sparse", beside "mean" with "diagonal". Those that would
        keep all features are left out.
    zero_threshold : float
        kappa, between 0 and 1, for "sparse" and "hard".
    variance : {"moderated", "pooled", "separate"}
        "moderated": one variance per feature, shrunken to what is usual among the
        features. "pooled": the same without shrinkage. "separate": one for each
        class, averaged as in Welch's test.
    covariance : {"auto", "diagonal", "shrunken", "factor", "neighbours", "sparse"}
        Within-class covariance. "diagonal" treats features as independent. "shrunken":
        the sample correlation, shrunken to the identity
        (:mod:`ebda.covariance.shrunken`). "factor": common factors and an independent
        rest (:mod:`ebda.covariance.factor`). "neighbours": for features that have an
        order, such as the points of a spectrum, an autoregression of the noise, and
        effects that are alike in runs (:mod:`ebda.covariance.neighbours`). "sparse":
        few correlated pairs, found among all by a prior of their correlations
        (:mod:`ebda.covariance.sparse`); it needs all values. "auto": all but "sparse"
        are compared and combined, of "diagonal" only "top10" and "top100", and of
        "factor" only "top1000"; what finds no factors or no order is left out. Where no
        correlation is found at all, the rule is that of "diagonal" and "mean". With
        fewer than ten samples that could be held out, "auto" means "shrunken", and
        shrinkage="auto" means "mean".
    sample_scale : {"auto", "common", "own"}
        "common": all samples are as noisy. "own": each has a scale of its own, as under
        elliptical distributions with heavy tails, and counts the less the larger it is
        (:mod:`ebda.covariance.scales`). The rule stays linear; probabilities, and with
        unequal class probabilities labels, depend on the scale of the new sample.
        "auto": where the training samples differ clearly, both are compared. Where the
        values look like those of an elliptical distribution, scales are used unless
        held-out labels are then clearly less probable; elsewhere if they are clearly
        more probable (:mod:`ebda.covariance.elliptical`). It needs held-out samples,
        and all samples: of a stream with more than are kept, with missing values, and
        with ``calibrate=False``, it means "common".
    wild_values : {"auto", "keep"}
        "auto": a single value of a sample that lies further from the median of its
        class than any of so many would, given the tails that all values have, gives way
        to the midpoint of the classes (:mod:`ebda.covariance.wild`). Real expression
        data have next to none. It takes all values of all samples, few enough to be in
        memory, and no groups and covariates; else, and where no samples are kept, all
        values count, as with "keep".
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities, in the order of `classes_`. None and "empirical" take
        the shares of the training samples. So they do with groups: how alike the
        samples of a group are says nothing of how frequent a class is among the samples
        to come. Where these are new patients, one sample each, give the shares of the
        patients.
    class_weight : None, "balanced" or dict
        What an error of each class costs, by its label; 1 where a label is absent.
        Class probabilities are multiplied by the weights; nothing else changes
        (:mod:`ebda.estimators.class_weight`). "balanced" makes the shares of the
        training data equal; with other `priors` it divides these by the shares.
    calibrate : bool
        Whether samples are held out to turn scores into probabilities even where there
        is one rule and nothing to compare it with. False takes the scores of that rule
        as log-odds, which is overconfident with many features, and takes one fit
        instead of eleven. Several rules are always compared, and then calibrated.
    n_jobs : int, optional
        Folds, and batches of a prior given by name, that are fitted in parallel; the
        result does not depend on it.
    random_state : int, RandomState or None
        For the assignment of samples to folds, and for a prior given by name that
        needs random numbers. None assigns them the same way each time.
    verbose : int
        1 shows a bar on standard error where a fit takes more than two seconds; 2
        prints the steps and their times.

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
        Two lists of the features, with q-values: ``ranking_.marginal``, which differ
        between the classes, and ``ranking_.conditional``, which differ beyond the
        common factors.
    squared_correlation_ : float or None
        Mean squared correlation of two features within the classes, which says how far
        chance can shift and widen the bulk of the values; None where no samples were
        kept.
    selection_ : Selection
        What was compared and with what weight; ``print(model.selection_)``.
    calibration_ : Calibration
        From decisions to probabilities, as far as held-out samples can tell.
    sample_scale_ : SampleScale or None
        Scales of the samples; None where they have a common one.
    wild_values_ : WildValues or None
        Single values that midpoints were taken for; None without any.
        ``wild_values_.moments`` are those of the rule then; `moments_` are of all
        values.
    n_factors_ : int
        Common factors that were found; 0 without covariance="factor" or "auto".
    common_difference_ : ndarray of shape (n_contrasts, n_factors), or None
        Differences of the common factors, after shrinkage.
    expectation_ : Expectation or None
        What missing values of new samples are expected from: the common factors, with
        covariance="factor"; else a missing value adds nothing to the score.
    midpoint_correction_ : ndarray, as `coef_`, or None
        What each feature adds to the intercept to correct the bias of the midpoint;
        None for two classes of one size, which need no correction.
    selected_ : ndarray of bool of shape (n_features,)
        Features with any weight in the rule. None, where the prior cannot tell any
        difference from zero: then every sample gets the most probable class, with
        the class probabilities.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities that the intercept holds.
    groups_ : Grouping or None
        The intraclass correlation of `groups`, and what the samples are worth;
        ``print(model.groups_)``.
    covariates_ : Covariates or None
        The slopes of the features on `covariates`, and how far these are confounded
        with the classes; ``print(model.covariates_)``.
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
    >>> first = golub.feature_names[model.ranking_.order[:5]]
    >>> "M23197_at" in first  # CD33, a marker of AML
    True
    """

    # The paper cuts at the midpoint of the sample means; `paper` sets this to False.
    _unbiased_midpoint = True
    _optional_results = (
        "midpoint_correction_",
        "expectation_",
        "squared_correlation_",
        "common_difference_",
        "groups_",
        "covariates_",
        "sample_scale_",
        "wild_values_",
    )
    _allow_missing = True

    def __init__(
        self,
        prior: Any = "dp",
        shrinkage: str = "auto",
        zero_threshold: float = 0.5,
        variance: str = "moderated",
        covariance: str = "auto",
        sample_scale: str = "auto",
        wild_values: str = "auto",
        priors: Any = None,
        class_weight: Any = None,
        calibrate: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.zero_threshold = zero_threshold
        self.variance = variance
        self.covariance = covariance
        self.sample_scale = sample_scale
        self.wild_values = wild_values
        self.priors = priors
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        covariates: Any = None,
    ) -> Self:
        """Fit the rule.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data; float32, integers, CSR and CSC are used as they are. NaN is a missing
            value. Data that does not fit in memory is read in blocks: ``numpy.memmap``,
            Zarr, HDF5, AnnData in backed mode, Parquet (:mod:`ebda.data.disk`); or
            summed where it is: Dask (:mod:`ebda.data.dask`). AnnData has names of the
            features, by which `predict` finds them.
        y : array-like of shape (n_samples,) or str
            Labels of any type; of AnnData also the name of a column of its ``obs``, as
            may be `groups` and a list of `covariates`.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights: 2 counts as two equal samples.
        groups : array-like of shape (n_samples,), optional
            What samples belong to that are not independent, such as the patient:
            labels of any type. Those of a group are held out together, and count as
            fewer, as far as they are alike (`groups_`). A sample of weight 2 is two
            equal samples of its group.
        covariates : array-like or data frame of shape (n_samples, n_covariates), \
optional
            Numbers or categories, such as age, sex and plate. The features are
            regressed on them within the classes, and the classes are compared at their
            mean (`covariates_`); where values are missing, each feature by the samples
            that have it.
        """
        with self._fitting():
            y, groups, covariates = resolved(X, y, groups, covariates)
            training = self._check_training(X, y, sample_weight)
            training = arranged(training, groups, covariates)
            training, moments, samples = self._arranged(training)
            with training.data.job_context():
                self._fit_moments(training, moments, samples)
            self._forget_samples(training)
        return self

    def _fit_moments(
        self, training: Training, moments: ClassMoments, samples: Samples | None
    ) -> None:
        """From moments to the rule, step by step."""
        finished = self._timer()
        contrasts = self._contrasts(training, moments)
        recipe = self._recipe()
        data = Summary(moments, contrasts, samples, covariates=training.covariates)
        data = self._tamed(training, data)
        weighted = partial(self._select, training.groups)
        chooser = Chooser(recipe, self._compares(recipe), weighted, finished)
        scaling, weigh = self._scaling(training), weigh_all(training, data)
        choice, self.sample_scale_ = chooser.choose(data, scaling, weigh)
        self.selection_, self.contrasts_ = choice.selection, choice.data.contrasts
        self.calibration_ = self.selection_.calibration
        self._keep_effects(choice.effects, self.selection_.best)
        self.squared_correlation_ = mean_squared_correlation(choice.part)
        self.expectation_ = recipe.expectation(choice.effects)
        # One linear rule.
        rule_of = partial(
            recipe.rule, effects=choice.effects, moments=choice.data.moments
        )
        offset = log_odds(self.class_prior_) - choice.midpoint
        names = self.selection_.candidates
        self._keep_rule(combine(rule_of, names, choice.share, offset))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        SHRINKAGES.find(self.shrinkage, besides=("auto",))
        COVARIANCES.find(self.covariance, besides=("auto",))
        SAMPLE_SCALES.find(self.sample_scale)
        WILD_VALUES.find(self.wild_values)
        if not (
            isinstance(self.zero_threshold, Real) and 0 <= self.zero_threshold <= 1
        ):
            raise ValueError(
                f"zero_threshold must lie between 0 and 1, got {self.zero_threshold!r}"
            )

    def _recipe(self) -> Recipe:
        """The candidates."""
        return Recipe(
            self.variance,
            candidates(self.covariance, self.shrinkage),
            self.zero_threshold,
            self._make_prior,
            self._unbiased_midpoint,
        )

    def _make_prior(self) -> PriorEstimator:
        return make_prior(
            self.prior,
            for_classifier=True,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _compares(self, recipe: Recipe) -> bool:
        """Whether samples are held out: to compare candidates, or to calibrate one."""
        return bool(self.calibrate) or len(recipe.names) > 1

    def _needs_samples(self) -> bool:
        recipe = self._recipe()
        return (
            self._compares(recipe)
            or SAMPLE_SCALES[self.sample_scale].is_needed
            or any(COVARIANCES[name].needs_samples for name in recipe.covariances)
        )

    def _select(
        self,
        groups: IntArray | None,
        recipe: Recipe,
        effects: dict[str, Effects],
        part: Summary,
        is_judged: bool,
    ) -> tuple[Selection, FloatArray, FloatArray]:
        """The choice between the candidates, and how their rules are added up."""
        names, state = recipe.names, self.random_state
        if not self._compares(recipe):
            reason = "One rule, not calibrated: calibrate=False."
            return without_folds(names, names[0], reason)
        if groups is not None and part.samples is not None:
            groups = groups[part.samples.number]
        return select(
            recipe,
            part,
            effects,
            np.array([recipe.score_sd(name, effects) for name in names]),
            self.class_prior_,
            VARIANCES[self.variance].min_samples,
            0 if state is None else check_random_state(state).randint(2**31 - 1),
            partial(run_on_threads, n_jobs=self.n_jobs),
            is_judged,
            groups,
        )


register(
    moment_schema(
        EBClassifier,
        n_factors_=COUNT,
        calibration_=Nested(("Calibration",)),
        selection_=Nested(("Selection",)),
        prior_estimator_=Nested("family"),
        posterior_=Nested("posterior", values=("c", "p")),
        common_difference_=Array(("c", "f")),
        squared_correlation_=Scalar((float,), least=0.0, most=1.0),
        expectation_=Nested(("Expectation",)),
        groups_=Nested(("Grouping",)),
        covariates_=Nested(("Covariates",)),
        sample_scale_=Nested(("SampleScale",)),
        wild_values_=Nested(("WildValues",)),
    )
)
