"""How well the model predicts, and which samples are doubtful."""

from __future__ import annotations

import numpy as np

from ebda.evaluation.held_out import calibration_bins, predicted_event
from ebda.report.case import DOUBT, Case, Scored
from ebda.report.confusion import confusion
from ebda.report.drawings import calibration, error_interval
from ebda.report.lanes import MOST, Axis, lanes
from ebda.report.markup import (
    HALF_WIDTHS,
    WIDTHS,
    Column,
    Markup,
    figure,
    name,
    section,
    table,
    tag,
    widths,
)
from ebda.report.two_classes import both_ways
from ebda.report.words import count, percent
from ebda.typing import IntArray

# Doubtful samples that are listed, and how many of them at once.
_LISTED, _AT_ONCE = 200, 10


def prediction(case: Case, scored: Scored | None) -> Markup:
    """Error, confusion and calibration; of two classes also the ROC curve."""
    e, columns = case.evaluation, [tag("div", *_error(case))]
    if scored is not None and scored.codes is not None and scored.held_out:
        columns.append(_calibration(case, scored))
    parts: list[Markup | None] = [tag("div", *columns, class_="columns")]
    if e is not None:
        counts = confusion(e, case.classes)
        if len(case.classes) == 2 and (both := both_ways(e, case.classes)):
            measures, curve = both
            counts = tag("div", tag("div", counts, measures), curve, class_="columns")
        parts.append(counts)
    return section("prediction", "How well it predicts", *parts)


def _error(case: Case) -> list[Markup]:
    """The held-out error in words, with its interval, and the confusion matrix."""
    e = case.evaluation
    if e is None:
        words = (
            "The error on new samples was not estimated. Cross-validate, or give a "
            "test set."
        )
        return [tag("p", words)]
    low, high = e.interval()
    how = "The samples took no part in the fit."
    if e.n_folds:
        how = (
            "Each sample was predicted once, by a model that was fitted without it "
            f"({e.n_folds} folds)."
        )
    counts = np.bincount(e.codes, minlength=len(e.classes))
    shares = counts[counts > 0] / counts.sum()
    by_chance = float(-(shares * np.log(shares)).sum())
    words = (
        f"{how} {count(e.n_errors)} of {count(len(e.codes))} were assigned to the "
        f"wrong class: an error of {percent(e.error)}, with a 95 % interval from "
        f"{percent(low)} to {percent(high)}. Always predicting the most frequent class "
        f"would have an error of {percent(e.chance_error)}. The log-loss of the "
        f"probabilities is {e.log_loss:.2f}; predicting the shares of the classes "
        f"would have {by_chance:.2f}."
    )
    drawn = widths(lambda width: error_interval(e, width), HALF_WIDTHS)
    caption = (
        "Error with its 95 % interval (Wilson). Samples that were held out in folds "
        "count as fewer there, as their training sets overlap."
    )
    return [tag("p", words), figure(drawn, caption)]


def _calibration(case: Case, scored: Scored) -> Markup:
    """Predicted probabilities against observed shares."""
    assert scored.codes is not None
    bins = calibration_bins(*predicted_event(scored.probabilities, scored.codes))
    two = len(case.classes) == 2
    event = f"of {case.classes[1]}" if two else "of the predicted class"
    words = [
        "Calibration: samples grouped by their predicted probability, and the share of "
        "each group for which it came true, with 95 % intervals. On the diagonal the "
        "two agree."
    ]
    if bins.few_samples.any():
        words.append("Open circles are groups of fewer than ten samples.")
    if case.evaluation is None:
        words.append(f"The samples were {scored.origin}.")
    return figure(calibration(bins, event), " ".join(words))


def samples(case: Case, scored: Scored | None) -> Markup:
    """Scores by class, and the doubtful samples."""
    if scored is None:
        words = "No samples were given, and the fit held none out."
        return section("samples", "Samples", tag("p", words))
    drawn = widths(lambda width: lanes(scored, case.classes, width), WIDTHS)
    size = count(len(scored), "sample")
    caption = [f"{size} by {scored.lane_is} class, {scored.origin}."]
    if scored.codes is not None:
        caption.append("Ringed samples are on the wrong side of the boundary.")
    if np.bincount(scored.lane).max() > MOST:
        caption.append(
            f"At most {count(MOST)} samples of each class are drawn, evenly spaced by "
            "score, besides the doubtful ones that are listed."
        )
    axis = Axis.of(scored.score, len(case.classes) == 2, WIDTHS["wide"])
    if ((scored.score < axis.low) | (scored.score > axis.high)).any():
        caption.append("Dots at the edge lie beyond it.")
    dots = figure(drawn, " ".join(caption), "lanes")
    return section("samples", "Samples", dots, _doubtful(case, scored))


def _doubtful(case: Case, scored: Scored) -> Markup:
    doubtful = scored.doubtful
    if not doubtful.size:
        words = (
            f"Every sample has a class with a probability of {percent(DOUBT)} or more"
        )
        words += "." if scored.codes is None else ", and it is the true class."
        return tag("p", words)
    caption = "Doubtful samples: wrong, or predicted with a probability below "
    caption += percent(DOUBT)
    n = len(doubtful)
    if n > _AT_ONCE:
        caption += f" (the first {_AT_ONCE} of {count(n)})"
    parts = [_doubts(case, scored, doubtful[:_AT_ONCE], caption)]
    if n > _AT_ONCE:
        rest = doubtful[_AT_ONCE:_LISTED]
        what = f"Doubtful samples {_AT_ONCE + 1} to {_AT_ONCE + len(rest)}"
        title = f"Show the other {count(len(rest))}"
        if n > _LISTED:
            what += f" of {count(n)}"
            title = f"Show the next {count(len(rest))} of {count(n)}"
        hidden = _doubts(case, scored, rest, what)
        parts.append(tag("details", tag("summary", title), hidden, class_="reading"))
    return tag("div", *parts, class_="whole")


def _doubts(case: Case, scored: Scored, chosen: IntArray, caption: str) -> Markup:
    """A table of some samples."""
    labels = [name(label) for label in case.classes]
    who = scored.names and [name(scored.names[i]) for i in chosen]
    predicted = scored.predicted[chosen]
    best = scored.probabilities[chosen, predicted]
    columns: list[Column] = [
        ("sample", who or ["(no name)"] * len(chosen)),
        ("predicted", [labels[k] for k in predicted]),
        ("with probability", [percent(p) for p in best]),
    ]
    if scored.codes is not None:
        true = scored.codes[chosen]
        verdict = ["wrong" if w else "uncertain" for w in predicted != true]
        columns.insert(1, ("true class", [labels[k] for k in true]))
        own = [percent(p) for p in scored.own[chosen]]
        columns += [("probability of the true class", own), ("verdict", verdict)]
    return table(columns, caption, "doubtful")
