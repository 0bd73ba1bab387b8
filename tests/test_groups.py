"""Samples that are not independent: several of one patient."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.stats import kstest, norm
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ebda
from ebda import EBClassifier
from ebda.cli import main
from ebda.datasets import load_golub
from ebda.evaluation import cross_validate
from ebda.moments.design import design_of
from ebda.moments.groups import intraclass_correlation
from ebda.report import render
from ebda.selection.copies import near_copies
from ebda.selection.folds import assign_folds
from ebda.sizes import override
from ebda.typing import FloatArray, IntArray


def patients(
    seed: int, icc: float, crossed: bool = False, p: int = 1500
) -> tuple[FloatArray, IntArray, IntArray]:
    """Of 20 patients, one to eight samples each, without any difference of classes."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(20), rng.integers(1, 9, 20))
    y = np.arange(len(groups)) % 2 if crossed else groups % 2
    X = np.sqrt(icc) * rng.normal(size=(20, p))[groups]
    X += np.sqrt(1 - icc) * rng.normal(size=(len(groups), p))
    return X, y, groups


def dense_design(
    codes: IntArray, groups: IntArray, icc: float, covariates: FloatArray
) -> tuple[FloatArray, float, float]:
    """The same as `design_of`, by matrices over the samples."""
    together = (groups[:, None] == groups).astype(float)
    V = (1 - icc) * np.eye(len(codes)) + icc * together
    A = np.diag(1 / (1 + (together.sum(axis=0) - 1) * icc))
    a = np.diag(A)
    D = np.column_stack([np.eye(2)[codes], covariates - a @ covariates / a.sum()])
    M = np.linalg.inv(D.T @ A @ D)
    QV = (A - A @ D @ M @ D.T @ A) @ V
    covariance = M @ D.T @ A @ V @ A @ D @ M
    expected = np.trace(QV)
    return covariance[:2, :2], expected, expected**2 / np.trace(QV @ QV)


@pytest.mark.parametrize("icc", [0.0, 0.4, 0.95])
@pytest.mark.parametrize("crossed", [False, True])
def test_the_design_is_that_of_dense_matrices(icc: float, crossed: bool) -> None:
    _, codes, groups = patients(1, icc, crossed, p=1)
    covariates = np.random.default_rng(1).normal(size=(len(codes), 2))
    weight = np.ones(len(codes))
    found = design_of(codes, 2, weight, groups, icc, covariates)
    covariance, expected, df = dense_design(codes, groups, icc, covariates)
    np.testing.assert_allclose(found.mean_covariance, covariance, rtol=1e-10)
    np.testing.assert_allclose(found.expected_squares, expected, rtol=1e-10)
    np.testing.assert_allclose(found.degrees_of_freedom, df, rtol=1e-10)


def test_weights_are_repetitions_in_the_design() -> None:
    _, codes, groups = patients(2, 0.3, p=1)
    weight = np.random.default_rng(2).integers(1, 4, len(codes))
    once = design_of(codes, 2, weight.astype(float), groups, 0.3)
    rows = np.repeat(np.arange(len(codes)), weight)
    repeated = design_of(codes[rows], 2, np.ones(len(rows)), groups[rows], 0.3)
    np.testing.assert_allclose(once.mean_covariance, repeated.mean_covariance)
    np.testing.assert_allclose(once.degrees_of_freedom, repeated.degrees_of_freedom)


def test_independent_samples_have_the_usual_design() -> None:
    codes = np.repeat([0, 1], [4, 6])
    found = design_of(codes, 2, np.ones(10))
    np.testing.assert_allclose(found.mean_covariance, np.diag([1 / 4, 1 / 6]))
    np.testing.assert_allclose([found.expected_squares, found.degrees_of_freedom], 8)


