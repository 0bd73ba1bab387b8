"""Which features matter, and how sure that is: two lists, for two questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.rule.bulk import bulk_of, width_of_f
from ebda.rule.discoveries import local_rates, null_share, q_values
from ebda.rule.marginal import Statistics
from ebda.rule.tails import log_f_tail, log_t_tail
from ebda.tables import data_frame, html_table, text_table
from ebda.typing import FloatArray, IntArray

BETWEEN_CLASSES = "Does the feature, taken by itself, differ between the classes?"
BEYOND_FACTORS = (
    "Does the feature differ by more than the common factors within the classes "
    "make of it?"
)
# Beyond this a logarithm is that of the smallest number there is.
_LOWEST = -745.0
# Features that are shown where a list is printed.
_SHOWN = 5
_MORE = "All features: to_frame()"
# A list of theory that is longer by no more than this needs no words.
_FEW = 10


@dataclass(frozen=True, eq=False)
class FeatureList:
    """Features in order of the evidence for one kind of difference.

    Arrays are in the order of the data's columns; `order` sorts them. Those "of each
    contrast" have one entry per feature for two classes, and one row per class for
    more, which compares it with the mean of all samples.

    Parameters
    ----------
    question : str
        What is asked, in a sentence.
    t : ndarray
        Moderated t of each contrast: the difference over its standard error.
    df : float or ndarray of shape (n_features,)
        Degrees of freedom of t; one for each feature where values are missing.
    log_p : ndarray
        Logarithm of its p-value against the bulk of the values
        (:mod:`ebda.rule.bulk`), for each contrast.
    q_value, lfdr : ndarray
        Of each contrast: expected share of false discoveries among the features with
        this p-value or a smaller one, no less than over all classes; and probability
        that this feature is one.
    f : ndarray of shape (n_features,)
        Moderated F over all classes; the square of t for two.
    log_p_over_classes, q_over_classes, lfdr_over_classes : ndarray of shape \
