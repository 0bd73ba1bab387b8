"""The last of the page: data, command, settings and versions, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any

from ebda.covariance import COVARIANCES
from ebda.moments.variance import VARIANCES
from ebda.priors import PRIORS
from ebda.registry import Entry
from ebda.report.case import Case
from ebda.report.markup import Markup, name, section, tag
from ebda.report.words import line_of, spoken
from ebda.rule.shrinkage import SHRINKAGES

# What entries of `data` are called on the page, in the order in which they are shown;
# others follow by their own names.
_KEYS = {
    "source": "source",
    "format": "format",
    "target": "classes are in",
    "labels": "labels from",
    "classes": "samples by class",
    "n_samples": "samples",
    "n_features": "features",
    "orientation": "samples are in",
    "layer": "layer",
    "log": "logarithms",
    "transformation": "transformation",
    "impute": "missing values",
    "drop": "columns left out",
    "duplicates": "repeated names",
    "groups": "samples belong together by",
    "covariates": "adjusted for",
    "notes": "notes on the file",
    "fitted_to": "checksum of the fitted samples",
    "evaluated_on": "checksum of the evaluated samples",
}
# What their values mean, where it is not clear from themselves.
_VALUES: dict[str, dict[Any, str]] = {
    "format": {"text": "table in a text file"},
    "log": {True: "taken", False: "not taken"},
    "duplicates": {"error": "refused", "number": "numbered"},
    "impute": {"median": "replaced by the median of the feature"},
}
# A capital letter within a name of Python's.
_CAPITAL = re.compile("(?<=[a-z])[A-Z]")
# What parameters of the model are called.
_PARAMETERS = {
    "n_jobs": "jobs at a time",
    "random_state": "seed of random numbers",
    "sample_scale": "scales of samples",
    "priors": "class probabilities",
    "zero_threshold": "largest probability of zero that counts as a difference",
    "calibrate": "probabilities calibrated",
    "prior": "prior of the differences",
}
# Components that a parameter of the model may name.
_REGISTRIES: dict[str, Mapping[str, Entry]] = {
    "covariance": COVARIANCES,
    "shrinkage": SHRINKAGES,
    "variance": VARIANCES,
    "prior": PRIORS,
}


def provenance(case: Case, versions: dict[str, str], date: str) -> Markup:
    """Data, command, settings and versions."""
    ordered = [key for key in _KEYS if key in case.data]
    ordered += [key for key in case.data if key not in _KEYS and key != "command"]
    rows: list[tuple[object, object]] = [
        (_KEYS.get(key, key.replace("_", " ")), name(words))
        for key in ordered
        if (words := _value(key, case.data[key]))
    ]
    if case.command:
        rows.append(("command", tag("code", case.command)))
    used = ", ".join(f"{k} {v}" for k, v in versions.items())
    rows += [("settings", _settings(case.model)), ("written", date), ("versions", used)]
    pairs = [tag("div", tag("dt", what), tag("dd", value)) for what, value in rows]
    about = tag("dl", *pairs, class_="about")
    return section("provenance", "Data, command and versions", about)


def _value(key: str, value: Any) -> str:
    known = _VALUES.get(key, {})
    if isinstance(value, str | bool) and value in known:
        return known[value]
    return spoken(value)


def _settings(model: Any) -> str:
    """Parameters that differ from their defaults, in words."""
    changed = [_setting(key, value) for key, value in changed_parameters(model).items()]
    return "; ".join(changed) or "all defaults"


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters of an estimator that differ from their defaults."""
    default = type(estimator)().get_params(deep=False)
    return {
        key: value
        for key, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(default[key])
    }


def _setting(key: str, value: Any) -> str:
    line = line_of(_REGISTRIES.get(key, {}), value) if isinstance(value, str) else ""
    words = component(value) + (f" ({line})" if line else "")
    return f"{_PARAMETERS.get(key, key.replace('_', ' '))}: {words}"


def component(value: Any) -> str:
    """A value of a parameter in words; an object by its name and what it was made with.

    >>> from ebda.priors import NPMLE, DirichletProcess, DiscretePrior
    >>> component(DirichletProcess(alpha=2.0)), component(NPMLE())
    ('Dirichlet process (alpha 2.0)', 'NPMLE')
    >>> component(DiscretePrior([0, 2], [3, 1]))
    'Discrete prior (atoms [0, 2], weights [0.75, 0.25])'
    >>> component(None), component([0.5, 0.5])
    ('none', '0.5, 0.5')
    """
    if value is None or isinstance(value, str | Number | Iterable):
        return spoken(value) or "none"
    words = " ".join(repr(value).split()).replace("()", "").replace("=", " ")
    return _CAPITAL.sub(lambda found: f" {found[0].lower()}", words.replace("(", " ("))
