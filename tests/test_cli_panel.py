"""``ebda panel``: from a table to a small panel, and to predictions by it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ebda
from ebda.cli import main
from ebda.datasets import make_two_class
from ebda.inputs import read

QUICK = ["--covariance", "diagonal", "--shrinkage", "mean", "--folds", "4"]
P = 80


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty samples of two classes; four features differ, and patients have two."""
    sim = make_two_class(
        n_per_class=20, n_features=P, n_signals=4, effect=2.0, random_state=1
    )
    path = tmp_path_factory.mktemp("panel") / "data.csv"
    frame = pl.DataFrame(sim.data.round(6), schema=[f"g{j}" for j in range(P)])
    label = np.where(sim.target == sim.target[0], "ill", "well")
    frame = frame.with_columns(
        id=pl.Series([f"s{i}" for i in range(40)]),
        state=pl.Series(label),
        patient=pl.Series([f"p{i // 2}" for i in range(40)]),
    )
    frame.select("id", *frame.columns[:P], "state", "patient").write_csv(path)
    return path


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_panel_is_that_of_python(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    genes, curve = tmp_path / "genes.csv", tmp_path / "curve.csv"
    picture, model = tmp_path / "panel.svg", tmp_path / "small.ebda"
    status, out, err = run(
        capsys, "panel", csv, "--target", "state", "--sizes", "1,2,4,20", "--repeats",
        "2", "--seed", "3", "--out", genes, "--curve", curve, "--picture", picture,
        "--model", model, *QUICK,
    )  # fmt: skip
    assert status == 0
    table = read(csv, target="state")
    assert table.y is not None
    rule = ebda.EBClassifier(covariance="diagonal", shrinkage="mean", random_state=3)
    found = ebda.panel(
        rule, table.X, table.y, [1, 2, 4, 20], n_folds=4, n_repeats=2, seed=3
    )
    assert found.words() in out
    assert found.table() in out
    names = table.feature_names[found.features.columns].tolist()
    assert f"The panel: {', '.join(names)}\n" in out
    assert "fold: 8 of 8 done" in err
    assert pl.read_csv(genes)["feature"].to_list() == names
    np.testing.assert_allclose(pl.read_csv(genes)["t"], found.features.t)
    np.testing.assert_allclose(pl.read_csv(curve)["error"], found.error)
    assert pl.read_csv(curve)["chosen"].sum() == 1
    assert picture.read_bytes().startswith(b"<?xml")
    # The small model predicts from these features alone.
    new = tmp_path / "new.csv"
    pl.read_csv(csv).select("id", *names).write_csv(new)
    status, out, err = run(capsys, "predict", model, new, "--strict")
    assert status == 0
    probabilities = pl.read_csv(out.encode())["probability_well"]
    want = found.model.predict_proba(table.X[:, found.columns])[:, 1]
    np.testing.assert_allclose(probabilities, want, rtol=1e-12)


def test_groups_json_and_a_class_with_one_sample(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["panel", csv, "--target", "state", "--sizes", "2,8", *QUICK, "--json"]
    status, out, _ = run(capsys, *arguments, "--groups", "patient", "--quiet")
    assert status == 0
    record = json.loads(out)
    assert record["size"] in (2, 8)
    assert record["curve"]["n_features"] == [2, 8]
    assert len(record["features"]["feature"]) == record["size"]
    frame = pl.read_csv(csv).drop("patient")
    one = frame.with_columns(
        state=pl.when(pl.col("id") == "s0").then(pl.lit("odd")).otherwise("state")
    )
    one.write_csv(tmp_path / "one.csv")
    arguments[1] = tmp_path / "one.csv"
    status, out, _ = run(capsys, *arguments, "--quiet")
    assert status == 0
    assert json.loads(out)["n_samples"] == 39


def test_what_cannot_be_done_is_said(
    csv: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    start = ["panel", csv, "--target", "state", *QUICK]
    for options, words in (
        (["--out", "genes.pdf"], "--out genes.pdf: the ending is none of"),
        (["--curve", "no/c.csv"], "--curve: cannot write"),
        (["--picture", "no/c.png"], "--picture: cannot write"),
        (["--picture", "c.gif"], "the ending is none of .png, .svg, .pdf"),
        (["--sizes", "500"], "500"),
    ):
        status, _, err = run(capsys, *start, *options)
        assert status == 1
        assert err.strip().split("\n")[-1].startswith("ebda panel: ")
        assert words in err
    for wrong in (["--sizes", "few"], ["--sizes", "0,3"], ["--repeats", "0"]):
        with pytest.raises(SystemExit) as stop:
            main([str(a) for a in [*start, *wrong]])
        assert stop.value.code == 2
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "ebda.plotting.panels", None)
    status, _, err = run(
        capsys, *start, "--sizes", "2", "--picture", "p.png", "--quiet"
    )
    assert status == 0
    assert "No picture" in err
    assert not list(tmp_path.iterdir())
