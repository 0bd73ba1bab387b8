"""Reproduce the tables and the figure of the paper.

Runs the paper's studies and writes results.csv, reproduction.md with each table beside
the published one, and figure1.png and .svg beside the published figure. Every finished
repetition is kept in runs.jsonl: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from ebda.cli.progress import steps
from ebda.cli.terminal import say
from ebda.files import is_special, replacing, write
from ebda.paper.runner import carry_out, key_of, plan, read_runs
from ebda.paper.studies import EXTRA, TABLES, Table, methods_of, published_errors
from ebda.paper.summary import Cell, summarise, to_csv, to_markdown

_SECONDS_BETWEEN_LINES = 30.0
NAMES = [*TABLES, "figure1", "all"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME")
    parser.add_argument("--reps", type=int, default=100, metavar="N")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["paper"],
        metavar="METHOD",
        help="columns of the tables by name (default: all of the paper's); 'paper' "
        f"for those, 'all' adds {', '.join(EXTRA)}",
    )
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="ROW", help="rows by their label"
    )
    parser.add_argument("--out", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.epilog = f"names: {', '.join(NAMES)}"


def run(options: argparse.Namespace) -> None:
    """Plan, run, and write the tables."""
    tables = _tables(options.names)
    _check(options, tables)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    path = out / "runs.jsonl"
    if is_special(path):
        raise ValueError(f"{path} is not a regular file: take another --out")
    _check_seed(out, options.seed)
    known = {key_of(record) for record in read_runs(path)}
    methods = {name: _methods(TABLES[name], options.methods) for name in tables}
    tasks = plan(methods, options.rows, options.reps, known)
    if known:
        say(f"{len(known)} results are there already, {len(tasks)} runs to go")
    with steps(len(tasks), seconds=_SECONDS_BETWEEN_LINES) as done:
        for _ in carry_out(tasks, path, options.seed, options.jobs):
            done("run")
    cells = summarise(read_runs(path))
    write(out / "results.csv", to_csv(cells))
    write(out / "reproduction.md", to_markdown(cells))
    write(out / "environment.json", environment(options.seed))
    if {"figure1", "table6", "all"} & set(options.names):
        draw(cells, out)
    say(to_markdown([cell for cell in cells if cell.table in tables]))
    say(f"Written: {out.resolve()}")


def _tables(names: list[str]) -> list[str]:
    if "all" in names:
        return list(TABLES)
    # Figure 1 is drawn from the repetitions of Table 6.
    wanted = {"table6" if name == "figure1" else name for name in names}
    return [name for name in TABLES if name in wanted]


def _methods(table: Table, wanted: list[str]) -> list[str]:
    groups = {"all": methods_of(table), "paper": table.columns}
    chosen = {m for name in wanted for m in groups.get(name, (name,))}
    return [method for method in methods_of(table) if method in chosen]


def _check(options: argparse.Namespace, tables: list[str]) -> None:
    if options.reps < 1:
        raise ValueError(f"--reps must be at least 1, got {options.reps}")
    methods = {m for name in tables for m in methods_of(TABLES[name])}
    rows = {row.label for name in tables for row in TABLES[name].rows}
    for what, given, known in (
        ("method", options.methods, methods | {"paper", "all"}),
        ("row", options.rows, rows),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"unknown {what} {unknown[0]!r}; known: {sorted(known)}")


def _check_seed(out: Path, seed: int) -> None:
    """Refuse to mix repetitions of different seeds in one folder."""
    path = out / "seed"
    there = path.read_text().strip() if path.exists() else str(seed)
    if there != str(seed):
        raise ValueError(
            f"{out} holds repetitions of --seed {there}, not {seed}: take another --out"
        )
    write(path, f"{seed}\n")


def environment(seed: int) -> str:
    """Versions and machine, as JSON."""
    packages = ("ebda", "numpy", "scipy", "scikit-learn", "joblib")
    about = {
        "seed": seed,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in packages},
    }
    return json.dumps(about, indent=2) + "\n"


def draw(cells: list[Cell], out: Path) -> None:
    """Figure 1: box plots of the errors in study 3, published and reproduced."""
    try:
        from ebda.plotting import ErrorDisplay
    except ImportError as error:
        say(f"no figure: {error}", sys.stderr)
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    errors = {c.method: c.errors for c in cells if c.table == "table6"}
    if errors:
        figure = Figure(figsize=(13, 4.5), layout="constrained")
        both: dict[str, Mapping[str, Sequence[float]]] = {
            "published": published_errors(errors),
            "reproduced": errors,
        }
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (title, of_methods) in zip(panels, both.items(), strict=True):
            if of_methods:
                ErrorDisplay(of_methods).plot(axes)
            axes.set_title(title)
        # Without a date and with fixed names the same results give the same bytes.
        with (
            mpl.rc_context({"svg.hashsalt": "ebda"}),
            replacing(out / "figure1.svg") as stream,
        ):
            figure.savefig(stream, format="svg", metadata={"Date": None})
        with replacing(out / "figure1.png") as stream:
            figure.savefig(stream, format="png", dpi=150)
