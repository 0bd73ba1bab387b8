"""Progress of a long command: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone


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
            print(line, file=sys.stderr)
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
