"""Fit a classifier to a file, with its cross-validated error.

Reads a table of samples and features, says how it was understood, estimates the error
by cross-validation, fits the classifier to all samples, and prints the error, the
confusion table and the features that matter.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from ebda.cli import options as shared
from ebda.cli.known import covariates_for, covariates_of
from ebda.cli.outcome import Fitted, about, record, words
from ebda.cli.output import put_json
from ebda.cli.progress import steps
from ebda.cli.terminal import refuse_closed, say
from ebda.covariance import COVARIANCES
from ebda.covariance.sample_scale import SAMPLE_SCALES
from ebda.data.distortion import LogarithmWarning
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import cross_validate, evaluate
from ebda.inputs import Table, match_features, read
from ebda.inputs.formats import names_of
from ebda.inputs.labels import align, as_values
from ebda.inputs.matching import by_name
from ebda.inputs.on_disk import is_large, open_table
from ebda.inputs.values import medians
from ebda.listing import quoted
from ebda.rule.shrinkage import SHRINKAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    shared.add_data(parser)
    shared.add_labels(parser)
    shared.add_known(parser)
    shared.add_reading(parser)
    parser.add_argument("--model", type=Path, metavar="FILE", help="write the model")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write a page about it (HTML)"
    )
    parser.add_argument(
        "--test", type=Path, metavar="DATA", help="samples for a test of the model"
    )
    parser.add_argument(
        "--test-labels", type=Path, metavar="FILE", help="their labels, as --labels"
    )
    parser.add_argument(
        "--cv",
        type=_folds,
        default=5,
        metavar="FOLDS",
        help="folds of the cross-validation, 0 for none (default: %(default)s)",
    )
    shared.add_prior(parser)
    parser.add_argument("--shrinkage", choices=["auto", *SHRINKAGES], default="auto")
    parser.add_argument("--covariance", choices=["auto", *COVARIANCES], default="auto")
    parser.add_argument(
        "--sample-scale",
        choices=[*SAMPLE_SCALES],
        default="auto",
        help="whether samples may be noisier than others (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="number of threads; the result does not depend on it",
    )
    shared.add_top(parser)
    parser.add_argument(
        "--on-disk",
        action="store_true",
        help="read in blocks what does not fit in memory "
        f"({names_of('open')}), without cross-validation; the default for data larger "
        "than half of the free memory",
    )
    shared.add_printing(parser)


def _folds(text: str) -> int:
    number = int(text)
    if number < 0 or number == 1:
        raise argparse.ArgumentTypeError("give 2 folds or more, or 0 for none")
    return number


def run(options: argparse.Namespace) -> None:
    """Read, preview, evaluate, fit, write and print."""
    shared.check_writable("--model", options.model)
    shared.check_writable("--report", options.report)
    if options.json:
        refuse_closed("leave --json out")
    start = time.perf_counter()
    table = _read(options)
    if table.y is None:
        known = quoted(table.candidates, 6)
        raise ValueError(
            f"{options.data}: say with --target which column or row has the labels, or "
            "with --labels which file" + (f"; text is in {known}" if known else "")
        )
    _check_classes(table, options.cv)
    test = _read_test(options, table)
    read_in = time.perf_counter() - start
    # With --json standard output is for the object alone.
    stream = sys.stderr if options.json else sys.stdout
    if not options.quiet:
        say(f"{table.preview()}\n", stream)
    with warnings.catch_warnings():
        # The preview has said it already, or --quiet was given.
        warnings.simplefilter("ignore", LogarithmWarning)
        fitted = _fit(table, test, options, read_in)
    written = _write(table, test, fitted, options)
    if options.json:
        put_json(record(table, fitted, written, options))
    elif not options.quiet:
        say(words(fitted, written, options))


def _read(options: argparse.Namespace) -> Table:
    """The data in memory; or in blocks, if they are too large or the user says so."""
    if not (options.on_disk or is_large(options.data)):
        return read(
            options.data,
            **shared.reading(options),
            keep_missing=True,
            aside=shared.aside(options),
        )
    whole = {
        "--log": options.log,
        "--impute": options.impute,
        "--report": options.report,
        "--orient columns": options.orient == "columns",
    }
    refused = [name for name, value in whole.items() if value]
    if refused:
        raise ValueError(
            f"{options.data} is read in blocks, with samples in rows and values as "
            f"they are: {', '.join(refused)} cannot be used"
        )
    options.cv = 0  # each fold would read the data once more
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
            f"{table.source}: all samples are {next(iter(counts))!r} in "
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
            "cross-validation: --cv 0"
        )


def _read_test(options: argparse.Namespace, table: Table) -> Table | None:
    """The test samples, with the features and the labels of the training data."""
    if options.test is None:
        return None
    assert table.y is not None
    names = table.feature_names.tolist()
    same = shared.reading(options) | {"impute": None, "drop": ()}
    same["labels"] = options.test_labels or options.labels
    found = read(
        options.test,
        **same,
        features=names,
        keep_missing=True,
        aside=options.covariates,
    )
    if found.y is None:
        raise ValueError(f"{options.test}: the test samples need labels")
    every = np.arange(table.n_features)
    stand_in = np.full(table.n_features, np.nan)
    if options.impute is not None:
        stand_in = medians(table.X, every, names, table.source)
    way_out = "the model is fitted to them; correct the test data, or --drop them"
    match = match_features(found, names, stand_in, way_out=way_out)
    y = align(found.y, np.unique(table.y), found.sample_names, found.source)
    return replace(found, X=match.X, y=y, feature_names=table.feature_names)


def _fit(
    table: Table, test: Table | None, options: argparse.Namespace, read_in: float
) -> Fitted:
    """Cross-validate, fit to all samples, and test."""
    assert table.y is not None
    model = EBClassifier(
        prior=options.prior,
        shrinkage=options.shrinkage,
        covariance=options.covariance,
        sample_scale=options.sample_scale,
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    folds = min(options.cv, min(table.class_counts.values()))
    covariates, groups = covariates_of(table, options.covariates), None
    if options.groups is not None:
        groups = as_values(table.aside[options.groups])
    seconds = {"reading": read_in}
    crossed = tested = None
    with steps(folds + 1, options.quiet) as done:
        start = time.perf_counter()
        if folds:
            crossed = cross_validate(
                model,
                table.X,
                table.y,
                folds,
                options.seed,
                lambda: done("fold"),
                groups,
                covariates,
            )
            seconds["cross-validation"] = time.perf_counter() - start
        start = time.perf_counter()
        model.fit(table.X, table.y, groups=groups, covariates=covariates)
        model.feature_names_in_ = table.feature_names.astype(object)
        seconds["fit"] = time.perf_counter() - start
        done("fit to all samples")
    if test is not None:
        assert test.y is not None
        with by_name():
            own = covariates_for(model, test)
            tested = evaluate(model, test.X, test.y, own)
    return Fitted(model, crossed, tested, seconds, table.sample_names.tolist())


def _write(
    table: Table, test: Table | None, fitted: Fitted, options: argparse.Namespace
) -> dict[str, Path]:
    """Model file and report, as asked for."""
    judged = table if fitted.cross_validated is not None or test is None else test
    data = about(table, judged, options)
    written = {}
    if options.model is not None:
        from ebda import modelfile

        modelfile.save(fitted.model, options.model, fitted.evaluation, data)
        written["model"] = options.model
    if options.report is not None:
        from ebda import report

        with by_name():
            report.write_report(
                options.report,
                fitted.model,
                X=judged.X,
                y=judged.y,
                evaluation=fitted.evaluation,
                sample_names=judged.sample_names.tolist(),
                data=data,
                command=options.command_line,
                covariates=covariates_for(fitted.model, judged),
            )
        written["report"] = options.report
    return written
