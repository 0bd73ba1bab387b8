"""What is asked of two classes: sensitivity, specificity, and all trade-offs of them.

The first class in the order of the labels counts as negative, the second as positive.
"""

from __future__ import annotations

from sklearn.metrics import roc_curve

from ebda.evaluation.held_out import Evaluation, log_probability
from ebda.report.drawings import Square
from ebda.report.markup import Column, Markup, figure, name, table, tag
from ebda.report.words import MINUS, count, percent
from ebda.typing import FloatArray

_LEVEL = 0.95


def both_ways(e: Evaluation, classes: list[str]) -> list[Markup]:
    """Sensitivity, specificity and the ROC curve; nothing where a class is absent."""
    positive = e.codes == 1
    if positive.all() or not positive.any():
        return []
    logs = log_probability(e.probabilities)
    score = logs[:, 1] - logs[:, 0]
    known = e.measures(_LEVEL)
    area = known["AUC"]
    rows = [
        ("sensitivity", classes[1], e.predicted[positive] == 1),
        ("specificity", classes[0], e.predicted[~positive] == 0),
    ]
    found = [int(right.sum()) for *_, right in rows]
    sizes = [len(right) for *_, right in rows]
    ends = [(known[title].low, known[title].high) for title, *_ in rows]
    what = [
        tag("span", title, tag("small", "share of ", name(of), " that is found"))
        for title, of, _ in rows
    ]
    shares = [
        f"{percent(k / n)} ({count(k)} of {count(n)})"
        for k, n in zip(found, sizes, strict=True)
    ]
    what.append(
        tag(
            "span",
            "area under the ROC curve",
            tag("small", "how often the score orders two samples of both classes"),
        )
    )
    shares.append(f"{area.value:.3f}")
    intervals = [f"{percent(low)} to {percent(high)}" for low, high in ends]
    intervals.append(f"{area.low:.3f} to {area.high:.3f}")
    columns: list[Column] = [("", what), ("", shares), ("95 % interval", intervals)]
    caption = f"As a test for {classes[1]}, with the boundary of the model"
    at = 1 - found[1] / sizes[1], found[0] / sizes[0]
    false_rate, true_rate, _ = roc_curve(positive, score)
    drawn = _curve(false_rate, true_rate, at, classes)
    below = (
        f"ROC curve of the held-out samples: the share of {classes[1]} that is found, "
        f"against the share of {classes[0]} that is mistaken for it, for every "
        "threshold. The dot is the boundary of the model; on the diagonal the score "
        "says nothing."
    )
    return [table(columns, caption, "measures"), figure(drawn, below)]


def _curve(
    false_rate: FloatArray,
    true_rate: FloatArray,
    at: tuple[float, float],
    classes: list[str],
) -> Markup:
    """The ROC curve, as large as the calibration beside it."""
    frame = Square()
    corners = zip(false_rate.tolist(), true_rate.tolist(), strict=True)
    path = " ".join(f"{frame.x(u):.1f},{frame.y(v):.1f}" for u, v in corners)
    dot = {"cx": frame.x(at[0]), "cy": frame.y(at[1]), "r": 5}
    told = (
        f"ROC curve; the boundary finds {percent(at[1])} of {classes[1]} and mistakes "
        f"{percent(at[0])} of {classes[0]} for it."
    )
    return frame.svg(
        told,
        f"1 {MINUS} specificity",
        tag("polyline", class_="roc", points=path),
        tag("circle", class_="estimate", **dot),
    )
