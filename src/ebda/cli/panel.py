"""Find a small panel of features: the error against their number, and a list.

Ranks the features and fits the classifier to the first 1, 2, 3, 5, ... of them, both
anew without each fold, so that no held-out sample has a part in either. The panel is
the smallest one whose error is within one standard error of the least; it can be
written as a list, a picture, and a model that needs these features only.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebda.cli import options as shared
from ebda.cli.known import groups_of
from ebda.cli.outcome import Fitted, about
from ebda.cli.output import put_json, writer_for
from ebda.cli.progress import is_small, steps, working
from ebda.cli.samples import read_training, training_values
from ebda.cli.terminal import refuse_closed, say
from ebda.covariance import COVARIANCES
from ebda.data.distortion import LogarithmWarning
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import Panel
from ebda.evaluation import panel as find_panel
from ebda.files import replacing
from ebda.inputs import Table
from ebda.rule.shrinkage import SHRINKAGES

_PICTURES = (".png", ".svg", ".pdf")
# Features that are printed.
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    shared.add_data(parser)
    shared.add_labels(parser)
    shared.add_groups(parser)
    shared.add_reading(parser)
    parser.add_argument(
        "--sizes",
        type=_sizes,
        metavar="NUMBERS",
        help="numbers of features to compare, such as 5,10,20,50 (default: 1, 2, 3, 5, "
        "... 1000 and all)",
    )
    parser.add_argument("--folds", type=_at_least(2), default=10, metavar="N")
    parser.add_argument(
        "--repeats",
        type=_at_least(1),
        default=1,
        metavar="N",
        help="deal the samples into folds so many times; the choice depends less on "
        "the deal then (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the features of the panel: CSV, TSV, Excel or Parquet by the "
        "ending",
    )
    parser.add_argument(
        "--curve",
        type=Path,
        metavar="FILE",
        help="write the error of each size, in the same formats",
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw it (.png, .svg or .pdf)"
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="write the model that needs these features only, for ebda predict",
    )
    shared.add_prior(parser)
    parser.add_argument("--shrinkage", choices=["auto", *SHRINKAGES], default="auto")
    parser.add_argument("--covariance", choices=["auto", *COVARIANCES], default="auto")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="number of folds at the same time"
    )
    shared.add_printing(parser)


def _sizes(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers of features")
    return found


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        found = int(text)
        if found < least:
            raise argparse.ArgumentTypeError(f"give {least} or more")
        return found

    return number


def run(options: argparse.Namespace) -> None:
    """Read, compare the sizes, write and print."""
    for name in ("model", "picture"):
        shared.check_writable(f"--{name}", getattr(options, name))
    put = {
        name: writer_for(path, f"--{name}")
        for name in ("out", "curve")
        if (path := getattr(options, name)) is not None
    }
    shared.check_apart(options, "model", "picture", "out", "curve")
    if options.json:
        refuse_closed("leave --json out")
    if options.picture is not None and options.picture.suffix not in _PICTURES:
        raise ValueError(
            f"--picture {options.picture}: the ending is none of {', '.join(_PICTURES)}"
        )
    options.on_disk, options.covariates = False, []
    with working(f"reading {options.data}", options.quiet or is_small(options.data)):
        # A class with one sample is in every fit, and never held out.
        table = read_training(options, n_folds=0)
    if not options.quiet:
        say(f"{table.preview()}\n", sys.stderr if options.json else sys.stdout)
    with warnings.catch_warnings():
        # The preview has said it already, or --quiet was given.
        warnings.simplefilter("ignore", LogarithmWarning)
        found = _found(table, options)
    features, curve = feature_columns(found, table), curve_columns(found)
    written = {}
    if "out" in put:
        put["out"](features)
        written["out"] = options.out
    if "curve" in put:
        put["curve"](curve)
        written["curve"] = options.curve
    if options.model is not None:
        _save(found, table, options)
        written["model"] = options.model
    if options.picture is not None and _drawn(found, options.picture):
        written["picture"] = options.picture
    if options.json:
        put_json(_record(found, features, curve, written))
    elif not options.quiet:
        names = ", ".join(features["feature"][:_SHOWN])
        if found.size > _SHOWN:
            names += f" and {found.size - _SHOWN} more"
        say(f"{found.words()}\n\n{found.table()}\n\nThe panel: {names}")
        for path in written.values():
            say(f"Written: {path}")


def _found(table: Table, options: argparse.Namespace) -> Panel:
    model = EBClassifier(
        prior=options.prior,
        shrinkage=options.shrinkage,
        covariance=options.covariance,
        random_state=options.seed,
    )
    groups = groups_of(table, options.groups)
    total = options.repeats * min(options.folds, max(table.class_counts.values()))
    assert table.y is not None
    with steps(total, options.quiet) as done:
        return find_panel(
            model,
            table.X,
            table.y,
            options.sizes,
            groups=groups,
            n_folds=options.folds,
            n_repeats=options.repeats,
            seed=options.seed,
            n_jobs=options.jobs,
            after_fold=lambda: done("fold"),
        )


def feature_columns(found: Panel, table: Table) -> dict[str, Any]:
    """The features of the panel as columns of a table, the strongest first."""
    listed = found.features
    return {
        "feature": table.feature_names[listed.columns].tolist(),
        "class": [str(label) for label in listed.label.tolist()],
        "difference": listed.difference,
        "low": listed.low,
        "high": listed.high,
        "t": listed.t,
        "share_of_folds": listed.share_of_folds,
    }


def curve_columns(found: Panel) -> dict[str, Any]:
    """The error of each size as columns of a table."""
    return {
        "n_features": found.sizes,
        "error": found.error,
        "standard_error": found.standard_error,
        "low": found.low,
        "high": found.high,
        "chosen": (found.sizes == found.size).tolist(),
    }


def _save(found: Panel, table: Table, options: argparse.Namespace) -> None:
    """The small model, as `ebda fit` would have written it."""
    from ebda import modelfile

    columns = found.columns
    part = replace(
        table, X=table.X[:, columns], feature_names=table.feature_names[columns]
    )
    model = found.model
    model.feature_names_in_ = part.feature_names.astype(object)
    fitted = Fitted(model, None, None, {}, part, part, None)
    training = training_values(part, options.impute)
    modelfile.save(model, options.model, None, about(fitted, options), training)


def _drawn(found: Panel, path: Path) -> bool:
    """Draw the picture, or say what is missing for it."""
    try:
        from ebda.plotting.panels import picture
    except ImportError as error:
        say(f"No picture: {error}", sys.stderr)
        return False
    with replacing(path) as stream:
        picture(found).savefig(stream, format=path.suffix[1:], dpi=150)
    return True


def _record(
    found: Panel,
    features: dict[str, Any],
    curve: dict[str, Any],
    written: dict[str, Path],
) -> dict[str, Any]:
    return {
        "size": found.size,
        "best": found.best,
        "n_samples": len(found.codes),
        "error_of_choice": found.error_of_choice,
        "chance_error": found.chance_error,
        "curve": curve,
        "features": features,
        "files": written,
    }
