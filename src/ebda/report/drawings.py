"""Drawings that need no JavaScript, as SVG: error, shares, calibration.

Sizes are in pixels. A drawing whose text must stay readable on a phone is made for the
width that it is shown at. Colours come from the style sheet, by class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.evaluation import CalibrationBins, Evaluation
from ebda.palette import COLOURS
from ebda.report.markup import Markup, tag
from ebda.report.words import count, percent
from ebda.typing import FloatArray

# Number of colours for classes; further classes use them again.
N_COLOURS = len(COLOURS)


def svg(width: float, height: float, label: str, *children: object) -> Markup:
    """A drawing with a text alternative."""
    size = {"width": f"{width:g}", "height": f"{height:g}"}
    box = f"0 0 {width:g} {height:g}"
    return tag("svg", *children, viewBox=box, **size, role="img", aria_label=label)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A line from one point to another."""
    return tag(
        "line", class_=class_, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2)
    )


def label(x: float, y: float, words: str, class_: str = "tick", at: str = "") -> Markup:
    """Text; `at` is "middle" or "end" where it does not start at x."""
    place = {"x": float(x), "y": float(y)}
    return tag("text", words, **place, class_=class_, text_anchor=at or None)


def cut(name: str, letters: int = 18) -> str:
    """A name of at most so many letters.

    >>> cut("adenocarcinoma", 9)
    'adenocar…'
    """
    return name if len(name) <= letters else name[: letters - 1] + "…"


def bar(share: float) -> Markup:
    """A bar as wide as a share of its cell; the number stands beside it."""
    return tag(
        "svg",
        tag("rect", class_="track", width="100", height="8"),
        tag("rect", class_="share", width=100 * share, height="8"),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )


def error_interval(evaluation: Evaluation, width: int) -> Markup:
    """The error with its interval on a line, and the error of chance."""
    low, high = evaluation.interval()
    error, chance = evaluation.error, evaluation.chance_error
    right = min(1.0, 1.15 * max(high, chance, 0.02))
    left, pad = 14.0, 26.0

    def at(value: float) -> float:
        return left + value / right * (width - left - pad)

    ticks = np.arange(0, right + 1e-9, _step(right))
    extent = {"width": at(high) - at(low)}
    words = (
        f"Error {percent(error)}, 95 % interval {percent(low)} to {percent(high)}; by "
        f"chance {percent(chance)}."
    )
    side = "end" if at(chance) > width * 0.6 else ""
    return svg(
        width,
        84,
        words,
        line(at(0), 52, at(right), 52, "axis"),
        *[line(at(t), 52, at(t), 56, "axis") for t in ticks],
        *[label(at(t), 70, percent(float(t)), at="middle") for t in ticks],
        line(at(chance), 16, at(chance), 52, "chance"),
        label(at(chance) - 5 if side else at(chance) + 5, 24, "chance", at=side),
        tag("rect", class_="interval", x=at(low), y=34, **extent, height=12, rx=6),
        tag("circle", class_="estimate", cx=at(error), cy=40, r=6),
    )


def _step(length: float, most: int = 5) -> float:
    """A round distance between ticks."""
    rough = length / most
    power = 10.0 ** np.floor(np.log10(rough))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= rough))


@dataclass(frozen=True)
class Square:
    """Axes from 0 to 100 % in both directions, and the diagonal."""

    width: int = 330
    height: int = 294
    left: int = 46
    bottom: int = 48
    top: int = 10
    right: int = 24

    def x(self, share: float) -> float:
        """Place of a share on the horizontal axis."""
        return self.left + share * (self.width - self.left - self.right)

    def y(self, share: float) -> float:
        """Place of a share on the vertical axis."""
        return self.top + (1 - share) * (self.height - self.top - self.bottom)

    def svg(self, told: str, title: str, *children: Markup) -> Markup:
        """The drawing, with the title of its horizontal axis.

        Parameters
        ----------
        told : str
            Its text alternative.
        title : str
            Of the horizontal axis.
        *children : Markup
            What is drawn above the grid.
        """
        x, y, ticks = self.x, self.y, (0.0, 0.25, 0.5, 0.75, 1.0)
        parts: list[Markup] = [line(x(t), y(0), x(t), y(1), "grid") for t in ticks]
        parts += [line(x(0), y(t), x(1), y(t), "grid") for t in ticks]
        parts += [label(x(t), y(0) + 17, percent(t), at="middle") for t in ticks]
        parts += [label(x(0) - 6, y(t) + 4, percent(t), at="end") for t in ticks]
        parts.append(line(x(0), y(0), x(1), y(1), "ideal"))
        parts.append(label(x(0.5), self.height - 8, title, at="middle"))
        return svg(self.width, self.height, told, *parts, *children)


def calibration(bins: CalibrationBins, event: str) -> Markup:
    """Predicted probability of an event against the share for which it occurred."""
    frame = Square()
    told: list[str] = []
    parts: list[Markup] = []
    for i, few in enumerate(bins.few_samples.tolist()):
        stated, share = float(bins.predicted[i]), float(bins.observed[i])
        at, low, high = frame.x(stated), float(bins.low[i]), float(bins.high[i])
        words = f"predicted {percent(stated)}, observed {percent(share)}"
        told.append(f"{words} of {count(bins.counts[i])}")
        parts.append(line(at, frame.y(low), at, frame.y(high), "whisker"))
        tip = tag("title", f"{words} of {count(bins.counts[i], 'sample')}")
        mark = "estimate few" if few else "estimate"
        parts.append(tag("circle", tip, class_=mark, cx=at, cy=frame.y(share), r="4.5"))
    title = f"predicted probability {cut(event, 36)}"
    return frame.svg(f"Calibration: {'; '.join(told)}.", title, *parts)


def histogram_places(score: FloatArray, bin_width: float) -> FloatArray:
    """Places of dots across their lane, so that those in a bin lie side by side.

    >>> histogram_places(np.array([0.0, 0.1, 0.05, 3.0]), 1.0)
    array([ 0., -1.,  1.,  0.])
    """
    place = np.zeros(len(score))
    bins = np.round(score / bin_width)
    for b in np.unique(bins):
        members = np.flatnonzero(bins == b)
        k = np.arange(len(members))
        place[members] = np.where(k % 2, -(k + 1) // 2, k // 2)
    return place
