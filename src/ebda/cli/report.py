"""Write the page about a model file.

Writes the HTML page about a model that ebda fit has written, with the samples of a
file: those of the fit, with the error that was found then, or new ones.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ebda.cli import options as shared
from ebda.cli.comparison import compared
from ebda.cli.known import covariates_for, remarks_on_covariates
from ebda.cli.outcome import facts
from ebda.cli.predict import completed, is_filled, read_for, remarks
from ebda.cli.terminal import say
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import Evaluation, evaluate
from ebda.inputs import Match, Table
from ebda.inputs.labels import NoLabelsError, align
from ebda.inputs.matching import by_name
from ebda.modelfile import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    shared.add_model(parser)
    shared.add_data(parser)
    shared.add_labels(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write the page (default: MODEL with the ending .html)",
    )
    parser.add_argument(
        "--test",
        action="store_true",
        help="the samples took no part in the fit: show the error on them",
    )
    shared.add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Load, read, and write the page."""
    from ebda import modelfile
    from ebda import report as page

    out = options.out or options.model.with_suffix(".html")
    shared.check_writable("--out", out)
    shared.check_apart(options, "out")
    record = modelfile.load_record(options.model)
    if not isinstance(record.model, EBClassifier):
        kind = type(record.model).__name__
        raise ValueError(f"{options.model} holds a {kind}; a report is of EBClassifier")
    data = facts(record.data, options.model)
    options.drop = [*options.drop, *data.get("drop", [])]
    table, match = _read(record, data, options)
    warned: list[str] = []
    if table.fingerprint() != data.get("fitted_to"):
        _, warned = compared(
            record.model,
            table.X,
            record.training,
            match.missing,
            table.source,
            log=(record.data or {}).get("log", False),
        )
    if table.y is not None:
        y = align(table.y, record.model.classes_, table.sample_names, table.source)
        table = replace(table, y=y)
    model = record.model
    if options.missing == "zero-weight":
        model, X = completed(model, table.X)
        table = replace(table, X=X)
    with by_name():
        shown = honest(model, record.evaluation, data, table, options.test)
        page.write_report(
            out,
            model,
            X=table.X,
            y=shown.y,
            evaluation=shown.evaluation,
            sample_names=shown.sample_names,
            data=data,
            command=data.get("command"),
            covariates=covariates_for(model, table),
        )
    if not options.quiet:
        lines = remarks(table, match, options.missing, is_filled(record, data))
        lines += [*shown.remarks, *remarks_on_covariates(model, table), *warned]
        for line in lines:
            say(line, sys.stderr)
        say(f"Written: {out}")


def _read(
    record: Record, data: dict[str, Any], options: argparse.Namespace
) -> tuple[Table, Match]:
    """The samples, with the labels that the fit had if they are there."""
    known = data.get("target")
    asked = options.target or options.labels or data.get("labels")
    if not asked and known not in options.drop:
        options.target = known
        with suppress(NoLabelsError):
            return read_for(record, data, options, data.get("impute"))
        options.target = None
    return read_for(record, data, options, data.get("impute"))


@dataclass(frozen=True, eq=False)
class Shown:
    """What the page may say about the samples."""

    y: npt.NDArray[Any] | None
    evaluation: Evaluation | None
    sample_names: list[str] | None
    remarks: tuple[str, ...] = ()


def honest(
    model: Any,
    kept: Evaluation | None,
    data: dict[str, Any],
    table: Table,
    test: bool,
) -> Shown:
    """The error that can be shown with these samples.

    With the samples that the saved error was estimated from, that error. Others are a
    test only if the user says that they took no part in the fit: they may be a part of
    the training data, or the same data with other digits.
    """
    samples = table.fingerprint()
    names: list[str] = table.sample_names.tolist()
    if test:
        if samples == data.get("fitted_to"):
            raise ValueError(
                f"{table.source}: these are the samples of the fit, and no test; leave "
                "--test out"
            )
        if table.y is None:
            raise ValueError(
                f"{table.source}: a test needs labels; say with --target or --labels "
                "where they are"
            )
        own = covariates_for(model, table)
        return Shown(table.y, evaluate(model, table.X, table.y, own), names)
    if kept is None:
        return Shown(table.y, None, names)
    if samples == data.get("evaluated_on"):
        return Shown(kept.classes[kept.codes], kept, names)
    remark = (
        "The error on the page was estimated from other samples; if these took no part "
        "in the fit and have labels, --test shows the error on them."
    )
    # As many names as other samples have would be taken for theirs.
    mine = None if len(names) == len(kept.codes) else names
    new = samples != data.get("fitted_to")
    return Shown(table.y, kept, mine, (remark,) if new else ())
