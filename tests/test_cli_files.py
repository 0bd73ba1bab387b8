"""Every output of every command: what is replaced, what is not, what is refused."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import faults
from commands import ebda, no_more_than
from ebda.cli import main

# What each command writes, the option that names it, and how its content begins.
OUTPUTS = {
    "fit": ("--model", b"\x89EBDA"),
    "fit-report": ("--report", b"<!doctype html>"),
    "predict": ("--out", b"sample,predicted"),
    "denoise": ("--out", b"sample,"),
    "report": ("--out", b"<!doctype html>"),
    "demo": ("--out", b"\x89PNG"),
}
SLOW = {"demo"}
NAMES = [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in OUTPUTS]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of two classes, and a model of them."""
    folder = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 4)) + 2.0 * y[:, None]
    columns = {"sample": [f"s{i}" for i in range(20)], "type": y.astype(str)}
    frame = pl.DataFrame(columns | {f"g{j}": X[:, j].round(3) for j in range(4)})
    frame.write_csv(folder / "d.csv")
    assert main([*arguments("fit", folder), "--model", str(folder / "m.ebda")]) == 0
    return folder


def arguments(name: str, home: Path) -> list[str]:
    data, model = str(home / "d.csv"), str(home / "m.ebda")
    quick = ["--covariance", "diagonal", "--shrinkage", "mean", "--cv", "2", "--quiet"]
    return {
        "fit": ["fit", data, "--target", "type", *quick],
        "fit-report": ["fit", data, "--target", "type", *quick],
        "predict": ["predict", model, data, "--quiet"],
        "denoise": ["denoise", data, "--estimate", "g0", "--quiet"],
        "report": ["report", model, data, "--quiet"],
        "demo": ["demo", "--repeats", "0", "--report", os.devnull],
    }[name]


def put(name: str, home: Path, out: Path) -> int:
    return main([*arguments(name, home), OUTPUTS[name][0], str(out)])


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_links_stay_and_files_keep_their_modes(
    name: str, home: Path, tmp_path: Path
) -> None:
    begins = OUTPUTS[name][1]
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link = folder / "target.csv", tmp_path / "link.csv"
    if name == "demo":
        target, link = target.with_suffix(".png"), link.with_suffix(".png")
    target.write_text("old")
    target.chmod(0o604)
    link.symlink_to(target)
    assert put(name, home, link) == 0
    assert link.is_symlink()
    assert target.read_bytes().startswith(begins)
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    # Nothing is left beside the one or the other.
    assert listing(folder) == [target.name]
    assert listing(tmp_path) == ["elsewhere", link.name]


@pytest.mark.parametrize("name", NAMES)
def test_pipes_and_devices_are_written_to(
    name: str, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pipe, link = folder / "pipe", folder / "null"
    null = faults.device(tmp_path, "null")
    os.mkfifo(pipe)
    link.symlink_to(null)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert put(name, home, pipe) == 0
    reader.join(timeout=60)
    assert read[0].startswith(OUTPUTS[name][1])
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert put(name, home, link) == 0
    assert put(name, home, faults.device(tmp_path, "full")) == 1
    assert link.is_symlink()
    assert stat.S_ISCHR(null.stat().st_mode)
    assert listing(folder) == ["null", "pipe"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("no/such/out.csv", "there is no folder"),
        ("x" * 300 + ".csv", "the name is too long"),
        ("folder.csv", "this is a folder"),
        ("file/out.csv", "is not a folder"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_the_work(
    name: str,
    out: str,
    message: str,
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    # Not even the data are there: the place is looked at first.
    words = [word.replace(str(home), str(tmp_path)) for word in arguments(name, home)]
    assert main([*words, OUTPUTS[name][0], str(tmp_path / out)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert f"{OUTPUTS[name][0]}: cannot write " in printed.err
    assert message in printed.err
    assert listing(tmp_path) == ["file", "folder.csv"]


@pytest.mark.parametrize("name", NAMES)
def test_what_killed_processes_left_is_swept(
    name: str, home: Path, tmp_path: Path
) -> None:
    draft = tmp_path / ".ebda-0123456789abcdef.tmp"
    draft.write_text("half of a file")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(draft, (two_days_ago, two_days_ago))
    out = tmp_path / ("out.png" if name == "demo" else "out.csv")
    assert put(name, home, out) == 0
    assert listing(tmp_path) == [out.name]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_leaves_the_old_file(name: str, home: Path, tmp_path: Path) -> None:
    out = tmp_path / ("out.png" if name == "demo" else "out.csv")
    out.write_text("old")
    words = [*arguments(name, home), OUTPUTS[name][0], out]
    done = ebda(*words, preexec_fn=no_more_than(100))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ebda {words[0]}: ")
    assert "Traceback" not in done.stderr
    assert out.read_text() == "old"
    assert listing(tmp_path) == [out.name]