@pytest.mark.parametrize("icc", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("crossed", [False, True])
def test_the_intraclass_correlation_is_recovered(icc: float, crossed: bool) -> None:
    X, y, groups = patients(3, icc, crossed, p=4000)
    found = intraclass_correlation(X @ X.T, y, groups)
    assert found == pytest.approx(icc, abs=0.02)


def test_no_pairs_tell_no_correlation() -> None:
    X = np.random.default_rng(0).normal(size=(8, 5))
    assert intraclass_correlation(X @ X.T, np.arange(8) % 2, np.arange(8)) is None


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.2, 0.7])
@pytest.mark.parametrize("crossed", [False, True])
def test_z_is_standard_normal_under_the_null(icc: float, crossed: bool) -> None:
    """And is not, where samples of a patient are taken as independent."""
    z, naive = [], []
    for seed in range(6):
        X, y, groups = patients(seed, icc, crossed)
        model = EBClassifier(calibrate=False, covariance="diagonal", shrinkage="mean")
        z.append(model.fit(X, y, groups=groups).contrasts_.z.ravel())
        naive.append(model.fit(X, y).contrasts_.z.ravel())
    values = np.concatenate(z)
    # With the variances moderated to one z has the normal distribution.
    assert kstest(values, norm.cdf).statistic < 0.02
    assert abs(np.mean(np.abs(values) > 1.96) - 0.05) < 0.008
    assert abs(np.mean(np.abs(np.concatenate(naive)) > 1.96) - 0.05) > 0.015


@pytest.mark.slow
def test_held_out_errors_are_honest_with_groups() -> None:
    """Without a difference of classes nothing separates held-out patients."""
    errors, naive = [], []
    for seed in range(5):
        X, y, groups = patients(seed + 10, 0.6, p=400)
        errors.append(cross_validate(EBClassifier(), X, y, groups=groups).error)
        naive.append(cross_validate(EBClassifier(), X, y).error)
    assert np.mean(errors) > 0.4
    assert np.mean(naive) < 0.25


def test_held_out_samples_do_not_know_their_patients() -> None:
    X, y, groups = patients(4, 0.8)
    declared, not_declared = EBClassifier().fit(X, y, groups=groups), EBClassifier()
    not_declared.fit(X, y)
    assert declared.selection_.combined < 3 * declared.selection_.combined_error
    assert not_declared.selection_.combined > 4 * not_declared.selection_.combined_error
    assert declared.groups_ is not None
    assert declared.groups_.n_groups == 20
    assert "20 groups" in str(declared.groups_)


def test_groups_of_one_change_nothing() -> None:
    X, y, _ = patients(5, 0.0)
    names = [f"patient {i}" for i in range(len(y))]
    model, plain = EBClassifier().fit(X, y, groups=names), EBClassifier().fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert model.groups_ is None


def test_names_and_order_do_not_matter() -> None:
    X, y, groups = patients(6, 0.5)
    model = EBClassifier().fit(X, y, groups=groups)
    order = np.random.default_rng(0).permutation(len(y))
    other = EBClassifier().fit(
        X[order], y[order], groups=[f"{(7 * g) % 20}" for g in groups[order]]
    )
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6, atol=1e-12)


def test_copies_in_a_group_are_one_sample() -> None:
    X, y, _ = patients(7, 0.0)
    rows = np.repeat(np.arange(len(y)), 3)
    once = EBClassifier(calibrate=False, covariance="diagonal", shrinkage="mean")
    once.fit(X, y)
    copied = sklearn.clone(once).fit(X[rows], y[rows], groups=rows)
    np.testing.assert_allclose(copied.z_, once.z_, rtol=5e-3, atol=1e-3)
    np.testing.assert_allclose(copied.moments_.counts, once.moments_.counts, rtol=1e-2)


def test_folds_keep_groups_together() -> None:
    _, codes, groups = patients(8, 0.0, crossed=True)
    key = np.random.default_rng(0).normal(size=len(codes))
    folds = assign_folds(key, codes, 1, seed=0, groups=groups)
    for group in range(20):
        assert len(set(folds[groups == group])) == 1
    assert set(folds) == set(range(10))
    alone = assign_folds(key, codes, 1, seed=0, groups=np.arange(len(codes)))
    np.testing.assert_array_equal(alone, assign_folds(key, codes, 1, seed=0))


def test_a_group_stays_with_a_class_that_is_not_held_out() -> None:
    codes = np.array([0, 1, 1, 1, 1])
    groups = np.array([0, 0, 1, 2, 3])
    folds = assign_folds(np.arange(5.0), codes, 1, seed=0, groups=groups)
    assert (folds[:2] == -1).all()
    assert (folds[2:] >= 0).all()


