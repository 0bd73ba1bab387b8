"""The outcome of a fit: for the model file, as JSON, and as text."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ebda import __version__
from ebda.cli.features import feature_words, features_record
from ebda.cli.known import covariates_for
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import Evaluation, RepeatedEvaluation
from ebda.inputs import Table
from ebda.inputs.logarithms import LOGARITHMS, find_logarithm
from ebda.inputs.matching import by_name
from ebda.listing import counted, escaped, quoted
from ebda.report.case import Case
from ebda.report.cautions import SAID_BEFORE, Caution, cautions
from ebda.report.words import NBSP
from ebda.selection.selection import Selection


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model with its errors."""

    model: EBClassifier
    repeated: RepeatedEvaluation | None
    tested: Evaluation | None
    seconds: dict[str, float]
    # What it was fitted to; those of these samples that are in memory; of the test.
    table: Table
    seen: Table | None
    test: Table | None
    # What there is to be said of the test samples.
    warnings: tuple[str, ...] = ()

    @property
    def judged(self) -> Table | None:
        """The samples in memory that the error and the report are of."""
        if self.repeated is None and self.test is not None:
            return self.test
        return self.seen

    @property
    def is_part(self) -> bool:
        """Whether the error was estimated from some of the samples."""
        return self.seen is not None and self.seen.n_samples < self.table.n_samples

    @property
    def cross_validated(self) -> Evaluation | None:
        """The first cross-validation."""
        return None if self.repeated is None else self.repeated.evaluations[0]

    @property
    def evaluation(self) -> Evaluation | None:
        """The error that the model file and the report show."""
        return self.cross_validated or self.tested


def base_of(log: bool | str) -> float | None:
    """Base of the logarithms that were taken, or None."""
    found = find_logarithm(log)
    return None if found is None else found.base


def judged_by(fitted: Fitted, options: argparse.Namespace) -> list[Caution]:
    """What the report warns of, for those who do not write one."""
    if options.quiet and not options.json:
        return []
    judged, X, y, names, own = fitted.judged, None, None, None, None
    if judged is not None:
        X, y, names = judged.X, judged.y, judged.sample_names.tolist()
        own = covariates_for(fitted.model, judged)
    data, evaluation = about(fitted, options), fitted.evaluation
    with by_name():
        case = Case.checked(fitted.model, X, y, evaluation, names, data, covariates=own)
        found = cautions(case, SAID_BEFORE)
    # A terminal breaks lines anywhere, and would show this blank as an escape.
    return [replace(one, words=one.words.replace(NBSP, " ")) for one in found]


def about(fitted: Fitted, options: argparse.Namespace) -> dict[str, Any]:
    """What the model file keeps of the data, for others to be read the same way."""
    table, notes = fitted.table, list(fitted.table.notes)
    if fitted.is_part and fitted.judged is fitted.seen:
        notes.append(part_words(fitted))
    of_table = ("format", "n_samples", "n_features", "target", "orientation")
    of_options = ("log", "impute", "layer", "drop", "duplicates")
    return {
        "groups": options.groups,
        "covariates": options.covariates,
        "source": Path(table.source).name,
        **{name: getattr(table, name) for name in of_table},
        "transformation": table.transformation,
        "labels": None if options.labels is None else options.labels.name,
        "classes": {str(label): n for label, n in table.class_counts.items()},
        **{name: getattr(options, name) for name in of_options},
        "notes": notes,
        "command": options.command_line,
        "fitted_to": table.fingerprint(),
        "evaluated_on": (fitted.judged or table).fingerprint(),
    }


def part_words(fitted: Fitted) -> str:
    """Of how many samples the error and the page are, where not of all."""
    assert fitted.seen is not None
    return (
        f"the error is estimated from {fitted.seen.n_samples} of the "
        f"{fitted.table.n_samples} samples, those kept for the folds; the model is "
        "fitted to all of them"
    )


# What each of these must be, in a file that somebody may have edited.
_TEXT, _TEXT_OR_NOTHING = (str,), (str, type(None))
_FACTS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("n_samples", "n_features"), (int,)),
    **dict.fromkeys(("drop", "notes", "covariates"), (list,)),
    **dict.fromkeys(
        ("target", "labels", "impute", "layer", "groups"), _TEXT_OR_NOTHING
    ),
    **dict.fromkeys(("source", "format", "orientation", "transformation"), _TEXT),
    **dict.fromkeys(("duplicates", "command", "fitted_to", "evaluated_on"), _TEXT),
    "classes": (dict,),
    "log": (bool, str),
}


