"""Covariates where values are missing: each feature by the samples that have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest, norm

import ebda
from ebda import EBClassifier
from ebda.data import InMemory, as_data
from ebda.data.device import on_device
from ebda.moments.contrasts import variance_of
from ebda.moments.values import regress_values, value_rows
from ebda.sizes import override
from ebda.typing import FloatArray, IntArray

Known = dict[str, Any]


def gaps(
    seed: int,
    n: int = 40,
    p: int = 300,
    missing: float = 0.2,
    effect: float = 0.0,
    n_classes: int = 2,
) -> tuple[FloatArray, IntArray, Known]:
    """Samples on two plates and of all ages, with missing values in most features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    plate = np.where(rng.random(n) < 0.3 + 0.3 * (y == 1), "p2", "p1")
    age = rng.normal(50, 10, n)
    X = rng.normal(size=(n, p)) + 2 * np.outer(plate == "p2", rng.normal(size=p))
    X += 0.1 * np.outer(age - 50, rng.normal(size=p))
    X[:, :20] += effect * y[:, None]
    X[:, 10:][rng.random((n, p - 10)) < missing] = np.nan
    return X, y, {"plate": plate, "age": age}


def quick(**parameters: Any) -> EBClassifier:
    return EBClassifier(
        calibrate=False, covariance="diagonal", shrinkage="mean", **parameters
    )


def design(y: IntArray, known: Known) -> FloatArray:
    """One column for each class; plate p1 and age, less their means."""
    columns = np.column_stack([known["plate"] == "p1", known["age"]])
    return np.column_stack([np.eye(y.max() + 1)[y], columns - columns.mean(axis=0)])


def least_squares(
    x: FloatArray, D: FloatArray
) -> tuple[FloatArray, float, int, FloatArray]:
    """Coefficients, sum of squares, rank, and covariance, on the values of x."""
    there = ~np.isnan(x)
    b, _, rank, _ = np.linalg.lstsq(D[there], x[there], rcond=None)
    rss = float(((x[there] - D[there] @ b) ** 2).sum())
    return b, rss, int(rank), np.linalg.pinv(D[there].T @ D[there])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.05, 0.4])
