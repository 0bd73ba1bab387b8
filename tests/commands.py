"""Commands of ebda in a process of their own, with limits; see also `faults`."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ebda(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `options` are those of `subprocess.run`."""
    command = [sys.executable, "-m", "ebda", *map(str, arguments)]
    settings: dict[str, Any] = {"text": True, "check": False, "timeout": 120}
    if not {"stdout", "stderr", "capture_output"} & set(options):
        settings["capture_output"] = True
    if "preexec_fn" in options:  # coverage could not write its own file either
        settings["env"] = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COVERAGE_")
        }
    return subprocess.run(command, **(settings | options))


def no_more_than(n_bytes: int) -> Callable[[], None]:
    """For `preexec_fn`: a file can grow to this size, and then writes are short.

    What a full disk does, at a place that the test chooses.
    """

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    return limit


def living(session: int) -> list[int]:
    """Processes of a session, without those that have ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[3]) == session and words[0] != "Z":
                found.append(int(entry.name))
    return found


def seconds_until(happens: Callable[[], bool], at_most: float) -> float:
    """Wait; how long it took."""
    start = time.monotonic()
    while not happens():
        took = time.monotonic() - start
        assert took < at_most, "it did not happen"
        time.sleep(0.02)
    return time.monotonic() - start
