"""scikit-learn's own checks, with no expected failure."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from ebda import EBClassifier
from ebda.paper import classifier


@parametrize_with_checks(
    [
        EBClassifier(),
        EBClassifier(shrinkage="sparse", zero_threshold=0.9),
        EBClassifier(shrinkage="hard", zero_threshold=0.9, priors="uniform"),
        classifier("DP", 1, random_state=0).set_params(prior__n_batches=1),
    ]
)
def test_scikit_learn_accepts_the_classifier(estimator: Any, check: Any) -> None:
    check(estimator)
