"""What all displays share: axes, legends, colours, and names of classes and contrasts.

The colours of classes and other series are those of :mod:`ebda.palette`. As several
have the same grey, a marker or a line style always goes with them.

Two classes have one contrast, the second against the first. More than two have one
each, against the mean of all samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Bbox, TransformedBbox
from sklearn.utils.validation import check_is_fitted

from ebda.palette import COLOURS, colour

DATA = "#c9ced6"
FIT, NULL = COLOURS[:2]
QUIET, INK = "#6b7280", "#1f2328"

# Eleven, so that colour and marker together repeat only after 110 series.
_MARKERS = ("o", "^", "s", "D", "v", "P", "<", ">", "p", "X", "h")
_LINES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (1, 2.5)),
)
SMALL = 8.5  # points: notes and labels, still readable when printed at two thirds
_ENTRY = 120.0  # points: least length of a legend entry
# Usual width of a letter in a legend, and room for the line or marker before it, in
# points.
_LETTER, _HANDLE = 0.56 * SMALL, 36.0


class Display:
    """Arrays that are stored, and drawn when asked.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`; missing before the first one.
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
        Height of the strip, and its distance from the axes, in points: its content has
        the same size in a small panel as in a large one.
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
    entry = max(_ENTRY, _LETTER * max(map(len, labels)) + _HANDLE)
    columns = int(np.clip(width // entry, 1, len(labels)))
    lines = -(-len(labels) // columns)
    # The strip only reserves the space: the legend belongs to the axes.
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
    """Label an axis of shares with percentages, few enough not to overlap."""
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g}%"))


def check_has(model: Any, *attributes: str) -> None:
    """Raise an error for a model that is not fitted or lacks these attributes."""
    check_is_fitted(model)
    missing = [name for name in attributes if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"{type(model).__name__} has no {' and no '.join(missing)}: this plot is "
            "of a fitted EBClassifier"
        )


def is_of_means(model: Any) -> bool:
    """Whether a model is of estimates, as `NormalMeans` is, and not of samples."""
    return hasattr(model, "posterior_") and not hasattr(model, "classes_")


class Look(NamedTuple):
    """Colour, marker and line style of one of several series."""

    colour: str
    marker: str
    line: Any


def look(place: int) -> Look:
    """The look of the series at this place in a list.

    The numbers of colours, markers and line styles differ, so that series with the same
    colour, from the eleventh on, differ in the rest.

    >>> look(0).colour == look(10).colour, look(0).marker == look(10).marker
    (True, False)
    """
    return Look(
        colour(place),
        _MARKERS[place % len(_MARKERS)],
        _LINES[place % len(_LINES)],
    )


def plain(name: Any, longest: int = 40) -> str:
    r"""A name from the data as text that matplotlib shows unchanged.

    Dollar signs would start a formula, and a leading underscore would hide a legend
    entry.

    >>> plain("cost in $, or $\\alpha$")
    'cost in \\$, or \\$\\alpha\\$'
    >>> plain("protein tyrosine phosphatase", longest=12)
    'protein tyr…'
    """
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = text[: longest - 1].rstrip(" ,;(") + "…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def checked_names(names: npt.ArrayLike, size: int, what: str) -> npt.NDArray[Any]:
    """Names as an array, if each of the features or samples has one."""
    given = np.asarray(names)
    if given.shape != (size,):
        raise ValueError(
            f"names has shape {given.shape}; there are {size} {what}, and each needs "
            "one name"
        )
    return given


def class_place(classes: npt.NDArray[Any], label: Any) -> int:
    """The index of a label among the classes.

    >>> import numpy as np
    >>> class_place(np.array(["ALL", "AML"]), "AML")
    1
    """
    known: list[Any] = classes.tolist()
    if label not in known:
        raise ValueError(
            f"contrast must be one of the classes, {', '.join(map(repr, known))}; got "
            f"{label!r}"
        )
    return known.index(label)


def shown_class(classes: npt.NDArray[Any], contrast: Any) -> int | None:
    """The index of the class whose predictions are shown; None for each one's own."""
    if contrast is None:
        return 1 if len(classes) == 2 else None
    return class_place(classes, contrast)


def contrast_row(classes: npt.NDArray[Any], contrast: Any) -> int | None:
    """The row of ``z_`` for a contrast; None stands for all rows.

    >>> import numpy as np
    >>> contrast_row(np.array(["BL", "EWS", "NB"]), "EWS")
    1
    >>> contrast_row(np.array(["ALL", "AML"]), None)
    0
    """
    two = len(classes) == 2
    if contrast is None:
        return 0 if two else None
    place = class_place(classes, contrast)
    if two and place == 0:
        first, second = classes.tolist()
        raise ValueError(
            f"the only contrast of two classes is {second!r} against {first!r}: "
            f"contrast must be {second!r}, or left out"
        )
    return 0 if two else place


def contrast_name(classes: npt.NDArray[Any], row: int | None) -> str:
    """What a row of ``z_`` compares, in words.

    >>> import numpy as np
    >>> contrast_name(np.array(["ALL", "AML"]), 0)
    'AML against ALL'
    >>> contrast_name(np.array(["BL", "EWS", "NB"]), 1)
    'EWS against all'
    """
    if row is None:
        return "each class against all"
    if len(classes) == 2:
        return f"{plain(classes[1])} against {plain(classes[0])}"
    return f"{plain(classes[row])} against all"