@pytest.mark.parametrize("kind", ["sparse", "memmap", "dask", "missing"])
def test_every_kind_of_data_has_the_same_groups(kind: str, tmp_path: Any) -> None:
    X, y, groups = patients(9, 0.5, p=300)
    X[np.abs(X) < 0.3] = 0.0
    if kind == "missing":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        found = EBClassifier().fit(X, y, groups=groups).groups_
        assert found is not None
        assert found.icc == pytest.approx(0.5, abs=0.06)
        return
    data: Any = sparse.csr_array(X)
    if kind == "memmap":
        data = np.memmap(tmp_path / "x", X.dtype, mode="w+", shape=X.shape)
        data[:] = X
    if kind == "dask":
        da = pytest.importorskip("dask.array")
        data = da.from_array(X, chunks=(30, 100))
    model = EBClassifier().fit(X, y, groups=groups)
    with override(tile_elements=1000):
        other = EBClassifier().fit(data, y, groups=groups)
    assert model.groups_ is not None
    assert other.groups_ is not None
    assert other.groups_.icc == pytest.approx(model.groups_.icc, rel=1e-9)
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5, atol=1e-9)


def test_a_model_file_keeps_what_groups_changed(tmp_path: Any) -> None:
    X, y, groups = patients(10, 0.5, crossed=True)
    model = EBClassifier().fit(X, y, groups=groups)
    ebda.save(model, tmp_path / "model.ebda")
    loaded = ebda.load(tmp_path / "model.ebda")
    assert str(loaded.groups_) == str(model.groups_)
    np.testing.assert_array_equal(
        loaded.moments_.design.mean_covariance, model.moments_.design.mean_covariance
    )
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.arange(3), "give the group of each sample"),
        (np.array([0.0, 1.0, np.nan, 2.0]), "1 missing value"),
        (np.array(["a", None, None, "b"], dtype=object), "2 missing value"),
    ],
)
def test_groups_are_checked(groups: Any, words: str) -> None:
    X, y = np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]
    with pytest.raises(ValueError, match=words):
        EBClassifier().fit(X, y, groups=groups)


def test_a_stream_does_not_go_on_after_groups() -> None:
    X, y, groups = patients(11, 0.5, p=50)
    model = EBClassifier().fit(X, y, groups=groups)
    with (
        pytest.warns(UserWarning, match="keeps no samples"),
        pytest.raises(ValueError, match="fit to all samples at once"),
    ):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="partial_fit takes no groups"):
        EBClassifier().partial_fit(X, y, [0, 1], groups=groups)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_are_routed(routing: None) -> None:
    X, y, groups = patients(12, 0.5, p=100)
    own = EBClassifier(calibrate=False, covariance="diagonal", shrinkage="mean")
    own.set_fit_request(groups=True)
    pipeline = make_pipeline(StandardScaler(), own)
    pipeline.fit(X, y, groups=groups)
    assert pipeline[-1].groups_ is not None
    search = GridSearchCV(
        pipeline, {"ebclassifier__variance": ["pooled"]}, cv=StratifiedGroupKFold(3)
    )
    search.fit(X, y, groups=groups)
    assert search.best_estimator_[-1].groups_ is not None
    result = cross_validate(pipeline, X, y, groups=groups)
    assert result.n_folds == 5


def test_other_classifiers_are_given_no_groups() -> None:
    X, y, groups = patients(13, 0.7, p=60)
    honest = cross_validate(LogisticRegression(), X, y, groups=groups)
    assert honest.error > cross_validate(LogisticRegression(), X, y).error


def test_cross_validation_needs_two_groups_of_each_class() -> None:
    X, y = np.random.default_rng(0).normal(size=(8, 4)), np.repeat([0, 1], 4)
    with pytest.raises(ValueError, match="two groups of each class, but class 1"):
        cross_validate(EBClassifier(), X, y, groups=[0, 1, 2, 3, 4, 4, 4, 4])


