"""Error against the number of features, by `evaluation.panel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from ebda.evaluation import Panel
from ebda.palette import COLOURS
from ebda.plotting.display import (
    FIT,
    INK,
    NULL,
    QUIET,
    SMALL,
    Display,
    legend_above,
    percent,
)
from ebda.typing import FloatArray, IntArray

_CHOSEN = COLOURS[2]


# Points that the label of a size takes up.
_LABEL = 28.0
# Which first digits are labelled before others.
_ROUND = {"1": 0, "2": 1, "5": 1}


@dataclass(eq=False, repr=False)
class PanelDisplay(Display):
    """Held-out error against the number of features, with the size that was chosen.

    Parameters
    ----------
    sizes : ndarray of int of shape (n_sizes,)
        Numbers of features, ascending.
    error, standard_error : ndarray of shape (n_sizes,)
        Held-out errors and their standard errors, which the bars show.
    size, best : int
        The size that was chosen, and the one with the smallest error.
    limit : float
        One standard error above the smallest error.
    chance : float
        Error of always predicting the most frequent class.

    Examples
    --------
    >>> from ebda import panel
    >>> from ebda.baselines import IndependenceRule
    >>> from ebda.datasets import make_two_class
    >>> from ebda.plotting import PanelDisplay
    >>> sim = make_two_class(
    ...     n_per_class=30, n_features=500, n_signals=5, effect=1.5, random_state=0
    ... )
    >>> found = panel(IndependenceRule(), sim.data, sim.target, [1, 2, 5, 10, 50])
    >>> PanelDisplay.from_panel(found).size
    5
    """

    sizes: IntArray
    error: FloatArray
    standard_error: FloatArray
    size: int
    best: int
    limit: float
    chance: float

    @classmethod
    def from_panel(cls, panel: Panel) -> PanelDisplay:
        """From the result of :func:`ebda.panel`.

        Parameters
        ----------
        panel : Panel
            Of :func:`ebda.panel`.
        """
        return cls(
            panel.sizes,
            panel.error,
            panel.standard_error,
            panel.size,
            panel.best,
            panel.limit,
            panel.chance_error,
        )

    def plot(self, ax: Any = None) -> PanelDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        # An error of 0 has half a bar.
        below = self.error - (self.error - self.standard_error).clip(min=0)
        axes.errorbar(
            self.sizes,
            self.error,
            yerr=[below, self.standard_error],
            color=FIT,
            fmt="o-",
            ms=4,
            lw=1.2,
            capsize=2.5,
            label="held out, with standard error",
        )
        axes.axhline(
            self.limit, color=QUIET, ls=":", lw=1.2, label="least + standard error"
        )
        axes.axhline(
            self.chance, color=NULL, ls="--", lw=1.2, label="most frequent class"
        )
        at = self.error[(self.sizes == self.size).argmax()]
        axes.axvline(self.size, color=_CHOSEN, lw=0.8, zorder=0)
        axes.plot(
            self.size,
            at,
            "D",
            color=_CHOSEN,
            ms=8,
            zorder=3,
            label=f"chosen: {self.size}",
        )
        if self.best != self.size:
            least = self.error.min()
            label = f"least error: {self.best}"
            axes.plot(
                self.best,
                least,
                "s",
                color=INK,
                ms=6,
                zorder=3,
                clip_on=False,
                label=label,
            )
        axes.set(xscale="log", xlabel="features (log scale)")
        width = axes.bbox.width / axes.figure.dpi * 72
        axes.xaxis.set_major_locator(FixedLocator(_ticks(self.sizes, width)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", labelsize=SMALL)
        top = max((self.error + self.standard_error).max(), self.chance)
        axes.set(ylim=(0, 1.05 * top), ylabel="misclassification error")
        percent(axes.yaxis)
        legend_above(axes)
        return self


def _ticks(sizes: IntArray, width: float) -> list[int]:
    """Sizes that are labelled, so far apart that their labels do not touch.

    Parameters
    ----------
    sizes : ndarray of int of shape (n_sizes,)
        Ascending; the last one is labelled in any case.
    width : float
        Of the axes, in points.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([1, 2, 3, 5, 7, 10, 50, 100, 500])
    >>> _ticks(sizes, 400), _ticks(sizes, 100)
    ([1, 2, 5, 10, 50, 100, 500], [1, 10, 500])
    """
    least = float(sizes[-1] / sizes[0]) ** min(_LABEL / width, 1.0)
    kept = [int(sizes[-1])]
    # Powers of ten first, then 2 and 5.
    for size in sorted(map(int, sizes), key=lambda m: (_ROUND.get(f"{m}"[0], 2), m)):
        if all(max(size / other, other / size) > least for other in kept):
            kept.append(size)
    return sorted(kept)


def picture(panel: Panel) -> Any:
    """The same as a figure of its own, made without a screen.

    Parameters
    ----------
    panel : Panel
        Of :func:`ebda.panel`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    PanelDisplay.from_panel(panel).plot(figure.subplots())
    return figure
