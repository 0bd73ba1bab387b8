"""Is EBClassifier the most accurate? Real and simulated data, against its peers.

    python benchmarks/accuracy.py [--quick] [--out docs/benchmarks]

Every method sees the same folds of the real data, and the same drawings of the paper's
simulations. Runs can be stopped at any moment and go on where they were; --redo runs
the named methods again, after they have changed. The bars of fit_time.py and
no_signal.py are shown beside its own, from what those have left in the same folder.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import accuracy_figure
import accuracy_report as report
import accuracy_scores
import fit_time
import no_signal
import real_data
import simulations
from peers import METHODS

QUICK_SETS = ("alon_colon", "khan_srbct", "shipp_dlbcl_fl")
QUICK_REPS = 2


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", nargs="+", metavar="NAME", help="real data sets (all)")
    add("--methods", nargs="+", metavar="NAME", help=f"of {', '.join(METHODS)} (all)")
    add("--repeats", type=int, default=5, help="of five-fold cross-validation (5)")
    add("--reps", type=int, default=20, help="drawings of the simulations (20)")
    add("--jobs", type=int, default=2, help="fits at a time (2)")
    add("--out", type=Path, help="folder (docs/benchmarks; with --quick a new one)")
    add("--quick", action="store_true", help="a few sets and rows, in two minutes")
    add("--redo", action="store_true", help="run the methods of --methods again")
    add("--records-only", action="store_true", help="write no tables and figures")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--simulations-only", action="store_true")
    only.add_argument("--real-only", action="store_true")
    options = parser.parse_args()
    if options.redo and not options.methods:
        parser.error("--redo needs --methods")
    for wanted, known in (
        (options.methods, list(METHODS)),
        (options.sets, real_data.names()),
    ):
        if unknown := [name for name in wanted or [] if name not in known]:
            parser.error(f"unknown {unknown[0]!r}; known: {', '.join(known)}")
    if min(options.repeats, options.reps) < 1:
        parser.error("--repeats and --reps must be at least 1")
    return options


def run_real(options: argparse.Namespace, out: Path) -> None:
    known = real_data.names()
    if not known:
        print(f"no real data in {real_data.folder()}; set EBDA_DATA", file=sys.stderr)
        return
    default = [name for name in known if name in QUICK_SETS or not options.quick]
    sets: Sequence[str] = options.sets or default
    methods = [name for name in METHODS if name in (options.methods or METHODS)]
    for name in sets:
        print(real_data.load(name), flush=True)
    path = out / "accuracy.jsonl"
    if options.redo:
        found = real_data.read(path)
        forget = set(methods)
        real_data.rewrite(
            path,
            [r for r in found if r["method"] not in forget or r["set"] not in sets],
        )
    repeats = 1 if options.quick else options.repeats
    for record in real_data.carry_out(path, sets, methods, repeats, options.jobs):
        if record["fold"] == real_data.FOLDS - 1:
            print(
                f"  repeat {record['repeat'] + 1} {record['method']} "
                f"{record['set']}: {record['fit_time']:.2f} s a fit",
                flush=True,
            )


def run_simulations(options: argparse.Namespace, out: Path) -> None:
    tasks = simulations.run(
        out / "simulations.jsonl",
        ours="EBClassifier" in (options.methods or METHODS),
        rows=simulations.QUICK_ROWS if options.quick else None,
        reps=QUICK_REPS if options.quick else options.reps,
        n_jobs=options.jobs,
        redo=options.redo,
    )
    for count, task in enumerate(tasks, start=1):
        if count % 10 == 0:
            print(f"  {count} drawings, now repetition {task.repetition + 1}")


def main() -> None:
    options = parse()
    default = Path("docs/benchmarks")
    if options.quick:
        default = Path(tempfile.mkdtemp(prefix="ebda-accuracy-"))
    out: Path = options.out or default
    out.mkdir(parents=True, exist_ok=True)
    if not options.simulations_only:
        run_real(options, out)
    if not options.real_only:
        run_simulations(options, out)
    if options.records_only:
        return
    command = shlex.join(["python", "benchmarks/accuracy.py", *sys.argv[1:]])
    records = real_data.read(out / "accuracy.jsonl")
    scores = accuracy_scores.summarise(
        r for r in records if r["repeat"] < options.repeats
    )
    compared, names = accuracy_scores.parted(scores)
    fewer = [accuracy_scores.on_the_same_splits(records, name) for name in names]
    rows = simulations.compare(out / "simulations.jsonl")
    (out / "accuracy.csv").write_text(accuracy_scores.to_csv(scores))
    (out / "simulations.csv").write_text(simulations.to_csv(rows))
    there = {score.set for score in scores}
    data = [str(real_data.load(name)) for name in real_data.names() if name in there]
    bars = [
        *(accuracy_scores.judge(accuracy_scores.grid(compared)) if compared else []),
        *fit_time.judge(fit_time.read(out / fit_time.FILE)),
        *no_signal.judge(no_signal.read(out / no_signal.FILE)),
    ]
    text = report.to_markdown(compared, fewer, rows, data, bars, command)
    (out / "README.md").write_text(text)
    accuracy_figure.draw(compared, rows, out)
    print(report.to_terminal(compared, rows, bars))
    print(f"\nWritten to {out}")


if __name__ == "__main__":
    main()
