"""scikit-learn's own checks, with no expected failure."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import (
    check_class_weight_balanced_linear_classifier,
    check_estimator,
    parametrize_with_checks,
)

from ebda import EBClassifier, NormalMeans
from ebda.baselines import (
    FAIR,
    DickerZhao,
    GreenshteinPark,
    IndependenceRule,
    LassoLogistic,
    LinearProgrammingDA,
    MeanVarianceAdaptive,
    PseudoInverseLDA,
    RegularizedDA,
    ShrinkageDA,
    ShrunkenCentroids,
    SparseLDA,
    ThresholdedLDA,
)
from ebda.paper import classifier
from ebda.priors import PRIORS


@parametrize_with_checks(
    [
        EBClassifier(),
        EBClassifier(shrinkage="sparse", zero_threshold=0.9),
        EBClassifier(shrinkage="hard", zero_threshold=0.9, priors="uniform"),
        classifier("DP", 1, random_state=0).set_params(prior__n_batches=1),
        IndependenceRule(),
        FAIR(),
        GreenshteinPark(),
        PseudoInverseLDA(),
        ShrinkageDA(),
        ShrunkenCentroids(),
        LassoLogistic(n_lambdas=20, cv=3, random_state=0),
        RegularizedDA(cv=3),
        RegularizedDA(pooling=0.3, shrinkage=0.3),
        RegularizedDA(cv=3, centroids=True),
        ThresholdedLDA(n_splits=3),
        SparseLDA(cv=3),
        MeanVarianceAdaptive(),
        MeanVarianceAdaptive(joint=True, n_means=20, n_variances=10),
        LinearProgrammingDA(penalty=[0.5, 1.0], cv=3),
        DickerZhao(),
    ]
)
# Some checks go on with partial_fit after fit, which is said to be a poor idea.
@pytest.mark.filterwarnings("ignore:fit keeps no samples:UserWarning")
def test_scikit_learn_accepts_the_classifier(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", [EBClassifier(), IndependenceRule()])
def test_balanced_weights_are_those_of_the_counts(estimator: Any) -> None:
    check_class_weight_balanced_linear_classifier(type(estimator).__name__, estimator)


@pytest.mark.parametrize(
    "estimator", [NormalMeans(), *(family.estimator() for family in PRIORS.values())]
)
def test_scikit_learn_accepts_estimators_of_vectors(estimator: Any) -> None:
    """For vectors scikit-learn has but few checks, and says so.

    tests/test_prior_contract.py and tests/test_normal_means.py check the rest.
    """
    with pytest.warns(SkipTestWarning, match="one_d_array=True"):
        results = check_estimator(estimator, on_skip=None)
    assert all(result["status"] != "failed" for result in results)
