"""Predictions of samples that a classifier was not fitted to, and what they say.

The predictions themselves are kept, so that tables, plots and the report can derive
what they show from them and compute nothing again.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.evaluation.intervals import held_out_interval, wilson
from ebda.evaluation.measures import Measures, measures
from ebda.listing import counted
from ebda.storage.fields import COUNT, Array, Labels
from ebda.storage.objects import Schema, register
from ebda.tables import html_table, text_table
from ebda.typing import FloatArray, IntArray

# Probabilities below this count as this, so that each has a logarithm.
_LEAST_PROBABILITY = 1e-300
# Samples per point of a calibration curve, at least on average, and most points.
_PER_BIN, _MOST_BINS = 10, 10
_BIN_COLUMNS = ["predicted", "observed", "low", "high", "samples"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Held-out predictions of all samples; ``print(evaluation)`` shows the measures.

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
    groups : ndarray of int of shape (n_samples,), optional
        What samples belong to that are not independent, numbered from 0 on. Intervals
        are wider then.
    score_names : ndarray of str of shape (n_scores,), optional
        Names of scorers.
    fold_scores : ndarray of shape (n_scores, n_folds), optional
        What they said of each fold.
    """

    classes: npt.NDArray[Any]
    codes: IntArray
    probabilities: FloatArray
    n_folds: int
    groups: IntArray | None = None
    score_names: npt.NDArray[Any] | None = None
    fold_scores: FloatArray | None = None

    @property
    def scores(self) -> dict[str, FloatArray]:
        """What scorers said of each fold, by their names."""
        if self.score_names is None or self.fold_scores is None:
            return {}
        return dict(zip(self.score_names.tolist(), self.fold_scores, strict=True))

    @property
    def predicted(self) -> IntArray:
        """Most probable class of each sample, as an index into `classes`."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def n_errors(self) -> int:
        """Number of misclassified samples."""
        return int(np.count_nonzero(self.predicted != self.codes))

    @property
    def error(self) -> float:
        """Fraction of misclassified samples."""
        return self.n_errors / len(self.codes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval for the error.

        It is Wilson's for independent test samples. Samples that were held out in folds
        count as fewer, by the correction of Nadeau and Bengio for training sets that
        overlap, and so do samples of a group (:mod:`ebda.evaluation.intervals`).

        Parameters
        ----------
        level : float
            Confidence level.
        """
        wrong = (self.predicted != self.codes).astype(np.float64)
        return held_out_interval(wrong, self.groups, self.n_folds, level)

    def measures(self, level: float = 0.95) -> Measures:
        """Error, AUC, sensitivity and specificity, and the scores, with intervals.

        Of more than two classes, AUC, sensitivity and specificity are those of each
        class against the others.

        Parameters
        ----------
        level : float
            Of the intervals (:mod:`ebda.evaluation.measures`).
        """
        scores = {name: values[None, :] for name, values in self.scores.items()}
        return measures(
            self.classes,
            self.codes,
            self.probabilities[None],
            self.groups,
            self.n_folds,
            scores,
            level,
        )

    def words(self) -> str:
        """How many samples were wrong, in a sentence."""
        how = "independent test samples"
        if self.n_folds:
            how = f"samples, held out in {self.n_folds} folds"
        groups = ""
        if self.groups is not None:
            groups = f" of {counted(int(self.groups.max()) + 1, 'group')}"
        return f"{self.n_errors} of {len(self.codes)} {how}{groups}, were wrong."

    def __repr__(self) -> str:
        return f"{self.words()}\n{self.measures()}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.words())}</p>{self.measures()._repr_html_()}"

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
        return float(-log_probability(own).mean())

    @property
    def chance_error(self) -> float:
        """Error of always predicting the most frequent class."""
        return float(1 - np.bincount(self.codes).max() / len(self.codes))


_PROBABILITIES = ("zero or more", "a distribution in each row")
register(
    Schema(
        Evaluation,
        {
            "classes": Labels(),
            "codes": Array(("n",), ("not empty",), np.int64, below="k"),
            "probabilities": Array(("n", "k"), _PROBABILITIES),
            "n_folds": COUNT,
            "groups": Array(("n",), ("zero or more",), np.int64),
            "score_names": Array(("s",), ("free of duplicates",), object),
            "fold_scores": Array(("s", "f")),
        },
        optional=frozenset({"groups", "score_names", "fold_scores"}),
        role="evaluation",
    )
)


def class_codes(classes: npt.NDArray[Any], y: npt.ArrayLike) -> IntArray:
    """The place of each label among the classes, in any order.

    >>> class_codes(np.array(["well", "ill"]), ["ill", "ill", "well"])
    array([1, 1, 0])
    """
    labels, by_name = np.asarray(y), np.argsort(classes)
    place = np.searchsorted(classes, labels, sorter=by_name)
    codes = by_name[np.minimum(place, len(classes) - 1)]
    unknown = classes[codes] != labels
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ValueError(
            f"sample {row} has the class {labels.tolist()[row]!r}, which is not one of "
            f"the classes {', '.join(map(repr, classes.tolist()))}"
        )
    return codes


