"""Error, AUC, sensitivity and specificity of held-out predictions, with intervals.

- Shares of samples (error, sensitivity, specificity) have Wilson's interval
  (:mod:`ebda.evaluation.intervals`).
- The area under the ROC curve, A, has the score interval of Newcombe (2006): all A'
  with ``|A - A'| <= z sqrt(V(A'))``, and the variance of Hanley and McNeil (1982) in a
  form that treats both classes alike,

      V(A) = A (1 - A) (1 + (N - 1) ((1 - A) / (2 - A) + A / (1 + A))) / (m n),

  for m and n samples of the two classes and N their mean. Unlike A plus and minus its
  standard error it stays between 0 and 1, and is no point where A = 1.
- Any other score is known once per fold. The scores of folds are not independent, as
  their training sets overlap. So their mean has the interval of Nadeau and Bengio
  (2003) by the t distribution of J - 1 degrees of freedom and the variance

      (1 / J + n_test / n_train) s^2,

  for J scores of variance s^2.

For samples that were held out in folds, m and n are divided by ``1 + K / (K - 1)``, as
the samples of a share are; this is the same correction. Samples of a group count as
what they are worth: for the AUC m and n are divided by how many times larger its
variance is between groups than between samples (DeLong, DeLong and Clarke-Pearson 1988;
Obuchowski 1997). Repetitions are averaged and are no new samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

from ebda.evaluation.intervals import folds_factor, held_out_interval
from ebda.tables import data_frame, html_table
from ebda.typing import FloatArray, IntArray

# Smaller probabilities count as this.
_LEAST = 1e-300
# Areas closer to 0 or 1 are at the edge.
_EDGE = 1e-9
# Measures that are shown.
_SHOWN = 13


@dataclass(frozen=True)
class Measure:
    """A number with its interval.

    Parameters
    ----------
    name : str
        What it is.
    label : str
        The class that it is of; empty for all.
    value, low, high : float
        The number and the ends of its interval; NaN where there is no such sample.
    kind : str
        Whose interval it is.
    """

    name: str
    label: str
    value: float
    low: float
    high: float
    kind: str

    @property
    def title(self) -> str:
        """Name and class."""
        return f"{self.name} of {self.label}" if self.label else self.name


@dataclass(frozen=True, eq=False, repr=False)
class Measures:
    """Several measures of the same predictions.

    Parameters
    ----------
    rows : tuple of Measure
        The measures.
    level : float
        Of the intervals.
    """

    rows: tuple[Measure, ...]
    level: float

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.rows)

    def __getitem__(self, title: str) -> Measure:
        """A measure by its name, or by "name of class" where there are several."""
        for row in self.rows:
            if title in (row.title, row.name):
                return row
        known = ", ".join(repr(row.title) for row in self.rows)
        raise KeyError(f"there is no {title!r}; there are {known}")

    def to_frame(self) -> Any:
        """A pandas table with one row per measure."""
        names = ("label", "value", "low", "high", "kind")
        columns = {name: [getattr(row, name) for row in self] for name in names}
        return data_frame(columns, [row.title for row in self], "measure")

    @property
    def _more(self) -> str:
        more = len(self.rows) - _SHOWN
        return f"{more} more in to_frame()" if more > 0 else ""

    def __repr__(self) -> str:
        shown = self.rows[:_SHOWN]
        width = max(len(row.title) for row in shown)
        lines = [
            f"{row.title:{width}} {row.value:7.3f}"
            f"  {self.level:.0%} interval {row.low:.3f} to {row.high:.3f} ({row.kind})"
            for row in shown
        ]
        return "\n".join([*lines, self._more] if self._more else lines)

    def _repr_html_(self) -> str:
        ends = [f"{self.level:.0%} interval", "", "of"]
        rows = [
            [row.title, *(f"{x:.3f}" for x in (row.value, row.low, row.high)), row.kind]
            for row in self.rows[:_SHOWN]
        ]
        return html_table("Held-out predictions", ["", "", *ends], rows, self._more)


def measures(
    classes: npt.NDArray[Any],
    codes: IntArray,
    probabilities: FloatArray,
    groups: IntArray | None = None,
    n_folds: int = 0,
    scores: Mapping[str, FloatArray] | None = None,
    level: float = 0.95,
) -> Measures:
    """The measures of predictions, repeated or not.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels. Of two classes the second is the one to be found.
    codes : ndarray of int of shape (n_samples,)
        True classes.
    probabilities : ndarray of shape (n_repeats, n_samples, n_classes)
        Of each class.
    groups : ndarray of int of shape (n_samples,), optional
        Groups of the samples, from 0 on.
    n_folds : int
        Number of folds; 0 for independent test samples.
    scores : mapping of str to ndarray of shape (n_repeats, n_folds), optional
        What scorers said of each fold.
    level : float
        Of the intervals.
    """
    said = probabilities.argmax(axis=-1)
    kept = groups, n_folds, level
    rows = [_share("error", "", said != codes, *kept)]
    two = len(classes) == 2
    for k in [1] if two else range(len(classes)):
        label = "" if two else str(classes[k])
        own = codes == k
        rows.append(_area(label, _scores(probabilities, k), own, *kept))
        for name, member, right in (
            ("sensitivity", own, said == k),
            ("specificity", ~own, said != k),
        ):
            part = None if groups is None else groups[member]
            rows.append(_share(name, label, right[:, member], part, n_folds, level))
    for name, of_folds in (scores or {}).items():
        rows.append(Measure(name, "", *corrected_t(of_folds, level), "Nadeau-Bengio"))
    return Measures(tuple(rows), level)


def _scores(probabilities: FloatArray, k: int) -> FloatArray:
    """What the samples are ordered by: of two classes log-odds, which are not all 1."""
    if probabilities.shape[-1] > 2:
        return probabilities[..., k]
    logs = np.log(np.maximum(probabilities, _LEAST))
    return np.asarray(logs[..., k] - logs[..., 1 - k])


def _share(
    name: str,
    label: str,
    happened: npt.NDArray[np.bool_],
    groups: IntArray | None,
    n_folds: int,
    level: float,
) -> Measure:
    """Share of samples, over all repetitions."""
    if not happened.shape[1]:
        return Measure(name, label, np.nan, np.nan, np.nan, "Wilson")
    shares = happened.mean(axis=0)
    ends = held_out_interval(shares, numbered(groups), n_folds, level)
    return Measure(name, label, float(shares.mean()), *ends, "Wilson")


def numbered(groups: IntArray | None) -> IntArray | None:
    """Groups from 0 on, without those that have no sample."""
    return None if groups is None else np.unique(groups, return_inverse=True)[1]


def _area(
    label: str,
    scores: FloatArray,
    own: npt.NDArray[np.bool_],
    groups: IntArray | None,
    n_folds: int,
    level: float,
) -> Measure:
    m, n = int(own.sum()), int((~own).sum())
    if not (m and n):
        return Measure("AUC", label, np.nan, np.nan, np.nan, "Newcombe")
    found = [area(row, own) for row in scores]
    value = float(np.mean([a for a, _ in found]))
    influence = np.mean([part for _, part in found], axis=0)
    factor = inflation(influence, own, numbered(groups)) * folds_factor(n_folds)
    ends = newcombe(value, m / factor, n / factor, level)
    return Measure("AUC", label, value, *ends, "Newcombe")


def area(scores: FloatArray, own: npt.NDArray[np.bool_]) -> tuple[float, FloatArray]:
    """The area under the ROC curve, and the influence of each sample on it.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Larger for samples of the class.
    own : ndarray of bool of shape (n_samples,)
        Whether a sample is of the class.

    Returns
    -------
    float
        P(score of one of the class > score of another), ties counting half.
    ndarray of shape (n_samples,)
        They add up to zero; the sum of their squares is the variance of the area.

    Examples
    --------
    >>> area(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))[0]
    0.875
    """
    m, n = int(own.sum()), int((~own).sum())
    rank = rankdata(scores)
    share = np.empty(len(scores))
    share[own] = (rank[own] - rankdata(scores[own])) / n
    share[~own] = 1 - (rank[~own] - rankdata(scores[~own])) / m
    value = float(share[own].mean())
    return value, (share - value) / np.where(own, m, n)


def inflation(
    influence: FloatArray, own: npt.NDArray[np.bool_], groups: IntArray | None
) -> float:
    """How many times larger the variance of the area is between groups; 1 or more."""
    if groups is None:
        return 1.0
    G = int(groups.max()) + 1
    plain = 0.0
    for side in (own, ~own):
        size = int(side.sum())
        plain += float((influence[side] ** 2).sum()) * size / max(size - 1, 1)
    together = np.bincount(groups, influence)
    largest = len(groups) / G
    if plain == 0.0 or G < 2:  # nothing shows that samples of a group are not alike
        return largest
    return max(float((together**2).sum()) * G / (G - 1) / plain, 1.0)


def newcombe(value: float, m: float, n: float, level: float) -> tuple[float, float]:
    """Newcombe's interval of an area under the ROC curve.

    Parameters
    ----------
    value : float
        The area.
    m, n : float
        Samples of the two classes.
    level : float
        Of the interval.

    Examples
    --------
    >>> low, high = newcombe(1.0, 10, 10, 0.95)
    >>> round(low, 3), high
    (0.8, 1.0)
    """
    z, N = float(ndtri((1 + level) / 2)), (m + n) / 2

    def beyond(a: float) -> float:
        spread = 1 + (N - 1) * ((1 - a) / (2 - a) + a / (1 + a))
        return abs(value - a) - z * float(np.sqrt(a * (1 - a) * spread / (m * n)))

    # At 0 and 1, where the variance is zero, roots are sought beside the value.
    inside = np.clip(value, _EDGE, 1 - _EDGE)
    low = 0.0 if value <= _EDGE else float(brentq(beyond, 0.0, inside))
    high = 1.0 if value >= 1 - _EDGE else float(brentq(beyond, inside, 1.0))
    return low, high


def corrected_t(scores: FloatArray, level: float) -> tuple[float, float, float]:
    """Mean of the scores of folds, and its interval by Nadeau and Bengio.

    Parameters
    ----------
    scores : ndarray of shape (n_repeats, n_folds)
        Of each fold of each repetition.
    level : float
        Of the interval.

    Examples
    --------
    >>> [round(x, 3) for x in corrected_t(np.array([[0.8, 0.9, 0.7, 0.8]]), 0.95)]
    [0.8, 0.602, 0.998]
    """
    J, folds = scores.size, scores.shape[1]
    mean = float(scores.mean())
    if J < 2 or folds < 2:
        return mean, np.nan, np.nan
    spread = float(scores.var(ddof=1)) * (1 / J + 1 / (folds - 1))
    half = float(stdtrit(J - 1, (1 + level) / 2) * np.sqrt(spread))
    return mean, mean - half, mean + half
