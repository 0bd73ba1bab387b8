"""The command line, as a user sees it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ebda import EBClassifier, __version__
from ebda.cli import main
from ebda.cli.side_by_side import FOLDS, RULES
from ebda.datasets import load_golub
from ebda.evaluation import cross_validate


@pytest.mark.slow
def test_demo_does_the_main_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, report = tmp_path / "fit.png", tmp_path / "fit.html"
    places = ["--out", str(picture), "--report", str(report)]
    assert main(["demo", *places, "--top", "3", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "7129 genes, 38 training and 34 test samples" in printed
    assert "of the genes do not differ" in printed
    assert "The first 3" in printed
    assert "M23197_at" in printed
    assert printed.endswith(f"Picture of the fit: {picture}\nReport: {report}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    # The numbers of the table are those of the rules.
    golub = load_golub()
    train = golub.split == "train"
    scales = (golub.data, np.sign(golub.data) * np.log1p(np.abs(golub.data)))
    for rule in ("Sparse DP", "EBClassifier()"):
        line = next(line for line in printed.splitlines() if line.startswith(rule))
        said = re.findall(r"(\d+) +([\d.]+)% \(", line)
        for (wrong, error), X in zip(said, scales, strict=True):
            model = RULES[rule]().fit(X[train], golub.target[train])
            missed = model.predict(X[~train]) != golub.target[~train]
            assert int(wrong) == missed.sum()
            crossed = cross_validate(RULES[rule](), X, golub.target, FOLDS, seed=0)
            assert error == f"{100 * crossed.error:.1f}"
    crossed = cross_validate(EBClassifier(), scales[1], golub.target, FOLDS, seed=0)
    assert f"{crossed.n_errors} of 72 were assigned" in report.read_text()


@pytest.mark.slow
def test_demo_without_extras_says_what_to_install(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [n for n in sys.modules if n.startswith(("ebda.plotting", "celer"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "celer", None)
    places = ["--out", str(tmp_path / "a.png"), "--report", str(tmp_path / "a.html")]
    assert main(["demo", *places, "--repeats", "0"]) == 0
    printed = capsys.readouterr().out
    assert "pip install 'ebda[plot]'" in printed
    assert "pip install 'ebda[lasso]'" in printed
    assert "cross-validat" not in printed
    assert (tmp_path / "a.html").exists()
    assert main(["demo", *places, "--repeats", "-1"]) == 1


@pytest.mark.slow
def test_input_at_fault_is_one_line_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path / "missing" / "fit.png")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "missing" in error


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["demo", "--nothing"]])
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


@pytest.mark.slow
def test_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "ebda", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == f"ebda {__version__}"
