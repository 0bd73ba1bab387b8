"""Groups and covariates on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ebda
from ebda.cli import main

QUICK = ["--covariance", "diagonal", "--shrinkage", "mean", "--cv", "3", "--quiet"]


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    """Three samples of each of 20 patients, on two plates."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(20), 3)
    ill, plate = patient % 2, rng.integers(0, 2, 60)
    age = rng.integers(40, 80, 20)[patient]
    X = rng.normal(size=(20, 30))[patient] + rng.normal(size=(60, 30))
    X += 2 * plate[:, None] + 0.05 * age[:, None] + ill[:, None] * (np.arange(30) < 5)
    columns: dict[str, Any] = {
        "name": [f"s{i}" for i in range(60)],
        "class": np.where(ill, "ill", "well"),
        "patient": patient,
        "age": age,
        "plate": [f"p{k}" for k in plate],
    }
    known = list(columns)
    columns |= {f"g{j}": X[:, j] for j in range(30)}
    pl.DataFrame(columns).write_csv(tmp_path / "data.csv")
    pl.DataFrame(columns).write_parquet(tmp_path / "data.parquet")
    names = [name for name in columns if name not in known[1:]]
    pl.DataFrame(columns).select(names).write_csv(tmp_path / "values.csv")
    pl.DataFrame(columns).select(known).write_csv(tmp_path / "known.csv")
    return columns | {"X": X, "folder": tmp_path}


def fit(*arguments: Any) -> int:
    return main(["fit", *map(str, arguments), *QUICK])


@pytest.mark.parametrize("where", ["data", "labels", "disk"])
def test_the_model_is_that_of_fit(table: dict[str, Any], where: str) -> None:
    folder, model = table["folder"], table["folder"] / "model.ebda"
    files: list[Any] = [folder / "data.csv", "--target", "class", "--drop", "name"]
    if where == "labels":
        files = [folder / "values.csv", "--labels", folder / "known.csv"]
        files += ["--target", "class"]
    elif where == "disk":
        files[0] = folder / "data.parquet"
        files.append("--on-disk")
    known = ["--groups", "patient", "--covariates", "age,plate"]
    assert fit(*files, *known, "--model", model) == 0
    found = ebda.load(model)
    assert found.n_features_in_ == 30
    covariates = {"age": table["age"], "plate": table["plate"]}
    expected = ebda.EBClassifier(
        covariance="diagonal", shrinkage="mean", random_state=0
    ).fit(table["X"], table["class"], groups=table["patient"], covariates=covariates)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
    assert found.groups_.n_groups == 20


def test_predictions_are_adjusted_where_covariates_are_there(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = table["folder"], table["folder"] / "model.ebda"
    data = folder / "data.csv"
    fit(data, "--target", "class", "--covariates", "age,plate", "--groups", "patient",
        "--model", model, "--report", folder / "report.html")  # fmt: skip
    found = ebda.load(model)
    capsys.readouterr()
    assert main(["predict", str(model), str(data), "--json", "--quiet"]) == 0
    printed = json.loads(capsys.readouterr().out)["predictions"]
    p = [row["probabilities"]["well"] for row in printed]
    covariates = {"age": table["age"], "plate": table["plate"]}
    X = pd.DataFrame(table["X"], columns=found.feature_names_in_)
    expected = found.predict_proba(X, covariates=covariates)[:, 1]
    np.testing.assert_allclose(p, expected, rtol=1e-6)
    assert main(["predict", str(model), str(folder / "values.csv")]) == 0
    assert "Not adjusted for 'age', 'plate'" in capsys.readouterr().err


def test_the_terminal_says_what_was_found(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    data = table["folder"] / "data.csv"
    status = main(
        ["fit", str(data), "--target", "class", "--groups", "patient",
         "--covariates", "age,plate", *QUICK[:-1]]
    )  # fmt: skip
    out = capsys.readouterr().out
    assert status == 0
    assert "60 samples of 20 groups: samples of a group have an intraclass" in out
    assert "Adjusted for age and plate: 2 columns" in out
    assert "Samples without covariates" not in out


def test_cautions_have_plain_blanks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"class": ["a"] * 6 + ["b"] * 54}
    X = np.random.default_rng(0).normal(size=(60, 20))
    table = pl.DataFrame(columns | {f"g{j}": X[:, j] for j in range(20)})
    table.write_csv(tmp_path / "data.csv")
    arguments = ["fit", str(tmp_path / "data.csv"), "--target", "class"]
    assert main([*arguments, *QUICK[:-1]]) == 0
    out = capsys.readouterr().out
    assert "Note: " in out or "Caution: " in out
    assert r"\xa0" not in out
    assert "\u00a0" not in out


def test_what_is_not_there_is_an_error(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    data = table["folder"] / "data.csv"
    assert fit(data, "--target", "class", "--groups", "person") == 1
    assert "nothing is named 'person'" in capsys.readouterr().err
    known = table["folder"] / "known.csv"
    files = [table["folder"] / "values.csv", "--labels", known, "--target", "class"]
    for option in ("--groups", "--covariates"):
        assert fit(*files, option, "plat") == 1
        error = capsys.readouterr().err
        assert f"{known} and " in error
        assert "did you mean 'plate'?" in error


@pytest.mark.parametrize("option", ["--covariates", "--groups"])
def test_missing_cells_are_counted_over_all_samples(
    table: dict[str, Any], capsys: pytest.CaptureFixture[str], option: str
) -> None:
    data = table["folder"] / "data.csv"
    frame = pl.read_csv(data).with_columns(
        plate=pl.Series(
            [None if 40 <= i < 57 else v for i, v in enumerate(table["plate"])]
        )
    )
    frame.write_csv(data)
    arguments = ["fit", str(data), "--target", "class", "--orient", "rows"]
    assert main([*arguments, option, "plate", *QUICK[:-1]]) == 1
    printed = capsys.readouterr()
    assert "2 values, 17 missing: 'p" in printed.out
    assert "'plate' has 17 missing values, the first in sample 's40'" in printed.err
