"""The error to expect with other numbers of samples, by `evaluation.plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.ticker import NullLocator, ScalarFormatter

from ebda.evaluation import Plan
from ebda.plotting.display import (
    FIT,
    INK,
    NULL,
    QUIET,
    Display,
    legend_above,
    percent,
)
from ebda.typing import FloatArray


@dataclass(eq=False, repr=False)
class PlanningDisplay(Display):
    """Error to expect against the number of samples per class, with its interval.

    Parameters
    ----------
    n : ndarray of shape (n_sizes,)
        Samples per class, ascending.
    error, low, high : ndarray of shape (n_sizes,)
        Expected errors and the ends of their intervals.
    level : float
        Probability of the intervals.
    current : float
        Samples per class of the fits that the held-out error comes from.
    held_out : float
        That error.
    chance : float
        Error of always predicting the most frequent class.
    n_test : int, optional
        Size of the test that the intervals are for.
    promised : bool
        Whether a gain from more samples is promised.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.evaluation import Evaluation, plan_from_evaluation
    >>> from ebda.plotting import PlanningDisplay
    >>> p = np.tile([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]], (10, 1))
    >>> truth = np.tile([0, 1, 0, 0], 10)
    >>> held_out = Evaluation(np.array(["a", "b"]), truth, p, 10)
    >>> display = PlanningDisplay.from_plan(plan_from_evaluation(held_out, [20, 80]))
    >>> display.held_out, display.n
    (0.25, array([20., 80.]))
    """

    n: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    current: float
    held_out: float
    chance: float
    n_test: int | None = None
    promised: bool = True

    @classmethod
    def from_plan(cls, plan: Plan) -> PlanningDisplay:
        """From a plan.

        Parameters
        ----------
        plan : Plan
            Of :func:`ebda.evaluation.plan`.
        """
        order = plan.n.argsort()
        return cls(
            plan.n[order],
            plan.error[order],
            plan.low[order],
            plan.high[order],
            plan.level,
            plan.fitted_to,
            plan.n_errors / plan.n_samples,
            plan.chance_error,
            plan.n_test,
            plan.separated,
        )

    def plot(self, ax: Any = None) -> PlanningDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        of = "" if self.n_test is None else f", {self.n_test} new samples"
        band = f"{self.level:.0%} interval{of}"
        axes.fill_between(self.n, self.low, self.high, color=FIT, alpha=0.2, label=band)
        label = "expected" if self.promised else "expected, no gain promised"
        axes.plot(self.n, self.error, color=FIT, marker="o", ms=4, label=label)
        seen = f"held out now ({self.current:.3g} per class)"
        axes.plot(self.current, self.held_out, "D", color=INK, ms=6, label=seen)
        axes.axhline(
            self.chance, color=NULL, ls="--", lw=1.2, label="most frequent class"
        )
        axes.axvline(self.current, color=QUIET, lw=0.8, zorder=0)
        axes.set(xscale="log", xlabel="samples per class (log scale)")
        top = max(self.high.max(), self.chance, self.held_out)
        axes.set(ylim=(0, 1.05 * top), ylabel="misclassification error")
        axes.set_xticks(self.n[:: max(1, len(self.n) // 6)])
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        percent(axes.yaxis)
        legend_above(axes)
        return self
