"""Time and memory of every method at one size.

Memory comes from a process of its own for each fit, which also finds out who takes
longer than the limit and is left out. Those that are left are then timed in one
process, turn by turn, and the fastest of their turns counts: what else the machine does
slows all alike.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ebda.sizes import override
from speed_data import data
from speed_methods import METHODS, Method

CHILD = Path(__file__).with_name("speed_child.py")
# Turns at most, and seconds after which a method has had enough of them.
TURNS, ENOUGH = 7, 8.0
# With fewer samples than this, who is too slow is so with more features too.
MANY = 1000
# A process that needs more memory than this is left out.
MOST_GIB = 14


@dataclass(frozen=True)
class Result:
    """One method at one size.

    Parameters
    ----------
    method, n, p
        What was fitted: n samples and p features of float32.
    seconds : float, optional
        The fastest fit; None where it was left out.
    over_gaussian_nb : float, optional
        That time over GaussianNB's in the same turns.
    turns : int
        How many fits the fastest is of.
    peak_mib : float, optional
        What the resident size rises by during a fit, above that of a process that
        has loaded the code and made X.
    code_mib : float, optional
        What loading the code takes.
    load : float
        Load average of the machine meanwhile.
    note : str
        Why it was left out, or in which process it was timed.
    """

    method: str
    n: int
    p: int
    seconds: float | None
    over_gaussian_nb: float | None
    turns: int
    peak_mib: float | None
    code_mib: float | None
    load: float
    note: str = ""


def in_child(
    name: str, method: Method, n: int, p: int, limit: float
) -> dict[str, float] | str:
    """Time and memory of a fit in a fresh process, or why there are none."""
    interpreter = method.interpreter() if method.python else sys.executable
    if interpreter is None:
        return f"left out: {method.python} names no interpreter that has it"
    repeats = 3 if method.python and n * p <= 10**7 else 1
    command = [interpreter, CHILD, name, *map(str, (n, p, repeats, MOST_GIB))]
    # Twice the limit, and what making X takes: the first fit of a process is slow.
    patience = 2 * limit + n * p / 2e7 + 20
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return f"left out: over {limit:g} s"
    if done.returncode in (3, -9):
        return f"left out: over {MOST_GIB} GiB"
    if done.returncode:
        return f"left out: {(done.stderr.strip() or 'failed').splitlines()[-1]}"
    found: dict[str, float] = json.loads(done.stdout)
    return f"left out: over {limit:g} s" if found["seconds"] > limit else found


def turn_by_turn(names: Sequence[str], n: int, p: int) -> dict[str, list[float]]:
    """Times of methods that take turns on the same data."""
    X, y = data(n, p)
    times: dict[str, list[float]] = {name: [] for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Code is loaded before the clock starts.
        with override(compiled_elements=1, compiled_features=1):
            for name in names:
                METHODS[name].fit(X[:, :200].copy(), y)
        for _ in range(TURNS):
            for name in names:
                if sum(times[name]) > ENOUGH and len(times[name]) > 1:
                    continue
                start = time.perf_counter()
                METHODS[name].fit(X, y)
                times[name].append(time.perf_counter() - start)
    return times


def measure(
    n: int, p: int, names: Iterable[str], slow: set[str], limit: float
) -> Iterator[Result]:
    """All methods at one size; those that turn out too slow are added to `slow`."""
    children = {}
    for name in names:
        if name in slow and n < MANY:
            children[name] = f"left out: over {limit:g} s with fewer features"
        else:
            children[name] = in_child(name, METHODS[name], n, p, limit)
    timed = [
        name
        for name, child in children.items()
        if not isinstance(child, str) and not METHODS[name].python
    ]
    times = turn_by_turn(timed, n, p)
    peer = min(times.get("GaussianNB", []), default=None)
    load = os.getloadavg()[0]
    for name, child in children.items():
        if isinstance(child, str):
            if f"over {limit:g} s" in child and n < MANY:
                slow.add(name)
            yield Result(name, n, p, None, None, 0, None, None, load, child)
            continue
        apart = name not in times
        seconds = child["seconds"] if apart else min(times[name])
        yield Result(
            name,
            n,
            p,
            seconds,
            seconds / peer if peer else None,
            1 if apart else len(times[name]),
            child["mib"],
            child["code_mib"],
            load,
            "timed in a process of its own" if apart else "",
        )


def write(results: Sequence[Result], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Result))
        for result in results:
            writer.writerow(
                f"{value:.4g}" if isinstance(value, float) else value
                for value in asdict(result).values()
            )
