"""The samples of a fit and of its test, read and checked."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from scipy import sparse

from ebda.cli import options as shared
from ebda.inputs import Table, TrainingValues, match_features, read
from ebda.inputs.labels import align
from ebda.inputs.on_disk import is_large, open_table
from ebda.inputs.values import medians
from ebda.listing import quoted


def read_training(options: argparse.Namespace, n_folds: int) -> Table:
    """The data in memory; or in blocks, if they are too large or the user says so.

    Parameters
    ----------
    options : Namespace
        Of the command.
    n_folds : int
        Folds that need samples of each class; 0 for none.
    """
    table = _opened(options)
    if table.y is None:
        known = quoted(table.candidates, 6)
        raise ValueError(
            f"{options.data}: say with --target which column or row has the labels, or "
            "with --labels which file" + (f"; text is in {known}" if known else "")
        )
    _check_classes(table, n_folds)
    return table


def _opened(options: argparse.Namespace) -> Table:
    if not (options.on_disk or is_large(options.data)):
        return read(
            options.data,
            **shared.reading(options),
            keep_missing=True,
            aside=shared.aside(options),
        )
    whole = {
        "--log2 or --log": options.log,
        "--impute": options.impute,
        "--orient columns": options.orient == "columns",
    }
    refused = [name for name, value in whole.items() if value]
    if refused:
        raise ValueError(
            f"{options.data} is read in blocks, with samples in rows and values as "
            f"they are: {', '.join(refused)} cannot be used"
        )
    return open_table(
        options.data,
        options.target,
        options.labels,
        options.layer,
        options.drop,
        shared.aside(options),
    )


def _check_classes(table: Table, n_folds: int) -> None:
    counts = table.class_counts
    if len(counts) < 2:
        raise ValueError(
            f"{table.source}: all samples are {str(next(iter(counts)))!r} in "
            f"{table.labels_from}; a classifier needs two classes"
        )
    single = [label for label, n in counts.items() if n == 1]
    if len(single) == len(counts):
        raise ValueError(
            f"{table.source}: each sample has a class of its own in "
            f"{table.labels_from}; are these names? Say with --target where the "
            "labels are"
        )
    if single and n_folds:
        raise ValueError(
            f"{table.source}: cross-validation needs two samples of each class, and "
            f"there is only one of {quoted(single)}; leave it out, or skip "
            "cross-validation: --folds 0"
        )


def training_values(table: Table | None, impute: str | None) -> TrainingValues | None:
    """Ranges of the features for the model file; None where no values are at hand."""
    if table is None:
        return None
    filled = None
    if impute is not None:
        # Those of the values before: filling in does not change a median.
        every = np.arange(table.n_features)
        filled = medians(table.X, every, table.feature_names, table.source)
    return TrainingValues.of(table.X, filled)


def read_test(options: argparse.Namespace, table: Table) -> Table | None:
    """The test samples, with the features and the labels of the training data."""
    if options.test is None:
        return None
    assert table.y is not None
    names = table.feature_names
    same = shared.reading(options) | {"impute": None, "drop": ()}
    same["labels"] = options.test_labels or options.labels
    found = read(
        options.test,
        **same,
        features=names.tolist(),
        keep_missing=True,
        aside=options.covariates,
    )
    if found.y is None:
        raise ValueError(f"{options.test}: the test samples need labels")
    stand_in = np.full(len(names), np.nan)
    if options.impute is not None:
        # Features that are missing altogether stay without a value.
        there = np.flatnonzero(np.isin(names, found.feature_names))
        every = medians(table.X, there, names, table.source)
        stand_in[there] = every
    zero_weight = options.missing == "zero-weight"
    way_out = (
        "the model is fitted to them; correct the test data, --drop them, or go on "
        "without their weight: --missing zero-weight"
    )
    match = match_features(
        found, names.tolist(), stand_in, absent=zero_weight, way_out=way_out
    )
    y = align(found.y, np.unique(table.y), found.sample_names, found.source)
    X = match.X
    if sparse.issparse(X) and np.isnan(X.data).any():  # NaN is not zero
        X = X.toarray()
    return replace(found, X=X, y=y, feature_names=names)
