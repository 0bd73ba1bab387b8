"""How well the model predicts, and which samples are doubtful."""

from __future__ import annotations

import numpy as np

from ebda.report.case import Case
from ebda.report.drawings import calibration, error_interval
from ebda.report.lanes import MOST, Axis, lanes
from ebda.report.layout import HALF_WIDTHS, WIDTHS, figure, section, table
from ebda.report.markup import Markup, join, name, tag
from ebda.report.numbers import DASH, count, percent
from ebda.report.scored import DOUBT, Scored

# Doubtful samples that are listed.
_LISTED = 40


def prediction(case: Case, scored: Scored | None) -> Markup:
    """Error, confusion and calibration."""
    parts: list[object] = []
    e = case.evaluation
    if e is not None:
        low, high = e.interval()
        how = (
            f"Each sample was predicted once, by a model that was fitted without it "
            f"({e.n_folds} folds)."
            if e.n_folds
            else "The samples took no part in the fit."
        )
        counts = np.bincount(e.codes, minlength=len(e.classes))
        shares = counts[counts > 0] / counts.sum()
        by_chance = float(-(shares * np.log(shares)).sum())
        parts.append(
            tag(
                "p",
                f"{how} {count(e.n_errors)} of {count(len(e.codes))} were given the "
                f"wrong class: an error of {percent(e.error)}, with a 95 % interval "
                f"from {percent(low)} to {percent(high)}. Always naming the most "
                f"frequent class would err in {percent(e.chance_error)}. The log-loss "
                f"of the probabilities is {e.log_loss:.2f}, against {by_chance:.2f} "
                "for the shares of the classes alone.",
            )
        )
        drawn = [
            tag("div", error_interval(e, width), class_=class_)
            for class_, width in HALF_WIDTHS.items()
        ]
        caption = "Error with its 95 % interval (Wilson). It takes the samples as "
        caption += "independent; how training sets vary is not in it."
        parts.append(figure(join(drawn), caption))
    else:
        parts.append(
            tag(
                "p",
                "Nothing is known of the error on new samples. ",
                "Fit with cross-validation or give a test set.",
            )
        )
    if e is not None:
        parts.append(_confusion(case))
    columns = [tag("div", *parts)]
    if scored is not None and scored.codes is not None and scored.held_out:
        what = "of the named class"
        if len(case.classes) == 2:
            what = f"of {case.classes[1]}"
        words = (
            "Calibration: of the samples with a stated probability, the share for "
            "which it came true, with 95 % intervals. On the diagonal the "
            "probabilities can be taken at their word."
        )
        if e is None:
            words += f" The samples were {scored.origin}."
        columns.append(figure(calibration(scored, what), words))
    return section(
        "prediction", "How well it predicts", tag("div", *columns, class_="columns")
    )


def _confusion(case: Case) -> Markup:
    e = case.evaluation
    assert e is not None
    confusion = e.confusion
    head: list[object] = ["true class"]
    head += [join(["named ", name(label)]) for label in case.classes] + ["right"]
    rows: list[list[object]] = []
    for k, label in enumerate(case.classes):
        n = confusion[k].sum()
        cells: list[object] = [
            tag("span", count(c), class_="hit" if j == k else "miss" if c else "none")
            for j, c in enumerate(confusion[k])
        ]
        right = percent(confusion[k, k] / n) if n else DASH
        rows.append([name(label), *cells, right])
    return table(head, rows, "Held-out samples by true and named class", "confusion")


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
    lane = "true" if scored.codes is not None else "predicted"
    caption = [
        f"{count(len(scored), 'sample')} by {lane} class, {scored.origin}. Ringed: on "
        "the wrong side of the boundary."
    ]
    thin = np.bincount(scored.lane).max() > MOST
    if thin:
        caption.append(
            f"Of each class {count(MOST)} are drawn, evenly over the scores, and all "
            "doubtful ones that are listed."
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
        words += "." if scored.codes is None else ", and it is the right one."
        return tag("p", words)
    p = scored.probabilities
    rows: list[list[object]] = []
    for i in doubtful[:_LISTED]:
        best = int(p[i].argmax())
        who = "(not named)" if scored.names is None else name(scored.names[i])
        cells: list[object] = [who]
        if scored.codes is not None:
            cells.append(name(case.classes[scored.codes[i]]))
        cells += [name(case.classes[best]), percent(float(p[i, best]))]
        if scored.codes is not None:
            cells += [
                percent(float(scored.own[i])),
                "wrong" if best != scored.codes[i] else "unsure",
            ]
        rows.append(cells)
    head: list[object] = ["sample", "named", "with probability"]
    if scored.codes is not None:
        head[1:1] = ["true class"]
        head += ["probability of the true class", "verdict"]
    caption = "Doubtful samples: wrong, or their class has less than "
    caption += percent(DOUBT)
    if len(doubtful) > _LISTED:
        caption += f" (the first {_LISTED} of {count(len(doubtful))})"
    return table(head, rows, caption, "doubtful")
