"""The samples as dots by class and score, with the boundary and some names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from ebda.report.case import Scored
from ebda.report.drawings import N_COLOURS, cut, histogram_places, label, line, svg
from ebda.report.markup import Markup, join, tag
from ebda.report.words import MINUS, NBSP, percent
from ebda.typing import FloatArray, IntArray

# Samples drawn per class: enough to show its shape.
MOST = 400
# The axis covers at least the first and at most the second of these log-odds; dots
# beyond lie at its edge. Where the second covers less than the first share of the
# samples, the axis extends to the second share.
_REACH = (4.0, 16.0)
_USUAL = (0.75, 0.95)
_DECADE = float(np.log(10))
# Powers of ten between ticks.
_STEPS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)
_SUPERSCRIPT = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
# Names written beside their dots.
_NAMED = 8
_RADIUS = 3.6
# Pixels beside and above the lanes.
_PAD, _TOP = 14.0, 6.0
# Height of a line of a title, and of the lanes of one sheet: they fit on a page of A4,
# with their axis and caption.
_LINE, _SHEET = 16.0, 760.0
# How far dots may lie from the middle of their lane.
_ROOM = 52.0
# Left, upper, right, lower.
Box = tuple[float, float, float, float]


def thinned(scored: Scored) -> IntArray:
    """Samples to draw: the doubtful ones, and evenly spaced ones of each class."""
    keep = np.zeros(len(scored), dtype=bool)
    score, lane = scored.score, scored.lane
    for k in np.unique(lane):
        member = np.flatnonzero(lane == k)
        by_score = member[np.argsort(score[member], kind="stable")]
        evenly = np.linspace(0, len(by_score) - 1, min(MOST, len(by_score)))
        keep[by_score[np.round(evenly).astype(np.intp)]] = True
    keep[scored.doubtful[:MOST]] = True
    return np.flatnonzero(keep)


@dataclass(frozen=True)
class Axis:
    """Log-odds to pixels; what lies beyond the ends is put there.

    Parameters
    ----------
    low, high : float
        Log-odds at the edges.
    width : int
        Width of the drawing.
    """

    low: float
    high: float
    width: int

    @classmethod
    def of(cls, score: FloatArray, two: bool, width: int) -> Axis:
        """For these scores; the boundary is in the middle for two classes."""
        size = np.abs(score)
        usual, nearly_all = np.quantile(size, _USUAL, method="lower")
        most = nearly_all if usual > _REACH[1] else _REACH[1]
        high = 1.06 * float(np.clip(size.max(), _REACH[0], most))
        if two:
            return cls(-high, high, width)
        # Nearly all lie on the right side of the boundary.
        return cls(max(-high, min(float(score.min()), 0.0) - 1.5), high, width)

    def at(self, score: FloatArray) -> FloatArray:
        """Places in the drawing."""
        ends = [_PAD, self.width - _PAD]
        return np.asarray(np.interp(score, [self.low, self.high], ends))


@dataclass(frozen=True, eq=False)
class Lane:
    """The dots of a class.

    Parameters
    ----------
    samples : ndarray of int
        The samples.
    x, y : ndarray
        Where they are drawn.
    top, middle : float
        Position of the lane.
    """

    samples: IntArray
    x: FloatArray
    y: FloatArray
    top: float
    middle: float


def arrange(
    scored: Scored, which: Sequence[int], axis: Axis, titles: Sequence[list[str]]
) -> tuple[list[Lane], float]:
    """A lane for each of these classes, and the lower edge.

    A lane is as high as its tallest pile and the lines of its title need.
    """
    drawn = thinned(scored)
    members = [drawn[scored.lane[drawn] == k] for k in which]
    across = [axis.at(scored.score[member]) for member in members]
    heaps = [histogram_places(x, 2 * _RADIUS) for x in across]
    tallest = np.array([float(np.abs(heap).max(initial=0)) for heap in heaps])
    gap = min(2 * _RADIUS, _ROOM / max(tallest.max(), 1.0))
    above = np.array([_LINE * (len(lines) - 1) for lines in titles])
    heights = 2 * np.maximum(gap * tallest, _RADIUS) + 48 + above
    edges = _TOP + np.concatenate([[0.0], np.cumsum(heights)])
    found = []
    for k, (member, x, heap) in enumerate(zip(members, across, heaps, strict=True)):
        middle = float(edges[k] + 10 + (heights[k] + above[k]) / 2)
        found.append(Lane(member, x, middle + gap * heap, float(edges[k]), middle))
    return found, float(edges[-1])


def lanes(scored: Scored, classes: list[str], width: int) -> Markup:
    """The samples as dots, in one lane per class.

    Many classes are on several sheets with an axis each, none of them higher than a
    page.

    Parameters
    ----------
    scored : Scored
        The samples.
    classes : list of str
        Labels of the classes.
    width : int
        Width in pixels.
    """
    axis = Axis.of(scored.score, len(classes) == 2, width)
    every = range(len(classes))
    titles = [_lines(title, width) for title in classes]
    found, bottom = arrange(scored, every, axis, titles)
    height = (bottom - _TOP) / np.ceil((bottom - _TOP) / _SHEET)
    tops = np.array([lane.top for lane in found]) - _TOP
    sheet = np.floor(tops / height).astype(np.intp)
    return join(
        _sheet(scored, classes, np.flatnonzero(sheet == s).tolist(), axis)
        for s in np.unique(sheet)
    )


def _lines(title: str, width: int) -> list[str]:
    """A title in at most two lines."""
    letters = int(width - 2 * _PAD) // 8
    return wrap(title, letters, max_lines=2, placeholder="…") or [title]


def _sheet(
    scored: Scored, classes: list[str], which: Sequence[int], axis: Axis
) -> Markup:
    """The lanes of some of the classes, above their axis."""
    two, width = len(classes) == 2, axis.width
    titles = [_lines(classes[k], width) for k in which]
    found, bottom = arrange(scored, which, axis, titles)
    boundary = float(axis.at(np.zeros(1))[0])
    parts: list[Markup] = []
    for score, words in _ticks(axis, two):
        at = float(axis.at(np.array([score]))[0])
        parts.append(line(at, _TOP, at, bottom, "grid"))
        parts.append(label(at, bottom + 17, words, at="middle"))
    for k, lane in zip(which, found, strict=True):
        parts.append(line(_PAD, lane.middle, width - _PAD, lane.middle, "lane"))
        parts += [
            _dot(scored, classes, int(i), k, x, y)
            for i, x, y in zip(lane.samples, lane.x, lane.y, strict=True)
        ]
    parts.append(line(boundary, _TOP, boundary, bottom, "boundary"))
    # Above the boundary, which a long title may cross.
    for lane, lines in zip(found, titles, strict=True):
        parts += [
            label(_PAD, lane.top + 14 + _LINE * i, words, "lane-name")
            for i, words in enumerate(lines)
        ]
    what = f"odds of the {scored.lane_is} class against the most probable other"
    if two:
        what = f"probability of {cut(classes[1], width // 8 - 16)}"
    parts.append(label(width / 2, bottom + 38, what, at="middle"))
    boxes = [(boundary - 3, _TOP, boundary + 3, bottom)]
    boxes += [_box(lane, lines) for lane, lines in zip(found, titles, strict=True)]
    parts += _names(scored, found, boxes, width)
    shown = np.isin(scored.lane, which)
    wrong = int(np.count_nonzero((scored.predicted != scored.lane) & shown))
    told = (
        f"{np.count_nonzero(shown)} samples by class and score; {wrong} on the wrong "
        "side of the boundary. Doubtful samples are listed below."
    )
    return svg(width, bottom + 46, told, *parts)


def _ticks(axis: Axis, two: bool) -> list[tuple[float, str]]:
    """Positions and labels of the ticks, as many as there is room for."""
    room = max(1, axis.width // 74)
    decades = np.arange(np.ceil(axis.low / _DECADE), axis.high // _DECADE + 1)
    step = next(s for s in _STEPS if len(decades) <= room * s)
    return [_tick(int(d), two) for d in decades if d % step == 0]


def _tick(decade: int, two: bool) -> tuple[float, str]:
    """Position of a power of ten of the odds, and its label."""
    size = abs(decade)
    power = f"10{str(-size if two else size).translate(_SUPERSCRIPT)}"
    if not two:
        odds = f"{10**size:,}" if size <= 6 else power
        return decade * _DECADE, f"{odds}:1" if decade >= 0 else f"1:{odds}"
    p = 10.0**-size if size else 0.5
    score = float(np.log1p(-p) - np.log(p))
    if size > 5:
        return (score, f"1{MINUS}{power}") if decade > 0 else (-score, power)
    share = 100 - 100 * p if decade > 0 else 100 * p
    return score if decade > 0 else -score, f"{share:.6g}{NBSP}%"


def _dot(
    scored: Scored, classes: list[str], i: int, lane: int, x: float, y: float
) -> Markup:
    who = "" if scored.names is None else f"{cut(scored.names[i], 60)}: "
    p = scored.probabilities[i]
    best = int(p.argmax())
    words = f"{who}{percent(float(p[best]))} {classes[best]}"
    colour = f"dot c{lane % N_COLOURS}"
    if best != lane:
        words += f", truly {classes[lane]}"
        colour += " wrong"
    return tag("circle", tag("title", words), class_=colour, cx=x, cy=y, r=_RADIUS)


def _box(lane: Lane, lines: list[str]) -> Box:
    """Where the title of a lane is written."""
    wide = 8 * max(map(len, lines))
    return _PAD, lane.top, _PAD + wide, lane.top + 18 + _LINE * (len(lines) - 1)


def _names(
    scored: Scored, found: list[Lane], taken: list[Box], width: int
) -> list[Markup]:
    """Names of the worst samples, where they cover neither a dot nor what is there."""
    if scored.names is None:
        return []
    boxes = list(taken)
    spots: dict[int, tuple[float, float]] = {}
    for lane in found:
        for i, x, y in zip(lane.samples, lane.x, lane.y, strict=True):
            boxes.append((x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS))
            spots[int(i)] = (float(x), float(y))
    written = [
        _written(cut(scored.names[i]), *spots[int(i)], width, boxes)
        for i in scored.doubtful[:_NAMED]
        if int(i) in spots
    ]
    return [name for name in written if name is not None]


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _written(
    name: str, cx: float, cy: float, width: int, boxes: list[Box]
) -> Markup | None:
    """A name beside its dot, where it covers nothing; else None."""
    wide, high = 6.4 * len(name) + 4, 13.0
    for dx, dy in ((8, 4), (-wide - 6, 4), (-wide / 2, -15), (-wide / 2, 23)):
        box = (cx + dx, cy + dy - high + 3, cx + dx + wide, cy + dy + 3)
        if box[0] < 2 or box[2] > width - 2 or any(_meet(box, b) for b in boxes):
            continue
        boxes.append(box)
        written = label(box[0] + 2, cy + dy, name, "sample-name")
        if abs(dy) < high:
            return written
        # Above or below several dots: a line leads to the right one.
        end = cy + dy + 3 if dy < 0 else cy + dy - high + 3
        return join([line(cx, cy, cx, end, "leader"), written])
    return None
