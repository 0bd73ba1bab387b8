"""Who is taken for whom: the confusion table, and a heat map of many classes."""

from __future__ import annotations

import numpy as np

from ebda.evaluation.held_out import Evaluation
from ebda.report.markup import Column, Markup, join, name, table, tag
from ebda.report.words import DASH, count, percent
from ebda.typing import IntArray

# From so many classes on, columns have numbers for names and shades for shares.
HEAT = 8
# From so many on, cells are smaller.
_CROWDED = 20
# Shades of a cell, of which the style sheet has one each, besides none.
_SHADES = 5
_WHAT = "Held-out samples by true class (rows) and predicted class (columns)"


def confusion(e: Evaluation, classes: list[str]) -> Markup:
    """Samples by true and predicted class, as wide as the page.

    Parameters
    ----------
    e : Evaluation
        Held-out predictions.
    classes : list of str
        Labels as text.
    """
    table_of = _heat if len(classes) >= HEAT else _table
    return tag("div", table_of(e.confusion, classes), class_="whole")


def _table(confusion: IntArray, classes: list[str]) -> Markup:
    labels = [name(label) for label in classes]
    columns: list[Column] = [("true class", labels)]
    for j, predicted in enumerate(confusion.T):
        cells = [
            tag("span", count(c), class_="hit" if j == k else "miss" if c else "none")
            for k, c in enumerate(predicted)
        ]
        columns.append((labels[j], cells))
    columns.append(("correct", _correct(confusion)))
    return table(columns, _WHAT, "confusion")


def _heat(confusion: IntArray, classes: list[str]) -> Markup:
    """The same with numbers for the names of columns, and a shade for each share."""
    labels = [
        join([tag("b", k, class_="number"), " ", name(label)])
        for k, label in enumerate(classes, start=1)
    ]
    columns: list[Column] = [("true class", labels)]
    shades = shades_of(confusion)
    for j, predicted in enumerate(confusion.T):
        cells = [
            tag(
                "span",
                count(c) if c else "",
                class_=f"{'hit' if j == k else 'miss'} h{shades[k, j]}",
                title=f"{classes[k]}, predicted as {classes[j]}: {count(c)}",
            )
            for k, c in enumerate(predicted)
        ]
        columns.append((tag("abbr", j + 1, title=classes[j]), cells))
    columns.append(("correct", _correct(confusion)))
    caption = (
        f"{_WHAT}. The columns are numbered as the rows are; the darker a cell, the "
        "larger its share of the row, blue where it is right and orange where not"
    )
    crowded = " crowded" if len(classes) >= _CROWDED else ""
    return table(columns, caption, f"confusion heat{crowded}")


def shades_of(confusion: IntArray) -> IntArray:
    """Shade of each cell, 0 to 5: its share of the samples of its true class.

    >>> shades_of(np.array([[9, 1, 0], [0, 0, 0], [2, 2, 4]]))
    array([[5, 1, 0],
           [0, 0, 0],
           [2, 2, 3]])
    """
    total = np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.ceil(_SHADES * confusion / total).astype(np.intp))


def _correct(confusion: IntArray) -> list[str]:
    shares = zip(confusion.diagonal(), confusion.sum(axis=1), strict=True)
    return [percent(right / n) if n else DASH for right, n in shares]
