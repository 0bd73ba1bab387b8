"""Few correlated pairs: their prior, the completed matrix, and the rules made of it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, stats

from ebda import EBClassifier
from ebda.baselines import SparseLDA
from ebda.covariance import COVARIANCES, Diagonal, Summary
from ebda.covariance.completion import (
    LEAST_EIGENVALUE,
    Pairs,
    earlier_partners,
    inverse_root,
)
from ebda.covariance.correlation_prior import (
    CorrelationPrior,
    fit_correlations,
    from_z,
    to_z,
)
from ebda.covariance.matrix_power import power
from ebda.covariance.sparse import Sparse
from ebda.data import RowSamples
from ebda.kernels.correlations import (
    count_correlations,
    row_blocks,
    strong_pairs,
    unit_columns,
)
from ebda.modelfile import load, save
from ebda.moments import VARIANCES
from ebda.moments.classwise import class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.paper import optimal_rule
from ebda.priors import NormalMixture, NormalMixturePrior
from ebda.sizes import override
from ebda.theory import error_rate

# Under it a correlation is its own posterior mean.
FLAT = CorrelationPrior(NormalMixturePrior([1e8], [1.0]), 1e4, 0.0)
ATTRIBUTES = ("coef_", "intercept_", "posterior_mean_", "prob_zero_")
RULE = {"covariance": "sparse", "shrinkage": "mean", "calibrate": False}


def blocks(p: int, size: int, rho: float) -> np.ndarray:
    return np.kron(np.eye(p // size), (1 - rho) * np.eye(size) + rho)


def autoregression(p: int, rho: float) -> np.ndarray:
    place = np.arange(p)
    return rho ** np.abs(place - place[:, None])


def two_classes(
    R: np.ndarray, n: int, size: float = 0.6, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, labels and the difference, in every tenth feature."""
    rng = np.random.default_rng(seed)
    difference = np.where(np.arange(len(R)) % 10 == 0, size, 0.0)
    y = np.repeat([0, 1], n)
    X = rng.normal(size=(2 * n, len(R))) @ np.linalg.cholesky(R).T
    return X + np.outer(y, difference), y, difference


def estimated(X: np.ndarray, y: np.ndarray) -> Any:
    moments = class_moments(X, y, int(y.max()) + 1)
    contrasts = class_contrasts(moments, VARIANCES["moderated"].estimate(moments))
    return COVARIANCES["sparse"](Summary(moments, contrasts, RowSamples.of(X, y, None)))


def with_correlation(R: np.ndarray) -> np.ndarray:
    """Rows of length one that have exactly these correlations."""
    return np.linalg.cholesky(R).astype(np.float32)


def all_pairs(R: np.ndarray) -> Pairs:
    first, second = np.nonzero(np.triu(R, 1))
    return Pairs(first, second, R[first, second])


def completed(R: np.ndarray, unit: np.ndarray, most: int = 10) -> np.ndarray:
    L = inverse_root(all_pairs(R), unit, FLAT, most).toarray()
    return np.linalg.inv(L.T @ L)


@pytest.mark.parametrize("df", [4, 10, 50, 1000])
def test_z_scores_are_those_of_the_t_distribution(df: float) -> None:
    t = np.array([-8.0, -3.0, -1.0, 0.0, 0.1, 2.0, 5.0])
    r = t / np.sqrt(t**2 + df - 1)
    want = -np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), df - 1))
    np.testing.assert_allclose(to_z(r, df), -want, atol=0.05)
    np.testing.assert_allclose(from_z(to_z(r, df), df), r, rtol=1e-9)
    ends = to_z(np.array([-1.0, 1.0]), df)
    assert np.isfinite(ends).all()
    np.testing.assert_allclose(from_z(ends, df), [-1, 1])


