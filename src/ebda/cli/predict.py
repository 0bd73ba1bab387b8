"""Classify new samples with a model file.

Classifies the samples of a file with a model that ebda fit has written. Features are
found by name, in any order; those that the model does not know are ignored. What the
fit did to the values is done again: logarithms, and medians for missing values. The
samples are compared with those of the fit, and warnings have the numbers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import get_tags

from ebda.cli import options as shared
from ebda.cli.comparison import compared, shift_record
from ebda.cli.known import (
    Covariates,
    covariates_for,
    given,
    known_to,
    remarks_on_covariates,
)
from ebda.cli.outcome import facts
from ebda.cli.output import put_json, writer_for
from ebda.cli.predictions import probability_columns
from ebda.cli.progress import is_small, working
from ebda.cli.terminal import say
from ebda.inputs import Match, Table, match_features, read
from ebda.inputs.matching import by_name
from ebda.listing import counted, escaped, quoted
from ebda.modelfile import Record
from ebda.typing import FloatArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    shared.add_model(parser)
    shared.add_data(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        help="make it an error if the samples are not like those of the fit, or lack "
        "much of the rule",
    )
    shared.add_table(parser)
    shared.add_printing(parser)


def run(options: argparse.Namespace) -> None:
    """Load, read, match, predict, write."""
    from ebda import modelfile

    start = time.perf_counter()
    put_table = writer_for(options.out)
    shared.check_apart(options, "out")
    record = modelfile.load_record(options.model)
    data = facts(record.data, options.model)
    table, match = read_for(record, data, options)
    shift, warned = compared(
        record.model,
        table.X,
        record.training,
        match.missing,
        table.source,
        options.strict,
        data.get("log", False),
    )
    with by_name():
        predicted, probabilities = classify(
            record.model,
            table.X,
            options.missing == "zero-weight",
            covariates_for(record.model, table),
        )
    classes = [str(label) for label in record.model.classes_.tolist()]
    if options.out is not None or not options.json:
        columns = {"sample": table.sample_names.tolist(), "predicted": predicted}
        put_table(columns | probability_columns(classes, probabilities))
    seconds = time.perf_counter() - start
    if options.json:
        rows = [dict(zip(classes, row, strict=True)) for row in probabilities.tolist()]
        put_json(
            {
                "model": options.model,
                "data": options.data,
                "out": options.out,
                "transformation": table.transformation,
                "ignored_features": match.n_extra,
                "missing_features": match.missing,
                "missing_values": match.n_filled,
                "compared_with_training": shift_record(shift),
                "seconds": seconds,
                "predictions": [
                    {"sample": sample, "predicted": label, "probabilities": row}
                    for sample, label, row in zip(
                        table.sample_names, predicted.tolist(), rows, strict=True
                    )
                ],
            }
        )
    if not options.quiet:
        counts = Counter(str(label) for label in predicted.tolist())
        words = ", ".join(f"{escaped(label)} {counts[label]}" for label in classes)
        say(f"{counted(table.n_samples, 'sample')}: {words}", sys.stderr)
        lines = remarks(table, match, options.missing, is_filled(record, data))
        lines += remarks_on_covariates(record.model, table)
        for line in [*lines, *warned]:
            say(line, sys.stderr)
        if options.out is not None:
            say(f"Written: {options.out}", sys.stderr)


def is_filled(record: Record, data: dict[str, Any]) -> bool:
    """Whether missing values get the medians of the fit."""
    known = record.training
    return bool(data.get("impute")) and known is not None and known.median is not None


def read_for(
    record: Record,
    data: dict[str, Any],
    options: argparse.Namespace,
    impute: str | None = None,
) -> tuple[Table, Match]:
    """The data in the order of the model's features, read as the fit read its own.

    Missing values get the medians of the fit, if it used any and the file has them;
    else what `impute` says.
    """
    model = record.model
    if is_filled(record, data):
        impute = None
    if not hasattr(model, "predict_proba"):
        name = type(model).__name__
        raise ValueError(f"{options.model} holds a {name}, which classifies nothing")
    names = getattr(model, "feature_names_in_", None)
    with working(f"reading {options.data}", options.quiet or is_small(options.data)):
        table = read(
            options.data,
            getattr(options, "target", None),
            options.orient,
            getattr(options, "labels", None),
            impute,
            drop=options.drop,
            features=None if names is None else names.tolist(),
            keep_missing=True,
            decimal=options.decimal,
            max_memory=options.max_memory,
            aside=known_to(model),
            aside_may_lack=True,
            **shared.remembered(data),
        )
    if names is None:
        names = table.feature_names
        if len(names) != model.n_features_in_:
            raise ValueError(
                f"{table.source}: the model has no names of features, and takes "
                f"{model.n_features_in_} by order; there are {len(names)}"
            )
    stand_in, zero_weight = None, options.missing == "zero-weight"
    if get_tags(model).input_tags.allow_nan:
        stand_in = np.full(len(names), np.nan)
    if zero_weight:
        if not hasattr(model, "without"):
            raise ValueError(
                f"a {type(model).__name__} cannot do without features, so that "
                "--missing zero-weight cannot be used with it; give all features"
            )
        stand_in = np.full(len(names), np.nan)
    if is_filled(record, data):
        assert record.training is not None
        assert record.training.median is not None
        there = np.isin(names, table.feature_names)
        stand_in = np.where(there, record.training.median, np.nan)
    way_out = "give them, or go on without their weight: --missing zero-weight"
    match = match_features(
        table, names.tolist(), stand_in, absent=zero_weight, way_out=way_out
    )
    X = match.X
    if sparse.issparse(X) and np.isnan(X.data).any():  # values that are not zero
        X = X.toarray()
    return replace(table, X=X, feature_names=names.astype(np.str_)), match


def classify(
    model: Any, X: Any, zero_weight: bool, covariates: Covariates | None = None
) -> tuple[npt.NDArray[Any], FloatArray]:
    """Labels and probabilities.

    With `zero_weight` those of each sample are of the rule without what it lacks (NaN).
    """
    dense = isinstance(X, np.ndarray)
    missing = np.isnan(X) if zero_weight and dense else np.zeros((1, 0), bool)
    if not missing.any():
        own = given(covariates, np.arange(X.shape[0]))
        return model.predict(X, **own), model.predict_proba(X, **own)
    patterns, group = np.unique(
        np.packbits(missing, axis=1), axis=0, return_inverse=True
    )
    labels = np.empty(len(X), dtype=model.classes_.dtype)
    probabilities = np.empty((len(X), len(model.classes_)))
    for k in range(len(patterns)):
        rows = np.flatnonzero(group == k)
        absent = missing[rows[0]]
        part, known = model.without(absent), np.where(absent, 0.0, X[rows])
        own = given(covariates, rows)
        labels[rows], probabilities[rows] = (
            part.predict(known, **own),
            part.predict_proba(known, **own),
        )
    return labels, probabilities


def completed(model: Any, X: Any) -> tuple[Any, Any]:
    """The model without features that no sample has, and X without gaps.

    Other missing values are replaced by the mean of the class means.
    """
    if not isinstance(X, np.ndarray) or not np.isnan(X).any():
        return model, X
    absent = np.isnan(X).all(axis=0)
    middle = model.moments_.means.mean(axis=0)
    return model.without(absent), np.where(np.isnan(X), middle, X)


def remarks(
    table: Table, match: Match, missing: str, is_filled: bool = False
) -> list[str]:
    """What was done to the data before they were classified."""
    lines = []
    if table.transformation != "none":
        lines.append(f"The values are {table.transformation}, as for the fit.")
    if match.n_extra:
        lines.append(
            f"{counted(match.n_extra, 'feature')} unknown to the model, and ignored."
        )
    if match.missing:
        lines.append(
            f"{counted(len(match.missing), 'feature')} of the model "
            f"{'is' if len(match.missing) == 1 else 'are'} missing, and given no "
            f"weight: {quoted(match.missing, 5)}."
        )
    if match.n_filled:
        done = "given no weight"
        if is_filled:
            done = "replaced by the medians of the fit"
        elif missing != "zero-weight":
            done = "left out of the scores of their samples"
        lines.append(f"{counted(match.n_filled, 'missing value')} {done}.")
    return lines
