"""What the speed benchmark fits: one function of X and y for each method.

Each imports what it needs when it is called, so that a process that measures one of
them holds the code of that one only.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

ADELIE_PYTHON = "EBDA_ADELIE_PYTHON"


def without_loops() -> AbstractContextManager[None]:
    """Use NumPy at any size."""
    from ebda.sizes import override

    return override(compiled_elements=sys.maxsize, compiled_features=sys.maxsize)


def total(X: Any, y: Any) -> Any:
    return X.sum()


def moments(X: Any, y: Any) -> Any:
    from ebda.kernels.threads import allow_threads
    from ebda.moments import class_moments

    with allow_threads(None):
        return class_moments(X, y, 2)


def tiled_moments(X: Any, y: Any) -> Any:
    """The same without compiled loops."""
    with without_loops():
        return moments(X, y)


def diagonal(X: Any, y: Any) -> Any:
    from ebda import EBClassifier

    return EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)


def tiled_diagonal(X: Any, y: Any) -> Any:
    """The same without compiled loops."""
    with without_loops():
        return diagonal(X, y)


def default(X: Any, y: Any) -> Any:
    from ebda import EBClassifier

    return EBClassifier().fit(X, y)


def paper_dp(X: Any, y: Any) -> Any:
    from ebda import paper

    return paper.classifier("DP", 1).fit(X, y)


def gaussian_nb(X: Any, y: Any) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB().fit(X, y)


def nearest_centroid(X: Any, y: Any) -> Any:
    from sklearn.neighbors import NearestCentroid

    return NearestCentroid(shrink_threshold=1.0).fit(X, y)


def lda(X: Any, y: Any) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="svd").fit(X, y)


def ridge_logistic(X: Any, y: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(X, y)


def lasso_logistic(X: Any, y: Any) -> Any:
    """One penalty; saga is twelve times slower here and stops before it is done."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(l1_ratio=1.0, solver="liblinear").fit(X, y)


def adelie_lasso(X: Any, y: Any) -> Any:
    """A path of penalties, as its users fit; it wants columns in one piece."""
    import adelie

    glm = adelie.glm.binomial(y=y.astype(np.float32), dtype=np.float32)
    return adelie.grpnet(
        X=np.asfortranarray(X), glm=glm, progress_bar=False, n_threads=1
    )


@dataclass(frozen=True)
class Method:
    """A method, and where it stands in tables and figure.

    Parameters
    ----------
    fit : callable
        Of X and y.
    kind : str
        "ours", "floor" or "peer".
    python : str, optional
        Environment variable that names the interpreter it needs, if not this one.
    """

    fit: Callable[[Any, Any], Any]
    kind: str
    python: str | None = None

    def interpreter(self) -> str | None:
        """Where it is installed, if it is."""
        return shutil.which(os.environ.get(self.python, "")) if self.python else None


METHODS: dict[str, Method] = {
    "X.sum()": Method(total, "floor"),
    "moments": Method(moments, "floor"),
    "moments, NumPy only": Method(tiled_moments, "floor"),
    "EBClassifier, diagonal and mean": Method(diagonal, "ours"),
    "EBClassifier, diagonal, NumPy only": Method(tiled_diagonal, "ours"),
    "EBClassifier": Method(default, "ours"),
    "GaussianNB": Method(gaussian_nb, "peer"),
    "NearestCentroid, shrunken": Method(nearest_centroid, "peer"),
    "LDA, svd": Method(lda, "peer"),
    "LogisticRegression, l2": Method(ridge_logistic, "peer"),
    "LogisticRegression, l1": Method(lasso_logistic, "peer"),
    "adelie, lasso": Method(adelie_lasso, "peer", ADELIE_PYTHON),
    "the paper's DP": Method(paper_dp, "peer"),
}
