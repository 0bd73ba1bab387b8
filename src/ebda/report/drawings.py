"""Drawings that need no script, as SVG: error, weights, calibration.

Sizes are in pixels. A drawing whose text must stay readable on a phone is made for the
width that it is shown at, and colours come from the style sheet by class.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binomtest

from ebda.evaluation import Evaluation
from ebda.report.markup import Markup, tag
from ebda.report.numbers import count, percent
from ebda.report.scored import Scored
from ebda.typing import FloatArray

# Colours there are for classes; more classes use them again.
N_COLOURS = 7
# Samples that a point of the calibration stands for, and points at most.
_IN_BIN = 8
_BINS = 8


def svg(width: float, height: float, label: str, *children: object) -> Markup:
    """A drawing with a text alternative."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        role="img",
        aria_label=label,
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A line from one point to another."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return tag("line", class_=class_, **{k: f"{v:.1f}" for k, v in ends.items()})


def label(x: float, y: float, words: str, class_: str = "tick", at: str = "") -> Markup:
    """Text; `at` is "middle" or "end" where it does not start at x."""
    return tag(
        "text", words, x=f"{x:.1f}", y=f"{y:.1f}", class_=class_, text_anchor=at or None
    )


def bar(share: float) -> Markup:
    """A bar as wide as a share of its cell; the number stands beside it."""
    return tag(
        "svg",
        tag("rect", class_="track", width="100", height="8"),
        tag("rect", class_="share", width=f"{100 * share:.1f}", height="8"),
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
    left, pad = 8.0, 26.0

    def at(value: float) -> float:
        return left + value / right * (width - left - pad)

    step = _step(right)
    ticks = np.arange(0, right + 1e-9, step)
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
        tag(
            "rect",
            class_="interval",
            x=f"{at(low):.1f}",
            y="34",
            width=f"{at(high) - at(low):.1f}",
            height="12",
            rx="6",
        ),
        tag("circle", class_="estimate", cx=f"{at(error):.1f}", cy="40", r="6"),
    )


def _step(length: float, most: int = 5) -> float:
    """A round distance between ticks."""
    rough = length / most
    power = 10.0 ** np.floor(np.log10(rough))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= rough))


def calibration_points(scored: Scored) -> list[tuple[float, float, float, float, int]]:
    """Mean probability, share that came true with its interval, and number, by bin.

    For two classes the probability of the second; for more, that of the class which
    was named. Bins hold equal numbers of samples.
    """
    assert scored.codes is not None
    p = scored.probabilities
    if p.shape[1] == 2:
        stated, true = p[:, 1], scored.codes == 1
    else:
        stated, true = p.max(axis=1), scored.predicted == scored.codes
    order = np.argsort(stated, kind="stable")
    bins = int(np.clip(len(order) // _IN_BIN, 1, _BINS))
    points = []
    for part in np.array_split(order, bins):
        n, k = len(part), int(true[part].sum())
        ci = binomtest(k, n).proportion_ci(0.95, method="wilson")
        low, high = float(ci.low), float(ci.high)
        points.append((float(stated[part].mean()), k / n, low, high, n))
    return points


def calibration(scored: Scored, what: str) -> Markup:
    """Stated probability against the share that came true."""
    width, height, left, bottom, top, right = 330, 294, 46, 48, 10, 24
    points = calibration_points(scored)

    def x(v: float) -> float:
        return left + v * (width - left - right)

    def y(v: float) -> float:
        return top + (1 - v) * (height - top - bottom)

    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    parts: list[Markup] = [line(x(t), y(0), x(t), y(1), "grid") for t in ticks]
    parts += [line(x(0), y(t), x(1), y(t), "grid") for t in ticks]
    parts += [label(x(t), y(0) + 17, percent(t), at="middle") for t in ticks]
    parts += [label(x(0) - 6, y(t) + 4, percent(t), at="end") for t in ticks]
    parts.append(line(x(0), y(0), x(1), y(1), "diagonal"))
    for stated, share, low, high, n in points:
        parts.append(line(x(stated), y(low), x(stated), y(high), "whisker"))
        words = f"stated {percent(stated)}, true for {percent(share)} of {count(n)}"
        mark = {"cx": f"{x(stated):.1f}", "cy": f"{y(share):.1f}", "r": "4.5"}
        parts.append(tag("circle", tag("title", words), class_="estimate", **mark))
    parts.append(
        label((x(0) + x(1)) / 2, height - 8, f"stated probability {what}", at="middle")
    )
    told = "; ".join(
        f"stated {percent(stated)}, came true for {percent(share)} of {n}"
        for stated, share, _, _, n in points
    )
    return svg(width, height, f"Calibration. {told}.", *parts)


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
