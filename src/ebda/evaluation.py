"""The honest error of a classifier: cross-validated predictions and what they say.

Every sample is predicted once, by a model that was fitted without it. The result keeps
the predictions themselves, so that tables, pictures and the report read off them what
they show and compute nothing again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Held-out predictions of all samples.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    codes : ndarray of int of shape (n_samples,)
        True class of each sample, as a place in `classes`.
    probabilities : ndarray of shape (n_samples, n_classes)
        Of each class, by a model that did not see the sample.
    n_folds : int
        Number of folds; 0 for samples that took no part in the fit at all.
    """

    classes: npt.NDArray[Any]
    codes: IntArray
    probabilities: FloatArray
    n_folds: int

    @property
    def predicted(self) -> IntArray:
        """Most probable class of each sample, as a place in `classes`."""
        best: IntArray = self.probabilities.argmax(axis=1)
        return best

    @property
    def n_errors(self) -> int:
        """Samples that were given a wrong class."""
        return int(np.count_nonzero(self.predicted != self.codes))

    @property
    def error(self) -> float:
        """Share of samples that were given a wrong class."""
        return self.n_errors / len(self.codes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Wilson's interval for the error.

        It takes the samples as independent trials; the variation between training
        sets is not in it.
        """
        test = binomtest(self.n_errors, len(self.codes))
        low, high = test.proportion_ci(level, method="wilson")
        return float(low), float(high)

    @property
    def confusion(self) -> IntArray:
        """Number of samples by true class (rows) and predicted class (columns)."""
        k = len(self.classes)
        cell = self.codes * k + self.predicted
        return np.bincount(cell, minlength=k * k).reshape(k, k)

    @property
    def log_loss(self) -> float:
        """Mean of -log of the probability that the true class was given."""
        own = self.probabilities[np.arange(len(self.codes)), self.codes]
        return float(-np.log(np.maximum(own, 1e-300)).mean())

    @property
    def chance_error(self) -> float:
        """Error of always naming the most frequent class."""
        return float(1 - np.bincount(self.codes).max() / len(self.codes))


def cross_validate(
    model: Any, X: Any, y: npt.ArrayLike, n_folds: int = 5, seed: int = 0
) -> Evaluation:
    """Predict every sample by a model fitted to the other folds.

    Parameters
    ----------
    model : classifier
        Cloned; with ``predict_proba``.
    X, y
        The data, as for ``fit``.
    n_folds : int
        Folds, stratified by class; fewer where the rarest class has fewer samples.
    seed : int
        Deals out the folds.

    Examples
    --------
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> result = cross_validate(EBClassifier(), golub.data[:, :500], golub.target)
    >>> result.confusion.sum()
    np.int64(72)
    >>> result.error < result.chance_error
    True
    """
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    rarest = int(np.bincount(codes).min())
    folds = min(n_folds, rarest)
    if folds < 2:
        raise ValueError(
            "cross-validation needs two samples of each class, but of "
            f"{classes.tolist()[np.bincount(codes).argmin()]!r} there is only one"
        )
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(
        clone(model), X, np.asarray(y), cv=split, method="predict_proba"
    )
    return Evaluation(classes, codes, probabilities, folds)


def evaluate(model: Any, X: Any, y: npt.ArrayLike) -> Evaluation:
    """Predictions of a fitted model for samples that it has not seen."""
    labels = np.asarray(y)
    codes = np.searchsorted(model.classes_, labels)
    codes = np.minimum(codes, len(model.classes_) - 1)
    unknown = model.classes_[codes] != labels
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ValueError(
            f"sample {row} has the class {labels.tolist()[row]!r}, which the model "
            f"does not know; it knows {', '.join(map(repr, model.classes_.tolist()))}"
        )
    return Evaluation(model.classes_, codes, model.predict_proba(X), 0)
