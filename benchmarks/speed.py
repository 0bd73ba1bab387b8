"""Fit times and memory against scikit-learn and others, as ratios in the same run.

    python benchmarks/speed.py [--quick] [--out docs/benchmarks] [--limit SECONDS]

Writes speed.csv, speed.png and speed.svg, and says which bars are met. adelie needs a
NumPy below 2: the environment variable EBDA_ADELIE_PYTHON names a Python that has it.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy
import sklearn

import speed_figure
from ebda.kernels.threads import available
from speed_bars import bars
from speed_measure import MOST_GIB, Result, measure, write
from speed_methods import METHODS

SIZES = (
    (60, 10_000),
    (60, 100_000),
    (60, 1_000_000),
    (60, 2_000_000),
    (60, 4_000_000),
    (2_000, 100_000),
)
QUICK_SIZES = ((60, 10_000), (60, 100_000), (60, 400_000))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, in a minute")
    add("--out", type=Path, help="folder (docs/benchmarks; with --quick a new one)")
    add("--limit", type=float, help="seconds a fit may take (60; with --quick 5)")
    add("--methods", nargs="+", metavar="NAME", help="of those below (all)")
    parser.epilog = "; ".join(METHODS)
    options = parser.parse_args()
    for name in options.methods or []:
        if name not in METHODS:
            parser.error(f"unknown {name!r}; known: {'; '.join(METHODS)}")
    return options


def machine() -> str:
    load = ", ".join(f"{x:.2f}" for x in os.getloadavg())
    return (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"{available(None)} threads for ours, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn "
        f"{sklearn.__version__}; load average {load}"
    )


def show(results: Sequence[Result]) -> None:
    first = results[0]
    print(f"\n{first.n:,} x {first.p:,} float32, load average {first.load:.2f}")
    print(f"  {'':<36}{'seconds':>9}{'over NB':>9}{'turns':>7}{'MiB above X':>13}")
    for r in results:
        if r.seconds is None:
            print(f"  {r.method:<36}{r.note}")
            continue
        over = "" if r.over_gaussian_nb is None else f"{r.over_gaussian_nb:.2f}"
        print(
            f"  {r.method:<36}{r.seconds:>9.4f}{over:>9}{r.turns:>7}"
            f"{r.peak_mib:>13.1f}  {r.note}",
            flush=True,
        )


def main() -> None:
    options = parse()
    limit = options.limit or (5.0 if options.quick else 60.0)
    default = Path("docs/benchmarks")
    if options.quick:
        default = Path(tempfile.mkdtemp(prefix="ebda-speed-"))
    out: Path = options.out or default
    out.mkdir(parents=True, exist_ok=True)
    print(machine())
    print(
        "MiB above X: peak resident size during a fit in a fresh process, less that of "
        f"the same process\nwith the code loaded and X made. Limits: {limit:g} s, "
        f"{MOST_GIB} GiB."
    )
    names = [name for name in METHODS if name in (options.methods or METHODS)]
    results: list[Result] = []
    slow: set[str] = set()
    for n, p in QUICK_SIZES if options.quick else SIZES:
        found = list(measure(n, p, names, slow, limit))
        show(found)
        results += found
    code = [r.code_mib for r in results if r.method == "moments" and r.code_mib]
    if code:
        print(
            f"\nNot counted: {max(code):.0f} MiB of code, once a process, for ebda, "
            "scikit-learn and Numba."
        )
    write(results, out / "speed.csv")
    speed_figure.draw(results, out)
    print("\nBars:")
    for line in bars(results):
        print(line, flush=True)
    print(f"\n{machine()}\nWritten to {out}")


if __name__ == "__main__":
    main()
