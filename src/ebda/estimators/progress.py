"""How far a fit is: nothing for two seconds, then a bar on standard error.

A fit has a few steps of very different lengths, and a step says nothing until it is
over. So a thread draws the bar, with the step that is being done and the time so far.
Where standard error is no terminal there is a line instead, less and less often.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from ebda.sizes import sizes

# What is done one after the other; a fit may repeat the two in the middle.
STEPS = (
    "reading the data",
    "covariance, prior and posterior",
    "comparing rules",
    "the rule",
)
_WIDTH = 20
# Seconds between two pictures of the bar, and between the first lines.
_REDRAWN, _FIRST, _SLOWER, _SLOWEST = 0.2, 2.0, 1.5, 30.0

_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


class Progress:
    """The bar of one fit.

    Parameters
    ----------
    name : str
        What is fitted.
    stream : file
        Where to write; a terminal gets a bar.
    """

    def __init__(self, name: str, stream: TextIO) -> None:
        self.name, self.stream = name, stream
        self.done = 0
        self._start = time.monotonic()
        self._over = threading.Event()
        self._drawn = 0

    def advance(self) -> None:
        """A step is over."""
        self.done = min(self.done + 1, len(STEPS) - 1)

    def line(self) -> str:
        """The bar as it is now.

        >>> Progress("EBClassifier", sys.stderr).line()
        'EBClassifier [--------------------] reading the data, 0 s'
        """
        full = _WIDTH * self.done // len(STEPS)
        bar = "#" * full + "-" * (_WIDTH - full)
        seconds = time.monotonic() - self._start
        return f"{self.name} [{bar}] {STEPS[self.done]}, {seconds:.0f} s"

    def run(self) -> None:
        """Draw until the fit is over; in a thread of its own."""
        terminal = self.stream.isatty()
        wait = sizes.silent_milliseconds / 1000
        pause = _REDRAWN if terminal else _FIRST
        while not self._over.wait(wait):
            line = self.line()
            self.stream.write(f"\r{line:{self._drawn}}" if terminal else f"{line}\n")
            self.stream.flush()
            self._drawn, wait = len(line), pause
            pause = pause if terminal else min(pause * _SLOWER, _SLOWEST)

    def stop(self) -> None:
        """The fit is over; what is being drawn is finished."""
        self._over.set()

    def clear(self) -> None:
        """Leave no bar behind; after the thread has ended."""
        if self._drawn and self.stream.isatty():
            self.stream.write("\r" + " " * self._drawn + "\r")
            self.stream.flush()


@contextmanager
def progress(name: str, shown: bool) -> Iterator[None]:
    """Show how far the fit inside this block is, if it is to be shown.

    Parameters
    ----------
    name : str
        What is fitted.
    shown : bool
        Whether to show anything.
    """
    if not shown:
        yield
        return
    bar = Progress(name, sys.stderr)
    thread = threading.Thread(target=bar.run, name="ebda-progress", daemon=True)
    token = _current.set(bar)
    thread.start()
    try:
        yield
    finally:
        _current.reset(token)
        bar.stop()
        thread.join()
        bar.clear()


def step_is_over() -> None:
    """Tell the bar of the fit that is under way, if there is one."""
    bar = _current.get()
    if bar is not None:
        bar.advance()
