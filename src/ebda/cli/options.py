"""Options that several commands share, and checks before they start."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ebda import files
from ebda.inputs.cells import DECIMALS
from ebda.inputs.formats import names_of
from ebda.inputs.logarithms import LOGARITHMS
from ebda.inputs.names import DUPLICATES
from ebda.inputs.orientation import ORIENTATIONS
from ebda.inputs.values import IMPUTATIONS
from ebda.priors import PRIORS


def add_data(parser: argparse.ArgumentParser) -> None:
    """The data, and how they lie in the file."""
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help=f"{names_of('load')}; the format is recognised by the content",
    )
    parser.add_argument(
        "--orient",
        choices=ORIENTATIONS,
        default="auto",
        help="where the samples are: in rows, or in columns as expression tables have "
        "them (default: guessed, and reported)",
    )
    add_text(parser)
    parser.add_argument(
        "--max-memory",
        type=_gigabytes,
        metavar="GB",
        help="gigabytes that the content of a file may take up (default: 1, or 20 "
        "times as much as the file has)",
    )
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="NAME",
        help="a column, row or feature to leave out; may be given several times",
    )


def add_text(parser: argparse.ArgumentParser) -> None:
    """How numbers are written in text."""
    parser.add_argument(
        "--decimal",
        choices=DECIMALS,
        help="the decimal sign of text files; the other one may stand between "
        "thousands (default: found out, and an error where both would do)",
    )


def _gigabytes(text: str) -> int:
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is no number of gigabytes")
    return int(number * 1e9)


def add_labels(parser: argparse.ArgumentParser) -> None:
    """Where the labels are."""
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="column of the labels (or row, where samples are columns; a column of obs "
        "for AnnData, an array for .npz; a column of the file that --labels names)",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="a second file with the labels, matched by the names of the samples: a "
        f"table, or {names_of('labels')}",
    )


def add_known(parser: argparse.ArgumentParser) -> None:
    """What else is known of the samples."""
    add_groups(parser)
    parser.add_argument(
        "--covariates",
        type=_names,
        default=[],
        metavar="NAMES",
        help="columns to adjust for, separated by commas, such as age,sex,plate: where "
        "all cells are numbers a number, else a category",
    )


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Which samples belong together."""
    parser.add_argument(
        "--groups",
        metavar="NAME",
        help="column (or row, as --target; or a column of --labels) that says which "
        "samples belong together, such as the patient: they are held out together, and "
        "count as fewer",
    )


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of different names")
    return names


def aside(options: argparse.Namespace) -> list[str]:
    """Columns of groups and covariates."""
    groups = [] if options.groups is None else [options.groups]
    return list(dict.fromkeys([*groups, *options.covariates]))


def add_reading(parser: argparse.ArgumentParser) -> None:
    """What is done to the data of a fit, and again to those of a prediction."""
    parser.add_argument(
        "--impute",
        choices=IMPUTATIONS,
        help="fill missing values with the median of the feature (default: means and "
        "variances are of the values that are there)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--log2",
        dest="log",
        action="store_const",
        const="log2",
        default=False,
        help=f"take {LOGARITHMS['log2'].line} of the values, for raw intensities or "
        "counts; differences are then log2 fold changes",
    )
    which.add_argument(
        "--log",
        action="store_true",
        help=f"take the natural logarithm instead, {LOGARITHMS['natural'].line}",
    )
    parser.add_argument(
        "--layer",
        metavar="NAME",
        help="layer of AnnData, not X; sheet of a workbook, not the first",
    )
    parser.add_argument(
        "--duplicates",
        choices=sorted(DUPLICATES),
        default="error",
        help="features of the same name: an error (default), or numbered as R does",
    )


def add_table(parser: argparse.ArgumentParser) -> None:
    """Where a table is written to."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="CSV, TSV (also .gz), Excel or Parquet by the ending (default: CSV to "
        "standard output)",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """A fitted model, and what is done about data that lack something it needs."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    add_missing(parser)


def add_missing(parser: argparse.ArgumentParser) -> None:
    """What is done about samples that lack something the model needs."""
    parser.add_argument(
        "--missing",
        choices=["error", "zero-weight"],
        default="error",
        help="features of the model that new samples lack: an error (default), or left "
        "out of the rule, as missing values then are; else a missing value adds "
        "nothing to the score of its sample",
    )


def add_prior(parser: argparse.ArgumentParser, default: str = "dp") -> None:
    """The family of priors, and the seed of what is drawn for it."""
    priors = [name for name, family in PRIORS.items() if family.is_estimated]
    parser.add_argument("--prior", choices=priors, default=default)
    parser.add_argument("--seed", type=int, default=0, metavar="S")


def add_top(parser: argparse.ArgumentParser) -> None:
    """How many features are listed."""
    parser.add_argument(
        "--top",
        type=_at_least_zero,
        default=10,
        metavar="N",
        help="features to list (default: %(default)s)",
    )


def _at_least_zero(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative; give 0 for none")
    return number


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """How much a command prints."""
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def add_printing(parser: argparse.ArgumentParser) -> None:
    """How much a command prints, and as what."""
    add_quiet(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object to standard output, and nothing else",
    )


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """How the data of a fit are read: arguments of :func:`ebda.inputs.read`."""
    names = "target orient labels impute log layer drop duplicates decimal max_memory"
    return {name: getattr(options, name) for name in names.split()}


def remembered(data: dict[str, Any]) -> dict[str, Any]:
    """How the data of a model were read, for other data to be read the same way."""
    default = {"log": False, "layer": None, "duplicates": "error"}
    return {name: data.get(name, value) for name, value in default.items()}


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written, before hours of work are lost."""
    if path is None:
        return
    try:
        files.check(path)
    except OSError as error:
        raise ValueError(f"{option}: {error}") from None


def check_apart(options: argparse.Namespace, *outputs: str) -> None:
    """Refuse to write two things to one file, or over a file that is read.

    Parameters
    ----------
    options : Namespace
        Of the command.
    *outputs : str
        The options that name files to be written.
    """
    read = ("data", "model", "labels", "test", "test_labels", "file")
    given = {name: getattr(options, name, None) for name in read if name not in outputs}
    taken = {
        os.path.realpath(path): f"{path} is read"
        for path in given.values()
        if isinstance(path, Path)  # --test of a report is none
    }
    for name in outputs:
        path = getattr(options, name)
        if path is None or files.is_special(path):
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"--{name}: {taken[place]}; name another file")
        taken[place] = f"{path} is what --{name} writes"


def level(text: str) -> float:
    """A level between 0 and 1, for argparse."""
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value
