"""What a terminal is given: no tracebacks, and nothing that it would obey."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

from commands import ebda
from ebda.cli import main
from ebda.cli.output import WRITERS
from ebda.cli.terminal import say
from ebda.inputs import read

QUICK = ["--covariance", "diagonal", "--shrinkage", "mean", "--cv", "2"]
ESCAPES = "\x1b[2J\r\b\x9b31m\u202e"


def samples(path: Path, names: list[str], labels: tuple[str, str]) -> Path:
    """A table of 20 samples of two classes, with these names of features."""
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, len(names))) + 2.0 * y[:, None]
    columns = {
        "sample": [f"s{i}" for i in range(20)],
        "type": [labels[code] for code in y],
        **dict(zip(names, X.T.round(3), strict=True)),
    }
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return samples(tmp_path / "plain.csv", ["g0", "g1", "g2"], ("ill", "well"))


# --- streams that are not there


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(plain: Path, closed: str) -> None:
    model, page = plain.with_name("m.ebda"), plain.with_name("p.html")
    command = (
        f"{sys.executable} -m ebda fit {plain} --target type {' '.join(QUICK)} "
        f"--model {model} --report {page} {closed}"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stdout + done.stderr
    # What was printed did not end in a file that took the number of the stream.
    assert model.read_bytes().startswith(b"\x89EBDA")
    assert page.read_text().rstrip().endswith("</html>")
    assert main(["predict", str(model), str(plain), "--quiet"]) == 0


@pytest.mark.slow
def test_what_is_to_be_printed_needs_standard_output(plain: Path) -> None:
    command = f"{sys.executable} -m ebda denoise {plain} --estimate g0 >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == ("ebda denoise: standard output is closed: give --out FILE\n")


@pytest.mark.slow
@pytest.mark.parametrize("pipe", ["| head -n 1", "2>&1 | head -n 1", "2>&1 | true"])
def test_nobody_reads_to_the_end(plain: Path, pipe: str) -> None:
    fit = f"{sys.executable} -m ebda fit {plain} --target type {' '.join(QUICK)}"
    done = subprocess.run(f"{fit} {pipe}", shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr


@pytest.mark.slow
def test_standard_output_on_a_full_disk(plain: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = ebda(
            "fit", plain, "--target", "type", *QUICK, stdout=full,
            stderr=subprocess.PIPE,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.endswith("No space left on device\n")
    assert "Exception" not in done.stderr


@pytest.mark.slow
def test_an_interrupt_during_imports(tmp_path: Path) -> None:
    (tmp_path / "sklearn.py").write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "except BaseException as error:\n"
        "    raise ImportError('as some modules do') from error\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = ebda("--version", env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 130
    assert done.stderr == "ebda: stopped\n"


@pytest.mark.slow
def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As a shell starts what runs in the background."""
    ignore = f"trap '' INT; exec {sys.executable} -m ebda --version"
    assert subprocess.run(["sh", "-c", ignore], check=False).returncode == 0


# --- names


def test_names_are_shown_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"gene{c}" for c in ("\x1b[31m", "\x9b2J", "\u202ekcab", "\b\b")]
    path = samples(tmp_path / "d.csv", names, ("ill\x1b]0;x\x07", "we\u2066ll"))
    model, page = tmp_path / "m.ebda", tmp_path / "p.html"
    fit = ["fit", str(path), "--target", "type", *QUICK, "--model", str(model)]
    assert main([*fit, "--report", str(page), "--test", str(path)]) == 0
    assert (
        main(["predict", str(model), str(path), "--out", str(tmp_path / "o.csv")]) == 0
    )
    few = samples(tmp_path / "few.csv", names[1:], ("a", "b"))
    assert main(["predict", str(model), str(few)]) == 1
    assert main(["report", str(model), str(few), "--missing", "zero-weight"]) == 1
    assert main(["denoise", str(path), "--estimate", "no\x1b"]) == 1
    printed = capsys.readouterr()
    shown = printed.out + printed.err
    for one in shown.replace("\n", ""):
        assert one.isprintable()
    for words in (
        r"gene\x1b[31m",
        r"gene\u202ekcab",
        r"ill\x1b]0;x\x07",
        r"we\u2066ll",
    ):
        assert words in shown