def test_near_copies_are_reported() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 400)), np.arange(30) % 2
    X[11] = X[4] + 0.2 * rng.normal(size=400)
    model = EBClassifier().fit(X, y)
    assert model.selection_.copies is not None
    assert model.selection_.copies.tolist() == [[4, 11]]
    assert "4 and 11 are far more alike" in model.selection_.words()
    assert "Samples that look like copies" in render(model, X=X, y=y)
    groups = np.arange(30)
    groups[11] = 4
    assert EBClassifier().fit(X, y, groups=groups).selection_.copies is None


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_a_sample_of_leukemia_that_was_measured_twice(
    noise: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python, on the terminal and in the report; not of the data as they are."""
    golub = load_golub()
    X = (np.sign(golub.data) * np.log1p(np.abs(golub.data)))[:, ::3]
    rng = np.random.default_rng(0)
    again = X[7] + noise * X.std(axis=0) * rng.normal(size=X.shape[1])
    twice, y = np.vstack([X, again]), np.append(golub.target, golub.target[7])
    model = EBClassifier(covariance="diagonal")
    assert model.fit(X, golub.target).selection_.copies is None
    copies = model.fit(twice, y).selection_.copies
    assert copies is not None
    assert copies.tolist() == [[7, 72]]
    assert "7 and 72 are far more alike" in str(model.selection_)
    names = [*(f"s{i}" for i in range(72)), "again"]
    frame = pd.DataFrame(twice, names, [f"g{j}" for j in range(X.shape[1])])
    frame.assign(kind=y).to_csv(tmp_path / "data.csv", index_label="name")
    page = tmp_path / "page.html"
    status = main(
        ["fit", str(tmp_path / "data.csv"), "--target", "kind", "--cv", "2",
         "--covariance", "diagonal", "--report", str(page)]
    )  # fmt: skip
    assert status == 0
    assert "Samples s7 and again are far more alike" in capsys.readouterr().out
    text = page.read_text()
    assert "Samples that look like copies" in text
    assert "Samples s7 and again are far more alike" in text


@pytest.mark.parametrize("n_factors", [0, 3])
def test_independent_samples_are_no_copies(n_factors: int) -> None:
    rng = np.random.default_rng(1)
    for n in (10, 20, 60):
        X = rng.normal(size=(n, 1000))
        X += 2 * rng.normal(size=(n, n_factors)) @ rng.normal(size=(n_factors, 1000))
        assert not len(near_copies(X @ X.T))


def test_scales_of_samples_are_not_measured_beside_groups() -> None:
    X, y, groups = patients(14, 0.5, p=60)
    assert EBClassifier().fit(X, y, groups=groups).sample_scale_ is None
    with pytest.raises(ValueError, match="sample_scale='own' cannot be used with"):
        EBClassifier(sample_scale="own").fit(X, y, groups=groups)


def weighted(
    seed: int, p: int = 300
) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
    """Patients whose samples have the weights 1, 2 and 3."""
    X, y, groups = patients(seed, 0.4, p=p)
    X[:, :20] += 1.5 * y[:, None]
    return X, y, groups, np.random.default_rng(seed).integers(1, 4, len(y))


def test_the_intraclass_correlation_of_weights_is_that_of_copies() -> None:
    X, y, groups, weight = weighted(20)
    covariates = np.random.default_rng(0).normal(size=(len(y), 2))
    rows = np.repeat(np.arange(len(y)), weight)
    gram = X @ X.T
    repeated = intraclass_correlation(
        gram[np.ix_(rows, rows)], y[rows], groups[rows], covariates[rows], 0.9
    )
    f = weight.astype(float)
    found = intraclass_correlation(gram, y, groups, covariates, 0.9, f)
    assert found == pytest.approx(repeated, rel=1e-10)
    # Copies are more alike than other samples of their group.
    plain = intraclass_correlation(gram, y, groups, covariates, 0.9)
    assert plain is not None
    assert found is not None
    assert found > plain + 0.05


@pytest.mark.parametrize("with_covariates", [False, True])
def test_weights_are_copies_in_their_groups(with_covariates: bool) -> None:
    X, y, groups, weight = weighted(21)
    rows = np.repeat(np.arange(len(y)), weight)
    age = np.random.default_rng(1).normal(50, 10, len(y))
    X += np.outer(age - 50, np.random.default_rng(2).normal(0, 0.05, X.shape[1]))
    once, copies = EBClassifier(), EBClassifier()
    known, known_of_copies = {"groups": groups}, {"groups": groups[rows]}
    if with_covariates:
        known["covariates"], known_of_copies["covariates"] = age, age[rows]
    once.fit(X, y, sample_weight=weight, **known)
    copies.fit(X[rows], y[rows], **known_of_copies)
    assert once.groups_ is not None
    assert copies.groups_ is not None
    assert once.groups_.icc == pytest.approx(copies.groups_.icc, rel=1e-8)
    assert once.groups_.n_samples == copies.groups_.n_samples == weight.sum()
    np.testing.assert_allclose(once.groups_.n_effective, copies.groups_.n_effective)
    np.testing.assert_allclose(once.class_prior_, copies.class_prior_)
    np.testing.assert_allclose(once.contrasts_.z, copies.contrasts_.z, rtol=1e-7)
    np.testing.assert_allclose(once.coef_, copies.coef_, rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(
        once.predict_proba(X), copies.predict_proba(X), rtol=1e-5, atol=1e-10
    )


def test_a_weight_makes_a_group_of_one_sample() -> None:
    """Two copies of a patient's only sample are one patient, and not two."""
    X, y, _ = patients(22, 0.0, p=200)
    X[:, :20] += y[:, None]
    n = len(y)
    weight, alone = np.where(np.arange(n) % 3, 1, 3), np.arange(n)
    rows = np.repeat(alone, weight)
    once = EBClassifier().fit(X, y, sample_weight=weight, groups=alone)
    copies = EBClassifier().fit(X[rows], y[rows], groups=rows)
    np.testing.assert_allclose(once.coef_, copies.coef_, rtol=1e-5, atol=1e-10)
    assert once.groups_ is not None
    assert once.groups_.icc > 0.99
    plain = EBClassifier().fit(X, y)
    np.testing.assert_allclose(once.contrasts_.z, plain.contrasts_.z, atol=0.05)


def test_class_probabilities_are_those_of_the_samples() -> None:
    """Features that are alike say nothing of how frequent a class is."""
    rng = np.random.default_rng(23)
    groups = np.repeat(np.arange(24), np.where(np.arange(24) % 2, 1, 6))
    y = groups % 2
    X = rng.normal(size=(24, 200))[groups] + 0.1 * rng.normal(size=(len(y), 200))
    X[:, :10] += 2 * y[:, None]
    model, plain = EBClassifier().fit(X, y, groups=groups), EBClassifier().fit(X, y)
    np.testing.assert_array_equal(model.class_prior_, plain.class_prior_)
    np.testing.assert_allclose(model.class_prior_, [6 / 7, 1 / 7])
    # What the samples are worth is another matter.
    assert model.groups_ is not None
    np.testing.assert_allclose(model.groups_.n_effective, 12, rtol=0.1)
    given = EBClassifier(priors=[0.5, 0.5]).fit(X, y, groups=groups)
    np.testing.assert_array_equal(given.class_prior_, [0.5, 0.5])


def test_groups_that_read_the_same_are_refused() -> None:
    X, y, _ = patients(24, 0.0, p=20)
    names: list[Any] = [i // 2 for i in range(len(y))]
    names[-1] = "1"
    with pytest.raises(ValueError, match=r"groups has '1' as int and as str"):
        EBClassifier().fit(X, y, groups=names)
    with pytest.raises(ValueError, match=r"give all values as one type"):
        cross_validate(EBClassifier(), X, y, groups=np.array(names, dtype=object))


def test_types_of_groups_do_not_matter() -> None:
    X, y, groups = patients(25, 0.5, p=60)
    model = EBClassifier(calibrate=False, covariance="diagonal", shrinkage="mean")
    expected = model.fit(X, y, groups=groups).coef_.copy()
    mixed: list[Any] = [int(g) if g % 2 else float(g) for g in groups]
    mixed = [f"patient {g}" if g == 4 else g for g in mixed]
    for other in (groups.astype(float), [str(g) for g in groups], mixed):
        np.testing.assert_allclose(model.fit(X, y, groups=other).coef_, expected)
