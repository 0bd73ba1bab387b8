"""``ebda fit``, as a user sees it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import ebda
from ebda.cli import main, progress
from ebda.datasets import load_golub, load_khan
from ebda.evaluation import Evaluation

DATA = Path(__file__).parent / "data"
QUICK = ["--covariance", "diagonal", "--shrinkage", "mean"]


@pytest.fixture(scope="module")
def golub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 genes in rows, the classes in the row "type"; and the test samples."""
    folder = tmp_path_factory.mktemp("golub")
    whole = load_golub()
    genes = np.r_[1800:2100]
    for name in ("train", "test"):
        here = whole.split == name
        columns: dict[str, Any] = {"gene": ["type", *whole.feature_names[genes]]}
        for i in np.flatnonzero(here):
            cells = [f"{v:g}" for v in whole.data[i, genes]]
            columns[f"S{i}"] = [whole.target[i], *cells]
        pl.DataFrame(columns).write_csv(folder / f"{name}.csv")
    return folder


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_from_a_table_to_the_error_and_the_genes(
    golub: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = golub / "train.csv", golub / "test.csv"
    status, out, err = run(
        capsys, "fit", train, "--target", "type", "--test", test, "--log", "--top", "4",
        "--cv", "3", "--covariance", "factor", "--shrinkage", "mean",
    )  # fmt: skip
    assert status == 0
    assert "38, in columns: the row 'type' has the classes" in out
    assert "2 classes: ALL 27, AML 11" in out
    assert "sign(x) log(1 + |x|)" in out
    assert "Cross-validation in 3 folds:" in out
    assert "of 38 samples wrong, error " in out
    assert "(95% interval " in out
    assert f"Test samples of {test}:" in out
    assert "of 34 samples wrong" in out
    assert "true \\ predicted    ALL    AML" in out
    assert out.count("The first 4:") == 2
    assert out.count("higher in A") == 8
    assert "Does the feature, taken by itself, differ between the classes?" in out
    assert "by more than the common factors within the classes make of it?" in out
    assert "log2 fold change" in out
    assert "Time: reading " in out
    # The preview comes before the work.
    assert out.index("samples  ") < out.index("Cross-validation")
    assert "fold: 1 of 4 done, " in err
    assert "fit to all samples: 4 of 4 done, 0 s left" in err
    assert "\r" not in err


def test_json_is_one_object_and_agrees_with_python(
    golub: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ebda.evaluation import cross_validate
    from ebda.inputs import read

    train, test = golub / "train.csv", golub / "test.csv"
    status, out, err = run(
        capsys, "fit", train, "--target", "type", "--json", "--test", test, "--seed",
        "3", "--cv", "3", *QUICK,
    )  # fmt: skip
    assert status == 0
    assert "38, in columns" in err
    record = json.loads(out)
    table = read(train, target="type")
    assert table.y is not None
    model = ebda.EBClassifier(covariance="diagonal", shrinkage="mean", random_state=3)
    expected = cross_validate(model, table.X, table.y, 3, 3)
    assert record["evaluation"]["error"] == expected.error
    assert record["evaluation"]["confusion"] == expected.confusion.tolist()
    assert record["evaluation"]["interval"] == list(expected.interval())
    model.fit(table.X, table.y)
    first = model.ranking_.order[0]
    top = record["top_features"][0]
    assert top["feature"] == table.feature_names[first]
    assert top["q_value"] == model.ranking_.q_value[first]
    (rule,) = record["selection"]
    assert rule["separation"] == model.selection_.separation[0]
    assert record["test"]["n_samples"] == 34
    assert record["classes"] == ["ALL", "AML"]
    assert set(record["seconds"]) == {"reading", "cross-validation", "fit"}


def test_quiet_says_nothing(golub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fit", golub / "train.csv", "--target", "type", "--cv", "2", *QUICK]
    assert run(capsys, *arguments, "--quiet") == (0, "", "")
    status, out, err = run(capsys, *arguments, "--quiet", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["evaluation"]["n_folds"] == 2


def test_several_classes_and_no_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    khan = load_khan()
    path = tmp_path / "khan.npz"
    np.savez(path, X=khan.data[:, :200], y=khan.target)
    status, out, _ = run(capsys, "fit", path, "--cv", "0", *QUICK)
    assert status == 0
    assert "4 classes: BL 11, EWS 29, NB 18, RMS 25 (from column 'y')" in out
    assert "The error is not known" in out
    assert "er in EWS" in out or "er in NB" in out or "er in RMS" in out
    assert "samples wrong" not in out


def test_few_folds_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "few.npz"
    np.savez(path, X=rng.normal(size=(12, 30)), y=np.r_[np.zeros(9), np.ones(3)])
    status, out, _ = run(capsys, "fit", path, *QUICK)
    assert status == 0
    assert "Cross-validation in 5 folds:" in out  # the rare class does not decide
    np.savez(path, X=rng.normal(size=(7, 30)), y=np.r_[np.zeros(4), np.ones(3)])
    status, out, _ = run(capsys, "fit", path, *QUICK)
    assert status == 0
    assert "in 4 folds (no more, because no class has more samples)" in out


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    """A module of the package that another room of it holds."""
    module = SimpleNamespace(**functions)
    monkeypatch.setitem(sys.modules, f"ebda.{name}", module)
    monkeypatch.setattr(ebda, name, module, raising=False)


def test_what_model_file_and_report_are_given(
    golub: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: list[Any] = []
    pages: list[Any] = []
    stand_in(monkeypatch, "modelfile", save=lambda *a: saved.append(a))
    stand_in(monkeypatch, "report", write_report=lambda *a, **k: pages.append((a, k)))
    model, page = tmp_path / "m.ebda", tmp_path / "r.html"
    common = [
        "fit", golub / "train.csv", "--target", "type", "--test", golub / "test.csv",
        "--model", model, "--report", page, *QUICK,
    ]  # fmt: skip
    status, out, _ = run(capsys, *common, "--cv", "2", "--log")
    assert status == 0
    assert f"Written: {model}" in out
    assert f"Written: {page}" in out
    classifier, path, evaluation, data, training = saved[0]
    assert training.n_samples == 38
    assert path == model
    assert classifier.feature_names_in_[0] == classifier.ranking_.names[0]
    assert isinstance(evaluation, Evaluation)
    assert evaluation.n_folds == 2
    assert data["source"] == "train.csv"
    assert (data["n_samples"], data["n_features"]) == (38, 300)
    assert data["classes"] == {"ALL": 27, "AML": 11}
    assert data["log"] is True
    assert data["orientation"] == "columns"
    assert data["command"].startswith("ebda fit ")
    assert data["fitted_to"] == data["evaluated_on"]
    json.dumps(data)
    (given,), words = pages[0][0][1:], pages[0][1]
    assert given is classifier
    assert words["X"].shape == (38, 300)
    assert words["evaluation"] is evaluation
    assert words["sample_names"][0] == "S0"
    assert words["command"] == data["command"]

    # Without cross-validation the page is about the test samples.
    assert run(capsys, *common, "--cv", "0", "--quiet")[0] == 0
    assert saved[1][2].n_folds == 0
    assert saved[1][3]["fitted_to"] != saved[1][3]["evaluated_on"]
    assert pages[1][1]["X"].shape == (34, 300)
    assert len(pages[1][1]["y"]) == len(saved[1][2].codes) == 34


def test_missing_values_of_test_samples(
    golub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (golub / "test.csv").read_text().split("\n")
    name, _, rest = lines[2].split(",", 2)
    lines[2] = f"{name},NA,{rest}"
    test = tmp_path / "test.csv"
    test.write_text("\n".join(lines))
    common = [
        "fit", golub / "train.csv", "--target", "type", "--test", test, "--cv", "0",
        "--quiet", *QUICK,
    ]  # fmt: skip
    assert run(capsys, *common)[0] == 0
    assert run(capsys, *common, "--impute", "median")[0] == 0
    # A feature that was never measured is no missing value.
    test.write_text("\n".join(lines[:2] + lines[3:]))
    status, _, err = run(capsys, *common, "--impute", "median")
    assert status == 1
    assert f"1 feature of the model is missing: '{name}'" in err
    test.write_text("\n".join(lines[:1] + lines[2:]))
    status, _, err = run(capsys, *common, "--impute", "median")
    assert status == 1
    assert "'type'" in err


TABLE = "id,a,b,type\ns1,1,2,u\ns2,3,5,u\ns3,5,6,v\ns4,2,9,v\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TABLE, [], "say with --target which column or row has the labels"),
        (
            TABLE,
            ["--target", "id"],
            "each sample has a class of its own in column 'id'",
        ),
        (TABLE.replace("v", "u"), ["--target", "type"], "all samples are 'u'"),
        (TABLE.replace("s4,2,9,v", "s4,2,9,w"), ["--target", "type"], "--folds 0"),
        (TABLE, ["--target", "tipe"], "did you mean 'type'?"),
        (TABLE, ["--target", "type", "--model", "no/m"], "there is no folder no"),
        (TABLE, ["--target", "type", "--report", "."], "this is a folder"),
        (
            TABLE,
            ["--target", "type", "--model", "m" * 256],
            "--model: cannot write mmm",
        ),
        (TABLE, ["--target", "type", "--report", "r" * 256], "too long; shorten it"),
        (TABLE, ["--target", "type", "--model", "data.csv/m"], "csv is not a folder"),
        (TABLE, ["--target", "type", "--test", "no.csv"], "no.csv: there is no such"),
        (TABLE.replace("6", "inf"), ["--target", "type"], "sample 's3', feature 'b'"),
    ],
)
def test_input_at_fault_is_one_line_and_status_1(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(text)
    status, out, err = run(capsys, "fit", "data.csv", *options)
    assert status == 1
    assert out == ""
    assert err.startswith("ebda fit: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "x.csv", "--cv", "1"],
        ["fit", "x.csv", "--cv", "many"],
        ["fit", "x.csv", "--orient", "up"],
        ["fit", "x.csv", "--prior", "fixed"],
        ["fit", "x.csv", "--target", "y", "--top", "-1"],
        ["predict", "x.csv"],
        ["denoise", "x.csv"],
        ["denoise", "x.csv", "--estimate", "z", "--level", "95"],
    ],
)
def test_wrong_usage_is_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: ebda" in capsys.readouterr().err


def test_what_is_dropped_may_come_before_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(TABLE.replace("6", "six").replace("5,u", "fife,u"))
    status, _, err = run(capsys, "fit", path, "--target", "type")
    assert status == 1
    assert "2 cells should be a number and are not: 'fife' in row 's2'" in err
    status, out, _ = run(
        capsys, "fit", "--drop", "b", "--drop", "c", path, "--target", "type", "--cv",
        "0", *QUICK,
    )  # fmt: skip
    assert status == 0
    assert "features        1: 'a'" in out


def test_interrupted_and_out_of_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebda.cli import demo

    for error, status, words in (
        (KeyboardInterrupt(), 130, "ebda demo: stopped\n"),
        (MemoryError(), 1, "ebda demo: there is not enough memory for these data\n"),
        (ValueError("two\nlines"), 1, "ebda demo: two lines\n"),
    ):

        def fail(options: Any, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(demo, "run", fail)
        assert main(["demo"]) == status
        assert capsys.readouterr().err == words


@pytest.mark.slow
def test_who_reads_the_output_may_stop_reading(tmp_path: Path) -> None:
    lines = ["z"] + [f"{i % 7}" for i in range(20000)]
    path = tmp_path / "z.csv"
    path.write_text("\n".join(lines))
    command = f"{sys.executable} -m ebda denoise {path} --estimate z --prior normal"
    result = subprocess.run(
        f"{command} | head -n 2", shell=True, capture_output=True, text=True, check=True
    )
    assert result.stdout.count("\n") == 2
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.steps(2) as done:
        done("fold")
        done("fit")
    assert "fit: 100%" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()


def test_long_steps_give_signs_of_life(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.05)
    with progress.working("reading data.csv"):
        time.sleep(0.4)
    said = capsys.readouterr().err.split("\n")
    assert said[0] == "reading data.csv: 0 s"
    assert 2 <= len(said) < 8  # more and more slowly
    with progress.steps(2, doing=lambda: "3 blocks read") as done:
        time.sleep(0.2)
        done("fit")
    said = capsys.readouterr().err.split("\n")
    assert said[0] == "3 blocks read: 0 s"
    with progress.steps(2) as done:
        time.sleep(0.2)
        done("fit")
    assert capsys.readouterr().err.startswith("step 1 of 2: 0 s\n")
    with progress.steps(1, quiet=True), progress.working("x", quiet=True):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.steps(1, doing=lambda: "7 blocks") as done:
        time.sleep(0.2)
        done("fit")
    assert "7 blocks" in terminal.getvalue()


def test_lines_on_a_terminal_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with progress.steps(1) as done:
        done("fold")
    with progress.steps(2, seconds=30) as done:
        done("run")
        done("run")
    assert terminal.getvalue().startswith("fold: 1 of 1 done, 0 s left\n")
    assert "run: 2 of 2 done, 0 s left" in terminal.getvalue()


def test_the_decimal_sign_is_asked_for_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(1000, 9000, (12, 4))
    path, model, out = (str(tmp_path / name) for name in ("t.tsv", "m.ebda", "o.csv"))
    lines = ["\t".join(["id", "a", "b", "c", "d", "type"])]
    for i, row in enumerate(X):
        cells = [f"{value:,}" for value in row]
        lines.append("\t".join([f"s{i}", *cells, "uv"[i % 2]]))
    Path(path).write_text("\n".join(lines))
    fit = ["fit", path, "--target", "type", "--cv", "0", "--model", model]
    assert main(fit) == 1
    assert "--decimal point or --decimal comma" in capsys.readouterr().err
    means = {}
    for decimal in ("point", "comma"):
        assert main([*fit, "--decimal", decimal, "--test", path]) == 0
        means[decimal] = ebda.load(model).moments_.means
    np.testing.assert_allclose(means["point"], 1000 * means["comma"], rtol=1e-12)
    assert main(["predict", model, path, "--out", out]) == 1
    assert main(["predict", model, path, "--out", out, "--decimal", "comma"]) == 0
    denoise = ["denoise", path, "--estimate", "a", "--out", out, "--quiet"]
    assert main(denoise) == 1
    assert main([*denoise, "--decimal", "point"]) == 0