def test_each_feature_has_its_own_least_squares(n_classes: int, missing: float) -> None:
    X, y, known = gaps(0, missing=missing, n_classes=n_classes)
    model = quick(variance="pooled").fit(X, y, covariates=known)
    found, moments = model.covariates_, model.moments_
    assert found is not None
    D, k = design(y, known), n_classes
    sides = np.eye(k)[1:] - np.eye(k)[:1]
    factor = variance_of(sides, sides, moments)
    between = moments.design.values.of_slopes(sides)
    for j in range(X.shape[1]):
        b, rss, rank, covariance = least_squares(X[:, j], D)
        slopes = found.slopes[found.slopes.any(axis=1), j]
        np.testing.assert_allclose(slopes, b[k:], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(moments.means[:, j], b[:k], rtol=1e-8, atol=1e-9)
        assert moments.centred_squares[:, j].sum() == pytest.approx(rss, rel=1e-8)
        n = int((~np.isnan(X[:, j])).sum())
        variance = rss / (n - rank)
        assert model.contrasts_.variance[j] == pytest.approx(variance, rel=1e-8)
        expected = np.diag(sides @ covariance[:k, :k] @ sides.T)
        np.testing.assert_allclose(factor[:, j], expected, rtol=1e-8)
        expected = sides @ covariance[:k, k:]
        np.testing.assert_allclose(between[..., j], expected, rtol=1e-7, atol=1e-10)


def test_t_is_that_of_least_squares() -> None:
    """Moderated by what the other features say, as in limma."""
    X, y, known = gaps(1, effect=1.0)
    model = quick().fit(X, y, covariates=known)
    marginal = model.ranking_.marginal
    D = design(y, known)
    rows = [least_squares(x, D) for x in X.T]
    df = np.sum(~np.isnan(X), axis=0) - np.array([rank for _, _, rank, _ in rows])
    s2 = np.array([rss for _, rss, _, _ in rows]) / df
    from ebda.moments.variance import variance_prior

    prior = variance_prior(s2, df.astype(float), without_outliers=False)
    d0 = prior.degrees_of_freedom
    own = 0.0 if np.isinf(d0) else df / (d0 + df)
    moderated = own * s2 + (1 - own) * prior.variance
    difference = np.array([b[1] - b[0] for b, *_ in rows])
    c = np.array([1.0, -1.0])
    unit = np.array([c @ covariance[:2, :2] @ c for *_, covariance in rows])
    t = difference / np.sqrt(moderated * unit)
    np.testing.assert_allclose(np.ravel(marginal.t), t, rtol=1e-8)


def test_without_missing_values_nothing_changes() -> None:
    """The second pass gives what the first one gives."""
    X, y, known = gaps(2, missing=0.0)
    model = quick().fit(X, y, covariates=known)
    assert model.moments_.design.values is None
    one = np.column_stack([X, np.where(np.arange(40) == 3, np.nan, X[:, 0])])
    other = quick().fit(one, y, covariates=known)
    assert other.moments_.design.values is not None
    np.testing.assert_allclose(other.moments_.means[:, :300], model.moments_.means)
    found = other.contrasts_.variance_factor[:, :300]
    np.testing.assert_allclose(found, np.broadcast_to(found[:, :1], found.shape))
    np.testing.assert_allclose(found[:, 0], model.contrasts_.variance_factor[:, 0])
    np.testing.assert_allclose(
        other.covariates_.slopes[:, :300], model.covariates_.slopes, atol=1e-12
    )


def test_weights_are_repetitions() -> None:
    X, y, known = gaps(3, p=80)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    rows = np.repeat(np.arange(40), weight)
    repeated = {name: column[rows] for name, column in known.items()}
    once = EBClassifier().fit(X, y, sample_weight=weight, covariates=known)
    copies = EBClassifier().fit(X[rows], y[rows], covariates=repeated)
    np.testing.assert_allclose(once.coef_, copies.coef_, rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(
        once.predict_proba(X, covariates=known),
        copies.predict_proba(X, covariates=known),
        rtol=1e-5,
    )


@pytest.mark.parametrize("covariance", ["diagonal", "factor"])
def test_predictions_are_those_of_adjusted_samples(covariance: str) -> None:
    """But for the bias of the slopes, of the values that are there."""
    rng = np.random.default_rng(4)
    X, y, known = gaps(4, n=60, effect=1.0)
    X += rng.normal(size=(60, 2)) @ rng.normal(size=(2, 300))
    model = EBClassifier(covariance=covariance, shrinkage="mean")
    model.fit(X, y, covariates=known)
    assert (model.expectation_ is not None) == (covariance == "factor")
    found = model.covariates_
    assert found is not None
    columns = np.column_stack(
        [known["plate"] == "p1", known["plate"] == "p2", known["age"]]
    )
    columns = columns - found.centre
    bias = found.offsets(np.zeros_like(model.coef_))[0]
    expected = model.decision_function(X - columns @ found.slopes)
    expected -= np.einsum("iq,qj,ij->i", columns, bias, ~np.isnan(X))
    score = model.decision_function(X, covariates=known)
    np.testing.assert_allclose(score, expected, rtol=1e-9, atol=1e-9)
    # Samples without missing values are as ever.
    full = np.where(np.isnan(X), 0.0, X)
    expected = (
        model.decision_function(full)
        - columns @ found.offsets(model.coef_).sum(axis=2)[0]
    )
    score = model.decision_function(full, covariates=known)
    np.testing.assert_allclose(score, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["memmap", "dask", "csr", "csc", "device"])
def test_every_kind_of_data_is_adjusted(kind: str, tmp_path: Any) -> None:
    X, y, known = gaps(5, p=120, effect=1.0)
    if kind in ("csr", "csc"):
        X = np.where(np.abs(X) < 0.5, 0.0, X)
        data: Any = sparse.csr_array(X) if kind == "csr" else sparse.csc_array(X)
    elif kind == "device":
        pytest.importorskip("array_api_strict")
        data = on_device(X, "CPU_DEVICE", library="array_api_strict")
    elif kind == "dask":
        data = pytest.importorskip("dask.array").from_array(X, chunks=(15, 50))
    else:
        data = np.memmap(tmp_path / "x", X.dtype, mode="w+", shape=X.shape)
        data[:] = X
    model = EBClassifier().fit(X, y, covariates=known)
    with override(tile_elements=700, block_bytes=4000):
        other = EBClassifier().fit(data, y, covariates=known)
        p = np.asarray(other.predict_proba(data, covariates=known))
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-10)
    expected = model.predict_proba(X, covariates=known)
    np.testing.assert_allclose(p, expected, rtol=1e-6)


@pytest.mark.slow
def test_z_is_standard_normal_under_the_null() -> None:
    z = [
        quick().fit(X, y, covariates=known).contrasts_.z.ravel()
        for X, y, known in (gaps(seed, p=1500, missing=0.3) for seed in range(5))
    ]
    assert kstest(np.concatenate(z), norm.cdf).statistic < 0.02


@pytest.mark.slow
def test_held_out_samples_are_adjusted_without_themselves() -> None:
    """They are separated by no more than new ones, where there is no difference."""
    held_out, new = [], []
    for seed in range(8):
        X, y, known = gaps(seed + 20, n=440, p=2000)
        fitted = {name: column[:40] for name, column in known.items()}
        model = EBClassifier(covariance="diagonal", shrinkage="mean")
        model.fit(X[:40], y[:40], covariates=fitted)
        held_out.append(model.selection_.combined)
        others = {name: column[40:] for name, column in known.items()}
        score = model.decision_function(X[40:], covariates=others)
        one, two = score[y[40:] == 0], score[y[40:] == 1]
        sd = np.sqrt((one.var() + two.var()) / 2)
        new.append((two.mean() - one.mean()) / (2 * sd))
    assert np.mean(held_out) == pytest.approx(np.mean(new), abs=0.3)
    assert abs(np.mean(new)) < 0.5


@pytest.mark.slow
def test_it_is_better_than_to_fill_them_in_first() -> None:
    """Or no worse: the mean of the class would know the labels."""
    from sklearn.impute import SimpleImputer

    errors = np.zeros(2)
    for seed in range(4):
        X, y, known = gaps(seed + 40, n=260, missing=0.3, effect=0.8)
        fitted = {name: column[:60] for name, column in known.items()}
        others = {name: column[60:] for name, column in known.items()}
        fill = SimpleImputer().fit(X[:60])
        for i, (train, test) in enumerate(
            [(X[:60], X[60:]), (fill.transform(X[:60]), fill.transform(X[60:]))]
        ):
            model = EBClassifier().fit(train, y[:60], covariates=fitted)
            errors[i] += np.mean(model.predict(test, covariates=others) != y[60:]) / 4
    assert errors[0] < errors[1] + 0.005


def test_values_that_do_not_tell_a_class_from_a_plate_have_no_weight() -> None:
    X, y, known = gaps(6, effect=1.0, missing=0.0)
    second = known["plate"] == "p2"
    # What is left of these features has one plate for each class.
    X[np.ix_(second != (y == 1), [3, 4])] = np.nan
    # And here one plate is gone from both, so that there is no slope to know.
    X[np.ix_(second, [5])] = np.nan
    model = EBClassifier().fit(X, y, covariates=known)
    assert not model.selected_[[3, 4]].any()
    assert not model.coef_[:, [3, 4]].any()
    assert model.contrasts_.constant[[3, 4]].all()
    assert not model.contrasts_.constant[[5, 6]].any()
    np.testing.assert_array_equal(np.flatnonzero(model.moments_.without_values), [3, 4])
    b, *_ = least_squares(X[:, 5], design(y, known)[:, [0, 1, 3]])
    found = model.moments_.means[:, 5]
    assert found[1] - found[0] == pytest.approx(b[1] - b[0], rel=1e-8)


def test_groups_go_with_them() -> None:
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(24), 4)
    y, age = groups % 2, rng.normal(50, 10, 24)[groups]
    X = 0.7 * rng.normal(size=(24, 2000))[groups] + 0.7 * rng.normal(size=(96, 2000))
    X += np.outer(age, rng.normal(0, 0.1, 2000))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = EBClassifier().fit(X, y, groups=groups, covariates=age)
    assert model.groups_ is not None
    assert model.groups_.icc == pytest.approx(0.5, abs=0.05)
    assert model.contrasts_.z.std() == pytest.approx(1.0, abs=0.07)


