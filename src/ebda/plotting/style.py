"""What all pictures share: colours, markers, line styles, and names as plain text.

The colours are those of Okabe and Ito, which stay apart for colour-blind readers; as
several have the same grey, a marker or a line style always goes with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BLUE, VERMILION, GREEN = "#0072b2", "#d55e00", "#009e73"
PURPLE, ORANGE, SKY, INK = "#cc79a7", "#e69f00", "#56b4e9", "#1f2328"

DATA = "#c9ced6"
FIT = BLUE
NULL = VERMILION
SPARSE = GREEN
QUIET = "#6b7280"

_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
_MARKERS = ("o", "^", "s", "D", "v", "P", "<", ">")
_LINES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (1, 2.5)),
)
SMALL = 8.5  # points: notes and labels, still readable when printed at two thirds


class Look(NamedTuple):
    """How one of several things is drawn."""

    colour: str
    marker: str
    line: Any


def look(place: int) -> Look:
    """The look of the thing at this place in a list.

    The numbers of colours, markers and line styles differ, so that those who share a
    colour, from the eighth thing on, differ in the rest.

    >>> look(0).colour == look(7).colour, look(0).marker == look(7).marker
    (True, False)
    """
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _MARKERS[place % len(_MARKERS)],
        _LINES[place % len(_LINES)],
    )


def plain(name: Any, longest: int = 40) -> str:
    r"""A name from the data as text that matplotlib shows as it is.

    Dollars would start a formula, and a leading underscore hides an entry of a legend.

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
