"""``ebda report``: the page about a model, again or for other samples."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebda.cli import options as shared
from ebda.cli.predict import read_for, remarks
from ebda.evaluation import Evaluation, evaluate
from ebda.inputs import Table
from ebda.inputs.labels import align
from ebda.inputs.matching import by_name

HELP = "write the page about a model file"
DESCRIPTION = (
    "Writes the HTML page about a model that ebda fit has written, with the samples of "
    "a file: those of the fit, with the error that was found then, or new ones."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    shared.add_data(parser)
    shared.add_labels(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write the page (default: MODEL with the ending .html)",
    )
    parser.add_argument(
        "--missing",
        choices=["error", "zero-weight"],
        default="error",
        help="as in ebda predict",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="say nothing but what is wrong"
    )


def run(options: argparse.Namespace) -> None:
    """Load, read, and write the page."""
    from ebda import modelfile
    from ebda import report as page

    out = options.out or options.model.with_suffix(".html")
    shared.check_folder("--out", out)
    record = modelfile.load_record(options.model)
    data = dict(record.data or {})
    if options.target is None and options.labels is None:
        options.target = data.get("target")
    table, match = read_for(record.model, data, options)
    y = table.y
    if y is not None:
        y = align(y, record.model.classes_, table.sample_names, table.source)
    table = replace(table, X=match.X, y=y)
    with by_name():
        page.write_report(
            out,
            record.model,
            X=table.X,
            y=table.y,
            evaluation=honest_error(record, data, table),
            sample_names=table.sample_names.tolist(),
            data=data,
            command=data.get("command"),
        )
    if not options.quiet:
        for line in remarks(table, match):
            print(line, file=sys.stderr)
        print(f"Written: {out}")


def honest_error(record: Any, data: dict[str, Any], table: Table) -> Evaluation | None:
    """The error that can be shown beside these samples.

    For those that the kept error is about, that error. Other samples of the fit have
    none, because the model knows them. New samples with labels are a test.
    """
    samples = replace(table, feature_names=_names_or(table, record.model)).fingerprint()
    if samples == data.get("evaluated_on"):
        kept: Evaluation | None = record.evaluation
        return kept
    if samples == data.get("fitted_to") or table.y is None:
        return None
    return evaluate(record.model, table.X, table.y)


def _names_or(table: Table, model: Any) -> Any:
    names = getattr(model, "feature_names_in_", None)
    return table.feature_names if names is None else names
