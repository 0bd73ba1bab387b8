"""Labels of points that do not overlap.

Labels are placed when the figure is drawn, because sizes are known only then. So they
stay apart after any change of size, layout, resolution or limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from ebda.plotting.display import INK, QUIET, SMALL, plain
from ebda.typing import FloatArray

# Distances of a label from its point that are tried, in points, and the number of
# directions.
_DISTANCES = (6.0, 12.0, 20.0, 30.0, 42.0, 56.0, 72.0)
_DIRECTIONS = 16
# From this distance on a line leads to the point.
_LEADER = 11.0
_NEAR = 2.0  # points: about half a marker
_GAP = 2.5  # points between labels
# Covering a data point costs as much as this distance, in points.
_COST_OF_COVER = 9.0

# Share of a label's size that lies to the left of or below the end of its line.
_BEFORE = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}

Box = tuple[float, float, float, float]


def label_points(
    ax: Any, x: FloatArray, y: FloatArray, names: Sequence[Any], others: FloatArray
) -> list[Any]:
    """Label points in the order of their names; those without room are left out.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    x, y : ndarray of shape (n_labels,)
        Positions of the points.
    names : sequence
        Names of the points.
    others : ndarray of shape (n, 2)
        Further points that labels should avoid to cover.

    Returns
    -------
    list of Annotation
        In the order of the names.
    """
    annotations = [
        ax.annotate(
            plain(name, longest=24),
            (x[i], y[i]),
            xytext=(0, _DISTANCES[0]),
            textcoords="offset points",
            fontsize=SMALL,
            color=INK,
            zorder=6,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            arrowprops={
                "arrowstyle": "-",
                "color": QUIET,
                "lw": 0.6,
                "shrinkA": 0,
                "shrinkB": 2,
            },
        )
        for i, name in enumerate(names)
    ]
    for annotation in annotations:
        annotation.set_in_layout(False)
    if annotations:
        ax.add_artist(_Placer(annotations, others))
    return annotations


class _Placer(Artist):
    """An invisible artist that moves the labels just before they are drawn."""

    def __init__(self, annotations: list[Any], others: FloatArray) -> None:
        super().__init__()
        self.annotations = annotations
        self.others = others
        self.set_zorder(-1)
        self.set_in_layout(False)

    def draw(self, renderer: Any) -> None:
        """Find a place for each label in turn."""
        axes: Any = self.axes
        inside = _box(axes.bbox)
        legend = axes.get_legend()
        taken = [] if legend is None else [_box(legend.get_window_extent(renderer))]
        pixels = renderer.points_to_pixels(1.0)
        data = axes.transData.transform(self.others)
        at = axes.transData.transform([note.xy for note in self.annotations])
        lines: list[FloatArray] = []
        for note, point in zip(self.annotations, at, strict=True):
            size = _size(note, renderer)
            best = _place(point, size, pixels, inside, taken, lines, data)
            if best is None:
                _set(note, "visible", False)
                continue
            offset, box = best
            _set(note, "visible", True)
            _set(note, "horizontalalignment", _across(offset))
            _set(note, "verticalalignment", _upright(offset))
            if tuple(note.xyann) != tuple(offset):
                note.xyann = tuple(offset)
            _set(note.arrow_patch, "visible", bool(np.hypot(*offset) >= _LEADER))
            taken.append(box)
            lines.append(_segment(point, offset * pixels))


def _size(note: Any, renderer: Any) -> FloatArray:
    """Width and height of a label, hidden or not, in pixels."""
    # Hidden text has no size; this copy is measured instead and never drawn.
    text = Text(0, 0, note.get_text(), fontproperties=note.get_fontproperties())
    text.set_figure(note.figure)
    extent = text.get_window_extent(renderer)
    return np.array([extent.width, extent.height])


def _set(artist: Any, name: str, value: Any) -> None:
    """Set a property only if it changes, so that the figure does not become stale."""
    if getattr(artist, f"get_{name}")() != value:
        getattr(artist, f"set_{name}")(value)


def _box(bbox: Any) -> Box:
    return bbox.x0, bbox.y0, bbox.x1, bbox.y1


def _segment(point: FloatArray, offset: FloatArray) -> FloatArray:
    steps: FloatArray = point + np.linspace(0.1, 1, 10)[:, None] * offset
    return steps


def _across(offset: FloatArray) -> str:
    """Horizontal alignment of a label at this offset from its point."""
    slope = offset[0] / np.hypot(*offset)
    return "left" if slope > 0.1 else "right" if slope < -0.1 else "center"


def _upright(offset: FloatArray) -> str:
    """Vertical alignment of a label at this offset from its point."""
    slope = offset[1] / np.hypot(*offset)
    return "bottom" if slope > 0.5 else "top" if slope < -0.5 else "center"


def _cross(a: FloatArray, b: FloatArray) -> bool:
    """Whether the lines from the first to the last of these points cross."""
    (p, q), (r, s) = a[[0, -1]], b[[0, -1]]

    def turn(u: FloatArray, v: FloatArray, w: FloatArray) -> bool:
        side = (v[0] - u[0]) * (w[1] - u[1]) - (v[1] - u[1]) * (w[0] - u[0])
        return bool(side > 0)

    apart = turn(p, r, s) == turn(q, r, s) or turn(p, q, r) == turn(p, q, s)
    return not apart


def _overlap(a: Box, b: Box, gap: float) -> bool:
    apart = a[2] + gap <= b[0] or b[2] + gap <= a[0]
    return not (apart or a[3] + gap <= b[1] or b[3] + gap <= a[1])


def _inside(points: FloatArray, box: Box, near: float = 0.0) -> int:
    """How many points lie in a box or within a distance of it."""
    x, y = points.T
    hit = (x >= box[0] - near) & (x <= box[2] + near)
    hit &= (y >= box[1] - near) & (y <= box[3] + near)
    return int(np.count_nonzero(hit))


def _place(
    point: FloatArray,
    size: FloatArray,
    pixels: float,
    inside: Box,
    taken: list[Box],
    lines: list[FloatArray],
    data: FloatArray,
) -> tuple[FloatArray, Box] | None:
    """The best free place of one label: its offset in points, and its box."""
    best, cost = None, np.inf
    for distance in _DISTANCES:
        if distance >= cost:
            break
        for turn in np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS):
            offset = distance * np.array([np.cos(turn), np.sin(turn)])
            left, low = point + offset * pixels
            left -= size[0] * _BEFORE[_across(offset)]
            low -= size[1] * _BEFORE[_upright(offset)]
            box = (left, low, left + size[0], low + size[1])
            within = box[0] >= inside[0] and box[1] >= inside[1]
            if not (within and box[2] <= inside[2] and box[3] <= inside[3]):
                continue
            if any(_overlap(box, other, _GAP * pixels) for other in taken):
                continue
            leader = _segment(point, offset * pixels)
            if any(_inside(line, box) for line in lines):
                continue
            if any(_inside(leader, other) for other in taken):
                continue
            if any(_cross(leader, line) for line in lines):
                continue
            price = distance + _COST_OF_COVER * _inside(data, box, _NEAR * pixels)
            if price < cost:
                best, cost = (offset, box), price
    return best
