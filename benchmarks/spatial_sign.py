"""Spatial-sign LDA (Zhuang and Feng, arXiv 2504.11117), as its abstract describes it.

Class means are spatial medians. The covariance, up to a factor, is p times that of the
spatial signs of the residuals, ``r / |r|``. The direction is that of linear programming
discriminant analysis (Cai and Liu 2011),

    minimise |b|_1  subject to  |p S b - (m_2 - m_1)|_inf <= lambda,

and the boundary the midpoint. lambda, which the abstract does not tell, is chosen by
cross-validation, as Cai and Liu do.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

Array = NDArray[np.float64]
# Shares of the largest difference.
LAMBDAS = tuple(np.linspace(0.9, 0.1, 9))
FOLDS, ROUNDS, TOLERANCE = 4, 200, 1e-8


def spatial_median(X: Array) -> Array:
    """The point with the least sum of distances, by Weiszfeld's iteration."""
    at: Array = np.median(X, axis=0)
    for _ in range(ROUNDS):
        weight = 1 / np.maximum(np.linalg.norm(X - at, axis=1), TOLERANCE)
        before, at = at, weight @ X / weight.sum()
        if np.linalg.norm(at - before) <= TOLERANCE * np.linalg.norm(at):
            break
    return at


def sparse_direction(S: Array, d: Array, limit: float) -> Array:
    """The least ``|b|_1`` with ``|S b - d|_inf <= limit``."""
    p = len(d)
    both = np.hstack([S, -S])
    found = linprog(
        np.ones(2 * p),
        A_ub=np.vstack([both, -both]),
        b_ub=np.concatenate([limit + d, limit - d]),
        method="highs",
    )
    if not found.success:
        return np.zeros(p)
    b: Array = found.x[:p] - found.x[p:]
    return b


class SpatialSignLDA(ClassifierMixin, BaseEstimator):
    """Two classes with elliptical distributions."""

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        X, wrong = np.asarray(X, dtype=float), np.zeros(len(LAMBDAS))
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        for train, test in folds.split(X, codes):
            S, medians = self._parts(X[train], codes[train])
            for i, share in enumerate(LAMBDAS):
                score = self._score(
                    X[test], medians, self._direction(S, medians, share)
                )
                wrong[i] += np.sum((score > 0) != codes[test])
        # The sparsest of the best.
        S, self.medians_ = self._parts(X, codes)
        share = LAMBDAS[int(np.argmin(wrong))]
        self.coef_ = self._direction(S, self.medians_, share)
        return self

    @staticmethod
    def _parts(X: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
        medians = np.stack([spatial_median(X[codes == k]) for k in (0, 1)])
        residuals = X - medians[codes]
        signs = residuals / np.linalg.norm(residuals, axis=1, keepdims=True)
        return X.shape[1] * signs.T @ signs / len(X), medians

    @staticmethod
    def _direction(S: Array, medians: Array, share: float) -> Array:
        d = medians[1] - medians[0]
        return sparse_direction(S, d, share * np.abs(d).max())

    @staticmethod
    def _score(X: Array, medians: Array, b: Array) -> Array:
        score: Array = (X - medians.mean(axis=0)) @ b
        return score

    def predict(self, X: Any) -> NDArray[Any]:
        score = self._score(np.asarray(X, dtype=float), self.medians_, self.coef_)
        labels: NDArray[Any] = self.classes_[(score > 0).astype(int)]
        return labels
