"""The first and the last of the page: summary, cautions, provenance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.report.case import Case
from ebda.report.cautions import LEVEL, Caution
from ebda.report.layout import section
from ebda.report.markup import Markup, name, tag
from ebda.report.numbers import count, percent

# What entries of `data` are called on the page.
_KEYS = {"n_samples": "samples", "n_features": "features"}


def summary(case: Case) -> Markup:
    """The numbers that a reader looks for first."""
    found = np.atleast_2d(case.ranking.selected(LEVEL)).any(axis=0).sum()
    facts: list[tuple[str, object, str]] = []
    e = case.evaluation
    if e is not None:
        low, high = e.interval()
        how = f"in {e.n_folds} folds" if e.n_folds else "of a test set"
        note = f"95 % interval {percent(low)} to {percent(high)}; {how}"
        facts.append(("held-out error", percent(e.error), note))
        facts.append(
            (
                "error by chance",
                percent(e.chance_error),
                "naming the most frequent class",
            )
        )
    classes = [
        f"{count(n)} {label}"
        for label, n in zip(case.classes, case.counts, strict=True)
    ]
    shown = ", ".join(classes) if len(classes) <= 4 else f"{len(classes)} classes"
    facts.append(("samples", count(case.counts.sum()), shown))
    facts.append(
        (
            "features",
            count(case.n_features),
            f"{count(found)} differ{'s' if found == 1 else ''} with q ≤ {LEVEL:g}",
        )
    )
    return tag(
        "dl",
        *[
            tag("div", tag("dt", what), tag("dd", tag("b", value), tag("span", note)))
            for what, value, note in facts
        ],
        class_="facts",
    )


def caution_list(found: list[Caution]) -> Markup:
    """What to know before believing the numbers."""
    if not found:
        return section("cautions", "Cautions", tag("p", "Nothing unusual was found."))
    items = [
        tag(
            "li",
            tag("span", "Warning" if c.severe else "Note", class_="level"),
            tag("div", tag("h3", c.title), tag("p", c.words)),
            class_="severe" if c.severe else "mild",
        )
        for c in found
    ]
    return section("cautions", "Cautions", tag("ul", *items, class_="cautions"))


def provenance(case: Case, versions: dict[str, str], date: str) -> Markup:
    """Data, command and versions."""
    known: dict[str, Any] = {
        key: value for key, value in case.data.items() if value is not None
    }
    rows: list[tuple[object, object]] = [
        (
            _KEYS.get(key, key.replace("_", " ")),
            name(f"{value:,}" if isinstance(value, int) else value),
        )
        for key, value in known.items()
    ]
    if case.command:
        rows.append(("command", tag("code", case.command)))
    parameters = _parameters(case.model)
    rows.append(("model", tag("code", f"{type(case.model).__name__}({parameters})")))
    rows.append(("made", date))
    rows.append(("with", ", ".join(f"{k} {v}" for k, v in versions.items())))
    pairs = [tag("div", tag("dt", what), tag("dd", value)) for what, value in rows]
    return section(
        "provenance", "Data, command and versions", tag("dl", *pairs, class_="about")
    )


def _parameters(model: Any) -> str:
    """Parameters that differ from their defaults."""
    default = type(model)().get_params(deep=False)
    return ", ".join(
        f"{key}={value!r}"
        for key, value in model.get_params(deep=False).items()
        if repr(value) != repr(default[key])
    )
