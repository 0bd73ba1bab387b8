"""The classifiers that the accuracy benchmark compares, each as its users would run it.

Preprocessing and the choice of penalties are part of a method: they see the training
samples of a fold and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ebda import EBClassifier, paper
from ebda.baselines import (
    DickerZhao,
    LassoLogistic,
    LinearProgrammingDA,
    MeanVarianceAdaptive,
    RegularizedDA,
    ShrinkageDA,
    ShrunkenCentroids,
    SparseLDA,
    ThresholdedLDA,
)

Array = NDArray[Any]
# Penalties for samples of length one, from no fit at all to separation, and numbers of
# components.
PENALTIES = np.logspace(-2, 5, 15)
COSTS = np.logspace(-2, 4, 13)
COMPONENTS = range(1, 11)
# The elastic net by scikit-learn's only solver for it, which is slow: the features
# with the largest F statistics, a rough tolerance, and no more than the default
# number of iterations.
SCREENED = 500
ELASTIC_PENALTIES = np.logspace(-1.5, 1, 6)


class RowSpace(TransformerMixin, BaseEstimator):
    """Centred data in the coordinates of the space that the training samples span.

    A linear rule with an L2 penalty has its weights in that space: penalised fits to
    the n coordinates and to all p features are the same, whatever n and p are. All
    are divided by the root mean square length of a sample, so that one grid of
    penalties serves any p.
    """

    def fit(self, X: Array, y: Array | None = None) -> Self:
        self.mean_ = X.mean(axis=0)
        _, singular, axes = np.linalg.svd(X - self.mean_, full_matrices=False)
        kept = singular > singular[0] * max(X.shape) * np.finfo(np.float64).eps
        length = np.sqrt((singular**2).sum() / len(X))
        self.axes_ = axes[kept].T / length
        return self

    def transform(self, X: Array) -> Array:
        return (X - self.mean_) @ self.axes_


class TunedSVM(ClassifierMixin, BaseEstimator):
    """Linear SVM, its cost by cross-validated accuracy, its probabilities by Platt.

    Classes are those of the machine fitted to all samples; probabilities come from
    sigmoids fitted to held-out decisions.

    Parameters
    ----------
    cv : cross-validation splitter
        For both.
    """

    def __init__(self, cv: Any) -> None:
        self.cv = cv

    def fit(self, X: Array, y: Array) -> Self:
        search = GridSearchCV(SVC(kernel="linear"), {"C": COSTS}, cv=self.cv)
        self.machine_ = search.fit(X, y).best_estimator_
        self.calibrated_ = CalibratedClassifierCV(
            clone(self.machine_), method="sigmoid", cv=self.cv, ensemble=False
        ).fit(X, y)
        self.classes_ = self.machine_.classes_
        return self

    def predict(self, X: Array) -> Array:
        return self.machine_.predict(X)

    def predict_proba(self, X: Array) -> Array:
        return self.calibrated_.predict_proba(X)


class PLSDA(ClassifierMixin, BaseEstimator):
    """Partial least squares regression on indicators of the classes, as R's caret has.

    The class with the largest fitted value wins, and probabilities are the softmax of
    the fitted values: caret's default.
    """

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    def fit(self, X: Array, y: Array) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.regression_ = PLSRegression(self.n_components, scale=False)
        self.regression_.fit(X, np.eye(len(self.classes_))[codes])
        return self

    def predict(self, X: Array) -> Array:
        return self.classes_[self.regression_.predict(X).argmax(axis=1)]

    def predict_proba(self, X: Array) -> Array:
        return softmax(self.regression_.predict(X), axis=1)


class ShrinkageLDA(ClassifierMixin, BaseEstimator):
    """``LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")`` for any p.

    scikit-learn shrinks the covariance of each class, in units of its standard
    deviations, by Ledoit and Wolf's amount, and averages over classes: a diagonal
    plus a matrix of rank n, which is inverted by Woodbury's identity and never
    formed. O(n^2 p) in place of O(p^3); the probabilities are the same.
    """

    def fit(self, X: Array, y: Array) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        share = np.bincount(codes) / len(codes)
        X = X.astype(np.float64)
        self.mean_ = X.mean(axis=0)
        centre = X - self.mean_
        means = np.array([centre[codes == k].mean(axis=0) for k in range(len(share))])
        diagonal, factors = np.zeros(X.shape[1]), []
        for k, weight in enumerate(share):
            scaler = StandardScaler()
            scaled = scaler.fit_transform(centre[codes == k])
            amount, mu = ledoit_wolf(scaled)
            diagonal += weight * amount * mu * scaler.scale_**2
            size = np.sqrt(weight * (1 - amount) / len(scaled))
            factors.append(size * scaled * scaler.scale_)
        factor = np.vstack(factors)
        thin = factor / diagonal
        inner = np.eye(len(factor)) + thin @ factor.T
        coef = means / diagonal
        self.coef_ = coef - np.linalg.solve(inner, factor @ coef.T).T @ thin
        half = 0.5 * np.einsum("kj,kj->k", means, self.coef_)
        self.intercept_ = np.log(share) - half
        return self

    def predict(self, X: Array) -> Array:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Array) -> Array:
        score = (X - self.mean_) @ self.coef_.T + self.intercept_
        return softmax(score, axis=1)


def ledoit_wolf(X: Array) -> tuple[float, float]:
    """Amount of shrinkage of centred data and the mean variance, by the Gram matrix."""
    n, p = X.shape
    mu = float((X**2).sum() / (n * p))
    norms = ((X**2).sum(axis=1) ** 2).sum() / n
    squares = ((X @ X.T) ** 2).sum() / n**2
    distance = (squares - p * mu**2) / p
    noise = min((norms - squares) / (n * p), distance)
    return (0.0 if noise == 0 else float(noise / distance)), mu


def f_statistics(X: Array, y: Array) -> Array:
    """F statistics of the features; 0 for one that is constant in these samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are constant features
        return np.nan_to_num(f_classif(X, y)[0], nan=0.0)