def test_a_model_file_keeps_them(tmp_path: Any) -> None:
    X, y, known = gaps(8, p=60)
    model = EBClassifier().fit(X, y, covariates=known)
    ebda.save(model, tmp_path / "model.ebda")
    loaded = ebda.load(tmp_path / "model.ebda")
    absent = np.arange(60) % 2 == 0
    for one, other in (
        (model, loaded),
        (model.without(absent), loaded.without(absent)),
    ):
        np.testing.assert_array_equal(
            one.predict_proba(X, covariates=known),
            other.predict_proba(X, covariates=known),
        )


def test_rescaled_covariates_and_features_change_nothing() -> None:
    X, y, known = gaps(9, p=80)
    model = EBClassifier().fit(X, y, covariates=known)
    other = known | {"age": 365.25 * known["age"] - 1e4}
    moved = EBClassifier().fit(1e3 * X, y, covariates=other)
    np.testing.assert_allclose(
        moved.predict_proba(1e3 * X, covariates=other),
        model.predict_proba(X, covariates=known),
        rtol=1e-6,
    )


def test_counts_are_of_the_values() -> None:
    rng = np.random.default_rng(10)
    codes, C = np.repeat([0, 1], 6), rng.normal(size=(12, 2))
    X = rng.normal(size=(12, 5))
    X[rng.random(X.shape) < 0.3] = np.nan
    weight = rng.integers(1, 3, 12).astype(float)
    rows, masks = value_rows(codes, 2, C, weight)
    there = ~np.isnan(X)
    sums, counts = rows @ np.where(there, X, 0), masks @ there
    found = regress_values(sums, counts, np.zeros((2, 2)))
    for k in (0, 1):
        own = there & (codes == k)[:, None]
        np.testing.assert_allclose(found.n_values[k], weight @ own)
        for j in range(5):
            mean = np.average(C[own[:, j]], axis=0, weights=weight[own[:, j]])
            np.testing.assert_allclose(found.class_covariates[k, :, j], mean)


@pytest.mark.parametrize("kind", ["memory", "csr", "disk", "dask", "device"])
def test_products_are_of_the_values_that_are_there(kind: str) -> None:
    rng = np.random.default_rng(11)
    X = np.where(rng.random((30, 40)) < 0.5, 0.0, rng.normal(size=(30, 40)))
    X[rng.random(X.shape) < 0.2] = np.nan
    rows, masks = rng.normal(size=(2, 30)), rng.normal(size=(3, 30))
    there = ~np.isnan(X)
    expected = np.vstack([rows @ np.where(there, X, 0.0), masks @ there])
    data: Any = InMemory(X)
    if kind == "csr":
        data = InMemory(sparse.csr_array(X))
    elif kind == "disk":
        data = InMemory(X).adjusted(np.zeros((30, 1)), np.zeros((1, 40)))
    elif kind == "dask":
        data = as_data(pytest.importorskip("dask.array").from_array(X, chunks=(7, 9)))
    elif kind == "device":
        data = as_data(pytest.importorskip("array_api_strict").asarray(X))
    with override(tile_elements=100, block_bytes=900, device_elements=100):
        found = data.value_products(rows, masks)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
