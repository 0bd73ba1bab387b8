"""Tables that ``ebda fit`` writes, and what it is told of classes, folds and tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import pytest
from scipy.stats import binomtest

import ebda
from ebda.cli import main
from ebda.cli.outcome import caution_words
from ebda.datasets import make_two_class
from ebda.evaluation import Evaluation, RepeatedEvaluation, cross_validate
from ebda.evaluation.folds import stratified_folds
from ebda.report.cautions import Caution
from ebda.report.words import percent

QUICK = ["--covariance", "diagonal", "--shrinkage", "mean"]
P = 60


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty samples of the classes 0 and 1, the first features of which differ."""
    sim = make_two_class(
        n_per_class=20, n_features=P, n_signals=10, effect=1.2, random_state=0
    )
    path = tmp_path_factory.mktemp("tables") / "data.csv"
    frame = pl.DataFrame(sim.data.round(6), schema=[f"g{j}" for j in range(P)])
    label = np.where(sim.target == sim.target[0], "ill", "well")
    names = [f"s{i}" for i in range(len(label))]
    frame = frame.insert_column(0, pl.Series("id", names))
    frame.insert_column(1, pl.Series("state", label)).write_csv(path)
    return path


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    if path.suffix == ".xlsx":  # by another package than the one that wrote it
        return [*openpyxl.load_workbook(path).active.iter_rows(values_only=True)]
    read = pl.read_csv if path.suffix == ".csv" else pl.read_parquet
    frame = read(path)
    return [tuple(frame.columns), *frame.rows()]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx"])
