"""``ebda`` and ``python -m ebda``: the command line as a program of its own.

This module imports nothing heavy, so that signals are in order from the start.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

# What a shell reports for a command that Ctrl-C stopped.
_INTERRUPTED = 130


class _TerminatedError(BaseException):
    """The process was asked to end: files and workers are cleaned up on the way out."""


def main() -> int:
    """Run a command; the exit status is 0, 1 (input at fault) or 2 (wrong usage).

    A closed standard stream is replaced by one that leads nowhere: otherwise its number
    would be given to the next file that is opened, and messages would end in that file.
    """
    for number, mode in enumerate(("r", "w", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            name = ("stdin", "stdout", "stderr")[number]
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:
        # An exception would end in whatever module is being imported.
        signal.signal(signal.SIGINT, _stop)
    from ebda.cli import main as run

    signal.signal(signal.SIGINT, usual)
    for wanted in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(wanted) is signal.SIG_DFL:
            signal.signal(wanted, _terminate)
    try:
        status = run()
    except _TerminatedError as stopped:
        # As if there had been no handler: shells and schedulers look at this.
        number = int(stopped.args[0])
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + number
    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return status


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"ebda: stopped\n")
    os._exit(_INTERRUPTED)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise _TerminatedError(number)


if __name__ == "__main__":
    sys.exit(main())
