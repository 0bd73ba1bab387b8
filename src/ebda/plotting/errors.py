"""Errors of several methods: with intervals, or over repetitions as box plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from ebda.evaluation import Evaluation
from ebda.plotting.display import (
    DATA,
    FIT,
    INK,
    NULL,
    SMALL,
    Display,
    legend_above,
    percent,
    plain,
)
from ebda.typing import FloatArray


@dataclass(eq=False, repr=False)
class ErrorByMethodDisplay(Display):
    """A point with its interval for each method.

    Parameters
    ----------
    methods : sequence of str
        Names, in the order in which they are drawn.
    errors, low, high : ndarray of shape (n_methods,)
        Misclassification errors, and the ends of their intervals.
    level : float
        Level of the intervals.
    chance : float, optional
        Error of always predicting the most frequent class.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.evaluation import Evaluation
    >>> from ebda.plotting import ErrorByMethodDisplay
    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> evaluation = Evaluation(np.array(["a", "b"]), np.array([0, 0, 1, 1]), p, 2)
    >>> display = ErrorByMethodDisplay.from_evaluations({"ours": evaluation})
    >>> display.errors, display.chance
    (array([0.25]), 0.5)
    """

    methods: Sequence[str]
    errors: FloatArray
    low: FloatArray
    high: FloatArray
    level: float = 0.95
    chance: float | None = None

    @classmethod
    def from_evaluations(
        cls, evaluations: Mapping[str, Evaluation], level: float = 0.95
    ) -> ErrorByMethodDisplay:
        """From held-out predictions, in the order of the methods.

        Intervals are those of :meth:`ebda.evaluation.Evaluation.interval`, for each
        method alone. The difference between two
        methods on the same samples is known more precisely than they suggest.

        Parameters
        ----------
        evaluations : mapping of str to Evaluation
            Held-out predictions of each method.
        level : float
            Level of the intervals.
        """
        if not evaluations:
            raise ValueError("no evaluation was given; there is nothing to compare")
        found = list(evaluations.values())
        ends = np.array([e.interval(level) for e in found])
        chances = {e.chance_error for e in found}
        return cls(
            list(evaluations),
            np.array([e.error for e in found]),
            ends[:, 0],
            ends[:, 1],
            level,
            chances.pop() if len(chances) == 1 else None,
        )

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        data_set: str | None = None,
        level: float = 0.95,
    ) -> ErrorByMethodDisplay:
        """From a table of results, such as the rows of ``accuracy.csv``.

        Intervals are normal, from the standard error over repeated cross-validations:
        they say how well the error is known for these samples, not for others.

        Parameters
        ----------
        records : iterable of mappings
            Each with "method", "error" and "se", and "set" where there are several.
            Numbers may be text, as ``csv.DictReader`` returns them.
        data_set : str, optional
            Use only the records of this "set".
        level : float
            Level of the intervals.
        """
        rows = list(records)
        sets = sorted({str(row["set"]) for row in rows if "set" in row})
        if data_set is not None:
            rows = [row for row in rows if row.get("set") == data_set]
        elif len(sets) > 1:
            raise ValueError(f"the records are of {len(sets)} sets: choose a data_set")
        if not rows:
            raise ValueError(
                f"no record of the set {data_set!r}; there are {', '.join(sets)}"
                if sets
                else "no records were given; there is nothing to compare"
            )
        errors = np.array([float(row["error"]) for row in rows])
        half = norm.ppf((1 + level) / 2) * np.array([float(row["se"]) for row in rows])
        return cls(
            [str(row["method"]) for row in rows],
            errors,
            np.maximum(errors - half, 0.0),
            np.minimum(errors + half, 1.0),
            level,
        )

    def plot(self, ax: Any = None, *, by_error: bool = False) -> ErrorByMethodDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        by_error : bool
            Sort the methods by their error, the smallest first, instead of keeping
            their order.
        """
        k = len(self.methods)
        axes = self._axes(ax, (6.8, 1.4 + 0.42 * k))
        order = np.argsort(self.errors, kind="stable") if by_error else np.arange(k)
        places = np.arange(k)[::-1]
        errors, low, high = self.errors[order], self.low[order], self.high[order]
        arms = np.maximum([errors - low, high - errors], 0.0)
        what = f"error with {self.level:.0%} interval"
        axes.errorbar(
            errors, places, xerr=arms, fmt="o", color=FIT, ms=6, capsize=3, label=what
        )
        if self.chance is not None:
            what = "most frequent class"
            axes.axvline(self.chance, color=NULL, ls="--", lw=1.2, label=what)
        style = {"va": "center", "fontsize": SMALL, "color": INK}
        for error, end, place in zip(errors, high, places, strict=True):
            axes.text(end, place, f"  {error:.1%}", **style)
        most = max(high.max(), self.chance or 0.0)
        axes.set_yticks(places, [plain(self.methods[i]) for i in order])
        axes.set(xlim=(0, 1.15 * most or 1.0), ylim=(-0.6, k - 0.4))
        axes.set_xlabel("misclassification error")
        percent(axes.xaxis)
        axes.grid(axis="x", color="#e5e7eb", lw=0.6)
        axes.set_axisbelow(True)
        legend_above(axes)
        return self


class ErrorDisplay(Display):
    """A box plot of the errors of each method, with every repetition as a point.

    Parameters
    ----------
    errors : mapping of str to sequence of float
        Errors of each method, in the order in which they are drawn.

    Examples
    --------
    >>> from ebda.plotting import ErrorByMethodDisplay, ErrorDisplay
    >>> list(ErrorDisplay({"DP": [0.1, 0.2], "IR": [0.3, 0.4]}).errors)
    ['DP', 'IR']
    """

    def __init__(self, errors: Mapping[str, Sequence[float]]) -> None:
        self.errors = {name: np.asarray(values) for name, values in errors.items()}

    def plot(self, ax: Any = None) -> ErrorDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        rng = np.random.default_rng(0)  # only moves points apart
        for place, values in enumerate(self.errors.values(), start=1):
            x = place + rng.uniform(-0.15, 0.15, len(values))
            axes.plot(x, values, "o", ms=3, color=FIT, alpha=0.4, mew=0)
        axes.boxplot(
            list(self.errors.values()),
            tick_labels=[plain(name) for name in self.errors],
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": DATA, "alpha": 0.6},
            medianprops={"color": "black"},
        )
        axes.set(ylabel="misclassification error", ylim=(0, None))
        return self
