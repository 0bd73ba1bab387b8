"""``ebda report``: samples without labels, and model files that were edited."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebda
from ebda.baselines import FAIR
from ebda.cli import main
from profiles import examples
from test_modelfile_fuzz import edit_tree, seal, unseal

QUICK = ["--covariance", "diagonal", "--shrinkage", "mean", "--cv", "2", "--quiet"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples with the labels in a column or a row named "type", and new ones."""
    folder = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(0)
    for name, n in (("fitted", 20), ("new", 9)):
        y = np.arange(n) % 2
        X = (rng.normal(size=(n, 4)) + 2.0 * y[:, None]).round(3)
        rows = pl.DataFrame(
            {"sample": [f"{name}{i}" for i in range(n)], "type": y.astype(str)}
            | {f"g{j}": X[:, j] for j in range(4)}
        )
        rows.write_csv(folder / f"{name}.csv")
        rows.drop("type").write_csv(folder / f"{name}-unlabelled.csv")
        empty = rows.with_columns(pl.lit(None).alias("type"))
        empty.write_csv(folder / f"{name}-empty.csv")
        columns = pl.DataFrame({"gene": [f"g{j}" for j in range(4)]})
        samples = {f"{name}{i}": X[i] for i in range(n)}
        columns.with_columns(**samples).write_csv(folder / f"{name}-turned.csv")
    model = str(folder / "m.ebda")
    data = str(folder / "fitted.csv")
    assert main(["fit", data, "--target", "type", *QUICK, "--model", model]) == 0
    return folder


@pytest.mark.parametrize("kind", ["unlabelled", "empty", "turned"])
@pytest.mark.parametrize("samples", ["fitted", "new"])
def test_a_report_needs_no_labels(
    home: Path,
    tmp_path: Path,
    samples: str,
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, data = tmp_path / "p.html", str(home / f"{samples}-{kind}.csv")
    report = ["report", str(home / "m.ebda"), data, "--out", str(page)]
    assert main(report) == 0
    assert page.read_text().startswith("<!doctype html>")
    # A name that the user gives must be there.
    capsys.readouterr()
    assert main([*report, "--target", "type"]) == 1
    assert "type" in capsys.readouterr().err
    if samples == "new":
        assert main([*report, "--test"]) == 1
        assert "a test needs labels" in capsys.readouterr().err


def test_labels_that_are_there_are_used(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(home / "new.csv")
    report = ["report", str(home / "m.ebda"), data, "--out", str(tmp_path / "p.html")]
    assert main([*report, "--test"]) == 0
    assert main([*report, "--test", "--drop", "type"]) == 1
    assert "a test needs labels" in capsys.readouterr().err


def test_models_that_cannot_be_reported_on(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.read_csv(home / "fitted.csv")
    X, y = frame[:, 2:].to_pandas(), frame["type"].to_numpy()
    ebda.save(FAIR().fit(X, y), tmp_path / "fair.ebda")
    ebda.save(ebda.NormalMeans().fit(X["g0"]), tmp_path / "means.ebda")
    data = str(home / "fitted-unlabelled.csv")
    for name, command, options, message in (
        ("fair", "report", [], "holds a FAIR; a report is of EBClassifier"),
        ("means", "report", [], "holds a NormalMeans; a report is of EBClassifier"),
        ("means", "predict", [], "holds a NormalMeans, which classifies nothing"),
        (
            "fair",
            "predict",
            ["--missing", "zero-weight"],
            "FAIR cannot do without features",
        ),
    ):
        assert main([command, str(tmp_path / f"{name}.ebda"), data, *options]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("drop", 3), ("drop", [["a"]]), ("log", "yes"), ("target", 7), ("layer", []),
        ("duplicates", {}), ("labels", 1.5), ("command", None), ("notes", [1]),
        ("n_samples", "many"), ("classes", []), ("fitted_to", 1), ("impute", True),
    ],
)  # fmt: skip
def test_facts_that_were_edited(
    home: Path,
    tmp_path: Path,
    fact: str,
    value: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, payload = unseal((home / "m.ebda").read_bytes())
    header = json.loads(text)
    header["data"][fact] = value
    model = tmp_path / "edited.ebda"
    model.write_bytes(seal(json.dumps(header).encode(), payload))
    for command in ("report", "predict"):
        assert main([command, str(model), str(home / "fitted.csv")]) == 1
        printed = capsys.readouterr()
        assert printed.err.count("\n") == 1
        assert f"edited.ebda says that '{fact}' of its data is " in printed.err


@pytest.mark.slow
@examples(100)
@given(seed=st.integers(0, 2**32))
def test_an_edited_model_is_refused_or_used(home: Path, seed: int) -> None:
    """Whatever can be loaded gives a page and predictions, or a message."""
    text, payload = unseal((home / "m.ebda").read_bytes())
    header = json.loads(text)
    try:
        edit_tree(header, random.Random(seed))
    except IndexError:  # everything is gone
        return
    model, data = home / "edited.ebda", str(home / "fitted.csv")
    model.write_bytes(seal(json.dumps(header).encode(), payload))
    try:
        ebda.load_record(model)
    except ebda.ModelFileError:
        return
    for command in ("report", "predict"):
        place = str(home / f"{command}.csv")
        status = main([command, str(model), data, "--out", place, "--quiet"])
        assert status in (0, 1)
