"""The command line, as a user sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ebda import __version__
from ebda.cli import main


@pytest.mark.slow
def test_demo_does_the_main_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "fit.png"
    assert main(["demo", "--out", str(picture), "--top", "3"]) == 0
    printed = capsys.readouterr().out
    assert "7129 genes, 38 training and 34 test samples" in printed
    assert "of 34 wrong" in printed
    assert "of the genes do not differ" in printed
    assert "The first 3" in printed
    assert "X04085_rna1_at" in printed
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_demo_without_matplotlib_says_what_to_install(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [n for n in sys.modules if n.startswith("ebda.plotting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--out", str(tmp_path / "fit.png")]) == 0
    assert "pip install 'ebda[plot]'" in capsys.readouterr().out


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
