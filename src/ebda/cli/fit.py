"""Fit a classifier to a file, with its cross-validated error.

Reads a table of samples and features, says how it was understood, estimates the error
by cross-validation, fits the classifier to all samples, and prints the error, the
confusion table, what to be cautious about, and the features that matter.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from ebda.cli import options as shared
from ebda.cli.class_priors import class_priors
from ebda.cli.feature_table import feature_columns
from ebda.cli.fitting import fitted_to
from ebda.cli.known import covariates_for
from ebda.cli.outcome import Fitted, about, base_of, judged_by, record, words
from ebda.cli.output import put_json, writer_for
from ebda.cli.predictions import held_out_columns
from ebda.cli.progress import is_small, working
from ebda.cli.samples import read_test, read_training, training_values
from ebda.cli.terminal import refuse_closed, say
from ebda.covariance import COVARIANCES
from ebda.covariance.sample_scale import SAMPLE_SCALES
from ebda.covariance.wild import WILD_VALUES
from ebda.data.distortion import LogarithmWarning
from ebda.inputs.formats import names_of
from ebda.inputs.matching import by_name
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
        "--features",
        type=Path,
        metavar="FILE",
        help="write a table of all features, best first: CSV, TSV, Excel or Parquet by "
        "the ending",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write a table of the held-out predictions: those of the "
        "cross-validation, or of --test where there is none",
    )
    parser.add_argument(
        "--test", type=Path, metavar="DATA", help="samples for a test of the model"
    )
    parser.add_argument(
        "--test-labels", type=Path, metavar="FILE", help="their labels, as --labels"
    )
    shared.add_missing(parser)
    parser.add_argument(
        "--folds",
        "--cv",
        type=_folds,
        default=5,
        metavar="N",
        help="folds of the cross-validation, 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--repeats",
        type=_repeats,
        default=1,
        metavar="N",
        help="repeat the cross-validation with other folds, and give the mean error "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--priors",
        type=class_priors,
        metavar="P",
        help="class probabilities: empirical, uniform, or one for each class such as "
        "ill=0.2,well=0.8 (default: the shares of the data)",
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
        "--wild-values",
        choices=[*WILD_VALUES],
        default="auto",
        help="whether single values that are impossibly far count (default: "
        "%(default)s)",
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
        f"({names_of('open')}), and estimate the error from the samples that are kept "
        "for the folds; the default for data larger than half of the free memory",
    )
    shared.add_printing(parser)


def _folds(text: str) -> int:
    number = int(text)
    if number < 0 or number == 1:
        raise argparse.ArgumentTypeError("give 2 folds or more, or 0 for none")
    return number


def _repeats(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 repetition or more")
    return number


def run(options: argparse.Namespace) -> None:
    """Read, preview, evaluate, fit, write and print."""
    for name in ("model", "report"):
        shared.check_writable(f"--{name}", getattr(options, name))
    put = {
        name: writer_for(path, f"--{name}")
        for name in ("features", "out")
        if (path := getattr(options, name)) is not None
    }
    shared.check_apart(options, "model", "report", "features", "out")
    if options.json:
        refuse_closed("leave --json out")
    start = time.perf_counter()
    with working(f"reading {options.data}", options.quiet or is_small(options.data)):
        table = read_training(options, options.folds)
        test = read_test(options, table)
    if "out" in put and not (options.folds or test):
        raise ValueError(
            "--out needs samples that are predicted by models without them: leave "
            "--folds 0 out, or give --test"
        )
    read_in = time.perf_counter() - start
    # With --json standard output is for the object alone.
    stream = sys.stderr if options.json else sys.stdout
    if not options.quiet:
        say(f"{table.preview()}\n", stream)
    with warnings.catch_warnings():
        # The preview has said it already, or --quiet was given.
        warnings.simplefilter("ignore", LogarithmWarning)
        fitted = fitted_to(table, test, options, read_in)
    with working("writing", options.quiet):
        written = _write(fitted, options, put)
        cautions = judged_by(fitted, options)
    if options.json:
        put_json(record(fitted, written, cautions, options))
    elif not options.quiet:
        say(words(fitted, written, cautions, options))


def _write(
    fitted: Fitted, options: argparse.Namespace, put: dict[str, Callable[..., None]]
) -> dict[str, Path]:
    """Model file, report and tables, as asked for."""
    judged, data = fitted.judged, about(fitted, options)
    names = None if judged is None else judged.sample_names.tolist()
    written = {}
    if options.model is not None:
        from ebda import modelfile

        training = training_values(fitted.seen, options.impute)
        modelfile.save(fitted.model, options.model, fitted.evaluation, data, training)
        written["model"] = options.model
    if "features" in put:
        put["features"](feature_columns(fitted.model, base_of(options.log)))
        written["features"] = options.features
    if "out" in put:
        assert fitted.evaluation is not None
        found = [fitted.evaluation]
        if fitted.repeated is not None:
            found = list(fitted.repeated.evaluations)
        assert names is not None
        put["out"](held_out_columns(found, names))
        written["out"] = options.out
    if options.report is not None:
        from ebda import report

        with by_name():
            report.write_report(
                options.report,
                fitted.model,
                X=None if judged is None else judged.X,
                y=None if judged is None else judged.y,
                evaluation=fitted.evaluation,
                sample_names=names,
                data=data,
                command=options.command_line,
                covariates=(
                    None if judged is None else covariates_for(fitted.model, judged)
                ),
            )
        written["report"] = options.report
    return written
