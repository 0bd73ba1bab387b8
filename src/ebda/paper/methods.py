"""The classifiers of the paper's tables, with the authors' settings.

The paper prints few of them; these come from the authors' scripts, and with them the
published numbers come back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy.typing as npt

from ebda.baselines import FAIR, GreenshteinPark, IndependenceRule, LassoLogistic
from ebda.estimators.classifier import EBClassifier
from ebda.estimators.linear_classifier import LinearClassifier
from ebda.moments.classwise import class_moments
from ebda.paper.merged import SmallAtomsMerged
from ebda.priors import DirichletProcess


class MidpointLasso(LassoLogistic):
    """The lasso as the authors use it: the midpoint of the class means as intercept."""

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Fit the lasso, then move its boundary.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        """
        super().fit(X, y)
        X, y = self._validate(X, y, reset=False)
        means = class_moments(X, y == self.classes_[1], 2).means
        self.intercept_ = -(self.coef_ @ means.mean(axis=0))
        return self


class PaperRule(EBClassifier):
    """The paper's rule to the letter: it cuts at the midpoint of the sample means."""

    _unbiased_midpoint = False


Maker = Callable[[int | None, Any], LinearClassifier]


def _dp(
    shrinkage: str,
    zero_weight: float,
    n_batches: int,
    sigma: float = 4.0,
    variance: str = "pooled",
    merge_below: float = 0.0,
) -> Maker:
    def make(n_jobs: int | None, random_state: Any) -> EBClassifier:
        prior: Any = DirichletProcess(
            alpha=1.0,
            sigma=sigma,
            zero_weight=zero_weight,
            n_components=10,
            n_batches=n_batches,
            inference="paper",
            n_jobs=n_jobs,
            random_state=random_state,
        )
        if merge_below:
            prior = SmallAtomsMerged(prior, merge_below)
        return PaperRule(
            prior=prior,
            shrinkage=shrinkage,
            variance=variance,
            covariance="diagonal",
            priors="uniform",
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
        "Hard Thresh DP": _dp("hard", 0.01, 50, sigma=6.0, merge_below=0.6),
        "Sparse DP": _dp("sparse", 0.01, 50, sigma=6.0, merge_below=0.6),
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
    """A column of the paper's tables as an unfitted classifier.

    Parameters
    ----------
    method : {"DP", "Sparse DP", "Hard Thresh DP", "EB", "IR", "FAIR", "glmnet"}
        Name of the column.
    study : {1, 2, 3, "leukemia"}
        Where: the settings differ.
    n_jobs : int, optional
        Batches fitted at a time.
    random_state : int, RandomState or None
        Draws the batches, or the folds of the lasso.

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
