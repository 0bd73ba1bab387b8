"""The honest error of a classifier: predictions of samples it was not fitted to.

Every sample is predicted once, by a model that was fitted without it. The result keeps
the predictions themselves, so that tables, plots and the report can derive what they
show from them and compute nothing again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from ebda.storage.fields import COUNT, Array, Labels
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Held-out predictions of all samples.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    codes : ndarray of int of shape (n_samples,)
        True class of each sample, as an index into `classes`.
    probabilities : ndarray of shape (n_samples, n_classes)
        Probability of each class, by a model that was not fitted to the sample.
    n_folds : int
        Number of folds; 0 for independent test samples.
    """

    classes: npt.NDArray[Any]
    codes: IntArray
    probabilities: FloatArray
    n_folds: int

    @property
    def predicted(self) -> IntArray:
        """Most probable class of each sample, as an index into `classes`."""
        best: IntArray = self.probabilities.argmax(axis=1)
        return best

    @property
    def n_errors(self) -> int:
        """Number of misclassified samples."""
        return int(np.count_nonzero(self.predicted != self.codes))

    @property
    def error(self) -> float:
        """Fraction of misclassified samples."""
        return self.n_errors / len(self.codes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Wilson's confidence interval for the error.

        Samples are treated as independent trials. The variation between training sets
        is not included.

        Parameters
        ----------
        level : float
            Confidence level.
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
        """Mean of minus the logarithm of the probability of the true class."""
        own = self.probabilities[np.arange(len(self.codes)), self.codes]
        return float(-np.log(np.maximum(own, 1e-300)).mean())

    @property
    def chance_error(self) -> float:
        """Error of always predicting the most frequent class."""
        return float(1 - np.bincount(self.codes).max() / len(self.codes))


register(
    Schema(
        Evaluation,
        {
            "classes": Labels(),
            "codes": Array(("n",), (), np.int64, below="k"),
            "probabilities": Array(("n", "k"), ("zero or more", "at most 1")),
            "n_folds": COUNT,
        },
        role="evaluation",
    )
)


def cross_validate(
    model: Any, X: Any, y: npt.ArrayLike, n_folds: int = 5, seed: int = 0
) -> Evaluation:
    """Predict every sample with a model fitted to the other folds.

    Parameters
    ----------
    model : classifier
        An estimator with ``predict_proba``; it is cloned.
    X, y
        Data and labels, as for ``fit``.
    n_folds : int
        Number of folds, stratified by class; fewer if the rarest class has fewer
        samples.
    seed : int
        Determines the folds.

    Returns
    -------
    Evaluation

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
            "cross-validation needs at least two samples of each class, but class "
            f"{classes.tolist()[np.bincount(codes).argmin()]!r} has only one"
        )
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(
        clone(model), X, np.asarray(y), cv=split, method="predict_proba"
    )
    return Evaluation(classes, codes, probabilities, folds)


def evaluate(model: Any, X: Any, y: npt.ArrayLike) -> Evaluation:
    """Evaluate a fitted model on samples that it was not fitted to.

    Parameters
    ----------
    model : classifier
        A fitted estimator with ``predict_proba``.
    X, y
        Test data and labels.

    Returns
    -------
    Evaluation
    """
    labels = np.asarray(y)
    codes = np.searchsorted(model.classes_, labels)
    codes = np.minimum(codes, len(model.classes_) - 1)
    unknown = model.classes_[codes] != labels
    if unknown.any():
        row = int(np.argmax(unknown))
        known = ", ".join(map(repr, model.classes_.tolist()))
        raise ValueError(
            f"sample {row} has the class {labels.tolist()[row]!r}, which the model "
            f"does not know; its classes are {known}"
        )
    return Evaluation(model.classes_, codes, model.predict_proba(X), 0)