def _folds(n_folds: int, seed: int) -> StratifiedKFold:
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


def _ridge(n_folds: int, seed: int) -> Any:
    model = LogisticRegressionCV(
        Cs=PENALTIES,
        cv=_folds(n_folds, seed),
        l1_ratios=(0.0,),
        scoring="neg_log_loss",
        max_iter=1000,
        use_legacy_attributes=False,
    )
    return make_pipeline(StandardScaler(), RowSpace(), model)


def _elastic_net(n_folds: int, seed: int) -> Any:
    model = LogisticRegression(l1_ratio=0.5, solver="saga", tol=1e-2, random_state=seed)
    steps = [StandardScaler(), SelectKBest(score_func=f_statistics, k=SCREENED), model]
    return GridSearchCV(
        make_pipeline(*steps),
        {"logisticregression__C": ELASTIC_PENALTIES},
        cv=_folds(n_folds, seed),
        scoring="neg_log_loss",
    )


def _svm(n_folds: int, seed: int) -> Any:
    return make_pipeline(StandardScaler(), RowSpace(), TunedSVM(_folds(n_folds, seed)))


def _pls(n_folds: int, seed: int) -> Any:
    # Partial least squares of standardised features: the same in the row space.
    grid = {"n_components": COMPONENTS}
    search = GridSearchCV(PLSDA(), grid, cv=_folds(n_folds, seed))
    return make_pipeline(StandardScaler(), RowSpace(), search)


def _lasso(n_folds: int, seed: int) -> Any:
    # One rule for two classes, and one against the rest for each of many.
    model = LassoLogistic(rule="min", cv=n_folds, random_state=seed)
    return OneVsRestClassifier(model)


def _centroids(n_folds: int, seed: int) -> Any:
    return ShrunkenCentroids(cv=n_folds, random_state=seed)


def _paper(method: str, study: int | str) -> Callable[[int, int], Any]:
    def make(n_folds: int, seed: int) -> Any:
        model = paper.classifier(method, study, random_state=seed)
        return model.set_params(covariance="diagonal")

    return make


# Each from the number of inner folds, which small classes limit, and a seed; in the
# order of what they cost. With the leukemia settings the paper's algorithm puts
# everything at zero on most sets; with those of study 1 and 50 batches, where "Sparse
# DP" sets nothing to zero and is DP, it seldom does.
METHODS: dict[str, Callable[[int, int], Any]] = {
    "EBClassifier": lambda n_folds, seed: EBClassifier(),
    "DP": _paper("DP", "leukemia"),
    "Sparse DP": _paper("Sparse DP", "leukemia"),
    "DP (study 1)": _paper("Sparse DP", 1),
    "Shrinkage LDA": lambda n_folds, seed: ShrinkageLDA(),
    "Shrinkage DA (sda)": lambda n_folds, seed: ShrinkageDA(),
    "Regularised DA": lambda n_folds, seed: RegularizedDA(
        cv=n_folds, random_state=seed
    ),
    "Regularised DA, centroids": lambda n_folds, seed: RegularizedDA(
        centroids=True, cv=n_folds, random_state=seed
    ),
    "Thresholded LDA": lambda n_folds, seed: ThresholdedLDA(random_state=seed),
    "Sparse LDA": lambda n_folds, seed: SparseLDA(cv=n_folds, random_state=seed),
    "Dicker and Zhao": lambda n_folds, seed: DickerZhao(),
    "LPD": lambda n_folds, seed: LinearProgrammingDA(
        cv=min(n_folds, 5), random_state=seed
    ),
    "Mean and variance adaptive": lambda n_folds, seed: MeanVarianceAdaptive(),
    "PLS-DA": _pls,
    "Ridge logistic": _ridge,
    "Linear SVM": _svm,
    "Random forest": lambda n_folds, seed: RandomForestClassifier(
        500, random_state=seed
    ),
    "Shrunken centroids": _centroids,
    "Elastic net": _elastic_net,
    "Lasso logistic": _lasso,
    "Gradient boosting": lambda n_folds, seed: HistGradientBoostingClassifier(
        random_state=seed
    ),
}


def features_used(model: Any, n_features: int) -> int | None:
    """How many features have any part in the predictions; None where it is not said."""
    if isinstance(model, GridSearchCV):
        model = model.best_estimator_
    if isinstance(model, HistGradientBoostingClassifier):
        return None
    if isinstance(model, RandomForestClassifier):
        return int(np.count_nonzero(model.feature_importances_))
    if "selectkbest" in getattr(model, "named_steps", {}):
        return int(model[-1].coef_.any(axis=0).sum())
    parts = getattr(model, "estimators_", [model])
    if all(hasattr(part, "selected_") for part in parts):
        return int(np.any([part.selected_ for part in parts], axis=0).sum())
    return n_features
