"""Classify new samples with a model file.

Classifies the samples of a file with a model that ebda fit has written. Features are
found by name, in any order; those that the model does not know are ignored. Logarithms
are taken if they were for the fit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ebda.cli import options as shared
from ebda.cli.outcome import facts
from ebda.cli.output import put_json, writer_for
from ebda.cli.terminal import say
from ebda.inputs import Match, Table, match_features, read
from ebda.inputs.matching import by_name
from ebda.listing import counted, escaped, quoted
from ebda.typing import FloatArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    shared.add_model(parser)
    shared.add_data(parser)
    shared.add_table(parser)
    shared.add_printing(parser)


def run(options: argparse.Namespace) -> None:
    """Load, read, match, predict, write."""
    from ebda import modelfile

    start = time.perf_counter()
    put_table = writer_for(options.out)
    record = modelfile.load_record(options.model)
    table, match = read_for(record.model, facts(record.data, options.model), options)
    with by_name():
        predicted = record.model.predict(table.X)
        probabilities = record.model.predict_proba(table.X)
    classes = [str(label) for label in record.model.classes_.tolist()]
    if options.out is not None or not options.json:
        columns = {"sample": table.sample_names.tolist(), "predicted": predicted}
        for label, column in zip(classes, probabilities.T, strict=True):
            columns[f"probability_{label}"] = column
        put_table(columns)
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
        for line in remarks(table, match):
            say(line, sys.stderr)
        if options.out is not None:
            say(f"Written: {options.out}", sys.stderr)


def read_for(
    model: Any,
    data: dict[str, Any],
    options: argparse.Namespace,
    impute: str | None = None,
) -> tuple[Table, Match]:
    """The data in the order of the model's features, read as the fit read its own."""
    if not hasattr(model, "predict_proba"):
        name = type(model).__name__
        raise ValueError(f"{options.model} holds a {name}, which classifies nothing")
    names = getattr(model, "feature_names_in_", None)
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
        **shared.remembered(data),
    )
    if names is None:
        names = table.feature_names
        if len(names) != model.n_features_in_:
            raise ValueError(
                f"{table.source}: the model has no names of features, and takes "
                f"{model.n_features_in_} by order; there are {len(names)}"
            )
    stand_in = neutral_values(model) if options.missing == "zero-weight" else None
    way_out = "give them, or go on without their weight: --missing zero-weight"
    match = match_features(
        table, names.tolist(), stand_in, absent=stand_in is not None, way_out=way_out
    )
    return replace(table, X=match.X, feature_names=names.astype(np.str_)), match


def neutral_values(model: Any) -> FloatArray:
    """For each feature the value at which it favours no class.

    The score depends on a feature through its distance to the mean of the class means
    (for two classes, the midpoint): at this value the feature adds nothing.
    """
    if not hasattr(model, "moments_"):
        raise ValueError(
            f"a {type(model).__name__} keeps no class means, so that --missing "
            "zero-weight cannot be used with it; give all features"
        )
    middle: FloatArray = np.asarray(model.moments_.means).mean(axis=0)
    return middle


def remarks(table: Table, match: Match) -> list[str]:
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
            f"{counted(len(match.missing), 'feature')} of the model missing, and given "
            f"no weight: {quoted(match.missing, 5)}."
        )
    if match.n_filled:
        lines.append(f"{counted(match.n_filled, 'missing value')} given no weight.")
    return lines