(n_features,)
        The same as those of each contrast, for F: whether there is any difference
        between the classes. For two classes they are the same.
    constant : ndarray of bool of shape (n_features,)
        Features that carry nothing.
    """

    question: str
    t: FloatArray
    df: float | FloatArray
    log_p: FloatArray
    q_value: FloatArray
    lfdr: FloatArray
    f: FloatArray
    log_p_over_classes: FloatArray
    q_over_classes: FloatArray
    lfdr_over_classes: FloatArray
    constant: npt.NDArray[np.bool_]

    @property
    def df1(self) -> int:
        """Degrees of freedom of the numerator of F."""
        return 1 if self.t.ndim == 1 else len(self.t) - 1

    @property
    def order(self) -> IntArray:
        """Columns, those with the strongest evidence first and constant ones last."""
        return order_of(self.log_p_over_classes, self.f, self.constant)

    def order_in(self, contrast: int) -> IntArray:
        """The same for one contrast."""
        log_p, t = np.atleast_2d(self.log_p)[contrast], np.atleast_2d(self.t)[contrast]
        return order_of(log_p, np.abs(t), self.constant)

    @property
    def p_value(self) -> FloatArray:
        """p-value of each t as theory has it, which limma gives."""
        return self._known(np.exp(np.maximum(log_t_tail(self.t, self.df), _LOWEST)))

    @property
    def p_over_classes(self) -> FloatArray:
        """p-value of each F as theory has it, which limma gives."""
        log_p = log_f_tail(self.f, float(self.df1), self.df)
        return self._known(np.exp(np.maximum(log_p, _LOWEST)))

    def _known(self, p: FloatArray) -> FloatArray:
        return np.where(self.constant, 1.0, p)

    @property
    def strongest(self) -> IntArray:
        """The contrast with the strongest evidence, for each feature."""
        best: IntArray = np.argmin(np.atleast_2d(self.log_p), axis=0)
        return best

    def selected(self, level: float = 0.05) -> npt.NDArray[np.bool_]:
        """Features with a q-value over all classes of at most `level`.

        Parameters
        ----------
        level : float
            Expected share of false discoveries among them.
        """
        return np.asarray(self.q_over_classes <= level)

    def selected_in_classes(self, level: float = 0.05) -> npt.NDArray[np.bool_]:
        """In which of the contrasts they differ: one row per contrast.

        Parameters
        ----------
        level : float
            As in `selected`.
        """
        return np.atleast_2d(self.q_value <= level)

    def doubt(self, level: float = 0.05) -> str:
        """Why the list is much shorter than by the p-values of theory; mostly empty.

        Parameters
        ----------
        level : float
            As in `selected`.
        """
        log_p = np.log(self.p_over_classes[~self.constant])
        by_theory = int(np.count_nonzero(q_values(log_p, 1.0) <= level))
        if by_theory <= 2 * max(int(self.selected(level).sum()), _FEW):
            return ""
        return (
            f"By the p-values of theory it would be {by_theory}. But features that are "
            "correlated can all be spread more widely by chance, and classes can have "
            "different variances: the list allows for both."
        )

    def words(self, level: float = 0.05) -> str:
        """How many features answer the question.

        Parameters
        ----------
        level : float
            As in `selected`.
        """
        n = int(self.selected(level).sum())
        return f"{self.question} {n} of {len(self.f)} do, with q <= {level:g}."

    def _strongest(self) -> tuple[list[str], list[list[Any]]]:
        """Head and rows of the first features."""
        columns, order = self.columns(), self.order[:_SHOWN]
        rows = [[int(j), *(float(v[j]) for v in columns.values())] for j in order]
        return ["column", *columns], rows

    def __repr__(self) -> str:
        return f"{self.words()}\n{text_table(*self._strongest())}"

    def _repr_html_(self) -> str:
        return html_table(self.words(), *self._strongest())

    def columns(self, contrast: int | None = None) -> dict[str, FloatArray]:
        """Statistic, p-value, q-value and local rate as columns of a table."""
        if self.t.ndim == 2 and contrast is None:
            return {
                "f": self.f,
                "p_value": self.p_over_classes,
                "q_value": self.q_over_classes,
                "lfdr": self.lfdr_over_classes,
            }
        known = {
            "t": self.t,
            "p_value": self.p_value,
            "q_value": self.q_value,
            "lfdr": self.lfdr,
        }
        row = contrast or 0
        return {name: np.atleast_2d(values)[row] for name, values in known.items()}


@dataclass(frozen=True, eq=False)
class Ranking:
    """The two lists of features.

    `order`, `q_value` and `selected` are those of `marginal`.

    Parameters
    ----------
    marginal : FeatureList
        Which features differ between the classes: each by itself, as a t-test asks.
    conditional : FeatureList
        Which features differ beyond the common factors: by more than what the factors
        that were found within the classes make of them. Without factors, that is the
        same question.
    difference : ndarray of shape (n_features,) or (n_classes, n_features)
        Difference of the means in the units of the data: the second class less the
        first, or each class less the mean of all samples.
    names : ndarray, optional
        Names of the features.
    classes : ndarray, optional
        Labels of the classes.
    """

    marginal: FeatureList
    conditional: FeatureList
    difference: FloatArray
    names: npt.NDArray[Any] | None = None
    classes: npt.NDArray[Any] | None = None

    @property
    def order(self) -> IntArray:
        """Columns by the evidence that they differ between the classes."""
        return self.marginal.order

    @property
    def q_value(self) -> FloatArray:
        """q-value of each feature, over all classes."""
        return self.marginal.q_over_classes

    def selected(self, level: float = 0.05) -> npt.NDArray[np.bool_]:
        """Features that differ between the classes.

        Parameters
        ----------
        level : float
            Expected share of false discoveries among them.
        """
        return self.marginal.selected(level)

    def words(self, level: float = 0.05) -> str:
        """How many features are in each of the lists.

        Parameters
        ----------
        level : float
            As in `selected`.
        """
        first, second = (
            int(found.selected(level).sum())
            for found in (self.marginal, self.conditional)
        )
        return (
            f"{first} of {len(self.marginal.f)} features differ between the classes, "
            f"and {second} beyond the common factors, with q <= {level:g}."
        )

    def _strongest(self) -> tuple[list[str], list[list[Any]]]:
        """Head and rows of the first features."""
        shown, p = self.order[:_SHOWN], len(self.marginal.f)
        names = np.arange(p) if self.names is None else self.names
        row = self.marginal.strongest
        difference = np.atleast_2d(self.difference)[row, np.arange(p)]
        columns: dict[str, Any] = {}
        if self.difference.ndim == 2 and self.classes is not None:
            columns["class"] = self.classes[row]
        columns |= {"difference": difference} | self.marginal.columns()
        rows = [[str(names[j]), *(v[j] for v in columns.values())] for j in shown]
        return ["feature", *columns], rows

    def __repr__(self) -> str:
        return f"{self.words()}\n{text_table(*self._strongest())}"

    def _repr_html_(self) -> str:
        return html_table(self.words(), *self._strongest(), note=_MORE)

    def to_frame(
        self, contrast: int | None = None, log_base: float | None = None
    ) -> Any:
        """A pandas table of both lists, best features first.

        Parameters
        ----------
        contrast : int, optional
            Which class, for more than two. By default a feature is judged over all
            classes, and its difference is that of the class with the strongest
            evidence.
        log_base : float, optional
            Base of the logarithms that the data are. Then the difference is given as
            the logarithm to base 2 of the ratio of the (geometric) means.
        """
        many = self.difference.ndim == 2
        p = len(self.marginal.f)
        row = self.marginal.strongest if contrast is None else np.full(p, contrast)
        difference = np.atleast_2d(self.difference)[row, np.arange(p)]
        table: dict[str, Any] = {}
        if many and contrast is None and self.classes is not None:
            table["class"] = self.classes[row]
        if log_base is None:
            table["difference"] = difference
        else:
            table["log2_fold_change"] = difference * np.log2(log_base)
        table |= self.marginal.columns(contrast)
        for name, values in self.conditional.columns(contrast).items():
            table[f"conditional_{name}"] = values
        index = np.arange(p) if self.names is None else self.names
        frame = data_frame(table, index, "feature")
        over = contrast is None
        order = self.order if over else self.marginal.order_in(int(row[0]))
        return frame.iloc[order]


def order_of(
    log_p: FloatArray, statistic: FloatArray, constant: npt.NDArray[np.bool_]
) -> IntArray:
    """Smallest p-value first, ties by the largest statistic, constant features last.

    >>> order_of(np.log([0.1, 1.0, 0.1]), np.array([2.0, 0.0, 3.0]), np.zeros(3, bool))
    array([2, 0, 1])
    """
    order: IntArray = np.lexsort((-statistic, log_p, constant))
    return order


def feature_list(
    question: str,
    statistics: Statistics,
    constant: npt.NDArray[np.bool_],
    correlation: float | None = None,
) -> FeatureList:
    """Judge the statistics against the bulk of them.

    Parameters
    ----------
    question : str
        What is asked.
    statistics : Statistics
        Moderated t, with its degrees of freedom.
    constant : ndarray of bool of shape (n_features,)
        Features that carry nothing.
    correlation : float, optional
        Mean squared correlation of two features within the classes; None where it is
        not known (:mod:`ebda.rule.bulk`).
    """
    t, df, f = statistics.t, statistics.df, statistics.f
    varying = ~constant
    log_p = np.zeros_like(t)
    scores = statistics.scores[:, varying]
    for k, z in enumerate(scores):
        log_p[k, varying] = bulk_of(z, correlation).log_tail(z)
    q, local = _rates(log_p, varying)
    if len(t) == 1:
        return FeatureList(
            question, t[0], df, log_p[0], q[0], local[0],
            f, log_p[0], q[0], local[0], constant,
        )  # fmt: skip
    over = np.zeros_like(f)
    judged = statistics.cautious_f[varying]
    own = df[varying] if isinstance(df, np.ndarray) and df.ndim else df
    width = width_of_f(judged, statistics.df1, own, correlation)
    over[varying] = log_f_tail(judged / width, float(statistics.df1), own)
    # Where nearly all features differ pi0 would be no more than a guess.
    q_over, local_over = (row[0] for row in _rates(over[None, :], varying, pi0=1.0))
    # A class is named only where there is any difference between the classes.
    q = np.maximum(q, q_over)
    return FeatureList(
        question, t, df, log_p, q, local, f, over, q_over, local_over, constant
    )


def _rates(
    log_p: FloatArray, varying: npt.NDArray[np.bool_], pi0: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """q-values and local rates of each row; 1 for features that do not vary."""
    q, local = np.ones_like(log_p), np.ones_like(log_p)
    for k, row in enumerate(log_p[:, varying]):
        share = null_share(row) if pi0 is None else pi0
        q[k, varying] = q_values(row, share)
        local[k, varying] = local_rates(row, share)
    return q, local


def tail_average(lfsr: FloatArray) -> FloatArray:
    """Mean of all entries that are no larger, for each entry: the q-value.

    >>> tail_average(np.array([0.5, 0.0, 0.1]))
    array([0.2 , 0.  , 0.05])
    """
    flat = lfsr.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    mean = np.cumsum(ordered) / np.arange(1, len(flat) + 1)
    # Equal entries share the average over all of them.
    last = np.searchsorted(ordered, ordered, side="right") - 1
    q = np.empty_like(flat)
    q[order] = mean[last]
    return q.reshape(lfsr.shape)
