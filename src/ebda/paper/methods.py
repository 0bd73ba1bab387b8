"""The classifiers of the paper's tables, with the authors' settings.

The paper prints few of the settings. These come from the authors' scripts, and
reproduce the published numbers.
"""

from __future__ import annotations

from typing import Any

from ebda.baselines import (
    FAIR,
    GreenshteinPark,
    IndependenceRule,
    LassoLogistic,
)
from ebda.estimators.classifier import EBClassifier
from ebda.estimators.linear_classifier import LinearClassifier
from ebda.moments.classwise import ClassMoments
from ebda.paper.further import Maker
from ebda.priors import DirichletProcess
from ebda.rule.linear_rule import LinearRule
from ebda.typing import IntArray


class MidpointLasso(LassoLogistic):
    """The authors' lasso: its boundary goes through the midpoint of the class means."""

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        coef = super()._learn(X, codes, moments).coef
        return LinearRule(coef, -(coef @ moments.means.mean(axis=0)))


class PaperRule(EBClassifier):
    """The paper's rule, whose boundary goes through the midpoint of the class means."""

    _unbiased_midpoint = False


def _dp(
    shrinkage: str,
    zero_weight: float,
    n_batches: int,
    sigma: float = 4.0,
    variance: str = "pooled",
    weights: str = "map",
) -> Maker:
    def make(n_jobs: int | None, random_state: Any) -> EBClassifier:
        prior = DirichletProcess(
            alpha=1.0,
            sigma=sigma,
            zero_weight=zero_weight,
            n_components=10,
            n_batches=n_batches,
            inference="paper",
            weights=weights,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        return PaperRule(
            prior=prior,
            shrinkage=shrinkage,
            variance=variance,
            covariance="diagonal",
            priors="uniform",
            calibrate=False,
        )

    return make


def _others(variance: str = "pooled") -> dict[str, Maker]:
    return {
        "EB": lambda n_jobs, seed: GreenshteinPark(
            bandwidth=0.3, variance=variance, priors="uniform"
        ),
        "IR": lambda n_jobs, seed: IndependenceRule(
            variance=variance, priors="uniform"
        ),
        "FAIR": lambda n_jobs, seed: FAIR(priors="uniform"),
        "glmnet": lambda n_jobs, seed: MidpointLasso(rule="1se", random_state=seed),
    }


_INDEPENDENT = {
    "Hard Thresh DP": _dp("hard", zero_weight=0.01, n_batches=50),
    "Sparse DP": _dp("sparse", zero_weight=0.01, n_batches=50),
    "DP": _dp("mean", zero_weight=0.01, n_batches=10),
    **_others(),
}
METHODS: dict[int | str, dict[str, Maker]] = {
    1: _INDEPENDENT,
    2: _INDEPENDENT,
    3: {
        "Hard Thresh DP": _dp("hard", 0.01, 50, sigma=6.0, weights="merged"),
        "Sparse DP": _dp("sparse", 0.01, 50, sigma=6.0, weights="merged"),
        **{name: make for name, make in _others().items() if name != "EB"},
    },
    "leukemia": {
        "Hard Thresh DP": _dp("hard", 0.995, n_batches=15, variance="separate"),
        "Sparse DP": _dp("sparse", 0.9, n_batches=7, variance="separate"),
        "DP": _dp("mean", 0.9, n_batches=7, variance="separate"),
        **_others("separate"),
        "IR": _others()["IR"],
    },
}


def classifier(
    method: str,
    study: int | str,
    *,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> LinearClassifier:
    """The unfitted classifier of a column of the paper's tables.

    Parameters
    ----------
    method : {"DP", "Sparse DP", "Hard Thresh DP", "EB", "IR", "FAIR", "glmnet"}
        Name of the column.
    study : {1, 2, 3, "leukemia"}
        The study, as the settings differ between them.
    n_jobs : int, optional
        Number of batches to fit in parallel.
    random_state : int, RandomState or None
        Determines the batches, or the folds of the lasso.

    Examples
    --------
    >>> from ebda import paper
    >>> paper.classifier("Sparse DP", "leukemia", random_state=0).shrinkage
    'sparse'
    >>> paper.classifier("FAIR", 1)
    FAIR(priors='uniform')
    """
    if study not in METHODS:
        raise ValueError(f"study must be one of {list(METHODS)}, got {study!r}")
    if method not in METHODS[study]:
        known = list(METHODS[study])
        raise ValueError(
            f"method must be one of {known} in study {study!r}, got {method!r}"
        )
    return METHODS[study][method](n_jobs, random_state)
