"""Shrink a column of estimates, with false sign rates and intervals.

Estimates the prior of the true values behind a column of estimates (z-scores, or
estimates with standard errors), and adds columns to the table: posterior_mean,
posterior_sd, prob_zero, lfsr (local false sign rate), q_value, lower and upper (the
ends of the interval).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.cli import options as shared
from ebda.cli.output import writer_for
from ebda.cli.terminal import say
from ebda.estimators.normal_means import NormalMeans
from ebda.inputs.base import Sheet
from ebda.inputs.cells import numbers
from ebda.inputs.formats import find_format, load_table, names_of
from ebda.listing import counted, listed, quoted
from ebda.rule.ranking import tail_average
from ebda.typing import FloatArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help=names_of("is_table"))
    parser.add_argument(
        "--estimate", required=True, metavar="COL", help="column of the estimates"
    )
    parser.add_argument(
        "--se",
        metavar="COL",
        help="column of their standard errors (default: 1, as z-scores have)",
    )
    shared.add_text(parser)
    shared.add_table(parser)
    parser.add_argument(
        "--level",
        type=shared.level,
        default=0.95,
        metavar="P",
        help="probability inside the interval (default: %(default)s)",
    )
    shared.add_prior(parser)
    parser.add_argument(
        "--missing",
        choices=["error", "keep"],
        default="error",
        help="rows without an estimate: an error (default), or kept with empty results",
    )
    parser.add_argument(
        "--prefix", default="", help="put before the names of the added columns"
    )
    shared.add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Read, denoise, write."""
    put_table = writer_for(options.out)
    sheet = _read(options.file, options.decimal)
    x = _numbers(sheet, options.estimate, options.file)
    scale = np.ones_like(x)
    if options.se is not None:
        scale = _numbers(sheet, options.se, options.file)
        _refuse_rows(
            scale <= 0, options.file, options.se, "a standard error must be positive"
        )
    there = ~(np.isnan(x) | np.isnan(scale))
    if options.missing == "error":
        advice = "correct them, or let such rows stay empty: --missing keep"
        for name, column in ((options.estimate, x), (options.se, scale)):
            _refuse_rows(np.isnan(column), options.file, name, advice)
    if not there.any():
        raise ValueError(f"{options.file}: no row has an estimate")
    means = NormalMeans(options.prior, random_state=options.seed)
    means.fit(x[there], None if options.se is None else scale[there])
    added = results(means, there, options.level)
    columns: dict[str, Any] = {
        name: sheet.frame.to_series(j) for j, name in enumerate(sheet.names)
    }
    for name, result in added.items():
        if options.prefix + name in columns:
            raise ValueError(
                f"{options.file} has a column {options.prefix + name!r} already; put "
                "something before the names of the new ones with --prefix"
            )
        columns[options.prefix + name] = result
    put_table(columns)
    if not options.quiet:
        say(_words(means, options), sys.stderr)


def _read(path: Path, decimal: str | None) -> Sheet:
    sheet = load_table(path, find_format(path), "denoise takes a table", decimal)
    twice = [name for name, n in Counter(sheet.names).items() if n > 1]
    if twice:
        raise ValueError(f"{path}: more than one column is named {quoted(twice)}")
    return sheet


def _numbers(sheet: Sheet, name: str, path: Path) -> FloatArray:
    """A column by name, as numbers."""
    if name not in sheet.names:
        raise ValueError(
            f"{path}: there is no column {name!r}; there are {quoted(sheet.names, 8)}"
        )
    column = sheet.frame.columns[sheet.names.index(name)]
    cells = numbers(sheet.frame.select(column), sheet.decimal)
    if cells.bad:
        row = int(cells.bad[0][0])
        raise ValueError(
            f"{path}: column {name!r} has {counted(len(cells.bad[0]), 'cell')} without "
            f"a number, the first {sheet.frame[column][row]!r} in row {row + 1}"
        )
    _refuse_rows(np.isinf(cells.values[:, 0]), path, name, "an estimate must be finite")
    return cells.values[:, 0]


def _refuse_rows(
    wrong: npt.NDArray[np.bool_], path: Path, name: str | None, advice: str
) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        raise ValueError(
            f"{path}: column {name!r} is missing or wrong in row "
            f"{listed(rows + 1, 3)}; {advice}"
        )


def results(
    means: NormalMeans, there: npt.NDArray[np.bool_], level: float
) -> dict[str, list[float | None]]:
    """The columns to add; None in rows without an estimate."""
    lower, upper = means.interval(level)
    columns = {
        "posterior_mean": means.posterior_mean_,
        "posterior_sd": means.posterior_sd_,
        "prob_zero": means.prob_zero_,
        "lfsr": means.lfsr_,
        "q_value": tail_average(means.lfsr_),
        "lower": lower,
        "upper": upper,
    }
    in_rows: dict[str, list[float | None]] = {}
    for name, column in columns.items():
        found = iter(column.tolist())
        in_rows[name] = [next(found) if here else None for here in there]
    return in_rows


def _words(means: NormalMeans, options: argparse.Namespace) -> str:
    n = len(means.posterior_mean_)
    sure = int(np.count_nonzero(tail_average(means.lfsr_) <= 0.05))
    pi0 = getattr(means.prior_, "pi0", None)
    zero = "" if pi0 is None else f" {pi0:.0%} of the true values are zero;"
    where = "" if options.out is None else f"\nWritten: {options.out}"
    return (
        f"{counted(n, 'estimate')}:{zero} {sure} have a sign with a false discovery "
        f"rate of 5%.{where}"
    )
