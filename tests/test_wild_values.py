"""Single wild values: found where they are impossible, and never elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import ebda
from ebda import EBClassifier
from ebda.cli import main
from ebda.covariance.wild import bound_of, column_medians, tail_degrees_of_freedom
from ebda.report import render
from ebda.sizes import override
from ebda.typing import FloatArray, IntArray
from real_sets import load


def draw(
    seed: int = 0, n: int = 40, p: int = 400, df: float = np.inf, effect: float = 1.0
) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    if np.isfinite(df):
        X *= np.sqrt(df / rng.chisquare(df, n))[:, None]
    X = X * np.exp(rng.normal(0, 0.5, p)) + rng.normal(0, 5, p)
    X[:, :10] += effect * y[:, None]
    return X, y


CELLS = [(3, 7), (3, 50), (17, 200), (38, 399)]


def spoiled(X: FloatArray, size: float = 30.0) -> FloatArray:
    out = X.copy()
    for k, (i, j) in enumerate(CELLS):
        out[i, j] += size * (-1) ** k * np.std(X[:, j])
    return out


def cells_of(model: EBClassifier) -> list[tuple[int, int]]:
    found = model.wild_values_
    assert found is not None
    return list(zip(found.samples.tolist(), found.features.tolist(), strict=True))


def test_bounds_are_tails_of_distributions() -> None:
    for n in (1e3, 1e7):
        tail = 1e-3 / (2 * n)
        assert bound_of(np.inf, n) == pytest.approx(stats.norm.isf(tail), rel=1e-9)
        assert bound_of(4.0, n) == pytest.approx(stats.t.isf(tail, 4), rel=1e-9)


@pytest.mark.parametrize("df", [1.5, 4.0, 20.0])
def test_the_tail_is_that_of_the_values(df: float) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_t(df, (200, 2000))
    found = tail_degrees_of_freedom(values, np.ones(200))
    assert found == pytest.approx(df, rel=0.12)
    # Whatever a few of them are.
    values[rng.random(values.shape) < 0.001] = 1e9
    again = tail_degrees_of_freedom(values, np.ones(200))
    assert again == pytest.approx(found, rel=0.15)


def test_weights_are_repetitions_in_medians_and_tails() -> None:
    rng = np.random.default_rng(1)
    rows, weight = rng.normal(size=(9, 30)), rng.integers(1, 4, 9)
    repeated = np.repeat(rows, weight, axis=0)
    f, ones = weight.astype(float), np.ones(weight.sum())
    np.testing.assert_allclose(column_medians(rows, f), np.median(repeated, axis=0))
    np.testing.assert_allclose(column_medians(repeated, ones), column_medians(rows, f))


def test_wild_values_are_found_and_give_way() -> None:
    """The rest of the fit is that of the data with midpoints in their place."""
    X, y = draw()
    bad = spoiled(X)
    model = EBClassifier().fit(bad, y)
    assert cells_of(model) == CELLS
    tame = bad.copy()
    for i, j in CELLS:
        tame[i, j] = np.mean([np.median(bad[y == k, j]) for k in (0, 1)])
    expected = EBClassifier(wild_values="keep").fit(tame, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(X), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.ranking_.marginal.t, expected.ranking_.marginal.t, rtol=1e-9
    )
    assert model.wild_values_ is not None
    np.testing.assert_allclose(
        model.wild_values_.moments.means, expected.moments_.means
    )
    # More samples are added to the moments of all values.
    plain = EBClassifier(wild_values="keep").fit(bad, y)
    np.testing.assert_array_equal(model.moments_.means, plain.moments_.means)
    assert plain.wild_values_ is None
    assert "4 single values lie more than" in str(model.wild_values_)
    assert "4 single values lie more than" in render(model)


def test_a_rule_without_some_features_knows_them_too() -> None:
    X, y = draw(1)
    bad = spoiled(X)
    absent = np.arange(400) % 2 == 0
    model = EBClassifier().fit(bad, y)
    tame = bad.copy()
    for i, j in CELLS:
        tame[i, j] = np.mean([np.median(bad[y == k, j]) for k in (0, 1)])
    expected = EBClassifier(wild_values="keep").fit(tame, y)
    np.testing.assert_allclose(
        model.without(absent).decision_function(X),
        expected.without(absent).decision_function(X),
        rtol=1e-8,
    )
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    np.testing.assert_allclose(
        model.decision_function(gaps), expected.decision_function(gaps), rtol=1e-8
    )


@pytest.mark.parametrize("df", [np.inf, 5.0, 2.0, 1.0])
@pytest.mark.parametrize("n", [12, 40, 150])
def test_nothing_else_is_wild(df: float, n: int) -> None:
    """Neither normal values nor those of wild samples."""
    for seed in range(3):
        X, y = draw(seed, n=n, df=df)
        model = EBClassifier(calibrate=False, covariance="shrunken", shrinkage="mean")
        assert model.fit(X, y).wild_values_ is None


def test_a_feature_with_many_far_values_has_another_distribution() -> None:
    X, y = draw(2)
    X[:8, 30] += 50  # a fifth of the samples
    X[5, 31] += 50
    assert cells_of(EBClassifier().fit(X, y)) == [(5, 31)]


def test_units_order_and_names_do_not_matter() -> None:
    X, y = draw(3)
    bad = spoiled(X)
    model = EBClassifier().fit(bad, y)
    rng = np.random.default_rng(0)
    rows, columns, unit = rng.permutation(40), rng.permutation(400), 1e3
    other = EBClassifier().fit((bad * unit)[rows][:, columns], y[rows])
    cells = [(int(rows[i]), int(columns[j])) for i, j in cells_of(other)]
    assert sorted(cells) == CELLS
    np.testing.assert_allclose(
        other.coef_ * unit, model.coef_[:, columns], rtol=1e-6, atol=1e-10
    )


def test_weights_are_repetitions() -> None:
    X, y = draw(4)
    bad, weight = spoiled(X), np.random.default_rng(4).integers(1, 3, 40)
    rows = np.repeat(np.arange(40), weight)
    once = EBClassifier().fit(bad, y, sample_weight=weight)
    copies = EBClassifier().fit(bad[rows], y[rows])
    assert sorted({(int(rows[i]), j) for i, j in cells_of(copies)}) == cells_of(once)
    np.testing.assert_allclose(once.coef_, copies.coef_, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("kind", ["csr", "memmap", "dask", "stream"])
def test_every_kind_of_data_has_the_same(kind: str, tmp_path: Path) -> None:
    X, y = draw(5, p=150)
    for i, j in CELLS[:2]:
        X[i, j] += 40 * np.std(X[:, j])
    model, other = EBClassifier().fit(X, y), EBClassifier()
    assert cells_of(model) == CELLS[:2]
    data: Any = X
    if kind == "csr":
        data = sparse.csr_array(X)
    elif kind == "memmap":
        data = np.memmap(tmp_path / "x", X.dtype, mode="w+", shape=X.shape)
        data[:] = X
    elif kind == "dask":
        data = pytest.importorskip("dask.array").from_array(X, chunks=(15, 60))
    with override(tile_elements=700, block_bytes=4000):
        if kind == "stream":
            for part in np.split(np.arange(40), [11, 30]):
                other.partial_fit(X[part], y[part], [0, 1])
        else:
            other.fit(data, y)
    assert cells_of(other) == CELLS[:2]
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-10)


def test_where_it_cannot_be_told_all_values_count() -> None:
    X, y = draw(6)
    bad = spoiled(X)
    few = EBClassifier().fit(bad[:, 40:80], y)
    assert few.wild_values_ is None
    gaps = bad.copy()
    gaps[0, 0] = np.nan
    assert EBClassifier().fit(gaps, y).wild_values_ is None
    assert EBClassifier().fit(bad, y, groups=np.arange(40) // 2).wild_values_ is None
    age = np.random.default_rng(0).normal(size=40)
    assert EBClassifier().fit(bad, y, covariates=age).wild_values_ is None
    with override(residual_elements=1000):
        assert EBClassifier().fit(bad, y).wild_values_ is None
    with pytest.raises(ValueError, match="wild_values"):
        EBClassifier(wild_values="drop").fit(bad, y)


def test_a_model_file_keeps_them(tmp_path: Path) -> None:
    X, y = draw(7)
    model = EBClassifier().fit(spoiled(X), y)
    ebda.save(model, tmp_path / "model.ebda")
    loaded = ebda.load(tmp_path / "model.ebda")
    assert cells_of(loaded) == CELLS
    assert str(loaded.wild_values_) == str(model.wild_values_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.ranking_.marginal.t, model.ranking_.marginal.t)


def test_the_terminal_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = draw(8, p=120)
    X[4, 9] += 1e4
    table = np.column_stack([y, X])
    names = ",".join(["class", *(f"g{j}" for j in range(120))])
    np.savetxt(tmp_path / "x.csv", table, delimiter=",", header=names, comments="")
    fit = ["fit", str(tmp_path / "x.csv"), "--target", "class", "--cv", "0"]
    assert main(fit) == 0
    assert "1 single value lies more than" in capsys.readouterr().out
    assert main([*fit, "--wild-values", "keep"]) == 0
    assert "single value" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_error_with_wild_values_is_nearly_that_without() -> None:
    wrong = dict.fromkeys(("keep", "auto", "none"), 0.0)
    for seed in range(3):
        every, labels = draw(seed + 20, n=660, p=1000)
        X, y, X_new, y_new = every[:60], labels[:60], every[60:], labels[60:]
        rng = np.random.default_rng(seed)
        bad = X.copy()
        cells = rng.random(X.shape) < 0.01
        bad[cells] += (20 * rng.standard_t(1, X.shape) * X.std(axis=0))[cells]
        for name, data in (("keep", bad), ("auto", bad), ("none", X)):
            kind = "keep" if name == "keep" else "auto"
            model = EBClassifier(wild_values=kind).fit(data, y)
            wrong[name] += float(np.mean(model.predict(X_new) != y_new)) / 3
    assert wrong["keep"] > wrong["none"] + 0.02
    assert wrong["auto"] < wrong["none"] + 0.3 * (wrong["keep"] - wrong["none"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["khan_srbct", "singh_prostate_6033", "tox171"])
def test_real_expression_data_have_next_to_none(name: str) -> None:
    X = load(name)
    y = np.arange(len(X)) % 2
    model = EBClassifier(calibrate=False, covariance="shrunken", shrinkage="mean")
    found = model.fit(X, y).wild_values_
    assert found is None or len(found.samples) < 5


def test_the_largest_number_leaves_the_others_alone() -> None:
    """A code for a missing value: nothing is left of the digits of the mean."""
    rng, y = np.random.default_rng(0), np.arange(61) % 2
    X = rng.normal(size=(61, 300))
    X[:, 5] += 1.5 * y
    means = []
    for wild in (1e6, 1e20, 3e38):
        X[5, 5] = wild
        found = EBClassifier().fit(X, y).wild_values_
        assert found is not None
        means.append(found.moments.means[:, 5])
    np.testing.assert_allclose(means[1:], means[:1] * 2, rtol=1e-8)


def test_counts_are_hardly_ever_wild() -> None:
    """Their tail is that of the feature, not of all values."""
    rng, taken = np.random.default_rng(1), 0
    for _ in range(4):
        X = rng.poisson(3, size=(80, 1000)).astype(float)
        model = EBClassifier(covariance="diagonal", shrinkage="mean")
        found = model.fit(X, np.arange(80) % 2).wild_values_
        taken += 0 if found is None else len(found.samples)
    assert taken <= 2
