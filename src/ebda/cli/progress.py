"""Progress of a long command: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sklearn.base import BaseEstimator, ClassifierMixin, clone

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 30.0


def progress(items: Iterable[Item], total: int) -> Iterator[Item]:
    """Yield the items, and show on standard error how many are done and left."""
    bar = _bar(total, "run")
    if bar is not None:
        with bar:
            for item in items:
                yield item
                bar.update()
        return
    start = last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES or number == total:
            left = (now - start) / number * (total - number)
            print(f"{number} of {total} done, {left:.0f} s left", file=sys.stderr)
            last = now


@contextmanager
def steps(total: int, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function to be called with a name after each of a known number of steps.

    Parameters
    ----------
    total : int
        Number of steps.
    quiet : bool
        Whether to show nothing.
    """
    if quiet:
        yield lambda what: None
        return
    bar = _bar(total, "step")
    if bar is not None:
        with bar:

            def advance(what: str) -> None:
                bar.set_description(what)
                bar.update()

            yield advance
        return
    start, number = time.monotonic(), 0

    def say(what: str) -> None:
        nonlocal number
        number += 1
        seconds = time.monotonic() - start
        line = f"{what} done ({number} of {total}, {seconds:.1f} s)"
        print(line, file=sys.stderr)

    yield say


def _bar(total: int, unit: str) -> Any:
    """A bar on a terminal, if tqdm is installed; else None."""
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=unit, smoothing=0.05)


class Watched(ClassifierMixin, BaseEstimator):
    """A classifier that calls a function after each fit, to show progress over folds.

    Parameters
    ----------
    model : classifier
        Cloned and fitted.
    callback : callable
        Called after each fit.
    """

    def __init__(self, model: Any, callback: Callable[[], None]) -> None:
        self.model = model
        self.callback = callback

    def fit(self, X: Any, y: Any) -> Watched:
        """Fit a clone, and call the function."""
        self.model_ = clone(self.model).fit(X, y)
        self.classes_ = self.model_.classes_
        self.callback()
        return self

    def predict(self, X: Any) -> Any:
        """As the model has it."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """As the model has it."""
        return self.model_.predict_proba(X)
