"""``ebda predict`` and ``ebda report``, beside a model that is held in memory.

The model file itself has its own tests, and both together those of
``test_cli_end_to_end.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import ebda
from ebda import EBClassifier
from ebda.cli import main
from ebda.evaluation import Evaluation, evaluate
from ebda.inputs import read

NAMES = [f"g{j}" for j in range(12)]
RNG = np.random.default_rng(2)
Y = np.array(["ill", "well"])[np.arange(30) % 2]
X = RNG.normal(size=(30, 12)) + np.outer(Y == "ill", np.arange(12) < 4)


def fitted() -> EBClassifier:
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, Y)
    model.feature_names_in_ = np.array(NAMES, dtype=object)
    return model


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the model file would hold."""
    held = SimpleNamespace(
        model=fitted(), evaluation=None, data={"log": False}, training=None
    )
    module = SimpleNamespace(load_record=lambda path: held)
    monkeypatch.setitem(sys.modules, "ebda.modelfile", module)
    monkeypatch.setattr(ebda, "modelfile", module, raising=False)
    return held


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What the report is called with."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    module = SimpleNamespace(write_report=lambda *a, **k: calls.append((a, k)))
    monkeypatch.setitem(sys.modules, "ebda.report", module)
    monkeypatch.setattr(ebda, "report", module, raising=False)
    return calls


def table(values: Any = X, names: list[str] = NAMES) -> pl.DataFrame:
    frame = pl.DataFrame(values, schema=names)
    return frame.insert_column(
        0, pl.Series("id", [f"s{i}" for i in range(len(values))])
    )


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize("turned", [False, True])
def test_features_by_name_in_any_order(
    tmp_path: Path,
    record: SimpleNamespace,
    capsys: pytest.CaptureFixture[str],
    turned: bool,
) -> None:
    path = tmp_path / "new.csv"
    order = RNG.permutation(12)
    frame = table(X[:, order], [NAMES[j] for j in order])
    frame = frame.with_columns(extra=pl.lit(7.0), remark=pl.lit("fine"), type=pl.lit(1))
    if turned:
        frame = frame.transpose(include_header=True, column_names="id")
    frame.write_csv(path)
    status, out, err = run(capsys, "predict", "model", path)
    assert status == 0
    found = pl.read_csv(out.encode())
    assert found.columns == [
        "sample", "predicted", "probability_ill", "probability_well"
    ]  # fmt: skip
    assert found["sample"].to_list() == [f"s{i}" for i in range(30)]
    expected = fitted()
    del expected.feature_names_in_
    assert found["predicted"].to_list() == expected.predict(X).tolist()
    np.testing.assert_allclose(
        found.select(pl.col("^probability_.*$")),
        expected.predict_proba(X),
        rtol=1e-12,
    )
    assert "30 samples: ill " in err
    assert "3 features unknown to the model, and ignored." in err


