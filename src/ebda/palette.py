"""The colours of the classes, in the report and in every plot.

The first six are those of Okabe and Ito; of any two of the ten, also as people see them
who lack red or green cones, some difference remains. Ten colours cannot all differ in
grey: a marker, a line style or a label goes with each.
"""

from __future__ import annotations

# On white paper.
COLOURS = (
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#009e73",  # green
    "#cc79a7",  # pink
    "#e69f00",  # orange
    "#56b4e9",  # sky
    "#53113a",  # plum
    "#dc0a45",  # crimson
    "#4b2fd6",  # violet
    "#5c4a12",  # brown
)
# The same on a dark screen.
ON_DARK = (
    "#4098dc",
    "#f0803c",
    "#2fc39b",
    "#f2a7d8",
    "#f5e050",
    "#a5e8ff",
    "#945b94",
    "#ff3d66",
    "#6a5cff",
    "#94672f",
)


def colour(place: int) -> str:
    """The colour of the class at this place, on white; they start again after ten.

    >>> colour(0) == colour(10)
    True
    """
    return COLOURS[place % len(COLOURS)]
