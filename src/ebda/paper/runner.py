"""Run repetitions in parallel, and store each on disk as soon as it is done.

``runs.jsonl`` holds a line for each (table, row, method, repetition), appended with one
write. A run that was killed leaves at most one torn line, which is left out; what is
missing is computed when it is started again. The tables are made from the file alone,
in a fixed order, so that they do not depend on when anything was computed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread

from joblib import Parallel, delayed

from ebda.files import append
from ebda.paper.repetition import Record, repeat
from ebda.paper.studies import TABLES

_SECONDS_BETWEEN_LOOKS = 0.5
Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Task:
    """The methods still to be fitted to one draw of the data of one row."""

    table: str
    row: int
    repetition: int
    methods: tuple[str, ...]


def key_of(record: Record) -> Key:
    """What a repetition is of."""
    return record["table"], record["row"], record["method"], record["repetition"]


def read_runs(path: Path) -> list[Record]:
    """The finished repetitions, in order of table, row, method and repetition.

    Torn lines, left by a process that was killed or a full disk, are left out.
    """
    if not path.exists():
        return []
    found: dict[Key, Record] = {}
    for line in path.read_bytes().split(b"\n"):
        with suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            found[key_of(record)] = record
    return [found[key] for key in sorted(found)]


def plan(
    methods: Mapping[str, Sequence[str]],
    rows: Sequence[str],
    repetitions: int,
    done: set[Key],
) -> list[Task]:
    """The tasks that remain, by repetition, so that all cells progress together.

    Parameters
    ----------
    methods : mapping
        The methods of each table.
    rows : sequence of str
        Labels of the rows that are wanted; empty for all.
    repetitions : int
        How many are wanted of each cell.
    done : set
        Those that are there already.
    """
    tasks = [
        Task(
            name,
            i,
            n,
            tuple(m for m in of_table if (name, row.label, m, n) not in done),
        )
        for n in range(repetitions)
        for name, of_table in methods.items()
        for i, row in enumerate(TABLES[name].rows)
        if not rows or row.label in rows
    ]
    return [task for task in tasks if task.methods]


@cache
def _end_with(parent: int) -> None:
    """End this worker when its parent is gone, whatever has killed that."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def carry_out(
    tasks: Sequence[Task], path: Path, seed: int, n_jobs: int
) -> Iterator[Task]:
    """Carry out tasks; each is yielded when its records are on the disk."""
    parent = os.getpid()

    def work(task: Task) -> tuple[Task, list[Record]]:
        if os.getpid() != parent:
            _end_with(parent)
        return task, repeat(task.table, task.row, task.repetition, task.methods, seed)

    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(work)(task) for task in tasks
    )
    for task, records in results:
        append(path, "".join(json.dumps(record) + "\n" for record in records))
        yield task