def test_one_sample_whose_values_count(
    tmp_path: Path, record: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.csv"
    frame = pl.DataFrame([list(range(12))], schema=NAMES, orient="row")
    frame.write_csv(path)
    status, out, _ = run(capsys, "predict", "model", path, "--quiet")
    assert status == 0
    assert pl.read_csv(out.encode())["sample"].to_list() == [1]


def test_the_logarithm_is_taken_as_for_the_fit(
    tmp_path: Path, record: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, raw = tmp_path / "plain.csv", tmp_path / "raw.csv"
    table().write_csv(plain)
    table(np.sign(X) * np.expm1(np.abs(X))).write_csv(raw)
    _, expected, _ = run(capsys, "predict", "model", plain)
    record.data = {"log": True}
    _, out, err = run(capsys, "predict", "model", raw)
    assert "The values are sign(x) log(1 + |x|), as for the fit." in err
    columns = [
        pl.read_csv(text.encode())["probability_ill"] for text in (out, expected)
    ]
    np.testing.assert_allclose(*columns, rtol=1e-9)
    record.data = None
    assert run(capsys, "predict", "model", plain)[1] == expected


def test_missing_features_are_named_or_have_no_weight(
    tmp_path: Path, record: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    frame = table().drop("g0", "g5")
    frame = frame.with_columns(
        g1=pl.when(pl.col("id") == "s3").then(None).otherwise("g1")
    )
    frame.write_csv(path)
    status, out, err = run(capsys, "predict", "model", path)
    assert (status, out) == (1, "")
    assert "2 features of the model are missing: 'g0', 'g5'" in err
    assert "--missing zero-weight" in err
    status, out, err = run(capsys, "predict", "model", path, "--missing", "zero-weight")
    assert status == 0
    assert (
        "2 features of the model are missing, and given no weight: 'g0', 'g5'." in err
    )
    assert "1 missing value given no weight." in err
    model = fitted()
    del model.feature_names_in_
    absent = np.isin(np.arange(12), [0, 5])
    want = model.without(absent).predict_proba(X)[:, 0]
    absent[1] = True
    want[3] = model.without(absent).predict_proba(X[3:4])[0, 0]
    found = pl.read_csv(out.encode())["probability_ill"]
    np.testing.assert_allclose(found, want, rtol=1e-12)
    table().with_columns(g1=pl.lit(None, pl.Float64)).write_csv(path)
    status, out, err = run(capsys, "predict", "model", path)
    assert status == 0
    assert "30 missing values left out of the scores of their samples" in err
    gone = X.copy()
    gone[:, 1] = np.nan
    found = pl.read_csv(out.encode())["probability_ill"]
    np.testing.assert_allclose(found, model.predict_proba(gone)[:, 0], rtol=1e-12)
    table(names=[f"x{j}" for j in range(12)]).write_csv(path)
    status, _, err = run(capsys, "predict", "model", path)
    assert status == 1
    assert "there is no feature of the model, with samples in " in err


def test_missing_values_of_a_sparse_matrix_have_no_weight(
    tmp_path: Path, record: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    del record.model.feature_names_in_
    path, known = tmp_path / "new.npz", sparse.csr_array(X)
    known.data[5] = np.nan
    sparse.save_npz(path, known)
    status, out, err = run(capsys, "predict", "model", path)
    assert status == 0
    assert "1 missing value left out of the scores of their samples" in err
    found = pl.read_csv(out.encode())["probability_ill"]
    want = record.model.predict_proba(known)[:, 0]
    np.testing.assert_allclose(found, want, rtol=1e-12)
    status, out, err = run(capsys, "predict", "model", path, "--missing", "zero-weight")
    assert status == 0
    assert "1 missing value given no weight." in err
    want = record.model.predict_proba(X)[:, 0]
    absent = np.arange(12) == known.indices[5]
    want[0] = record.model.without(absent).predict_proba(X[:1])[0, 0]
    found = pl.read_csv(out.encode())["probability_ill"]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_json_and_a_file(
    tmp_path: Path, record: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out_path = tmp_path / "new.parquet", tmp_path / "out.parquet"
    table().write_parquet(path)
    status, out, err = run(
        capsys, "predict", "model", path, "--json", "--quiet", "--out", out_path
    )
    assert (status, err) == (0, "")
    answer = json.loads(out)
    written = pl.read_parquet(out_path)
    assert written["predicted"].to_list() == [
        p["predicted"] for p in answer["predictions"]
    ]
    first = answer["predictions"][0]
    assert first["sample"] == "s0"
    assert sum(first["probabilities"].values()) == pytest.approx(1)
    assert answer["ignored_features"] == 0
    assert run(capsys, "predict", "model", path, "--json")[0] == 0
    status, out, err = run(capsys, "predict", "model", path, "--out", out_path)
    assert out == ""
    assert f"Written: {out_path}" in err


def test_a_model_without_names_goes_by_order(
    tmp_path: Path, record: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    del record.model.feature_names_in_
    path = tmp_path / "new.npz"
    np.savez(path, X=X)
    status, out, _ = run(capsys, "predict", "model", path)
    assert status == 0
    assert pl.read_csv(out.encode())["predicted"].to_list() == fitted_labels(record)
    np.savez(path, X=X[:, :5])
    status, _, err = run(capsys, "predict", "model", path)
    assert status == 1
    assert "takes 12 by order; there are 5" in err


def fitted_labels(record: SimpleNamespace) -> list[str]:
    labels: list[str] = record.model.predict(X).tolist()
    return labels


def test_the_page_again_for_the_samples_of_the_fit(
    tmp_path: Path,
    record: SimpleNamespace,
    pages: list[tuple[Any, dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "data.csv"
    table().with_columns(type=pl.Series(Y)).write_csv(path)
    samples = read(path, target="type").fingerprint()
    codes = (Y == "well").astype(int)
    record.evaluation = Evaluation(np.unique(Y), codes, np.full((30, 2), 0.5), 5)
    record.data = {
        "target": "type", "command": "ebda fit", "evaluated_on": samples,
        "fitted_to": samples,
    }  # fmt: skip
    model = tmp_path / "model.ebda"
    status, out, _ = run(capsys, "report", model, path)
    assert status == 0
    assert out == f"Written: {tmp_path / 'model.html'}\n"
    (where, given), words = pages[0]
    assert where == tmp_path / "model.html"
    assert given is record.model
    assert words["evaluation"] is record.evaluation
    assert words["y"].tolist() == Y.tolist()
    assert words["sample_names"][3] == "s3"
    assert words["command"] == "ebda fit"
    np.testing.assert_allclose(words["X"], X)

    # Labels from a second file are not needed again: the kept error has them.
    record.data["labels"] = "labels.csv"
    assert run(capsys, "report", model, path, "--quiet") == (0, "", "")
    assert pages[1][1]["y"].tolist() == Y.tolist()

    # The error of a test is not about the samples of the fit, nor are its names.
    record.data |= {"evaluated_on": "others", "labels": None}
    status, _, err = run(capsys, "report", model, path)
    assert (status, err) == (0, "")
    assert pages[2][1]["evaluation"] is record.evaluation
    assert pages[2][1]["sample_names"] is None
    status, _, err = run(capsys, "report", model, path, "--test")
    assert status == 1
    assert "these are the samples of the fit, and no test" in err


def test_a_page_about_new_samples(
    tmp_path: Path,
    record: SimpleNamespace,
    pages: list[tuple[Any, dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = tmp_path / "new.csv", tmp_path / "page.html"
    new = RNG.normal(size=(30, 12))
    table(new).with_columns(type=pl.Series(Y), more=pl.lit(1.0)).write_csv(path)
    status, _, err = run(
        capsys, "report", "m.ebda", path, "--target", "type", "--out", out, "--test"
    )
    assert status == 0
    assert "1 feature unknown to the model, and ignored." in err
    model = fitted()
    del model.feature_names_in_
    assert pages[0][0][0] == out
    assert pages[0][1]["evaluation"].error == evaluate(model, new, Y).error
    # Without labels there are scores, and no error on them.
    assert run(capsys, "report", "m.ebda", path, "--out", out)[0] == 0
    assert pages[1][1]["y"] is None
    assert pages[1][1]["evaluation"] is None
    status, _, err = run(capsys, "report", "m.ebda", path, "--out", out, "--test")
    assert status == 1
    assert "a test needs labels" in err
    # What is not said to be a test is not shown as one.
    kept = Evaluation(np.unique(Y), np.array([0, 1]), np.eye(2), 2)
    record.evaluation = kept
    arguments = ["report", "m.ebda", path, "--out", out, "--target", "type"]
    status, _, err = run(capsys, *arguments)
    assert status == 0
    assert "estimated from other samples" in err
    assert pages[2][1]["evaluation"] is kept
    assert pages[2][1]["sample_names"][:2] == ["s0", "s1"]
    table(new).with_columns(type=pl.lit("dead")).write_csv(path)
    status, _, err = run(capsys, "report", "m", path, "--target", "type", "--out", out)
    assert status == 1
    assert "the class 'dead', which the model does not know" in err


def test_the_page_again_after_imputation(
    tmp_path: Path,
    record: SimpleNamespace,
    pages: list[tuple[Any, dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The samples of the fit are known again, missing values and left-out rows too."""
    path = tmp_path / "data.csv"
    frame = table().with_columns(type=pl.Series(Y), junk=pl.lit("x1"))
    frame = frame.with_columns(
        g2=pl.when(pl.col("id") == "s4").then(None).otherwise("g2")
    )
    frame.write_csv(path)
    read_in = read(path, target="type", impute="median", drop=["junk"])
    codes = (Y == "well").astype(int)
    record.evaluation = Evaluation(np.unique(Y), codes, np.full((30, 2), 0.5), 5)
    record.data = {
        "target": "type", "impute": "median", "drop": ["junk"],
        "evaluated_on": read_in.fingerprint(),
    }  # fmt: skip
    assert run(capsys, "report", "m.ebda", path, "--out", tmp_path / "p.html")[0] == 0
    assert pages[0][1]["sample_names"] == read_in.sample_names.tolist()
    np.testing.assert_array_equal(pages[0][1]["X"], read_in.X)
