"""The report of models that know groups and covariates of their samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import ebda
from ebda import EBClassifier
from ebda.cli import main
from ebda.evaluation import cross_validate
from ebda.report import render, write_report
from ebda.report.case import Case, scored
from ebda.report.cautions import cautions
from ebda.report.structure import batches_and_outliers
from ebda.sizes import override

PLATED = "Looks like a batch"
LACKING = "Samples without covariates"


def plates(seed: int = 0, n: int = 60, p: int = 300) -> tuple[Any, Any, dict[str, Any]]:
    """Two classes on two plates that differ in all features."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, "ill", "well")
    plate = np.where(rng.random(n) < 0.4, "p2", "p1")
    age = rng.normal(50, 10, n)
    X = rng.normal(size=(n, p)) + 2 * np.outer(plate == "p2", rng.normal(size=p))
    X += 0.05 * np.outer(age - 50, rng.normal(size=p))
    X[:, :10] += (y == "ill")[:, None]
    return X, y, {"plate": plate, "age": age}


def quick() -> EBClassifier:
    return EBClassifier(covariance="diagonal", shrinkage="mean")


def titles(case: Case) -> list[str]:
    return [caution.title for caution in cautions(case)]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_samples_are_adjusted(kind: str) -> None:
    X, y, known = plates()
    data = sparse.csr_array(X) if kind == "sparse" else X
    model = quick().fit(data, y, covariates=known)
    case = Case.checked(model, data, y, covariates=known)
    expected = model.predict_proba(X, covariates=known)
    np.testing.assert_allclose(case.probabilities, expected)
    assert PLATED not in titles(case)
    assert LACKING not in titles(case)
    shown = scored(case)
    assert shown is not None
    assert "mean of the covariates" not in shown.origin


def test_a_page_says_that_samples_are_not_adjusted() -> None:
    X, y, known = plates()
    model = quick().fit(X, y, covariates=known)
    case = Case.checked(model, X, y)
    np.testing.assert_array_equal(case.probabilities, model.predict_proba(X))
    # The plate is found, because it was not told.
    assert {PLATED, LACKING} <= set(titles(case))
    shown = scored(case)
    assert shown is not None
    assert shown.origin.startswith("taken to have the mean of the covariates")
    words = next(c.words for c in cautions(case) if c.title == LACKING)
    assert "adjusted for plate and age" in words
    held_out = cross_validate(quick(), X, y, 3, covariates=known)
    page = render(model, X=X, y=y, evaluation=held_out)
    assert "The held-out predictions do not depend on that" in page
    # Without samples there is nothing to adjust, and a plain model has no covariates.
    assert LACKING not in titles(Case.checked(model))
    assert LACKING not in titles(Case.checked(quick().fit(X, y), X, y))


def test_batches_are_those_of_adjusted_samples() -> None:
    X, y, known = plates(1)
    codes, C = (y == "well").astype(int), np.column_stack([known["plate"] == "p2"])
    C = C - C.mean()
    slopes = np.random.default_rng(1).normal(size=(1, X.shape[1]))
    (expected,), none = batches_and_outliers(X - C @ slopes, codes, 2)
    with override(tile_elements=900, block_bytes=4000):
        (found,), nothing = batches_and_outliers(X, codes, 2, (C, slopes))
    assert none == nothing == []
    np.testing.assert_array_equal(found.samples, expected.samples)
    # One degree of freedom less.
    assert found.share == pytest.approx(expected.share, rel=1e-8)


def test_covariates_must_go_with_samples() -> None:
    X, y, known = plates()
    model = quick().fit(X, y, covariates=known)
    with pytest.raises(ValueError, match="covariates were given without X"):
        render(model, covariates=known)
    with pytest.raises(ValueError, match="those of the fit were"):
        render(model, X=X, covariates={"plate": known["plate"]})
    with pytest.raises(ValueError, match="fitted without covariates"):
        render(quick().fit(X, y), X=X, covariates=known)


def test_a_new_category_is_warned_of_once() -> None:
    X, y, known = plates()
    model = quick().fit(X, y, covariates=known)
    other = known | {"plate": np.full(len(y), "p9")}
    with pytest.warns(UserWarning, match="'plate' has 'p9'") as found:
        render(model, X=X, covariates=other)
    assert len(found) == 1


def test_the_page_names_what_was_fitted() -> None:
    X, y, known = plates()
    groups = np.arange(len(y)) // 4 * 2 + np.arange(len(y)) % 2
    model = quick().fit(X, y, groups=groups, covariates=known)
    assert model.groups_ is not None
    case = Case.checked(model, X, y, covariates=known)
    np.testing.assert_array_equal(case.counts, [30, 30])
    assert case.sizes == ["30 ill", "30 well"]
    np.testing.assert_array_equal(case.worth, model.groups_.n_effective)
    page = render(model, X=X, y=y, covariates=known)
    assert "60 samples of 30 groups" in page
    assert "Adjusted for plate and age" in page


def test_samples_that_are_worth_few_are_few() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(12), 5)
    X = rng.normal(size=(12, 200))[groups] + 0.2 * rng.normal(size=(60, 200))
    model = quick().fit(X, groups % 2, groups=groups)
    words = next(
        c.words for c in cautions(Case.checked(model)) if c.title == "Few samples"
    )
    assert "what is worth fewer than 10 independent samples of 0 (6" in words


@pytest.fixture
def files(tmp_path: Path) -> Path:
    X, y, known = plates(3, p=40)
    columns = {"name": [f"s{i}" for i in range(len(y))], "class": y, **known}
    genes = {f"g{j}": X[:, j] for j in range(40)}
    pl.DataFrame(columns | genes).write_csv(tmp_path / "data.csv")
    pl.DataFrame({"name": columns["name"], "class": y} | genes).write_csv(
        tmp_path / "values.csv"
    )
    return tmp_path


def test_the_command_takes_covariates_from_the_table(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, page = str(files / "m.ebda"), files / "page.html"
    fit = ["fit", str(files / "data.csv"), "--target", "class", "--cv", "0", "--quiet"]
    fit += ["--covariates", "plate,age", "--covariance", "diagonal"]
    assert main([*fit, "--model", model, "--report", str(files / "fit.html")]) == 0
    assert LACKING not in (files / "fit.html").read_text()
    report = ["report", model, "--out", str(page)]
    assert main([*report, str(files / "data.csv")]) == 0
    assert "Adjusted for 'plate', 'age'" in capsys.readouterr().err
    written = page.read_text()
    assert LACKING not in written
    assert PLATED not in written
    # The same page as in Python.
    X, y, known = plates(3, p=40)
    found = ebda.load(model)
    frame = pl.DataFrame(X, schema=found.feature_names_in_.tolist()).to_pandas()
    own, names = files / "own.html", [f"s{i}" for i in range(60)]
    known_too = {"sample_names": names, "covariates": known}
    write_report(own, found, X=frame, y=y, **known_too)
    parts = [
        text.split('<section id="samples"')[1].split("</section>")[0]
        for text in (written, own.read_text())
    ]
    assert parts[0] == parts[1]
    assert "s28" in parts[0]

    assert main([*report, str(files / "values.csv")]) == 0
    assert "Not adjusted for 'plate', 'age'" in capsys.readouterr().err
    assert LACKING in page.read_text()