def log_probability(probabilities: FloatArray) -> FloatArray:
    """Logarithms of probabilities; those below 1e-300 count as 1e-300."""
    return np.asarray(np.log(np.maximum(probabilities, _LEAST_PROBABILITY)))


def margins(scores: FloatArray, own: IntArray) -> FloatArray:
    """Score of one class of each sample less the largest of the other classes.

    Of log-probabilities these are the log-odds of that class against the most probable
    other one: positive where the sample is given that class.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        Scores or log-probabilities.
    own : ndarray of int of shape (n_samples,)
        The class of each sample.

    Examples
    --------
    >>> margins(np.array([[1.0, 4.0, 2.0]]), np.array([2]))
    array([-2.])
    """
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, own] = -np.inf
    return np.asarray(scores[rows, own] - others.max(axis=1))


@dataclass(frozen=True, eq=False)
class CalibrationBins:
    """Observed shares of an event beside its predicted probabilities.

    Parameters
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean probability in each bin, and the share of its samples for which the event
        occurred.
    low, high : ndarray of shape (n_bins,)
        Wilson's interval of that share.
    counts : ndarray of int of shape (n_bins,)
        Samples in each bin.
    """

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    counts: IntArray

    def _rows(self) -> list[list[Any]]:
        columns = self.predicted, self.observed, self.low, self.high
        rows = zip(*columns, strict=True)
        shares = [[f"{share:.3f}" for share in row] for row in rows]
        return [[*row, f"{n}"] for row, n in zip(shares, self.counts, strict=True)]

    def __repr__(self) -> str:
        return text_table(_BIN_COLUMNS, self._rows())

    def _repr_html_(self) -> str:
        return html_table("Calibration", _BIN_COLUMNS, self._rows())

    @property
    def few_samples(self) -> npt.NDArray[np.bool_]:
        """Bins with fewer than ten samples, which say little."""
        return np.asarray(self.counts < _PER_BIN)


def calibration_bins(
    probabilities: npt.ArrayLike,
    occurred: npt.ArrayLike,
    n_bins: int | None = None,
    level: float = 0.95,
) -> CalibrationBins:
    """Group samples by their predicted probability, into bins of equal counts.

    Samples with the same probability share a bin, so that bins are fewer or of unequal
    counts where many probabilities are equal.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
        Between 0 and 1.
    occurred : array-like of bool of shape (n_samples,)
        Whether the event occurred.
    n_bins : int, optional
        Number of bins; by default as many as have ten samples each, and at most ten.
    level : float
        Of the intervals, which take the samples as independent.

    Examples
    --------
    >>> bins = calibration_bins([0.1, 0.9, 0.1, 0.9], [0, 1, 0, 0], n_bins=2)
    >>> bins.predicted, bins.observed
    (array([0.1, 0.9]), array([0. , 0.5]))
    """
    p = np.asarray(probabilities, dtype=np.float64)
    event = np.asarray(occurred, dtype=bool)
    if p.ndim != 1 or p.shape != event.shape or not len(p):
        raise ValueError(
            "probabilities and outcomes must be vectors of one length, with at least "
            f"one element; got shapes {p.shape} and {event.shape}"
        )
    valid = (p >= 0) & (p <= 1 + 1e-9)
    if not valid.all():
        row = int(np.argmin(valid))
        raise ValueError(
            f"probabilities must lie between 0 and 1; that of sample {row} is {p[row]}"
        )
    order = np.argsort(p, kind="stable")
    p, event, n = p[order], event[order], len(p)
    size = n_bins or int(np.clip(n // _PER_BIN, 1, _MOST_BINS))
    # A bin starts where its first probability does.
    first = np.searchsorted(p, p[np.arange(size) * n // size])
    first = np.unique(np.append(first, 0))
    counts = np.diff(np.append(first, n))
    hits = np.add.reduceat(event.astype(np.intp), first)
    ends = [
        wilson(float(k / m), float(m), level) for k, m in zip(hits, counts, strict=True)
    ]
    low, high = np.array(ends, dtype=np.float64).T
    return CalibrationBins(
        np.add.reduceat(p, first) / counts, hits / counts, low, high, counts
    )


def predicted_event(
    probabilities: FloatArray, codes: IntArray, place: int | None = None
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The probabilities whose calibration is of interest, and whether they came true.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Of each class.
    codes : ndarray of int of shape (n_samples,)
        True classes.
    place : int, optional
        The class that is meant: by default the second of two classes; of more, the
        predicted class of each sample.
    """
    if place is None and probabilities.shape[1] > 2:
        meant = probabilities.argmax(axis=1)
    else:
        meant = np.full(len(codes), 1 if place is None else place)
    return probabilities[np.arange(len(codes)), meant], np.asarray(codes == meant)
