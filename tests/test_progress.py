"""A fit says nothing for two seconds, and then how far it is, if it is asked to."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import pytest

from ebda import EBClassifier
from ebda.estimators.progress import STEPS, Progress
from ebda.sizes import override


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2000)), np.arange(60) % 2
    X[:, :20] += y[:, None]
    return X, y


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_short_fit_says_nothing(
    capsys: pytest.CaptureFixture[str], verbose: int
) -> None:
    EBClassifier(verbose=verbose, covariance="diagonal").fit(*data())
    assert capsys.readouterr() == ("", "")


def test_without_verbose_a_long_fit_says_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with override(silent_milliseconds=0):
        EBClassifier().fit(*data())
    assert capsys.readouterr() == ("", "")


def test_a_long_fit_has_a_bar_that_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with override(silent_milliseconds=1):
        EBClassifier(verbose=1).fit(*data())
    drawn = screen.getvalue().split("\r")
    assert drawn[1].startswith("EBClassifier [")
    assert any(step in screen.getvalue() for step in STEPS)
    assert drawn[-2].strip() == drawn[-1] == ""
    assert not [t for t in threading.enumerate() if t.name == "ebda-progress"]


def test_without_a_terminal_there_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with override(silent_milliseconds=1):
        EBClassifier(verbose=1).fit(*data())
    assert "\r" not in log.getvalue()
    assert log.getvalue().count("\n") == 1


def test_a_fit_that_fails_leaves_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    X, y = data()
    X[:] = 1.0
    with override(silent_milliseconds=0), pytest.raises(ValueError, match="constant"):
        EBClassifier(verbose=1).fit(X, y)
    assert screen.getvalue().split("\r")[-1] == ""
    assert not [t for t in threading.enumerate() if t.name == "ebda-progress"]


def test_the_bar_never_ends_before_the_fit() -> None:
    bar: Any = Progress("a model", Terminal())
    lines = []
    for _ in range(7):
        lines.append(bar.line())
        bar.advance()
    assert [line.count("#") for line in lines[:5]] == [0, 5, 10, 15, 15]
    assert STEPS[1] in lines[1]
    assert STEPS[-1] in lines[-1]


def test_the_fit_is_the_same() -> None:
    plain = EBClassifier().fit(*data())
    shown = EBClassifier(verbose=1).fit(*data())
    np.testing.assert_array_equal(plain.coef_, shown.coef_)
