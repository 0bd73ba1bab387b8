"""What people read on a terminal: shown as it is, and never obeyed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

from ebda.listing import escaped


def say(text: str, stream: TextIO | None = None) -> None:
    """Print text that holds names from files, to standard output by default.

    Characters that a terminal would obey (escape sequences, carriage returns, changes
    of direction) and those that its encoding lacks are shown as escapes. If nobody
    reads standard error any more, the work goes on.

    Parameters
    ----------
    text : str
        Lines.
    stream : TextIO, optional
        Standard error, for example.
    """
    out = sys.stdout if stream is None else stream
    encoding = getattr(out, "encoding", None) or "utf-8"
    safe = escaped(text, keep="\n").encode(encoding, "backslashreplace")
    try:
        print(safe.decode(encoding), file=out, flush=True)
    except OSError:
        if out is not sys.stderr:
            raise


def put(text: str) -> None:
    """Write a table to standard output: in UTF-8, as to a file; to a terminal, safely.

    >>> put("a,b")
    a,b
    """
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None or sys.stdout.isatty():
        say(text.removesuffix("\n"))
    else:
        sys.stdout.flush()
        buffer.write(text.encode())
        buffer.flush()


def refuse_closed(way_out: str) -> None:
    """Refuse to compute what is to be printed, if there is no standard output."""
    if sys.__stdout__ is None:
        raise ValueError(f"standard output is closed: {way_out}")


def drain() -> None:
    """Give up what a stream cannot take, so that Python does not complain at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except ValueError:  # it is closed
            continue
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
