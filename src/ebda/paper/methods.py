"""The classifiers of the paper's tables, with the authors' settings.

The paper prints few of them; these come from the authors' scripts, and with them the
published numbers come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebda.classifier import EBClassifier
from ebda.priors import DirichletProcess


@dataclass(frozen=True)
class Settings:
    """What the authors' program uses for one method in one study."""

    shrinkage: str
    zero_weight: float
    n_batches: int
    sigma: float = 4.0
    alpha: float = 1.0
    n_components: int = 10
    variance: str = "pooled"


_INDEPENDENT = {
    "DP": Settings("mean", zero_weight=0.01, n_batches=10),
    "Sparse DP": Settings("sparse", zero_weight=0.01, n_batches=50),
    "Hard Thresh DP": Settings("hard", zero_weight=0.01, n_batches=50),
}
SETTINGS: dict[int | str, dict[str, Settings]] = {
    1: _INDEPENDENT,
    2: _INDEPENDENT,
    "leukemia": {
        "DP": Settings("mean", 0.9, n_batches=7, variance="separate"),
        "Sparse DP": Settings("sparse", 0.9, n_batches=7, variance="separate"),
        "Hard Thresh DP": Settings("hard", 0.995, n_batches=15, variance="separate"),
    },
}


def classifier(
    method: str,
    study: int | str,
    *,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> EBClassifier:
    """A column of the paper's tables as an unfitted classifier.

    Parameters
    ----------
    method : {"DP", "Sparse DP", "Hard Thresh DP"}
        Name of the column.
    study : {1, 2, "leukemia"}
        Where: the settings differ.
    n_jobs : int, optional
        Batches fitted at a time.
    random_state : int, RandomState or None
        Draws the batches.

    Examples
    --------
    >>> from ebda import paper
    >>> paper.classifier("Sparse DP", "leukemia", random_state=0).shrinkage
    'sparse'
    """
    if study not in SETTINGS:
        raise ValueError(f"study must be one of {list(SETTINGS)}, got {study!r}")
    if method not in SETTINGS[study]:
        raise ValueError(
            f"method must be one of {list(SETTINGS[study])}, got {method!r}"
        )
    s = SETTINGS[study][method]
    prior = DirichletProcess(
        alpha=s.alpha,
        sigma=s.sigma,
        zero_weight=s.zero_weight,
        n_components=s.n_components,
        n_batches=s.n_batches,
        inference="paper",
        n_jobs=n_jobs,
        random_state=random_state,
    )
    return EBClassifier(
        prior=prior, shrinkage=s.shrinkage, variance=s.variance, priors="uniform"
    )