def facts(data: dict[str, Any] | None, path: Path) -> dict[str, Any]:
    """What `about` wrote into a model file, as far as it is there."""
    found = dict(data or {})
    for name, value in found.items():
        entries = value if isinstance(value, list) else ()
        unknown = name == "log" and type(value) is str and value not in LOGARITHMS
        if unknown or (
            name in _FACTS
            and not (
                type(value) in _FACTS[name]
                and all(type(entry) is str for entry in entries)
            )
        ):
            raise ValueError(
                f"{path} says that {name!r} of its data is {str(value)[:60]!r}, which "
                "ebda does not write: was it edited? Fit the model again"
            )
    return found


def record(
    fitted: Fitted,
    written: dict[str, Path],
    found: list[Caution],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Everything that is printed, as JSON."""
    model = fitted.model
    return {
        "ebda": __version__,
        "data": about(fitted, options),
        "classes": model.classes_,
        "evaluation": evaluation_record(fitted.cross_validated),
        "repeated": repeated_record(fitted.repeated),
        "test": evaluation_record(fitted.tested),
        "test_warnings": list(fitted.warnings),
        "groups": None if model.groups_ is None else vars(model.groups_),
        "covariates": None if model.covariates_ is None else str(model.covariates_),
        "n_factors": model.n_factors_,
        "has_sample_scales": model.sample_scale_ is not None,
        "selection": selection_record(model.selection_),
        "copies": _named_copies(fitted),
        "missing_values": n_missing(model),
        "features_without_values": without_values(model),
        "cautions": [vars(caution) for caution in found],
        **features_record(model, options.top, base_of(options.log)),
        "seconds": fitted.seconds,
        "files": written,
    }


def words(
    fitted: Fitted,
    written: dict[str, Path],
    found: list[Caution],
    options: argparse.Namespace,
) -> str:
    """Everything that is printed, as text."""
    parts = []
    crossed, model = fitted.cross_validated, fitted.model
    if crossed is not None:
        title = f"Cross-validation in {crossed.n_folds} folds"
        if fitted.is_part:
            title += f" ({part_words(fitted)})"
        if crossed.n_folds < options.folds:
            title += " (no more, because no class has more samples)"
        if fitted.repeated is not None and len(fitted.repeated.evaluations) > 1:
            parts.append(repeated_words(fitted.repeated))
            title = f"The first of them, in {crossed.n_folds} folds"
        parts.append(evaluation_words(crossed, title))
    if fitted.tested is not None:
        title = f"Test samples of {options.test}"
        parts.append(evaluation_words(fitted.tested, title))
        parts += fitted.warnings
    if fitted.evaluation is None:
        parts.append(
            "The error is not known: there was no cross-validation and no --test."
        )
    gone, empty = without_values(model), without_any_value(model)
    if empty:
        parts.append(
            f"{counted(len(empty), 'feature', 'have')} no value at all, and no "
            f"weight: {quoted(empty, 5)}."
        )
    if gone := [name for name in gone if name not in empty]:
        also = ", or confounded with covariates," if model.covariates_ else ""
        parts.append(
            f"{counted(len(gone), 'feature')} without a value in some class{also} "
            f"{'has' if len(gone) == 1 else 'have'} no weight: {quoted(gone, 5)}."
        )
    n = model.n_factors_
    factors = counted(n, "common factor") if n else "No common factors"
    names = [escaped(name) for name in fitted.table.sample_names.tolist()]
    arranged = (model.groups_, model.covariates_)
    parts += [str(known) for known in arranged if known is not None]
    known = (model.sample_scale_, model.wild_values_)
    parts += [str(found) for found in known if found is not None]
    parts += [
        f"{model.selection_.words(names)} {factors} within the classes.\n"
        f"{model.selection_.table()}",
        feature_words(model, options.top, base_of(options.log)),
        *caution_words(found),
        "Time: " + ", ".join(f"{k} {v:.1f} s" for k, v in fitted.seconds.items()),
    ]
    if written:
        parts.append("\n".join(f"Written: {path}" for path in written.values()))
    return "\n\n".join(parts)


def evaluation_record(evaluation: Evaluation | None) -> dict[str, Any] | None:
    """Error, interval and confusion table."""
    if evaluation is None:
        return None
    names = ("n_folds", "n_errors", "error", "chance_error", "log_loss", "classes")
    return {name: getattr(evaluation, name) for name in names} | {
        "n_samples": len(evaluation.codes),
        "interval": evaluation.interval(),
        "level": 0.95,
        "confusion": evaluation.confusion,
    }


def repeated_record(repeated: RepeatedEvaluation | None) -> dict[str, Any] | None:
    """Mean error over the repetitions, with its interval."""
    if repeated is None:
        return None
    return {
        "n_repeats": len(repeated.evaluations),
        "error": repeated.error,
        "interval": repeated.interval(),
        "errors": repeated.errors,
    }


def repeated_words(repeated: RepeatedEvaluation) -> str:
    """The mean error with its interval, and how far the repetitions differ."""
    (low, high), errors = repeated.interval(), repeated.errors
    return (
        f"{len(errors)} cross-validations, each with other folds: mean error "
        f"{repeated.error:.1%} (95% interval {low:.1%} to {high:.1%}), the lowest "
        f"{errors.min():.1%} and the highest {errors.max():.1%}."
    )


def caution_words(found: list[Caution]) -> list[str]:
    """One paragraph each, the severe ones first, with percentages as in the others."""
    words = [caution.words.replace(f"{NBSP}%", "%") for caution in found]
    return [
        f"{'Caution' if caution.severe else 'Note'}: {caution.title}. {text}"
        for caution, text in zip(found, words, strict=True)
    ]


def evaluation_words(evaluation: Evaluation, title: str) -> str:
    """The error with its interval, and the confusion table below it."""
    low, high = evaluation.interval()
    return (
        f"{title}: {evaluation.n_errors} of {len(evaluation.codes)} samples wrong, "
        f"error {evaluation.error:.1%} (95% interval {low:.1%} to {high:.1%}).\n"
        "Always predicting the most frequent class has an error of "
        f"{evaluation.chance_error:.1%}.\n\n{confusion_words(evaluation)}"
    )


def confusion_words(evaluation: Evaluation) -> str:
    """Samples by true and predicted class."""
    labels = [escaped(str(label)) for label in evaluation.classes.tolist()]
    corner = "true \\ predicted"
    first = max(len(corner), *map(len, labels))
    lines = [f"  {corner:<{first}}" + "".join(f"  {label:>5}" for label in labels)]
    for label, row in zip(labels, evaluation.confusion.tolist(), strict=True):
        cells = (
            f"  {n:>{max(5, len(head))}}" for n, head in zip(row, labels, strict=True)
        )
        lines.append(f"  {label:<{first}}" + "".join(cells))
    return "\n".join(lines)


def n_missing(model: EBClassifier) -> int:
    """Values that were missing in the fit."""
    moments = model.moments_
    if moments.observed is None:
        return 0
    return round(float((moments.counts[:, None] - moments.observed).sum()))


def without_values(model: EBClassifier) -> list[str]:
    """Features without a value in some class, which have no weight."""
    return _named(model, model.moments_.without_values)


def without_any_value(model: EBClassifier) -> list[str]:
    """Those of them without a value in every class."""
    observed = model.moments_.observed
    return [] if observed is None else _named(model, ~(observed > 0).any(axis=0))


def _named(model: EBClassifier, which: Any) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    found = np.flatnonzero(which).tolist()
    return [str(j + 1 if names is None else names[j]) for j in found]


def _named_copies(fitted: Fitted) -> list[list[str]]:
    """Pairs of samples that look like copies."""
    pairs = fitted.model.selection_.copies
    names = fitted.table.sample_names.tolist()
    return [] if pairs is None else [[names[i] for i in pair] for pair in pairs]


def selection_record(selection: Selection) -> list[dict[str, Any]]:
    """What was compared, and its share in the rule."""
    rows = zip(selection.weight, selection.separation, selection.error, strict=True)
    return [
        {
            "covariance": covariance,
            "shrinkage": shrinkage,
            "weight": weight,
            "separation": separation,
            "standard_error": error,
        }
        for (covariance, shrinkage), (weight, separation, error) in zip(
            selection.candidates, rows, strict=True
        )
    ]
