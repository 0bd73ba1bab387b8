"""The first of the page: headline, summary, cautions."""

from __future__ import annotations

from ebda.report.case import LEVEL, Case
from ebda.report.cautions import Caution
from ebda.report.markup import Markup, section, tag
from ebda.report.words import count, listed, percent


def headline(case: Case) -> str:
    """What is told apart."""
    if len(case.classes) == 2:
        return " against ".join(case.classes)
    if len(case.classes) <= 4:
        return listed(case.classes)
    return count(len(case.classes), "class", "classes")


def summary(case: Case) -> Markup:
    """The numbers that a reader looks for first."""
    sizes = ", ".join(case.sizes)
    if len(case.classes) > 4:
        sizes = f"{len(case.classes)} classes"
    found = (
        f"{count(case.n_found)} differ{'s' * (case.n_found == 1)} with q ≤ {LEVEL:g}"
    )
    if case.model.n_factors_:
        found += f", {count(case.n_beyond)} beyond the common factors"
    facts = [
        ("samples", count(case.counts.sum()), sizes),
        ("features", count(case.n_features), found),
    ]
    if (e := case.evaluation) is not None:
        low, high = e.interval()
        how = count(e.n_folds, "fold") if e.n_folds else "test set"
        note = f"95 % interval {percent(low)} to {percent(high)}; {how}"
        chance = "always predicting the most frequent class"
        facts[:0] = [
            ("held-out error", percent(e.error), note),
            ("error by chance", percent(e.chance_error), chance),
        ]
    pairs = [
        tag("div", tag("dt", what), tag("dd", tag("b", value), tag("span", note)))
        for what, value, note in facts
    ]
    return tag("dl", *pairs, class_="facts")


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
