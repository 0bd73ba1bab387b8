"""Progress of a long command: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ebda.cli.terminal import say

# Nothing takes longer than this without a sign of life; later signs come more slowly.
SILENCE = 2.0
_SLOWER, _SLOWEST = 1.5, 30.0
_SMALL = 1_000_000


@contextmanager
def steps(
    total: int,
    quiet: bool = False,
    seconds: float = 0.0,
    doing: Callable[[], str] | None = None,
) -> Iterator[Callable[[str], None]]:
    """A function to be called with a name after each of a known number of steps.

    Parameters
    ----------
    total : int
        Number of steps.
    quiet : bool
        Whether to show nothing.
    seconds : float
        Least time between two lines, where there is no bar.
    doing : callable, optional
        What is being done within a step, in words, for a step of more than two seconds.
    """
    start = last = time.monotonic()
    number = 0
    bar = None if quiet else _bar(total)

    def done(what: str) -> None:
        nonlocal number, last
        number += 1
        now = time.monotonic()
        if bar is not None:
            bar.set_description(what)
            bar.update()
        elif not quiet and (now - last >= seconds or number == total):
            left = (now - start) / number * (total - number)
            line = f"{what}: {number} of {total} done, {left:.0f} s left"
            say(line, sys.stderr)
            last = now

    def alive(elapsed: float) -> None:
        words = "" if doing is None else doing()
        if bar is not None:
            bar.set_postfix_str(words)
        elif time.monotonic() - last >= max(SILENCE, seconds):
            step = f"step {number + 1} of {total}"
            say(f"{words or step}: {elapsed:.0f} s", sys.stderr)

    with bar or nullcontext(), _beating(alive, quiet or number == total):
        yield done


@contextmanager
def working(what: str, quiet: bool = False) -> Iterator[None]:
    """Say that a single step goes on, if it takes more than two seconds.

    Parameters
    ----------
    what : str
        The step.
    quiet : bool
        Whether to show nothing.
    """
    with _beating(lambda elapsed: say(f"{what}: {elapsed:.0f} s", sys.stderr), quiet):
        yield


def is_small(path: Path) -> bool:
    """Whether a file is read before anybody would wait for it."""
    return path.is_file() and path.stat().st_size < _SMALL


@contextmanager
def _beating(beat: Callable[[float], None], quiet: bool) -> Iterator[None]:
    """Call a function from time to time while the block runs."""
    if quiet:
        yield
        return
    stop, start = threading.Event(), time.monotonic()

    def run() -> None:
        wait = SILENCE
        while not stop.wait(wait):
            beat(time.monotonic() - start)
            wait = min(wait * _SLOWER, _SLOWEST)

    thread = threading.Thread(target=run, name="ebda-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _bar(total: int) -> Any:
    """A bar on a terminal, if tqdm is installed; else None."""
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, smoothing=0.05)
