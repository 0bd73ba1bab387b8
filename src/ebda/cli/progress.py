"""Progress of a long command: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ebda.cli.terminal import say


@contextmanager
def steps(
    total: int, quiet: bool = False, seconds: float = 0.0
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

    with bar or nullcontext():
        yield done


def _bar(total: int) -> Any:
    """A bar on a terminal, if tqdm is installed; else None."""
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, smoothing=0.05)
