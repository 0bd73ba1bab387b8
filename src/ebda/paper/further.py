"""Methods that the tables can show beside the paper's columns, in every study.

They are those that the paper names and does not compare with, and those of this
package. Each has its defaults, with equal class probabilities as the columns of the
paper, and one default less: where rules are compared by cross-validation, five folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebda.baselines import (
    DickerZhao,
    LinearProgrammingDA,
    MeanVarianceAdaptive,
    PseudoInverseLDA,
    RegularizedDA,
    ShrinkageDA,
    ShrunkenCentroids,
    SparseLDA,
    ThresholdedLDA,
)
from ebda.estimators.classifier import EBClassifier
from ebda.estimators.linear_classifier import LinearClassifier

Maker = Callable[[int | None, Any], LinearClassifier]
_FOLDS = 5


def _alone(prior: str, covariance: str = "diagonal") -> Maker:
    """The rule with posterior means and one covariance, and nothing else."""

    def make(n_jobs: int | None, random_state: Any) -> EBClassifier:
        return EBClassifier(
            prior=prior,
            shrinkage="mean",
            covariance=covariance,
            priors="uniform",
            calibrate=False,
        )

    return make


FURTHER: dict[str, Maker] = {
    "EBClassifier": lambda n_jobs, seed: EBClassifier(priors="uniform"),
    "Sparse covariance": _alone("dp", "sparse"),
    "NPMLE": _alone("npmle"),
    "PointLaplace": _alone("laplace"),
    "MartinWalker": _alone("martin_walker"),
    "DickerZhao": lambda n_jobs, seed: DickerZhao(priors="uniform"),
    "MeanVarianceAdaptive": lambda n_jobs, seed: MeanVarianceAdaptive(priors="uniform"),
    "ShrunkenCentroids": lambda n_jobs, seed: ShrunkenCentroids(
        priors="uniform", random_state=seed
    ),
    "PseudoInverseLDA": lambda n_jobs, seed: PseudoInverseLDA(priors="uniform"),
    "ShrinkageDA": lambda n_jobs, seed: ShrinkageDA(priors="uniform"),
    "ShrinkageDA, selected": lambda n_jobs, seed: ShrinkageDA(
        priors="uniform", max_local_fdr=0.8
    ),
    "RegularizedDA": lambda n_jobs, seed: RegularizedDA(
        priors="uniform", cv=_FOLDS, random_state=seed
    ),
    "RegularizedDA, centroids": lambda n_jobs, seed: RegularizedDA(
        centroids=True, priors="uniform", cv=_FOLDS, random_state=seed
    ),
    "ThresholdedLDA": lambda n_jobs, seed: ThresholdedLDA(
        priors="uniform", random_state=seed
    ),
    "SparseLDA": lambda n_jobs, seed: SparseLDA(
        priors="uniform", cv=_FOLDS, random_state=seed
    ),
    "LinearProgrammingDA": lambda n_jobs, seed: LinearProgrammingDA(
        priors="uniform", cv=_FOLDS, random_state=seed
    ),
}
