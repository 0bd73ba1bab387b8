"""Run repetitions in parallel, and store each on disk as soon as it is done.

``runs.jsonl`` has one line per (table, row, method, repetition), appended with one
write. A run that was killed leaves at most one incomplete line, which is cut off; what
is missing is computed when the run is started again. The tables are made from the file
alone, in a fixed order, and do not depend on when anything was computed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed

from ebda.paper.repetition import Record, repeat
from ebda.paper.studies import TABLES

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Task:
    """The methods still to be fitted to one draw of the data of one row."""

    table: str
    row: int
    repetition: int
    methods: tuple[str, ...]


def _key(record: Record) -> Key:
    return record["table"], record["row"], record["method"], record["repetition"]


def read_runs(path: Path) -> list[Record]:
    """The finished repetitions, in order of table, row, method and repetition.

    An incomplete last line, left by a process that was killed, is ignored.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    records = [json.loads(line) for line in lines[:-1] if line]
    return sorted({_key(r): r for r in records}.values(), key=_key)


def _mend(path: Path) -> None:
    """Cut off an incomplete last line."""
    if path.exists():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)


def _append(path: Path, records: list[Record]) -> None:
    """Append lines with one write, and wait until they are on disk."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, text.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def plan(
    tables: Sequence[str],
    methods: Callable[[str], Sequence[str]],
    rows: Sequence[str] | None,
    repetitions: int,
    done: set[Key],
) -> list[Task]:
    """The tasks that remain, by repetition, so that all cells progress together."""
    tasks = []
    for repetition in range(repetitions):
        for name in tables:
            table = TABLES[name]
            for i, row in enumerate(table.rows):
                if rows and row.label not in rows:
                    continue
                left = tuple(
                    method
                    for method in methods(name)
                    if (name, row.label, method, repetition) not in done
                )
                if left:
                    tasks.append(Task(name, i, repetition, left))
    return tasks


def carry_out(
    tasks: Sequence[Task], path: Path, seed: int, n_jobs: int
) -> Iterator[Task]:
    """Carry out tasks, and yield each when its records are on disk."""
    _mend(path)

    def work(task: Task) -> tuple[Task, list[Record]]:
        return task, repeat(task.table, task.row, task.repetition, task.methods, seed)

    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(work)(task) for task in tasks
    )
    for task, records in results:
        _append(path, records)
        yield task
