"""How well the model predicts, and which samples are doubtful."""

from __future__ import annotations

import numpy as np

from ebda.evaluation import calibration_bins, predicted_event
from ebda.report.case import DOUBT, Case, Scored
from ebda.report.drawings import calibration, error_interval
from ebda.report.lanes import MOST, Axis, lanes
from ebda.report.markup import (
    HALF_WIDTHS,
    WIDTHS,
    Markup,
    figure,
    join,
    name,
    section,
    table,
    tag,
)
from ebda.report.words import DASH, count, percent

# Number of doubtful samples that are listed.
_LISTED = 40


def prediction(case: Case, scored: Scored | None) -> Markup:
    """Error, confusion and calibration."""
    columns = [tag("div", *_error(case))]
    if scored is not None and scored.codes is not None and scored.held_out:
        columns.append(_calibration(case, scored))
    return section(
        "prediction", "How well it predicts", tag("div", *columns, class_="columns")
    )


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
    drawn = [
        tag("div", error_interval(e, width), class_=class_)
        for class_, width in HALF_WIDTHS.items()
    ]
    caption = (
        "Error with its 95 % interval (Wilson), which takes the samples as independent "
        "and leaves out the variation between training sets."
    )
    return [tag("p", words), figure(join(drawn), caption), _confusion(case)]


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


def _confusion(case: Case) -> Markup:
    e = case.evaluation
    assert e is not None
    confusion = e.confusion
    head: list[object] = ["true class"]
    head += [name(label) for label in case.classes] + ["correct"]
    rows: list[list[object]] = []
    for k, label in enumerate(case.classes):
        n = confusion[k].sum()
        cells: list[object] = [
            tag("span", count(c), class_="hit" if j == k else "miss" if c else "none")
            for j, c in enumerate(confusion[k])
        ]
        correct = percent(confusion[k, k] / n) if n else DASH
        rows.append([name(label), *cells, correct])
    caption = "Held-out samples by true class (rows) and predicted class (columns)"
    return table(head, rows, caption, "confusion")


def samples(case: Case, scored: Scored | None) -> Markup:
    """Scores by class, and the doubtful samples."""
    if scored is None:
        return section(
            "samples",
            "Samples",
            tag("p", "No samples were given, and the fit held none out."),
        )
    drawn = [
        tag("div", lanes(scored, case.classes, width), class_=class_)
        for class_, width in WIDTHS.items()
    ]
    caption = [
        f"{count(len(scored), 'sample')} by {scored.lane_is} class, {scored.origin}."
    ]
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
    parts = [figure(join(drawn), " ".join(caption), "lanes")]
    parts.append(_doubtful(case, scored))
    return section("samples", "Samples", *parts)


def _doubtful(case: Case, scored: Scored) -> Markup:
    doubtful = scored.doubtful
    if not doubtful.size:
        words = (
            f"Every sample has a class with a probability of {percent(DOUBT)} or more"
        )
        words += "." if scored.codes is None else ", and it is the true class."
        return tag("p", words)
    p = scored.probabilities
    rows: list[list[object]] = []
    for i in doubtful[:_LISTED]:
        best = int(p[i].argmax())
        who = "(no name)" if scored.names is None else name(scored.names[i])
        cells: list[object] = [who]
        if scored.codes is not None:
            cells.append(name(case.classes[scored.codes[i]]))
        cells += [name(case.classes[best]), percent(float(p[i, best]))]
        if scored.codes is not None:
            cells += [
                percent(float(scored.own[i])),
                "wrong" if best != scored.codes[i] else "uncertain",
            ]
        rows.append(cells)
    head: list[object] = ["sample", "predicted", "with probability"]
    if scored.codes is not None:
        head[1:1] = ["true class"]
        head += ["probability of the true class", "verdict"]
    caption = "Doubtful samples: wrong, or predicted with a probability below "
    caption += percent(DOUBT)
    if len(doubtful) > _LISTED:
        caption += f" (the first {_LISTED} of {count(len(doubtful))})"
    return table(head, rows, caption, "doubtful")
