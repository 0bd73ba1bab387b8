"""What every display does: take the axes that are given, or make some."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Bbox, TransformedBbox
from sklearn.utils.validation import check_is_fitted

from ebda.plotting.style import SMALL

_ENTRY = 120.0  # points: a legend's entry of usual length


class Display:
    """Arrays that are stored, and drawn when asked for.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last; there are none before the first `plot`.
    """

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> Any:
        """The given axes, or those of a new figure of this size in inches."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=size, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def strip_above(ax: Any, height: float, gap: float = 0.0) -> Any:
    """Small axes above the given ones, as wide as these; a title stays above both.

    Parameters
    ----------
    ax : matplotlib axes
        The axes below.
    height, gap : float
        Of the strip, and between it and the axes, in points: what it holds is as
        large in a small panel as in a large one.
    """
    strip = ax.inset_axes([0, 1, 1, 0.1])

    def locate(_: Any, renderer: Any) -> Any:
        box, point = ax.bbox, ax.figure.dpi / 72
        pixels = Bbox.from_bounds(
            box.x0, box.y1 + gap * point, box.width, height * point
        )
        return TransformedBbox(pixels, ax.figure.transSubfigure.inverted())

    strip.set_axes_locator(locate)
    strip.set_navigate(False)
    strip.tick_params(labelsize=SMALL)
    strip.spines[["top", "right"]].set_visible(False)
    return strip


def legend_above(ax: Any) -> None:
    """A legend above the axes, where it covers nothing; a title stays above it."""
    handles, labels = ax.get_legend_handles_labels()
    width = ax.bbox.width / ax.figure.dpi * 72
    columns = int(np.clip(width // _ENTRY, 1, len(labels)))
    lines = -(-len(labels) // columns)
    # The strip only keeps the room: the legend is that of the axes.
    strip_above(ax, 1.4 * SMALL * lines + 4).set_axis_off()
    ax.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
        borderaxespad=0.2,
        borderpad=0.1,
        labelspacing=0.2,
        columnspacing=1.2,
    )


def percent(axis: Any) -> None:
    """Write the shares along an axis as percentages, few enough to stand apart."""
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g}%"))


def check_has(model: Any, *attributes: str) -> None:
    """Refuse a model that is not fitted, or that is of a kind without these."""
    check_is_fitted(model)
    lacking = [name for name in attributes if not hasattr(model, name)]
    if lacking:
        raise TypeError(
            f"{type(model).__name__} has no {' and no '.join(lacking)}: this picture "
            "is of a fitted EBClassifier"
        )