@pytest.mark.parametrize("block", [1, 300, 1 << 20])
def test_pairs_are_those_of_the_correlation_matrix(block: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60)) @ np.linalg.cholesky(autoregression(60, 0.7)).T
    X[:, 7] = 0.0
    X[:, 9] = -X[:, 8]
    unit = unit_columns(X)
    length = np.linalg.norm(X, axis=0)
    want = (X.T @ X) / np.outer(
        np.where(length, length, 1), np.where(length, length, 1)
    )
    i, j = np.triu_indices(60, 1)
    with override(covariance_block=block):
        starts = [rows.start for rows in row_blocks(60)]
        assert starts == list(range(0, 60, max(1, block // 60)))
        counts = count_correlations(unit, 20)
        first, second, r = strong_pairs(unit, 0.5)
    np.testing.assert_array_equal(
        counts, np.histogram(np.abs(want[i, j]), np.linspace(0, 1 + 1e-9, 21))[0]
    )
    kept = np.abs(want[i, j]) > 0.5
    order = np.lexsort((second, first))
    np.testing.assert_array_equal(first[order], i[kept])
    np.testing.assert_array_equal(second[order], j[kept])
    np.testing.assert_allclose(r[order], want[i, j][kept], atol=1e-6)


def test_a_prior_of_counted_values_is_that_of_the_values() -> None:
    rng = np.random.default_rng(0)
    z = np.round(rng.normal(size=600) * np.repeat([1, 4], [500, 100]), 1)
    value, count = np.unique(z, return_counts=True)
    want, got = NormalMixture().fit(z), NormalMixture().fit_counted(value, count * 1.0)
    probe = np.linspace(-8, 8, 9)
    np.testing.assert_allclose(
        got.prior_.posterior(probe).mean,
        want.prior_.posterior(probe).mean,
        atol=1e-3,
    )
    assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, abs=1e-4)
    assert got.converged_


@pytest.mark.parametrize("n", [20, 100])
def test_the_prior_of_the_correlations_is_recovered(n: int) -> None:
    """Of two million pairs a thousand are correlated."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2000))
    X[:, 1::2] = 0.8 * X[:, ::2] + 0.6 * X[:, 1::2]
    unit = unit_columns(X)
    prior = fit_correlations(unit, n)
    # Half of the features have a partner: the mean square of the means of the z-scores.
    want = to_z(np.array([0.8]), n)[0] ** 2 / 1999
    assert prior.prior.weights @ prior.prior.sds**2 == pytest.approx(want, rel=0.7)
    assert prior.prior.pi0 > 0.99
    i, j, r = strong_pairs(unit, prior.bound)
    real = (j == i + 1) & (i % 2 == 0)
    # Those that are kept are real but for a few.
    assert real.mean() > 0.95
    assert real.sum() > (980 if n == 100 else 250)
    # Those that stand out by chance are shrunken, and no longer too large on average.
    shrunken = prior.shrink(r)
    assert abs(shrunken[real].mean() - 0.8) < (0.02 if n == 100 else 0.1)
    assert (np.abs(shrunken) < np.abs(r)).all()
    np.testing.assert_allclose(prior.shrink(-r), -shrunken)


@pytest.mark.parametrize("seed", range(5))
def test_hardly_any_pair_of_independent_features_is_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unit = unit_columns(rng.normal(size=(30, 1500)))
    prior = fit_correlations(unit, 30)
    assert len(strong_pairs(unit, prior.bound)[0]) <= 1


@given(st.integers(0, 200), st.sampled_from([-1.0, -0.5, 0.5, 1.3]))
def test_powers_are_those_of_the_eigenvalues(seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    q = int(rng.integers(1, 40))
    V = linalg.qr(rng.normal(size=(q, q)))[0]
    value = np.exp(rng.uniform(-4, 4, q))
    # Eigenvalues that occur twice, and vectors that miss some.
    value[: q // 2] = value[0]
    vector = V @ np.where(rng.random(q) < 0.7, rng.normal(size=q), 0.0)
    want = (V * value**exponent) @ (V.T @ vector)
    got = power(lambda v: (V * value) @ (V.T @ v), exponent, vector)
    np.testing.assert_allclose(got, want, atol=1e-7 * np.abs(want).max(initial=1))


def test_what_is_no_matrix_has_no_power() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ArithmeticError, match="was not found"):
        power(lambda v: rng.normal(size=3), 0.5, np.ones(3))
    with pytest.raises(ValueError, match="infs or NaNs"):
        power(lambda v: 2 * v, 0.5, np.array([1.0, np.nan]))


def test_with_all_correlations_the_matrix_is_that_of_these() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 12))
    R = np.corrcoef(A)
    np.testing.assert_allclose(completed(R, with_correlation(R)), R, atol=1e-5)


def test_a_chain_has_the_completion_of_largest_entropy() -> None:
    """Neighbours alone are known: R is the autoregression, its inverse tridiagonal."""
    want = autoregression(12, 0.7)
    known = np.where(np.abs(np.subtract.outer(*2 * [np.arange(12)])) <= 1, want, 0.0)
    R = completed(known, with_correlation(want))
    np.testing.assert_allclose(R, want, atol=1e-5)
    inverse = np.linalg.inv(R)
    assert np.abs(inverse[np.triu_indices(12, 2)]).max() < 1e-5


def test_blocks_stay_blocks() -> None:
    want = blocks(30, 5, 0.6)
    R = completed(want, with_correlation(want))
    np.testing.assert_allclose(R, want, atol=1e-5)


@given(st.integers(0, 300), st.integers(1, 10))
def test_the_matrix_is_positive_definite_whatever_the_pairs_are(
    seed: int, most: int
) -> None:
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(2, 30)), int(rng.integers(2, 12))
    unit = unit_columns(rng.normal(size=(n, p)) + rng.normal(size=(n, 1)))
    R = unit.astype(float) @ unit.T
    np.fill_diagonal(R, 0.0)
    R[np.abs(R) < 0.3] = 0.0
    if not R.any():
        return
    pairs = all_pairs(R)
    L = inverse_root(pairs, unit, FLAT, most).toarray()
    position = pairs.order()
    sorted_L = L[np.argsort(position)][:, np.argsort(position)]
    assert np.abs(np.triu(sorted_L, 1)).max() == 0
    # What is left of the variance of each is bounded from below.
    root = 1 / np.diag(L)
    assert (root > np.sqrt(LEAST_EIGENVALUE) - 1e-6).all()
    assert (root <= 1 + 1e-6).all()
    assert np.count_nonzero(L, axis=1).max() <= most + 1
    assert np.linalg.eigvalsh(L.T @ L)[0] > 0


def test_partners_are_earlier_and_the_strongest() -> None:
    rng = np.random.default_rng(3)
    R = np.triu(rng.uniform(0.1, 0.9, (15, 15)) * (rng.random((15, 15)) < 0.5), 1)
    R = R + R.T
    pairs = all_pairs(R)
    position, names = pairs.order(), pairs.features
    seen = []
    for k, group in enumerate(earlier_partners(pairs, 3)):
        assert group.shape[1] == k + 1
        for *partners, own in group:
            earlier = [
                j
                for j in range(len(names))
                if R[names[own], names[j]] and position[j] < position[own]
            ]
            strongest = sorted(earlier, key=lambda j: -R[names[own], names[j]])[:3]
            assert partners == strongest
            seen.append(own)
    assert sorted(seen) == list(range(len(names)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_explicit_matrix(n_classes: int) -> None:
    X, _, _ = two_classes(autoregression(60, 0.8), 40)
    covariance = estimated(X, np.arange(80) % n_classes)
    assert isinstance(covariance, Sparse)
    assert 30 < covariance.n_pairs < 500
    L = np.eye(60)
    L[np.ix_(covariance.connected, covariance.connected)] = covariance.root.toarray()
    inverse = L.T @ L
    rows = np.random.default_rng(1).normal(size=(3, 60))
    value, V = np.linalg.eigh(inverse)
    root = (V * np.sqrt(value)) @ V.T
    np.testing.assert_allclose(covariance.solve(rows), rows @ inverse, atol=1e-9)
    values = covariance.decorrelate(rows)
    np.testing.assert_allclose(values.z, rows @ root, atol=1e-8)
    np.testing.assert_allclose(covariance.restore(values.z, values), rows, atol=1e-8)
    for unit in (np.full((3, 1), 0.3), np.linspace(0.2, 0.4, 180).reshape(3, 60)):
        weights, variance = covariance.weigh(values.z, values, unit)
        np.testing.assert_allclose(weights, (rows * unit) @ inverse, atol=1e-7)
        want = np.einsum("ij,jk,ik->i", rows * unit, inverse, rows * unit)
        np.testing.assert_allclose(variance, want, rtol=1e-7)


def test_more_samples_than_features_have_the_model_of_the_rows() -> None:
    """Their residuals are rows of cross-products, in memory, and samples elsewhere."""
    X, y, _ = two_classes(autoregression(40, 0.8), 60)
    for options in (RULE, {"covariance": "sparse"}):
        want = EBClassifier(**options).fit(X, y)
        with override(residual_elements=100):
            assert_same(EBClassifier(**options).fit(X, y), want, 1e-6)


def test_a_block_structure_is_found() -> None:
    R = np.eye(400)
    R[:100, :100] = blocks(100, 5, 0.8)
    X, y, _ = two_classes(R, 50)
    covariance = estimated(X, y)
    assert isinstance(covariance, Sparse)
    # All of them, and hardly any other pair.
    np.testing.assert_array_equal(covariance.connected[:100], np.arange(100))
    assert len(covariance.connected) <= 106
    assert 190 <= covariance.n_pairs <= 204
    found = np.linalg.inv((covariance.root.T @ covariance.root).toarray())[:100, :100]
    near = R[:100, :100] > 0
    assert np.abs(found - R[:100, :100])[near].mean() < 0.05
    assert np.mean(found[~near] == 0) > 0.95


def test_independent_features_have_the_rule_of_the_diagonal() -> None:
    X, y, _ = two_classes(np.eye(300), 30)
    assert isinstance(estimated(X, y), Diagonal)
    got = EBClassifier(**RULE).fit(X, y)
    want = EBClassifier(**{**RULE, "covariance": "diagonal"}).fit(X, y)
    np.testing.assert_array_equal(got.coef_, want.coef_)
    assert got.selection_.candidates == [("diagonal", "mean")]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_samples_and_few_features(n: int) -> None:
    rng = np.random.default_rng(n)
    y = np.repeat([0, 1], n)
    X = rng.normal(size=(2 * n, 1)) + 0.01 * rng.normal(size=(2 * n, 6)) + y[:, None]
    for p in (1, 2, 6):
        model = EBClassifier(**RULE).fit(X[:, :p], y)
        assert np.isfinite(model.coef_).all()


def test_copies_and_constants_of_features_do_no_harm() -> None:
    X, y, _ = two_classes(blocks(60, 3, 0.7), 30)
    X = np.column_stack([X, X[:, :5], -X[:, 7], np.full(len(X), 3.0)])
    model = EBClassifier(**RULE).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.coef_[0, -1] == 0
    assert model.score(X, y) > 0.8


def test_errors_are_near_those_of_the_best_rule() -> None:
    """Between the diagonal and the truth, and far nearer to the truth."""
    for R in (autoregression(200, 0.8), blocks(200, 5, 0.7)):
        X, y, difference = two_classes(R, 75, 0.4)
        zero = np.zeros(200)

        def error(rule: Any) -> float:
            coef = getattr(rule, "coef_", None)
            known = (
                (rule.coef, rule.intercept) if coef is None else (coef, rule.intercept_)
            )
            return error_rate(*known, zero, difference, R)  # noqa: B023

        best = error(optimal_rule(zero, difference, R))
        got = error(EBClassifier(**RULE).fit(X, y))
        diagonal = error(EBClassifier(**{**RULE, "covariance": "diagonal"}).fit(X, y))
        assert best < got < best + 0.3 * (diagonal - best)


@pytest.mark.slow
def test_it_is_ahead_of_fixed_thresholds() -> None:
    R = autoregression(200, 0.8)
    ratios = []
    for seed in range(5):
        X, y, difference = two_classes(R, 75, 0.4, seed)
        rules = EBClassifier(**RULE), SparseLDA(random_state=0)
        ours, theirs = (
            error_rate(m.coef_, m.intercept_, np.zeros(200), difference, R)
            for m in (rule.fit(X, y) for rule in rules)
        )
        ratios.append(ours / theirs)
    assert np.mean(ratios) < 0.8


def assert_same(got: EBClassifier, want: EBClassifier, tolerance: float) -> None:
    for name in ATTRIBUTES:
        a, b = getattr(got, name), getattr(want, name)
        np.testing.assert_allclose(
            a, b, rtol=0, atol=tolerance * np.abs(b).max(), err_msg=name
        )


@pytest.mark.parametrize("options", [RULE, {"covariance": "sparse"}], ids=str)
def test_order_units_jobs_and_blocks_change_nothing(options: dict[str, Any]) -> None:
    X, y, _ = two_classes(autoregression(120, 0.8), 20)
    want = EBClassifier(**options).fit(X, y)
    assert want.selection_.best[0] == "sparse"
    order = np.random.default_rng(0).permutation(120)
    got = EBClassifier(**options).fit(X[:, order], y)
    back = np.argsort(order)
    for name in ATTRIBUTES:
        a, b = getattr(got, name), getattr(want, name)
        a = a if name == "intercept_" else a[..., back]
        np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(b).max(), err_msg=name)
    got = EBClassifier(**options).fit(3 * X + 5, y)
    np.testing.assert_allclose(
        got.decision_function(3 * X + 5), want.decision_function(X), atol=1e-5
    )
    assert_same(EBClassifier(n_jobs=2, **options).fit(X, y), want, 1e-9)
    with override(covariance_block=1000, residual_elements=100):
        assert_same(EBClassifier(**options).fit(X, y), want, 1e-6)


def test_data_on_disk_and_on_dask_have_the_model_of_memory(tmp_path: Path) -> None:
    X, y, _ = two_classes(autoregression(120, 0.8), 20)
    want = EBClassifier(**RULE).fit(X, y)
    stored = np.memmap(tmp_path / "X", X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    with override(
        block_bytes=9000, kept_bytes=0, mapped_bytes=0, residual_elements=100
    ):
        assert_same(EBClassifier(**RULE).fit(stored, y), want, 1e-6)
        cut = da.from_array(X, chunks=(17, 50))
        assert_same(EBClassifier(**RULE).fit(cut, y), want, 1e-6)


def test_weights_are_repetitions_and_batches_are_one_fit() -> None:
    X, y, _ = two_classes(autoregression(80, 0.8), 15)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    want = EBClassifier(**RULE).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    got = EBClassifier(**RULE).fit(X, y, sample_weight=weight)
    assert_same(got, want, 1e-6)
    whole, stream = EBClassifier(**RULE).fit(X, y), EBClassifier(**RULE)
    for rows in np.array_split(np.random.default_rng(1).permutation(30), 3):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_same(stream, whole, 1e-6)


def test_it_goes_with_groups_covariates_and_scales() -> None:
    X, y, _ = two_classes(autoregression(80, 0.8), 30)
    groups, age = np.arange(60) // 2, np.random.default_rng(0).normal(size=60)
    for more in ({"groups": groups}, {"covariates": age[:, None]}):
        model = EBClassifier(**RULE).fit(X, y, **more)
        assert model.selection_.best == ("sparse", "mean")
    X *= np.exp(np.random.default_rng(1).normal(size=60))[:, None]
    scaled = EBClassifier(sample_scale="own", **{**RULE, "calibrate": True})
    assert scaled.fit(X, y).sample_scale_ is not None
    assert np.isfinite(scaled.coef_).all()


def test_a_model_file_has_the_rule(tmp_path: Path) -> None:
    X, y, _ = two_classes(autoregression(80, 0.8), 20)
    model = EBClassifier(covariance="sparse", shrinkage="mean").fit(X, y)
    save(model, tmp_path / "model.ebda")
    again = load(tmp_path / "model.ebda")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.covariance == "sparse"
    assert again.selection_.best == ("sparse", "mean")


def test_what_it_cannot_take_is_refused() -> None:
    X, y, _ = two_classes(autoregression(40, 0.8), 10)
    few = pytest.raises(ValueError, match="40 are too many: 39 are the limit")
    with override(paired_features=39), few:
        EBClassifier(**RULE).fit(X, y)
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="'sparse' needs all values"):
        EBClassifier(**RULE).fit(X, y)


def test_no_more_pairs_are_kept_than_memory_should_hold() -> None:
    """Where all features share a factor, all of them are correlated."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 300)) + 2 * rng.normal(size=(40, 1))
    assert estimated(X, y).n_pairs <= 32 * 300
    with override(covariance_pairs=500):
        covariance = estimated(X, y)
    assert 100 < covariance.n_pairs <= 500
    model = EBClassifier(**RULE).fit(X + y[:, None] * (np.arange(300) < 10), y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.slow
def test_memory_is_far_less_than_that_of_the_matrix() -> None:
    p = 5000
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, p // 5)).repeat(5, axis=1) + rng.normal(size=(40, p))
    X[20:, ::50] += 1.0
    EBClassifier(**RULE).fit(X[:, :50], y)
    tracemalloc.start()
    model = EBClassifier(**RULE).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.selection_.best[0] == "sparse"
    # Blocks of 8 MiB and their copies; the matrix would have 200 MB.
    assert peak < 60e6


@pytest.mark.slow
def test_held_out_samples_tell_where_the_diagonal_is_better() -> None:
    """Runs of features differ alike, in an autoregression."""
    R = autoregression(1000, 0.7)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 25)
    difference = np.where(np.arange(1000) < 200, 0.6, 0.0)
    X = rng.normal(size=(50, 1000)) @ np.linalg.cholesky(R).T
    X += np.outer(y, difference)
    errors = {}
    for name, shrinkage in (
        ("diagonal", "mean"),
        ("sparse", "mean"),
        ("sparse", "auto"),
    ):
        model = EBClassifier(covariance=name, shrinkage=shrinkage).fit(X, y)
        known = model.coef_, model.intercept_, np.zeros(1000), difference, R
        errors[name, shrinkage] = error_rate(*known)
    assert errors["sparse", "mean"] > 1.2 * errors["diagonal", "mean"]
    assert errors["sparse", "auto"] < 1.1 * errors["diagonal", "mean"]
