"""The hint for logarithms: when it is given, and where it is shown."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import ebda
from ebda import EBClassifier, LogarithmWarning
from ebda.cli import main
from ebda.data.distortion import HINT, log_hint
from ebda.report import render


def normal(n: int = 40, p: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def labels(n: int = 40) -> np.ndarray:
    return np.repeat(["a", "b"], n // 2)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_array])
def test_exponentials_are_seen_in_any_unit(unit: float, kind: Any) -> None:
    assert log_hint(kind(unit * np.exp(normal()))) == HINT


@pytest.mark.parametrize(
    "X",
    [
        normal(),
        10 + normal(),  # logarithms already
        np.exp(normal()) - 0.5,  # some are negative
        np.exp(0.2 * normal()),  # too little to matter
        np.abs(normal()),  # skewed the other way as logarithms
        np.random.default_rng(0).exponential(size=(40, 60)),
        np.random.default_rng(0).uniform(0, 100, size=(40, 60)),
        np.random.default_rng(0).integers(0, 2, size=(40, 60)),
        np.exp(normal()) * (normal(seed=1) > 0.5),  # mostly zeros
        np.exp(normal(n=4)),
        np.exp(normal(p=4)),
        np.full((40, 60), 7.0),
    ],
)
def test_everything_else_is_left_alone(X: np.ndarray) -> None:
    assert log_hint(X) is None


@pytest.mark.parametrize("share", [0.05, 0.4])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_array])
def test_missing_values_do_not_hide_it(share: float, kind: Any) -> None:
    X = np.exp(normal())
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    X[:, 3] = np.nan  # tells nothing
    assert log_hint(kind(X)) == HINT
    assert log_hint(kind(np.log(X))) is None
    X[0, 0] = -1.0
    assert log_hint(kind(X)) is None
    X[0, 0] = np.inf
    assert log_hint(kind(X)) is None
    assert log_hint(kind(np.full((40, 60), np.nan))) is None


def test_a_fit_with_missing_values_gives_the_hint() -> None:
    X = np.exp(normal())
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    with pytest.warns(LogarithmWarning):
        EBClassifier(calibrate=False, shrinkage="mean").fit(X, labels())


def test_one_negative_value_anywhere_is_enough() -> None:
    X = np.exp(normal(n=40, p=3000))
    assert log_hint(X) == HINT
    X[17, 1234] = -1e-9
    assert log_hint(X) is None


def test_logarithms_of_what_it_warned_of_are_left_alone() -> None:
    X = np.exp(normal())
    assert log_hint(X) == HINT
    assert log_hint(np.log(X) - np.log(X).min()) is None


def test_fit_warns_once_and_can_be_asked_not_to() -> None:
    X, y = np.exp(normal()), labels()
    with pytest.warns(LogarithmWarning, match="logarithms") as found:
        EBClassifier().fit(X, y)
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogarithmWarning)
        EBClassifier().fit(X, y)
    EBClassifier().fit(np.log(X), y)  # a warning would be an error here


def test_the_command_line_says_it_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = np.exp(normal()), labels()
    path = tmp_path / "data.csv"
    head = ",".join([*(f"f{j}" for j in range(60)), "y"])
    rows = [",".join([*map(str, row), label]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join([head, *rows]) + "\n")
    command = ["fit", str(path), "--target", "y", "--cv", "0"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert " ".join(said.out.split()).count(HINT) == 1
    assert HINT not in said.err
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*command, "--log"]) == 0
    assert HINT not in " ".join(capsys.readouterr().out.split())


def test_the_report_says_it() -> None:
    X, y = np.exp(normal()), labels()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogarithmWarning)
        model = EBClassifier().fit(X, y)
    words = HINT[1:]
    assert words in render(model, X=X, y=y)
    assert words not in render(model, X=np.log(X), y=y)


def test_nothing_is_imported_for_it() -> None:
    code = "import ebda, sys; assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "LogarithmWarning" in ebda.__all__
