"""Labels of points that do not overlap.

Labels are placed when the figure is drawn, because sizes are known only then. So they
stay apart after any change of size, layout, resolution or limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.transforms import Bbox

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


def label_points(
    ax: Any, x: FloatArray, y: FloatArray, names: Iterable[Any], others: FloatArray
) -> list[Any]:
    """Label points in the order of their names; those without room are left out.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    x, y : ndarray of shape (n_labels,)
        Positions of the points.
    names : iterable
        Names of the points.
    others : ndarray of shape (n, 2)
        Further points that labels should avoid to cover.

    Returns
    -------
    list of Annotation
        In the order of the names.
    """
    leader = {"arrowstyle": "-", "color": QUIET, "lw": 0.6, "shrinkA": 0, "shrinkB": 2}
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
            arrowprops=leader,
            in_layout=False,
        )
        for i, name in enumerate(names)
    ]
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
        legend = axes.get_legend()
        taken = [] if legend is None else [legend.get_window_extent(renderer)]
        leaders: list[Path] = []
        pixels = renderer.points_to_pixels(1.0)
        data = axes.transData.transform(self.others)
        at = axes.transData.transform([note.xy for note in self.annotations])
        for note, point in zip(self.annotations, at, strict=True):
            best, cost = None, np.inf
            for offset, box, leader in _places(point, _size(note, renderer), pixels):
                distance = np.hypot(*offset)
                if distance >= cost:
                    break
                if axes.bbox.count_contains(box.get_points()) < 2 or _meets(
                    box, leader, taken, leaders, _GAP * pixels
                ):
                    continue
                covered = box.padded(_NEAR * pixels).count_contains(data)
                if distance + _COST_OF_COVER * covered < cost:
                    best = offset, box, leader
                    cost = distance + _COST_OF_COVER * covered
            _set(note, "visible", best is not None)
            if best is None:
                continue
            offset, box, leader = best
            across, upright = _alignment(offset)
            _set(note, "horizontalalignment", across)
            _set(note, "verticalalignment", upright)
            if tuple(note.xyann) != tuple(offset):
                note.xyann = tuple(offset)
            _set(note.arrow_patch, "visible", bool(np.hypot(*offset) >= _LEADER))
            taken.append(box)
            leaders.append(leader)


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


def _alignment(offset: FloatArray) -> tuple[str, str]:
    """Horizontal and vertical alignment of a label at this offset from its point."""
    x, y = offset / np.hypot(*offset)
    across = "left" if x > 0.1 else "right" if x < -0.1 else "center"
    return across, "bottom" if y > 0.5 else "top" if y < -0.5 else "center"


def _places(
    point: FloatArray, size: FloatArray, pixels: float
) -> Iterator[tuple[FloatArray, Bbox, Path]]:
    """Places of a label, the nearest first: offset in points, box, and leader."""
    for distance in _DISTANCES:
        for turn in np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS):
            offset = distance * np.array([np.cos(turn), np.sin(turn)])
            before = [_BEFORE[word] for word in _alignment(offset)]
            corner = point + offset * pixels - size * before
            leader = Path([point + 0.1 * offset * pixels, point + offset * pixels])
            yield offset, Bbox.from_bounds(*corner, *size), leader


def _meets(
    box: Bbox, leader: Path, taken: list[Bbox], leaders: list[Path], gap: float
) -> bool:
    """Whether a label or its leader meets others."""
    wide = box.padded(gap)
    return (
        any(wide.overlaps(other) for other in taken)
        or any(line.intersects_bbox(box, filled=False) for line in leaders)
        or any(leader.intersects_bbox(other, filled=False) for other in taken)
        or any(leader.intersects_path(line, filled=False) for line in leaders)
    )
