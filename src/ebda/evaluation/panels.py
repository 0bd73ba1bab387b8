"""A small panel of features as a result: the curve of errors, the choice and its list.

The size is chosen by the rule of one standard error (Breiman et al. 1984): the fewest
features whose error is no more than one standard error above the smallest. A standard
error is taken to be no smaller than that of a single wrong sample, 1 / n: where none of
n samples is wrong, the error is not known to be zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.evaluation.held_out import Evaluation
from ebda.evaluation.intervals import held_out_interval, standard_error
from ebda.listing import counted, listed
from ebda.tables import data_frame, html_table, text_table
from ebda.typing import FloatArray, IntArray

# Features that are shown where a list is printed.
_SHOWN = 10
# Errors this close differ by rounding.
_TIED = 1e-9


@dataclass(frozen=True, eq=False)
class PanelFeatures:
    """The features of a panel, in the order of their evidence.

    Parameters
    ----------
    columns : ndarray of int of shape (n_chosen,)
        Columns of X.
    names : ndarray of shape (n_chosen,), optional
        Their names, where X has names.
    label : ndarray of shape (n_chosen,)
        The class that `difference` is of: the second of two classes; of more, the one
        with the strongest evidence.
    difference : ndarray of shape (n_chosen,)
        Mean of this class less that of the other one, or of all samples.
    low, high : ndarray of shape (n_chosen,)
        Ends of the interval of the difference, by the moderated t of limma. It is that
        of each feature by itself: features that were chosen because they differ most
        differ, on average, by less.
    t : ndarray of shape (n_chosen,)
        Moderated t.
    share_of_folds : ndarray of shape (n_chosen,)
        Share of the folds without which the feature was among the first so many, too.
    """

    columns: IntArray
    names: npt.NDArray[Any] | None
    label: npt.NDArray[Any]
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    t: FloatArray
    share_of_folds: FloatArray

    @property
    def shown(self) -> npt.NDArray[Any]:
        """Names, or columns where there are none."""
        return self.columns if self.names is None else self.names

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "column": self.columns,
            "class": self.label,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "t": self.t,
            "share_of_folds": self.share_of_folds,
        }

    def to_frame(self) -> Any:
        """The list as a pandas table."""
        return data_frame(self._columns(), self.shown, "feature")

    def _rows(self, most: int) -> tuple[list[str], list[list[Any]]]:
        """Head and rows of the first features."""
        columns = self._columns()
        rows = zip(self.shown.tolist(), *columns.values(), strict=True)
        return ["feature", *columns], [[str(f), *r] for f, *r in rows][:most]

    @property
    def _more(self) -> str:
        more = len(self.columns) - _SHOWN
        return f"{more} more in to_frame()" if more > 0 else ""

    def __repr__(self) -> str:
        return "\n".join(filter(None, [text_table(*self._rows(_SHOWN)), self._more]))

    def _repr_html_(self) -> str:
        title = counted(len(self.columns), "feature")
        return html_table(title, *self._rows(_SHOWN), note=self._more)


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Held-out error against the number of features, and the panel that was chosen.

    Parameters
    ----------
    sizes : ndarray of int of shape (n_sizes,)
        Numbers of features, ascending.
    classes : ndarray of shape (n_classes,)
        Class labels.
    codes : ndarray of int of shape (n_samples,)
        True class of each sample, as an index into `classes`.
    probabilities : ndarray of shape (n_sizes, n_repeats, n_samples, n_classes)
        Probability of each class, by models that were ranked and fitted without the
        sample.
    fold : ndarray of int of shape (n_repeats, n_samples)
        The fold that each sample was held out in.
    groups : ndarray of int of shape (n_samples,), optional
        What samples belong to that are not independent.
    level : float
        Of the intervals.
    features : PanelFeatures
        The panel: features, ranked on all samples.
    model : classifier
        Fitted to the panel's features of all samples: it predicts from
        ``X[:, columns]``, or from ``X[names]`` of a table; from AnnData as it is, with
        the genes found by their names.

    Attributes
    ----------
    error, standard_error, low, high : ndarray of shape (n_sizes,)
        Held-out error of each size, its standard error and its interval.
    best, size : int
        The size with the smallest error, and the smallest size within one standard
        error of it.
    """

    sizes: IntArray
    classes: npt.NDArray[Any]
    codes: IntArray
    probabilities: FloatArray
    fold: IntArray
    groups: IntArray | None
    level: float
    features: PanelFeatures
    model: Any

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is wrong, of shape (n_sizes, n_repeats, n_samples)."""
        return np.asarray(self.probabilities.argmax(axis=-1) != self.codes)

    @property
    def error(self) -> FloatArray:
        """Share of held-out samples that are wrong, over all repetitions."""
        return np.asarray(self.wrong.mean(axis=(1, 2)))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of each error, between samples or groups; at least 1 / n."""
        return _standard_errors(self.wrong, self.groups)

    @property
    def _ends(self) -> FloatArray:
        shares = self.wrong.mean(axis=1)
        n_folds = int(self.fold.max()) + 1
        ends = [
            held_out_interval(row, self.groups, n_folds, self.level) for row in shares
        ]
        return np.array(ends).T

    @property
    def low(self) -> FloatArray:
        """Lower ends of the intervals (:mod:`ebda.evaluation.intervals`)."""
        return np.asarray(self._ends[0])

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals."""
        return np.asarray(self._ends[1])

    @property
    def best(self) -> int:
        """The size with the smallest error; the smallest of those that tie."""
        return int(self.sizes[_least(self.error)])

    @property
    def size(self) -> int:
        """The smallest size within one standard error of the smallest error."""
        return int(self.sizes[chosen(self.wrong, self.groups)])

    @property
    def limit(self) -> float:
        """One standard error above the smallest error, which the panel keeps to."""
        best = _least(self.error)
        return float(self.error[best] + self.standard_error[best])

    @property
    def _place(self) -> int:
        return int(np.searchsorted(self.sizes, self.size))

    @property
    def error_of_choice(self) -> float:
        """Error when the size, too, is chosen without the samples that are predicted.

        In each fold the size is the one that the samples of the other folds would have
        chosen. The error of the chosen size is the smallest but for one standard error
        of several, and therefore somewhat too small; this one is not.
        """
        wrong, total = self.wrong, 0
        for r, fold in enumerate(self.fold):
            for f in np.unique(fold):
                inside = fold == f
                groups = self.groups
                if groups is not None:
                    groups = np.unique(groups[~inside], return_inverse=True)[1]
                place = chosen(wrong[:, [r]][:, :, ~inside], groups)
                total += int(wrong[place, r, inside].sum())
        return float(total / wrong[0].size)

    @property
    def chance_error(self) -> float:
        """Error of always predicting the most frequent class."""
        return float(1 - np.bincount(self.codes).max() / len(self.codes))

    @property
    def columns(self) -> IntArray:
        """Columns of X that the model takes, ascending."""
        return np.sort(self.features.columns)

    @property
    def names(self) -> npt.NDArray[Any] | None:
        """Names of these columns, where X has names."""
        if self.features.names is None:
            return None
        return np.asarray(self.features.names[np.argsort(self.features.columns)])

    @property
    def held_out(self) -> Evaluation:
        """Held-out predictions of the chosen size, as means over the repetitions."""
        probabilities = self.probabilities[self._place].mean(axis=0)
        n_folds = int(self.fold.max()) + 1
        return Evaluation(self.classes, self.codes, probabilities, n_folds, self.groups)

    def to_frame(self) -> Any:
        """The features of the panel as a pandas table, the strongest first."""
        return self.features.to_frame()

    def words(self) -> str:
        """What was chosen, and how sure that is."""
        i = self._place
        many = len(self.fold)
        repeats = "" if many == 1 else f", {many} times"
        return (
            f"{counted(self.size, 'feature')}: held-out error {self.error[i]:.1%} "
            f"({self.level:.0%} interval {self.low[i]:.1%} to {self.high[i]:.1%}). "
            f"The least, with {self.best}, is {self.error.min():.1%}; of always saying "
            f"the largest class {self.chance_error:.1%}. With the choice of the size "
            f"repeated in each fold: {self.error_of_choice:.1%}. "
            f"({counted(len(self.codes), 'sample')} in {self.fold.max() + 1} "
            f"folds{repeats}; features ranked in each.)"
        )

    def table(self) -> str:
        """One line per size."""
        head = f"  features    error   s.e.   {self.level:.0%} interval"
        rows = zip(
            self.sizes,
            self.error,
            self.standard_error,
            self.low,
            self.high,
            strict=True,
        )
        lines = [
            f"{'*' if m == self.size else ' '} {m:8d} {e:8.1%} {se:6.1%}"
            f"   {low:.1%} to {high:.1%}"
            for m, e, se, low, high in rows
        ]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        head = ["features", "error", "s.e.", f"{self.level:.0%} interval", "to"]
        columns = self.error, self.standard_error, self.low, self.high
        rows = [
            [f"{m}", *(f"{x:.1%}" for x in numbers)]
            for m, *numbers in zip(self.sizes, *columns, strict=True)
        ]
        table = html_table(self.words(), head, rows, marked=self._place)
        return table + self.features._repr_html_()

    def __repr__(self) -> str:
        names = listed(self.features.shown, 10, form=lambda name: str(name))
        return f"{self.words()}\n{self.table()}\nFeatures: {names}"


def _standard_errors(
    wrong: npt.NDArray[np.bool_], groups: IntArray | None
) -> FloatArray:
    shares = wrong.mean(axis=1)
    least = 1 / shares.shape[1]
    return np.array([max(standard_error(row, groups), least) for row in shares])


def _least(error: FloatArray) -> int:
    """The place of the smallest error; the first of those that tie."""
    return int(np.argmax(error <= error.min() + _TIED))


def chosen(wrong: npt.NDArray[np.bool_], groups: IntArray | None = None) -> int:
    """The place of the smallest size within one standard error of the least error.

    Parameters
    ----------
    wrong : ndarray of bool of shape (n_sizes, n_repeats, n_samples)
        Which held-out samples were wrong; sizes ascend.
    groups : ndarray of int of shape (n_samples,), optional
        The group of each sample, from 0 on.

    Examples
    --------
    >>> wrong = np.zeros((3, 1, 10), dtype=bool)
    >>> wrong[0, 0, :4], wrong[1, 0, :2], wrong[2, 0, :1] = True, True, True
    >>> chosen(wrong)  # 0.2 is within 0.1 of 0.1, and 0.4 is not
    1
    """
    error = wrong.mean(axis=(1, 2))
    best = _least(error)
    limit = error[best] + _standard_errors(wrong[[best]], groups)[0]
    return int(np.argmax(error <= limit + _TIED))
