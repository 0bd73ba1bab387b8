"""``ebda reproduce``: the same numbers, however often it is stopped."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from commands import ebda, living, no_more_than, seconds_until
from ebda.cli import main
from ebda.cli.progress import steps
from ebda.paper.repetition import repeat
from ebda.paper.runner import plan, read_runs
from ebda.paper.studies import (
    EXTRA,
    TABLES,
    methods_of,
    published,
    published_errors,
)
from ebda.paper.summary import Cell, agreement, summarise, to_csv, to_markdown

FAST = ["--methods", "Oracle", "FAIR", "--jobs", "1"]
RESULTS = ("results.csv", "reproduction.md", "figure1.svg")


def command(out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "ebda", "reproduce", *options, "--out", str(out)]


@pytest.mark.slow
def test_killed_and_started_again_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    arguments = ["figure1", *FAST, "--reps", "12"]
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    subprocess.run(command(whole, *arguments), check=True, capture_output=True)

    runs = torn / "runs.jsonl"
    for enough in (1, 5):
        process = subprocess.Popen(
            command(torn, *arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if runs.exists() and runs.read_bytes().count(b"\n") >= enough:
                break
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert 0 < len(read_runs(runs)) < 24
    with runs.open("ab") as stream:  # the worst moment: in the midst of a line
        stream.write(b'{"table": "tab')
    result = subprocess.run(
        command(torn, *arguments), check=True, capture_output=True, text=True
    )
    assert "results are there already" in result.stdout
    for name in RESULTS:
        assert (torn / name).read_bytes() == (whole / name).read_bytes(), name


def test_any_subset_gives_the_same_numbers() -> None:
    both = repeat("table6", 0, 3, ["Oracle", "FAIR"], seed=7)
    alone = repeat("table6", 0, 3, ["FAIR"], seed=7)
    assert both[1] == alone[0]
    other = repeat("table6", 0, 4, ["FAIR"], seed=7)
    assert other[0]["repetition"] == 4


@pytest.mark.slow
def test_jobs_do_not_matter(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        out = str(tmp_path / jobs)
        arguments = ["table6", "--methods", "Oracle", "--reps", "3", "--jobs", jobs]
        assert main(["reproduce", *arguments, "--out", out]) == 0
    first, second = ((tmp_path / j / "results.csv").read_bytes() for j in ("1", "2"))
    assert first == second


@pytest.mark.slow
def test_results_have_the_promised_columns(tmp_path: Path) -> None:
    rows = ["--rows", "(4,40)", "--methods", "IR", "EBClassifier", "Limit"]
    arguments = ["table1", *rows, "--reps", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert main(["reproduce", *arguments]) == 0
    text = (tmp_path / "results.csv").read_text()
    lines = list(csv.DictReader(text.splitlines()))
    assert list(lines[0]) == [
        "table",
        "row",
        "method",
        "error",
        "se",
        "error_authors",
        "paper",
        "repetitions",
    ]
    by_method = {line["method"]: line for line in lines}
    assert by_method["IR"]["paper"] == "0.1901"
    assert by_method["EBClassifier"]["paper"] == ""
    assert by_method["Limit"]["error_authors"] == ""
    # The authors' formula takes the noise of the variances for signal.
    assert float(by_method["IR"]["error_authors"]) < float(by_method["IR"]["error"])
    assert float(by_method["Limit"]["error"]) < float(
        by_method["EBClassifier"]["error"]
    )
    about = json.loads((tmp_path / "environment.json").read_text())
    assert about["packages"]["ebda"]


@pytest.mark.slow
def test_a_folder_keeps_one_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["table6", "--methods", "Oracle", "--reps", "1", "--out", str(tmp_path)]
    assert main(["reproduce", *arguments, "--seed", "1"]) == 0
    assert main(["reproduce", *arguments, "--seed", "2"]) == 1
    assert "--seed 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reps", "0"], "--reps must be at least 1"),
        (["--methods", "SVM"], "unknown method 'SVM'"),
        (["--rows", "(9,9)"], "unknown row '(9,9)'"),
    ],
)
def test_bad_options_are_named(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "table1", *arguments, "--out", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_every_row_and_column_has_its_published_cell() -> None:
    for name, table in TABLES.items():
        for row in table.rows:
            for method in table.columns:
                assert published(name, row.label, method) is not None
    assert published("table1", "(1,1000)", "DP") == 0.0283
    assert published("table3", "0.9", "EB") == 0.1758
    assert published("table7", "test", "IR") == pytest.approx(6 / 34)
    assert published("table1", "(1,1000)", "NPMLE") is None


def test_plan_leaves_out_what_is_done() -> None:
    columns = {"table7": TABLES["table7"].columns}
    everything = plan(columns, (), 2, set())
    assert len(everything) == 4
    done = {("table7", "test", m, 0) for m in TABLES["table7"].columns}
    assert len(plan(columns, (), 2, done)) == 3
    assert plan({"table1": ["DP"]}, ["(1,500)"], 1, set())[0].row == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_runs(name: str) -> None:
    methods = [m for m in methods_of(TABLES[name]) if m in ("IR", "FAIR", "Limit")]
    records = repeat(name, 0, 0, methods, seed=1)
    assert [r["method"] for r in records] == methods
    assert all(0 <= r["error"] < 0.5 for r in records)


@pytest.mark.slow
def test_extra_methods_run() -> None:
    methods = [m for m in EXTRA if m != "Limit"]
    errors = {r["method"]: r["error"] for r in repeat("table6", 0, 0, methods, seed=1)}
    assert list(errors) == methods
    # No method knows nothing but the one that inverts the covariance as it is.
    assert 0.4 < errors.pop("PseudoInverseLDA") < 0.6
    assert max(errors.values()) < 0.3
    assert errors["EBClassifier"] < 0.05


def cell(errors: list[float], paper: float) -> Cell:
    return Cell("table6", "study 3", "FAIR", tuple(errors), (), paper)


def test_cells_that_differ_are_marked() -> None:
    errors = np.random.default_rng(0).normal(0.1, 0.01, 100).clip(0).tolist()
    near, far = cell(errors, 0.1005), cell(errors, 0.12)
    assert near.z is not None
    assert abs(near.z) < 3
    assert far.z is not None
    assert far.z < -3
    # The published mean varies as much as ours: the difference by sqrt(2).
    expected = (np.mean(errors) - 0.12) / (np.std(errors, ddof=1) / 10 * np.sqrt(2))
    assert far.z == pytest.approx(expected)
    assert "**0.1200 / " in to_markdown([far])
    assert "**" not in to_markdown([near]).split("## ")[1]
    assert cell(errors[:9], 0.5).z is None
    assert cell([0.1] * 10, 0.10004).z == 0
    assert cell([0.1] * 10, 0.2).z == -np.inf


def test_further_methods_have_a_table_of_their_own() -> None:
    other = Cell("table6", "study 3", "NPMLE", (0.3,) * 4, (), None)
    text = to_markdown([cell([0.1] * 10, 0.1), other])
    paper, further = text.split("Further methods:")
    assert "| row | FAIR |" in paper
    assert "| row | NPMLE |" in further
    assert "| study 3 | 0.3000 |" in further
    assert "NPMLE 4." in further
    assert "1 of 1 cells" in paper


def test_cells_that_agree_are_counted() -> None:
    errors = np.random.default_rng(0).normal(0.1, 0.01, 100).clip(0).tolist()
    few, near, far = cell(errors[:9], 0.1), cell(errors, 0.1005), cell(errors, 0.12)
    assert agreement([few, near, far, near]) == (2, 3)


def test_published_errors_are_means_over_both_classes_like_ours() -> None:
    errors = tuple(np.random.default_rng(0).normal(0.2, 0.005, 100))
    tested = Cell("table6", "study 3", "FAIR", errors, (), 0.21)
    exact = Cell("table1", "(1,500)", "IR", errors, errors, 0.21)
    assert exact.z == tested.z


def test_published_repetitions_are_those_of_table_6() -> None:
    columns = TABLES["table6"].columns
    errors = published_errors(columns)
    assert list(errors) == list(columns)
    for method, values in errors.items():
        # 0.002075, 0.015025, 0.01255, 0.0168 and 0.025225 before rounding
        assert len(values) == 100
        cell = published("table6", "study 3", method)
        assert np.mean(values) == pytest.approx(cell, abs=0.51e-4)


def test_summary_keeps_the_order_of_the_paper() -> None:
    records = [
        {"table": t, "row": r, "method": m, "repetition": 0, "error": 0.1}
        | {"error_authors": None}
        for t, r, m in [
            ("table6", "study 3", "FAIR"),
            ("table6", "study 3", "Oracle"),
            ("table1", "(4,40)", "DP"),
        ]
    ]
    cells = summarise(records)
    assert [c.method for c in cells] == ["DP", "Oracle", "FAIR"]
    assert to_csv(cells).count("\n") == 4


def test_progress_without_a_terminal_prints_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with steps(3, seconds=30) as done:
        for _ in range(3):
            done("run")
    assert capsys.readouterr().err == "run: 3 of 3 done, 0 s left\n"


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            shown.append(text)
            return len(text)

        def flush(self) -> None:
            pass

    monkeypatch.setattr(sys, "stderr", Terminal())
    with steps(2) as done:
        done("run")
        done("run")
    assert "2/2" in "".join(shown)


def test_torn_lines_anywhere_are_left_out(tmp_path: Path) -> None:
    record = {"table": "table6", "row": "study 3", "method": "FAIR", "repetition": 0}
    whole = json.dumps(record)
    path = tmp_path / "runs.jsonl"
    for text in (f'{{"tab\n{whole}\n\n', f"{whole}\n{whole[:30]}", f"\0\0\n7\n{whole}"):
        path.write_text(text)
        assert read_runs(path) == [record]


# --- faults


@pytest.mark.slow
def test_a_full_disk_does_not_stop_it_for_good(tmp_path: Path) -> None:
    """A short write tears a line in the middle; what is missing is computed again."""
    arguments = ["figure1", *FAST, "--reps", "4", "--out"]
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    assert ebda("reproduce", *arguments, whole).returncode == 0
    full = ebda("reproduce", *arguments, torn, preexec_fn=no_more_than(500))
    assert full.returncode == 1
    assert full.stderr.splitlines()[-1].startswith(
        "ebda reproduce: [Errno 28] No space"
    )
    lines = (torn / "runs.jsonl").read_bytes()
    assert len(lines) == 500
    assert not lines.endswith(b"\n")
    # The torn line comes to lie in the middle.
    assert ebda("reproduce", *arguments, torn).returncode == 0
    assert (torn / "runs.jsonl").read_bytes().startswith(lines + b"\n")
    for name in RESULTS:
        assert (torn / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_process_stays_behind(tmp_path: Path, number: signal.Signals) -> None:
    options = ["table1", "--methods", "EBClassifier", "--reps", "9", "--jobs", "4"]
    process = subprocess.Popen(
        command(tmp_path, *options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    # The command, four workers, and those that look after what they share.
    seconds_until(lambda: len(living(process.pid)) >= 6, at_most=60)
    seconds_until((tmp_path / "runs.jsonl").exists, at_most=120)
    os.kill(process.pid, number)
    seconds_until(lambda: not living(process.pid), at_most=10)
    status = 130 if number == signal.SIGINT else -number
    _, errors = process.communicate()
    assert process.returncode == status
    assert b"Traceback" not in errors
    assert all(r["error"] < 0.5 for r in read_runs(tmp_path / "runs.jsonl"))


def test_places_that_cannot_be_written_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "runs.jsonl")
    for out in ("file", "file/folder", "x" * 300, "pipe"):
        assert main(["reproduce", "table6", "--out", str(tmp_path / out)]) == 1
        assert capsys.readouterr().err.count("\n") == 1
