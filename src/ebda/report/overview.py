"""The first and the last of the page: headline, summary, cautions, provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebda.covariance import COVARIANCES
from ebda.moments.variance import VARIANCES
from ebda.priors import PRIORS
from ebda.registry import Entry
from ebda.report.case import LEVEL, Case
from ebda.report.cautions import Caution
from ebda.report.markup import Markup, name, section, tag
from ebda.report.words import count, line_of, listed, percent, spoken
from ebda.rule.shrinkage import SHRINKAGES

# What entries of `data` are called on the page, where it is not by their own name.
_KEYS = {
    "n_samples": "samples",
    "n_features": "features",
    "orientation": "samples are in",
    "duplicates": "repeated names",
    "drop": "columns left out",
    "impute": "missing values",
    "log": "logarithms",
    "fitted_to": "checksum of the fitted samples",
    "evaluated_on": "checksum of the evaluated samples",
}
# Components that a parameter of the model may name.
_REGISTRIES: dict[str, Mapping[str, Entry]] = {
    "covariance": COVARIANCES,
    "shrinkage": SHRINKAGES,
    "variance": VARIANCES,
    "prior": PRIORS,
}


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


def provenance(case: Case, versions: dict[str, str], date: str) -> Markup:
    """Data, command, settings and versions."""
    rows: list[tuple[object, object]] = [
        (_KEYS.get(key, key.replace("_", " ")), name(words))
        for key, value in case.data.items()
        if key != "command" and (words := spoken(value))
    ]
    if case.command:
        rows.append(("command", tag("code", case.command)))
    used = ", ".join(f"{k} {v}" for k, v in versions.items())
    rows += [("settings", _settings(case.model)), ("written", date), ("versions", used)]
    pairs = [tag("div", tag("dt", what), tag("dd", value)) for what, value in rows]
    about = tag("dl", *pairs, class_="about")
    return section("provenance", "Data, command and versions", about)


def _settings(model: Any) -> str:
    """Parameters that differ from their defaults, in words."""
    default = type(model)().get_params(deep=False)
    changed = [
        _setting(key, value)
        for key, value in model.get_params(deep=False).items()
        if repr(value) != repr(default[key])
    ]
    return "; ".join(changed) or "all defaults"


def _setting(key: str, value: Any) -> str:
    line = line_of(_REGISTRIES.get(key, {}), value) if isinstance(value, str) else ""
    words = " ".join(spoken(value).split()) + (f" ({line})" if line else "")
    return f"{key.replace('_', ' ')}: {words}"