def test_the_table_of_features_is_the_ranking(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    genes, model = tmp_path / f"genes{ending}", tmp_path / "m.ebda"
    status, out, _ = run(
        capsys, "fit", csv, "--target", "state", "--folds", "0", "--features", genes,
        "--model", model, *QUICK,
    )  # fmt: skip
    assert status == 0
    assert f"Written: {genes}" in out
    head, *rows = rows_of(genes)
    fitted = ebda.load(model)
    frame = fitted.ranking_.to_frame()
    assert [row[0] for row in rows] == frame.index.tolist()
    for name in ("difference", "t", "p_value", "q_value", "lfdr"):
        values = [row[head.index(name)] for row in rows]
        np.testing.assert_allclose(np.array(values, float), frame[name], rtol=1e-12)
    order = fitted.ranking_.order
    for name, want in {
        "weight": fitted.coef_[0],
        "mean_ill": fitted.moments_.means[0],
        "mean_well": fitted.moments_.means[1],
    }.items():
        values = [row[head.index(name)] for row in rows]
        np.testing.assert_allclose(np.array(values, float), want[order], rtol=1e-12)
    up = fitted.moments_.means[1] > fitted.moments_.means[0]
    higher = [row[head.index("higher_in")] for row in rows]
    assert higher == np.where(up, "well", "ill")[order].tolist()


def test_features_of_many_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    y = np.tile(["a", "b", "c"], 12)
    X = rng.normal(size=(36, 50)) + rng.normal(size=(36, 1)) * rng.normal(size=50)
    X[y == "c", :5] -= 6
    np.savez(tmp_path / "x.npz", X=X, y=y)
    genes = tmp_path / "genes.tsv"
    arguments = ["--features", genes, "--folds", "0", "--covariance", "factor"]
    assert run(capsys, "fit", tmp_path / "x.npz", *arguments)[0] == 0
    frame = pl.read_csv(genes, separator="\t")
    assert frame["class"][:5].to_list() == ["c"] * 5
    assert frame["direction"][:5].to_list() == ["lower"] * 5
    assert {"f", "conditional_f", "weight_a", "mean_c"} <= set(frame.columns)
    assert frame.height == 50


def test_held_out_predictions_are_those_of_python(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "held.csv"
    status, said, _ = run(
        capsys, "fit", csv, "--target", "state", "--folds", "4", "--repeats", "3",
        "--out", out, "--seed", "5", *QUICK,
    )  # fmt: skip
    assert status == 0
    table = ebda.inputs.read(csv, target="state")
    assert table.y is not None
    model = ebda.EBClassifier(covariance="diagonal", shrinkage="mean", random_state=5)
    found = [cross_validate(model, table.X, table.y, 4, seed) for seed in (5, 6, 7)]
    frame = pl.read_csv(out)
    assert frame["sample"].to_list() == table.sample_names.tolist()
    assert frame["class"].to_list() == table.y.tolist()
    np.testing.assert_allclose(
        frame["probability_well"], found[0].probabilities[:, 1], rtol=1e-12
    )
    wrong = np.mean([e.predicted != e.codes for e in found], axis=0)
    np.testing.assert_allclose(frame["share_wrong"], wrong)
    mean = np.mean([e.error for e in found])
    assert f"3 cross-validations, each with other folds: mean error {mean:.1%}" in said
    assert "The first of them, in 4 folds:" in said


def test_the_interval_is_that_of_wilson() -> None:
    codes = np.zeros(40, np.intp)
    p = np.tile([0.9, 0.1], (40, 1))
    p[:7] = [0.1, 0.9]
    one = Evaluation(np.array(["a", "b"]), codes, p, 0)  # a test, without folds
    wanted = binomtest(7, 40).proportion_ci(0.9, method="wilson")
    same = RepeatedEvaluation((one, one, one))
    np.testing.assert_allclose(same.interval(0.9), tuple(wanted), rtol=1e-12)
    none = Evaluation(one.classes, codes, np.tile([1.0, 0.0], (40, 1)), 5)
    assert RepeatedEvaluation((none,)).interval()[0] == 0
    other = Evaluation(one.classes, codes + 1, p, 5)
    with pytest.raises(ValueError, match="not of the same samples"):
        RepeatedEvaluation((one, other))
    with pytest.raises(ValueError, match="at least one"):
        RepeatedEvaluation(())


def test_class_probabilities(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.ebda"
    common = ["fit", csv, "--target", "state", "--folds", "0", "--quiet", *QUICK]
    given = [*common, "--model", model, "--priors"]
    assert run(capsys, *given, "well=0.9,ill=0.1")[0] == 0
    np.testing.assert_allclose(ebda.load(model).class_prior_, [0.1, 0.9])
    assert run(capsys, *given, "uniform")[0] == 0
    assert ebda.load(model).class_prior_.tolist() == [0.5, 0.5]
    status, _, err = run(capsys, *given, "well=0.9,sick=0.1")
    assert status == 1
    assert "--priors has probabilities of 'well', 'sick', and the classes are" in err
    for wrong in ("well=0.9,ill=0.2", "well:1", "well=0.5,well=0.5", "a=nan,b=1"):
        with pytest.raises(SystemExit) as stop:
            main([str(a) for a in [*given, wrong]])
        assert stop.value.code == 2
        assert "add up to" in (err := capsys.readouterr().err) or "neither" in err


def test_test_samples_that_lack_features(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.read_csv(csv)
    test, out = tmp_path / "test.csv", tmp_path / "out.csv"
    lacking = frame.drop("g3").with_columns(
        g5=pl.when(pl.col("id") == "s2").then(None).otherwise(pl.col("g5"))
    )
    lacking.write_csv(test)
    model = tmp_path / "m.ebda"
    common = [
        "fit", csv, "--target", "state", "--folds", "0", "--test", test, "--out", out,
        "--model", model, *QUICK,
    ]  # fmt: skip
    status, _, err = run(capsys, *common)
    assert status == 1
    assert "1 feature of the model is missing: 'g3'" in err
    assert "--missing zero-weight" in err
    for more in ([], ["--impute", "median"]):
        assert run(capsys, *common, "--missing", "zero-weight", *more)[0] == 0
    # The same predictions as those of `ebda predict`.
    assert run(capsys, *common, "--missing", "zero-weight")[0] == 0
    again = tmp_path / "again.csv"
    assert run(
        capsys, "predict", model, test, "--missing", "zero-weight", "--out", again
    )[0] == 0  # fmt: skip
    one, two = pl.read_csv(out), pl.read_csv(again)
    np.testing.assert_allclose(one["probability_ill"], two["probability_ill"])


def test_percentages_of_cautions_are_those_of_the_terminal() -> None:
    caution = Caution(False, "Unequal classes", f"Wrong for only {percent(0.036)}.")
    assert caution_words([caution]) == ["Note: Unequal classes. Wrong for only 3.6%."]


def test_cautions_are_printed(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.read_csv(csv)
    some = pl.concat([frame.filter(pl.col("state") == "ill")[:4], frame[20:]])
    path = tmp_path / "few.csv"
    some.write_csv(path)
    arguments = ["fit", path, "--target", "state", "--folds", "0", *QUICK]
    _, out, _ = run(capsys, *arguments)
    assert "Caution: Few samples. The model has fewer than 10 samples of ill (4)" in out
    assert "Note: Error not estimated." in out
    _, out, _ = run(capsys, *arguments, "--json")
    titles = [caution["title"] for caution in json.loads(out)["cautions"]]
    assert "Few samples" in titles


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--features", "genes.pdf"], "--features genes.pdf: the ending is none of"),
        (["--out", "no/held.csv"], "--out: cannot write no/held.csv"),
        (["--out", "held.csv", "--folds", "0"], "leave --folds 0 out, or give --test"),
    ],
)
def test_tables_that_cannot_be_written_are_refused_at_once(
    csv: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "fit", csv, "--target", "state", *options)
    assert status == 1
    assert words in err
    assert not out
    assert not list(tmp_path.iterdir())


def test_groups_decide_where_a_rare_class_is_held_out() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 4)
    y = np.where(groups < 2, "rare", "usual")
    X = rng.normal(size=(48, 20)) + 3 * (y == "rare")[:, None]
    model = ebda.EBClassifier(covariance="diagonal", shrinkage="mean")
    found = cross_validate(model, X, y, n_folds=6, groups=groups)
    assert found.n_folds == 6
    assert found.error == 0
    y[groups == 1] = "usual"
    with pytest.raises(ValueError, match=r"two groups of each class.*'rare'"):
        cross_validate(model, X, y, groups=groups)
    # Two groups, each with both classes: there are no more folds than that.
    both, codes = np.array(["a", "b"]), np.repeat([0, 1], 24)
    fold = stratified_folds(both, codes, np.arange(48) % 2, n_folds=5, seed=0)
    pairs = set(zip(fold.tolist(), (np.arange(48) % 2).tolist(), strict=True))
    assert len(pairs) == 2
    assert fold.max() == 1


def test_labels_that_differ_in_case_or_blanks(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "case.csv", tmp_path / "page.html"
    frame = pl.read_csv(csv)
    label = ["Well " if i % 3 else "well" for i in range(20)]
    frame = frame.with_columns(state=pl.Series([*frame["state"][:20], *label]))
    frame.write_csv(path)
    arguments = ["fit", path, "--target", "state", "--folds", "0", *QUICK]
    _, out, _ = run(capsys, *arguments, "--report", page)
    words = "caution: the labels 'Well', 'well' differ in case or blanks only"
    assert out.count(words) == 1
    assert "Labels that differ" not in out  # once is enough
    assert "Well and well are taken for different classes" in page.read_text()


def test_columns_of_true_and_false_are_named(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flags.csv"
    frame = pl.read_csv(csv)
    flags = pl.Series("smoker", ["TRUE", "FALSE"] * 20)
    site = pl.Series("site", ["north", "south"] * 20)
    frame.with_columns(flags, site).write_csv(path)
    _, out, _ = run(capsys, "fit", path, "--target", "state", "--folds", "0", *QUICK)
    assert "left out 1 column of true and false (write 1 and 0 for a feature)" in out
    assert "left out 1 column of text: 'site'" in out


def test_nothing_that_is_read_or_just_written_is_lost(
    csv: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = csv.read_bytes()
    (tmp_path / "link.csv").symlink_to(csv)
    fit = ["fit", csv, "--target", "state", "--folds", "2", *QUICK]
    for options, words in (
        (["--out", csv], f"--out: {csv} is read; name another file"),
        (["--features", "link.csv"], f"--features: {csv} is read"),
        (["--model", csv], "is read"),
        (["--labels", "a.csv", "--report", "a.csv"], "--report: a.csv is read"),
        (["--out", "a.csv", "--features", "./a.csv"], "--features writes; name an"),
    ):
        status, _, err = run(capsys, *fit, *options)
        assert status == 1
        assert words in err
    assert run(capsys, *fit, "--model", "m.ebda", "--quiet")[0] == 0
    model = (tmp_path / "m.ebda").read_bytes()
    for command in (
        ["predict", "m.ebda", csv, "--out", csv],
        ["report", "m.ebda", csv, "--out", "m.ebda"],
        ["denoise", csv, "--estimate", "g1", "--out", csv],
        ["panel", csv, "--target", "state", "--out", csv],
    ):
        status, _, err = run(capsys, *command)
        assert status == 1
        assert "is read; name another file" in err
    assert csv.read_bytes() == before
    assert (tmp_path / "m.ebda").read_bytes() == model
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.csv", "m.ebda"]
