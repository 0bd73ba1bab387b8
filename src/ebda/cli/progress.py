"""How far a long command is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 30.0


def progress(items: Iterable[Item], total: int) -> Iterator[Item]:
    """Pass items on, and show on standard error how many and how long yet."""
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(items, total=total, unit="run", smoothing=0.05)
            return
    start = last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES or number == total:
            left = (now - start) / number * (total - number)
            print(f"{number} of {total} done, {left:.0f} s left", file=sys.stderr)
            last = now
