"""New samples are compared with those of a fit, and the fit's preparation is kept."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import ebda
from ebda.cli import main
from ebda.datasets import load_golub, load_khan
from ebda.inputs import TrainingValues, compare_with_training
from ebda.inputs.logarithms import LOGARITHMS
from ebda.inputs.shift import DataShift, rule_shares

QUICK = ["--covariance", "diagonal", "--shrinkage", "mean", "--folds", "0"]


def any_rule(p: int) -> Any:
    return SimpleNamespace(coef_=np.ones((1, p)))


def shift_of(train: Any, new: Any) -> DataShift:
    return compare_with_training(
        any_rule(train.shape[1]), new, TrainingValues.of(train)
    )


def test_the_summary_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 7] = np.nan
    known = TrainingValues.of(X)
    rest = np.arange(50) != 7
    for name, function in {
        "low": np.nanmin, "high": np.nanmax, "mean": np.nanmean, "sd": np.nanstd
    }.items():  # fmt: skip
        found = getattr(known, name)
        np.testing.assert_allclose(found[rest], function(X[:, rest], axis=0))
        assert found[7] == 0
    with ebda.sizes.override(tile_elements=45):
        again = TrainingValues.of(X)
    np.testing.assert_array_equal(again.sd, known.sd)
    Z = np.where(rng.random(X.shape) < 0.7, 0.0, np.nan_to_num(X))
    one, two = TrainingValues.of(Z), TrainingValues.of(sparse.csr_array(Z))
    for name in ("low", "high", "mean", "sd"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-15)


@pytest.mark.parametrize("n_new", [1, 3, 12, 60])
def test_numbers_of_samples_like_those_of_the_fit(n_new: int) -> None:
    rng = np.random.default_rng(n_new)
    X = rng.normal(
        rng.normal(5, 3, 2000), rng.uniform(0.5, 3, 2000), (40 + n_new, 2000)
    )
    found = shift_of(X[:40], X[40:])
    assert not found.is_far
    assert found.warnings() == []
    assert found.outside == pytest.approx(found.expected_outside, abs=0.01)
    assert found.shift == pytest.approx(found.expected_shift, rel=0.1)
    # The same samples as a sparse matrix.
    same = shift_of(X[:40], sparse.csr_array(X[40:]))
    assert same.shift == pytest.approx(found.shift)


def test_real_samples_are_like_each_other_and_one_class_is_no_shift() -> None:
    khan = load_khan()
    X, rng = khan.data, np.random.default_rng(0)
    for n_new in (1, 1, 1, 4, 10, 20):
        order = rng.permutation(len(X))
        assert not shift_of(X[order[n_new:]], X[order[:n_new]]).is_far
    one = khan.target == khan.target[0]
    assert not shift_of(X, X[one][:6]).is_far


@pytest.mark.parametrize("name", LOGARITHMS)
@pytest.mark.parametrize("n_new", [1, 34])
def test_logarithms_that_were_forgotten_or_taken_twice(name: str, n_new: int) -> None:
    golub, log = load_golub(), LOGARITHMS[name]
    raw = np.maximum(golub.data[:, :2000], 20.0)
    train, test = golub.split == "train", np.flatnonzero(golub.split == "test")[:n_new]
    taken = log.of(raw)
    forgotten = shift_of(taken[train], raw[test])
    assert forgotten.is_far
    assert f"Was {log.line} forgotten?" in (forgotten.proposal or "")
    # It cannot have been forgotten where it was taken just now.
    known = TrainingValues.of(taken[train])
    again = compare_with_training(any_rule(2000), raw[test], known, log_taken=True)
    assert again.is_far
    assert "forgotten" not in (again.proposal or "")
    twice = shift_of(taken[train], log.of(taken[test]))
    assert f"as if {log.line} had been taken of them once more" in (
        twice.proposal or ""
    )
    other = next(entry for entry in LOGARITHMS.values() if entry is not log)
    mixed = shift_of(taken[train], other.of(raw[test]))
    assert mixed.is_far
    assert f"They look like {other.name} logarithms" in (mixed.proposal or "")
    assert not shift_of(taken[train], taken[test]).is_far


def test_another_spread_and_another_place() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 500))
    assert shift_of(X[:40], X[40:] / 10).is_far
    assert shift_of(X[:40], X[40:] + 5).is_far
    # Another platform: each feature has moved, and all of them by nothing on average.
    moved = X[40:] + rng.normal(0, 3, 500)
    found = shift_of(X[:40], moved)
    (words,) = found.warnings()
    assert f"{found.outside:.0%} of the values lie outside" in words
    assert "standard deviations in the median" in words
    assert found.proposal is None


def test_what_is_missing_of_the_rule() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 10))
    model = SimpleNamespace(coef_=np.r_[8.0, np.ones(9)][None])
    known = TrainingValues.of(X)
    share = rule_shares(model, known.sd)
    assert share.sum() == pytest.approx(1)
    assert share[0] == pytest.approx(
        8 * X[:, 0].std() / (8 * X.std(0)[0] + X.std(0)[1:].sum())
    )
    new = X[:6].copy()
    new[:, 3] = np.nan
    new[2, 0] = np.nan
    found = compare_with_training(model, new, known)
    assert found.n_missing == 1
    assert found.missing_weight == pytest.approx(share[3])
    assert found.sample_weights[2] == pytest.approx(share[0] + share[3])
    assert found.warnings() == [
        "1 sample of 6 lacks values with more than 50% of the rule's weight."
    ]
    new[:, 0] = np.nan
    assert compare_with_training(model, new, known).lacks_most
    new[:] = np.nan
    nothing = compare_with_training(model, new, known)
    assert (nothing.missing_weight, nothing.is_far) == (pytest.approx(1), False)
    assert rule_shares(SimpleNamespace(coef_=np.zeros((2, 3))), np.ones(3)).sum() == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw intensities and their logarithms, for a fit and new."""
    golub, path = load_golub(), tmp_path_factory.mktemp("shift")
    genes = golub.feature_names[1500:1900]
    for name in ("train", "test"):
        rows = golub.split == name
        raw = np.maximum(golub.data[rows, 1500:1900], 20.0)
        for kind, X in {"raw": raw, "log": LOGARITHMS["log2"].of(raw).round(6)}.items():
            frame = pl.DataFrame(X, schema=genes.tolist())
            names = pl.Series("id", [f"s{i}" for i in range(len(X))])
            frame = frame.insert_column(0, names)
            label = pl.Series("type", golub.target[rows])
            frame.insert_column(1, label).write_csv(path / f"{name}-{kind}.csv")
    return path


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_log2_is_said_kept_and_taken_again(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, done = tmp_path / "raw.ebda", tmp_path / "done.ebda"
    fit = ["fit", folder / "train-raw.csv", "--target", "type", *QUICK]
    status, out, _ = run(capsys, *fit, "--log2", "--model", raw)
    assert status == 0
    assert "transformation  sign(x) log2(1 + |x|)" in out
    assert "log2 fold change" in out
    assert "--log2 takes sign(x) log2(1 + |x|)" in run(capsys, *fit)[1]
    fit[1] = folder / "train-log.csv"
    _, same, _ = run(capsys, *fit, "--model", done)
    # log2 fold changes are differences of log2 values.
    numbers = [line.split()[1] for line in out.split("\n") if "higher in" in line]
    assert numbers == [
        line.split()[1] for line in same.split("\n") if "higher in" in line
    ]
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    status, _, err = run(capsys, "predict", raw, folder / "test-raw.csv", "--out", one)
    assert "The values are sign(x) log2(1 + |x|), as for the fit." in err
    assert "Warning" not in err
    assert run(capsys, "predict", done, folder / "test-log.csv", "--out", two)[0] == 0
    np.testing.assert_allclose(
        pl.read_csv(one)["probability_ALL"], pl.read_csv(two)["probability_ALL"],
        atol=1e-5,
    )  # fmt: skip
    assert run(capsys, "report", raw, folder / "test-raw.csv", "--drop", "type")[0] == 0
    assert "log2 fold change" in (tmp_path / "raw.html").read_text()
    with pytest.raises(SystemExit):
        main([str(a) for a in [*fit, "--log", "--log2"]])


def test_another_scale_is_a_warning_and_with_strict_an_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.ebda"
    fit = ["fit", folder / "train-log.csv", "--target", "type", *QUICK]
    assert run(capsys, *fit, "--model", model)[0] == 0
    predict = ["predict", model, folder / "test-raw.csv"]
    status, out, err = run(capsys, *predict)
    assert status == 0
    assert out.count("\n") == 35
    assert "Warning: The new values are not like those of the fit: " in err
    assert " forgotten? It would bring them closer." in err
    record = json.loads(run(capsys, *predict, "--json", "--quiet")[1])
    assert record["compared_with_training"]["is_far"] is True
    assert record["compared_with_training"]["outside"] > 0.9
    status, out, err = run(capsys, *predict, "--strict")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "not like those of the fit" in err
    assert run(capsys, "predict", model, folder / "test-log.csv", "--strict")[0] == 0
    wrong = [*fit, "--test", folder / "test-raw.csv"]
    assert " forgotten? It would bring them closer." in run(capsys, *wrong)[1]
    record = json.loads(run(capsys, *wrong, "--json", "--quiet")[1])
    assert len(record["test_warnings"]) == 1
    _, _, err = run(capsys, "report", *predict[1:], "--drop", "type")
    assert "Warning: The new values" in err


def test_most_of_the_rule_is_missing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, few = tmp_path / "m.ebda", tmp_path / "few.csv"
    fit = ["fit", folder / "train-log.csv", "--target", "type", *QUICK]
    assert run(capsys, *fit, "--model", model)[0] == 0
    frame = pl.read_csv(folder / "test-log.csv")
    predict = ["predict", model, few, "--missing", "zero-weight"]
    frame[:, :120].write_csv(few)
    for strict in ([], ["--strict"]):
        status, _, err = run(capsys, *predict, *strict)
        assert status == 1
        assert "of the rule's weight are missing" in err
    frame[:, :300].write_csv(few)
    status, _, err = run(capsys, *predict)
    assert status == 0
    assert "102 features of 400 are missing, with " in err
    # A file of an older version knows no ranges.
    old = ebda.modelfile.load_record(model)
    ebda.save(old.model, model, old.evaluation, old.data)
    status, _, err = run(capsys, *predict)
    assert status == 0
    assert "The model file has no ranges of the training data" in err
    assert run(capsys, *predict, "--strict")[0] == 1
    frame[:, :120].write_csv(few)
    assert run(capsys, *predict)[0] == 1


def test_missing_values_get_the_medians_of_the_fit(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, gaps, full = (
        tmp_path / "m.ebda",
        tmp_path / "gaps.csv",
        tmp_path / "full.csv",
    )
    train = pl.read_csv(folder / "train-raw.csv")
    fit = ["fit", folder / "train-raw.csv", "--target", "type", "--log2", *QUICK]
    assert run(capsys, *fit, "--impute", "median", "--model", model)[0] == 0
    frame = pl.read_csv(folder / "test-raw.csv")
    gene = frame.columns[50]
    value = float(train[gene].median() or 0)
    frame.with_columns(pl.lit(None).alias(gene)).write_csv(gaps)
    frame.with_columns(pl.lit(value).alias(gene)).write_csv(full)
    found = []
    for data in (gaps, full):
        out = tmp_path / "out.csv"
        status, _, err = run(capsys, "predict", model, data, "--out", out)
        assert status == 0
        assert ("34 missing values replaced by the medians of the fit" in err) == (
            data == gaps
        )
        found.append(pl.read_csv(out)["probability_ALL"].to_numpy())
    # The median of logarithms is the logarithm of the median, for odd counts.
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    record = ebda.modelfile.load_record(model)
    assert record.training is not None
    assert record.training.median is not None


def test_ranges_of_other_features_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 30)), np.tile([0, 1], 10)
    model = ebda.EBClassifier(covariance="diagonal").fit(X, y)
    with pytest.raises(ValueError, match="of 29 features, and the model has 30"):
        ebda.save(model, tmp_path / "m", training=TrainingValues.of(X[:, 1:]))
    ebda.save(model, tmp_path / "m", training=TrainingValues.of(X))
    again = ebda.modelfile.load_record(tmp_path / "m").training
    assert again is not None
    np.testing.assert_array_equal(again.high, X.max(axis=0))
