"""Shrink a column of estimates, with false sign rates and intervals.

Estimates the prior of the true values behind a column of estimates (z-scores, or
estimates with standard errors), and adds columns to the table: posterior_mean,
posterior_sd, prob_zero (probability of belonging to the bulk of the values), lfsr
(local false sign rate), q_value and s_value (shares of false discoveries and of false
signs in a list that ends there), lower and upper (the ends of the interval).
"""

from __future__ import annotations

import argparse
import math
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
from ebda.priors.reporting import NULLS
from ebda.typing import FloatArray

# Expected share of false signs among the rows that are counted.
_LEVEL = 0.05
# What columns of standard errors are called, in lower case.
_STANDARD_ERRORS = ("lfcse", "se", "std_error", "std.error", "stderr", "standard_error")


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
    parser.add_argument(
        "--df",
        metavar="COL",
        help="column of the degrees of freedom of the standard errors, or a number",
    )
    parser.add_argument(
        "--null",
        choices=NULLS,
        default="auto",
        help="what differences are judged against: the bulk of the values (empirical, "
        "the default), or exactly zero (point)",
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
    shared.add_prior(parser, "stacked")
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
    shared.check_apart(options, "out")
    sheet = _read(options.file, options.decimal)
    x = _numbers(sheet, options.estimate, options.file)
    scale = np.ones_like(x)
    if options.se is not None:
        scale = _numbers(sheet, options.se, options.file)
        _refuse_rows(
            scale <= 0, options.file, options.se, "a standard error must be positive"
        )
    df = None if options.df is None else _degrees(sheet, options.df, options.file)
    columns_read = {options.estimate: x, options.se: scale}
    if df is not None:
        columns_read[options.df] = df
    if options.missing == "error":
        advice = "correct them, or let such rows stay empty: --missing keep"
        for name, column in columns_read.items():
            _refuse_rows(np.isnan(column), options.file, name, advice)
    if np.isnan(sum(columns_read.values())).all():
        raise ValueError(f"{options.file}: no row has an estimate")
    means = NormalMeans(options.prior, options.null, random_state=options.seed)
    means.fit(x, None if options.se is None else scale, df)
    added = results(means, options.level)
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
        if options.se is None:
            say(_taken_as_one(sheet.names), sys.stderr)
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


def _degrees(sheet: Sheet, given: str, path: Path) -> FloatArray:
    """Degrees of freedom: a column, or a number for all rows."""
    try:
        df = np.full(sheet.frame.height, float(given))
    except ValueError:
        df = _numbers(sheet, given, path)
    _refuse_rows(df <= 0, path, given, "degrees of freedom must be positive")
    return df


def results(means: NormalMeans, level: float) -> dict[str, list[float | None]]:
    """The columns to add; None in rows without an estimate."""
    lower, upper = means.interval(level)
    columns = {
        "posterior_mean": means.posterior_mean_,
        "posterior_sd": means.posterior_sd_,
        "prob_zero": means.prob_zero_,
        "lfsr": means.lfsr_,
        "q_value": means.q_value_,
        "s_value": means.s_value_,
        "lower": lower,
        "upper": upper,
    }
    return {
        name: [None if math.isnan(value) else value for value in column.tolist()]
        for name, column in columns.items()
    }


def _taken_as_one(names: list[str]) -> str:
    """That there are no standard errors, and which column may have them."""
    words = "The standard errors are taken as 1, as z-scores have them"
    alike = [name for name in names if name.lower() in _STANDARD_ERRORS]
    if alike:
        words += f"; is there a column of them, --se {alike[0]}?"
        return words
    return f"{words}."


def _words(means: NormalMeans, options: argparse.Namespace) -> str:
    n = int(np.count_nonzero(~np.isnan(means.lfsr_)))
    lines = [f"{counted(n, 'estimate')}."]
    if means.null_loc_ or means.null_scale_ != 1:
        lines.append(
            f"The bulk of them lies {means.null_loc_:+.2f} standard errors from zero "
            f"and is {means.null_scale_:.2f} times as wide as noise alone."
        )
    chosen = means.selected(_LEVEL)
    if not chosen.any():
        lines.append("None can be told from the bulk: there is nothing to list.")
    else:
        z = means.x_[chosen] / means.scale_[chosen] - means.null_loc_
        above = int(np.count_nonzero(z > 0))
        verb = "lies" if len(z) == 1 else "lie"
        lines.append(
            f"{len(z)} {verb} beyond it, {above} above and {len(z) - above} below "
            f"(s_value at most {_LEVEL:g}: at most {_LEVEL:.0%} of these signs are "
            "expected to be false)."
        )
    lines.append(
        f"Each interval holds the true value with probability {options.level:.0%}, "
        "for rows that were selected, too."
    )
    if options.out is not None:
        lines.append(f"Written: {options.out}")
    return "\n".join(lines)
