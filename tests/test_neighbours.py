"""Autoregression along the features: whitening, and the correlation of neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebda import EBClassifier
from ebda.covariance.autoregressive import (
    transposed,
    unwhiten,
    unwhiten_transposed,
    whiten,
)
from ebda.covariance.neighbours import Autoregression, neighbour_correlations
from ebda.data import RowSamples
from ebda.datasets import make_two_class
from ebda.kernels.residuals import LAGS
from ebda.moments.classwise import class_moments
from ebda.moments.variance import pooled
from ebda.sizes import override

RHO = [-0.95, -0.3, 0.0, 0.5, 0.9, 0.999]


def autoregression(p: int, rho: float) -> np.ndarray:
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def kept(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None
) -> RowSamples:
    return RowSamples.of(X, codes, weight)


def correlations_of(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    moments = class_moments(X, codes, int(codes.max()) + 1, weight)
    samples = kept(X, codes, weight)
    return neighbour_correlations(samples, moments.means, pooled(moments).within)


def correlation_of(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None
) -> float:
    return float(correlations_of(X, codes, weight)[0])


def autoregressive(
    n: int, p: int, rho: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that differ, in features of any unit."""
    sim = make_two_class(n, p, n_signals=p // 10, rho=rho, random_state=seed)
    unit = np.random.default_rng(seed).uniform(0.1, 10.0, p)
    return sim.data * unit, (sim.target == "b").astype(int)


@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize("p", [1, 2, 7])
def test_whitening_is_a_root_of_the_inverse_of_the_correlation(
    rho: float, p: int
) -> None:
    W = whiten(np.eye(p), rho).T  # rows are inputs
    np.testing.assert_allclose(W.T @ W @ autoregression(p, rho), np.eye(p), atol=1e-9)
    np.testing.assert_allclose(W @ autoregression(p, rho) @ W.T, np.eye(p), atol=1e-9)
    np.testing.assert_allclose(transposed(np.eye(p), rho).T, W.T, atol=1e-12)
    np.testing.assert_allclose(unwhiten(np.eye(p), rho).T @ W, np.eye(p), atol=1e-9)
    back = unwhiten_transposed(np.eye(p), rho).T
    np.testing.assert_allclose(back @ W.T, np.eye(p), atol=1e-9)


@given(
    rho=st.floats(-0.999, 0.999),
    rows=st.integers(1, 3),
    p=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
def test_unwhitening_undoes_whitening(rho: float, rows: int, p: int, seed: int) -> None:
    z = np.random.default_rng(seed).normal(size=(rows, p))
    before = z.copy()
    np.testing.assert_allclose(unwhiten(whiten(z, rho), rho), z, atol=1e-10)
    np.testing.assert_allclose(whiten(unwhiten(z, rho), rho), z, atol=1e-10)
    # <W z, w> = <z, W' w>
    w = np.random.default_rng(seed + 1).normal(size=(rows, p))
    for function, its_transpose in [
        (whiten, transposed),
        (unwhiten, unwhiten_transposed),
    ]:
        product = np.sum(function(z, rho) * w)
        want = np.sum(z * its_transpose(w, rho))
        assert product == pytest.approx(want, rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(z, before)


def test_without_correlation_nothing_happens() -> None:
    z = np.random.default_rng(0).normal(size=(2, 9))
    for function in (whiten, unwhiten, transposed, unwhiten_transposed):
        np.testing.assert_array_equal(function(z, 0.0), z)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [4, 25])
def test_the_correlation_of_neighbours_is_recovered(rho: float, n: int) -> None:
    got = correlation_of(*autoregressive(n, 3000, rho, seed=n))
    assert got == pytest.approx(rho, abs=0.03 if n > 4 else 0.07)


def test_a_permutation_of_the_features_takes_it_away() -> None:
    X, codes = autoregressive(20, 3000, 0.9, seed=1)
    shuffled = X[:, np.random.default_rng(1).permutation(3000)]
    assert abs(correlation_of(shuffled, codes)) < 0.03


@pytest.mark.parametrize("loading", [0.5, 0.95])
@pytest.mark.parametrize("signs", [False, True], ids=["of one sign", "of both"])
def test_common_factors_are_no_neighbourhood(loading: float, signs: bool) -> None:
    rng = np.random.default_rng(3)
    n, p = 40, 2000
    loadings = loading * (rng.choice([-1.0, 1.0], p) if signs else np.ones(p))
    X = np.outer(rng.normal(size=n), loadings)
    X += np.sqrt(1 - loading**2) * rng.normal(size=(n, p))
    assert abs(correlation_of(X, np.arange(n) % 2)) < 0.05


def test_neighbours_with_a_common_factor_stand_out_from_it() -> None:
    X, codes = autoregressive(30, 3000, 0.9, seed=2)
    X /= X.std(axis=0)
    X += np.random.default_rng(2).normal(size=(len(X), 1))
    # Half of the variance is common: 0.5 + 0.5 * 0.9 less 0.5.
    assert correlation_of(X, codes) == pytest.approx(0.45, abs=0.05)


def test_a_weight_is_a_number_of_equal_rows() -> None:
    X, codes = autoregressive(8, 200, 0.8, seed=4)
    times = np.random.default_rng(4).integers(1, 4, len(X))
    want = correlation_of(np.repeat(X, times, axis=0), np.repeat(codes, times))
    got = correlation_of(X, codes, times.astype(float))
    assert got == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("width", [1, 2, 250, 2999])
def test_the_estimate_does_not_depend_on_the_tiles(width: int) -> None:
    X, codes = autoregressive(20, 3000, 0.9, seed=5)
    X[:, [0, 1, 77, 250, 2999]] = 3.0
    moments = class_moments(X, codes, 2)
    variance = np.maximum(pooled(moments).within, 1e-9)

    def estimate() -> np.ndarray:
        samples, constant = kept(X, codes), np.ptp(X, axis=0) == 0
        return neighbour_correlations(samples, moments.means, variance, constant)

    want = estimate()
    with override(tile_elements=40 * width):
        np.testing.assert_allclose(estimate(), want, rtol=1e-10)


def test_the_estimate_by_definition() -> None:
    X, codes = autoregressive(10, 93, 0.8, seed=8)
    residual = X - np.vstack([X[codes == k].mean(axis=0) for k in (0, 1)])[codes]
    R = residual / np.sqrt((residual**2).sum(axis=0) / 18)
    correlation = R.T @ R / 18
    near = np.array([np.diag(correlation, lag).mean() for lag in LAGS])
    far = correlation[:31, 62:].mean()  # the first third with the last
    np.testing.assert_allclose(correlations_of(X, codes), near - far, rtol=1e-10)


def test_the_estimate_is_clipped_below_one() -> None:
    # The first third against all others: near is 1 and far -1, a difference of 2.
    rng = np.random.default_rng(9)
    loadings = np.repeat([-1.0, 1.0], [1000, 2000])
    X = np.outer(rng.normal(size=20), loadings) + 1e-3 * rng.normal(size=(20, 3000))
    assert correlation_of(X, np.arange(20) % 2) == 0.999


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_neighbours_that_are_equal_leave_an_inverse(sign: float) -> None:
    """The estimate is clipped where the correlation would be that of one feature."""
    p, codes = 900, np.arange(30) % 2
    amplitude = np.random.default_rng(9).normal(size=(30, 2))
    turn = np.pi * np.arange(p) / p  # the last third is opposed to the first
    X = amplitude @ np.vstack([np.cos(turn), np.sin(turn)])
    X *= sign ** np.arange(p)
    rho = correlation_of(X, codes)
    assert rho == sign * 0.999
    covariance = Autoregression(rho, np.zeros(p, dtype=bool))
    z = np.random.default_rng(10).normal(size=(1, p))
    assert np.isfinite(covariance.solve(z)).all()
    values = covariance.decorrelate(z)
    np.testing.assert_allclose(covariance.restore(values.z, values), z, atol=1e-9)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_too_few_features_have_no_order(p: int) -> None:
    got = correlation_of(*autoregressive(10, p, 0.9, seed=6))
    assert np.isfinite(got)
    assert p > 2 or got == 0.0


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.9])
def test_auto_asks_whether_the_correlations_are_those_of_an_autoregression(
    rho: float,
) -> None:
    """Features sorted by a clustering have an order, and no autoregression."""
    X, codes = autoregressive(25, 2000, rho, seed=11)
    X /= X.std(axis=0)
    names = {name for name, _ in EBClassifier().fit(X, codes).selection_.candidates}
    assert "neighbours" in names
    # Factors of a thousand, a hundred and ten neighbours.
    rng = np.random.default_rng(11)
    for run in (1000, 100, 10):
        X += np.repeat(rng.normal(size=(len(X), 2000 // run)), run, axis=1)
    names = {name for name, _ in EBClassifier().fit(X, codes).selection_.candidates}
    assert "neighbours" not in names
    asked = EBClassifier(covariance="neighbours").fit(X, codes)
    assert asked.selection_.candidates == [("neighbours", "mean")]