def test_line_feeds_in_names_do_not_make_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = samples(tmp_path / "d.csv", ["a\nb", "c"], ("ill\nTest: 0 wrong", "well"))
    assert main(["fit", str(path), "--target", "type", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "Test: 0 wrong" in shown
    assert "\nTest: 0 wrong" not in shown
    assert r"a\nb" in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_names_that_the_encoding_lacks(
    tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = samples(tmp_path / "d.csv", ["g\u00e9ne", "\u03b2"], ("\u00e9", "\u7532"))
    for name in ("stdout", "stderr"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, name, stream)
    model = str(tmp_path / "m.ebda")
    assert main(["fit", str(path), "--target", "type", *QUICK, "--model", model]) == 0
    assert main(["fit", str(path), "--target", "type", *QUICK, "--json"]) == 0
    before = sys.stdout.buffer.tell()
    assert main(["predict", model, str(path)]) == 0
    assert main(["denoise", str(path), "--estimate", "\u03b3"]) == 1
    shown = sys.stdout.buffer.getvalue()  # type: ignore[attr-defined]
    seen = "\u7532" if encoding == "utf-8" else r"\u7532"
    assert seen in shown[:before].decode(encoding)
    # Data are in UTF-8, wherever they go.
    table = pl.read_csv(shown[before:])
    assert table.columns[2:] == ["probability_\u00e9", "probability_\u7532"]
    assert table["predicted"].unique().sort().to_list() == ["\u00e9", "\u7532"]


@pytest.mark.slow
def test_a_terminal_of_plain_ascii(tmp_path: Path) -> None:
    path = samples(tmp_path / "d.csv", ["g\u00e9ne", "\u03b2"], ("\u00e9", "\u7532"))
    env = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = ebda("fit", path, "--target", "type", *QUICK, env=env)
    assert done.returncode == 0
    assert r"g\xe9ne" in done.stdout
    assert r"\u7532" in done.stdout


def test_json_is_ascii(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = samples(plain.with_name("d.csv"), ["\u03b2\x9b", "g1"], ("\u00e9", "b"))
    assert main(["fit", str(path), "--target", "type", *QUICK, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.strip().isprintable()
    assert json.loads(out)["classes"] == ["b", "\u00e9"]


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_a_table_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'gene,z\n"a{ESCAPES}",1\nb,-4\n')
    for kind in (Terminal, io.TextIOWrapper):
        stream = kind(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["denoise", str(path), "--estimate", "z", "--quiet"]) == 0
        shown = stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
        assert ("\x1b" in shown) == (kind is io.TextIOWrapper)
        assert shown.count("\n") == 3


def test_say_keeps_what_people_write(capsys: pytest.CaptureFixture[str]) -> None:
    say("Müller, 甲, β < 0.5\nnext line")
    assert capsys.readouterr().out == "Müller, 甲, β < 0.5\nnext line\n"


# --- spreadsheets

DANGEROUS = [
    "=cmd|' /C calc'!A0", "+q", "-x", "@sum", "'=y", "''-z", "'plain", "-1.5", "+3",
    "-1e-3", "-", "\t=tab", "=", "==", "-1+1", "plain-x", "-inf",
]  # fmt: skip


@pytest.mark.parametrize("ending", WRITERS)
def test_names_that_spreadsheets_would_run(tmp_path: Path, ending: str) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / f"o{ending}"
    z = [float(i) for i in range(len(DANGEROUS))]
    pl.DataFrame({"gene": DANGEROUS, "=z": z}).write_parquet(path)
    arguments = ["denoise", str(path), "--estimate", "=z", "--out", str(out)]
    assert main([*arguments, "--prefix", "@", "--quiet"]) == 0
    if ending == ".parquet":
        table = pl.read_parquet(out)
        assert table["gene"].to_list() == DANGEROUS
        return
    if ending == ".xlsx":
        sheet = openpyxl.load_workbook(out).active
        assert [cell.value for cell in sheet["A"][1:]] == DANGEROUS
        assert {cell.data_type for cell in sheet["A"]} == {"s"}  # and no formula
        return
    separator = "," if "csv" in ending else "\t"
    table = pl.read_csv(out, separator=separator, infer_schema_length=0)
    assert table.columns[1] == "'=z"
    assert table.columns[2] == "'@posterior_mean"
    expected = {
        "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0", "+q": "'+q", "-x": "'-x",
        "@sum": "'@sum", "'=y": "''=y", "''-z": "'''-z", "\t=tab": "'\t=tab",
        "==": "'==", "-1+1": "'-1+1",
    }  # fmt: skip
    assert table["gene"].to_list() == [expected.get(n, n) for n in DANGEROUS]
    # Read back, names are what they were, and once more the same bytes come out.
    again = tmp_path / "again.csv"
    more = ["denoise", str(out), "--estimate", "=z", "--prefix", "b", "--quiet"]
    assert main([*more, "--out", str(again)]) == 0
    back = pl.read_csv(again, infer_schema_length=0)
    assert back["gene"].to_list() == table["gene"].to_list()


def test_predictions_for_a_spreadsheet(tmp_path: Path) -> None:
    path = samples(tmp_path / "d.csv", ["=g", "-h"], ("=ill", "-1"))
    frame = pl.read_csv(path).with_columns(sample="@" + pl.col("sample"))
    frame.write_csv(path)
    model, out = tmp_path / "m.ebda", tmp_path / "o.csv"
    fit = ["fit", str(path), "--target", "type", *QUICK, "--model", str(model)]
    assert main([*fit, "--quiet"]) == 0
    assert main(["predict", str(model), str(path), "--out", str(out), "--quiet"]) == 0
    cells = pl.read_csv(out, infer_schema_length=0)
    assert set(cells["predicted"]) == {"'=ill", "-1"}
    assert cells["sample"][0] == "'@s0"
    back = read(out, target="predicted")
    assert back.sample_names.tolist() == frame["sample"].to_list()
    assert back.y is not None
    assert set(back.y.tolist()) == {"=ill", "-1"}
