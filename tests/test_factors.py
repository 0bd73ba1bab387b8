"""Common factors: against a p x p decomposition, and against the truth."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ebda.covariance.factor import (
    Factors,
    common_factors,
    largest_by_chance,
    spike_strength,
)
from ebda.covariance.residuals import SampleResiduals
from ebda.covariance.spectrum import spectrum_of
from ebda.data import RowSamples
from ebda.datasets import make_factor_classes, make_two_class
from ebda.moments.classwise import class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.moments.variance import VARIANCES
from ebda.sizes import override

MIB = 2**20


def kept(X: Any, codes: np.ndarray, weight: np.ndarray | None = None) -> RowSamples:
    return RowSamples.of(X, codes, weight)


def factors_about(
    samples: RowSamples, means: np.ndarray, variance: np.ndarray, p: int
) -> Factors | None:
    """Factors of residuals about any means."""
    residuals = SampleResiduals(samples, means, np.sqrt(variance))
    spectrum = spectrum_of(residuals)
    return None if spectrum is None else common_factors(residuals, spectrum, p)


def factors_of(
    X: Any,
    codes: np.ndarray,
    weight: np.ndarray | None = None,
    variance: str = "pooled",
) -> Factors | None:
    moments = class_moments(X, codes, int(codes.max()) + 1, weight)
    contrasts = class_contrasts(moments, VARIANCES[variance].estimate(moments))
    samples = kept(X, codes, weight)
    varying = int(np.count_nonzero(~contrasts.constant))
    return factors_about(samples, moments.means, contrasts.variance, varying)


def found(factors: Factors | None) -> Factors:
    assert factors is not None
    return factors


def common(factors: Factors | None) -> np.ndarray:
    """L L', which knows neither the signs nor the rotation of the factors."""
    loadings = found(factors).loadings
    return loadings @ loadings.T


def strong_factor(
    n: int = 24, p: int = 120, loading: float = 0.8, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """One factor in all features, three classes that differ, units of any size."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = loading * rng.choice([-1.0, 1.0], p) * rng.normal(size=(n, 1))
    X += np.sqrt(1 - loading**2) * rng.normal(size=(n, p))
    X += rng.normal(size=(3, p))[codes]
    return X * rng.uniform(0.1, 10.0, p) + 5.0, codes


def explicit(X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loadings and specific variances from the p x p correlation of the residuals."""
    p, classes = X.shape[1], np.unique(codes)
    residual = X - np.array([X[codes == k].mean(axis=0) for k in classes])[codes]
    df = len(X) - len(classes)
    covariance = residual.T @ residual / df
    sd = np.sqrt(np.diag(covariance))
    value, vector = np.linalg.eigh(covariance / np.outer(sd, sd))
    # Johnstone and Ma (2012); 2.0234 is the 99 % point of Tracy and Widom's F1.
    root = np.sqrt(df - 0.5) + np.sqrt(p - 0.5)
    third = (1 / np.sqrt(df - 0.5) + 1 / np.sqrt(p - 0.5)) ** (1 / 3)
    border = (root**2 + 2.0234 * root * third) / df
    gamma = p / df
    columns = []
    for lam, u in zip(value[::-1], vector.T[::-1], strict=True):
        if lam <= border:
            break
        # lambda = (1 + l)(1 + gamma / l) is l^2 - (lambda - 1 - gamma) l + gamma = 0.
        strength = np.roots([1.0, -(lam - 1 - gamma), gamma]).max()
        cosine2 = (1 - gamma / strength**2) / (1 + gamma / strength)
        columns.append(np.sqrt(strength * cosine2) * u)
    loadings = np.array(columns).reshape(-1, p).T
    return loadings, np.maximum(1 - (loadings**2).sum(axis=1), 0.05)


@pytest.mark.parametrize("p", [20, 120, 400])
def test_one_strong_factor_is_that_of_the_explicit_correlation(p: int) -> None:
    X, codes = strong_factor(p=p)
    loadings, specific = explicit(X, codes)
    got = found(factors_of(X, codes))
    assert got.n_factors == loadings.shape[1] == 1
    np.testing.assert_allclose(common(got), loadings @ loadings.T, atol=1e-9)
    np.testing.assert_allclose(got.specific, specific, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_factor_classes_are_those_of_the_explicit_correlation(seed: int) -> None:
    sim = make_factor_classes(n_features=900, n_test=2, random_state=seed)
    codes = (sim.target == "b").astype(int)
    loadings, specific = explicit(sim.data, codes)
    got = found(factors_of(sim.data, codes))
    assert got.n_factors == loadings.shape[1] >= 2
    np.testing.assert_allclose(common(got), loadings @ loadings.T, atol=1e-9)
    np.testing.assert_allclose(got.specific, specific, atol=1e-9)


def test_loadings_are_as_long_as_is_best_for_the_truth() -> None:
    sim = make_factor_classes(n_per_class=60, n_test=2, random_state=0)
    T = sim.loadings
    L = found(factors_of(sim.data, (sim.target == "b").astype(int))).loadings
    # |a L L' - T T'|^2 as a function of a, without the p x p matrices.
    square, product, size2 = (np.sum(A**2) for A in (L.T @ L, L.T @ T, T.T @ T))
    assert product / square == pytest.approx(1.0, abs=0.1)  # the best a
    assert square - 2 * product + size2 < 0.6 * size2


def test_a_strong_factor_is_recovered() -> None:
    n, p, loading = 200, 400, 0.8
    X, codes = strong_factor(n, p, loading)
    got = found(factors_of(X, codes))
    assert got.n_factors == 1
    np.testing.assert_allclose(np.abs(got.loadings[:, 0]), loading, atol=0.15)
    assert np.mean(np.abs(got.loadings)) == pytest.approx(loading, abs=0.02)
    assert np.mean(got.specific) == pytest.approx(1 - loading**2, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("variance", ["pooled", "moderated"])
def test_independent_features_have_no_factors(variance: str) -> None:
    """Study 1 of the paper."""
    none = 0
    for seed in range(10):
        sim = make_two_class(25, 10_000, variance=12.5, random_state=seed)
        codes = (sim.target == "b").astype(int)
        none += factors_of(sim.data, codes, variance=variance) is None
    assert none >= 9


@pytest.mark.slow
@pytest.mark.parametrize(("df", "p"), [(48, 1000), (10, 5000), (100, 30)])
def test_chance_reaches_the_border_once_in_a_hundred(df: int, p: int) -> None:
    rng = np.random.default_rng(df)
    largest = []
    for _ in range(300):
        E = rng.normal(size=(min(df, p), max(df, p)))
        largest.append(np.linalg.eigvalsh(E @ E.T)[-1] / df)
    border = largest_by_chance(df, p)
    assert np.mean(np.array(largest) > border) < 0.03
    # And does come near: the border is no further off than the distribution is wide.
    assert max(largest) > 0.97 * border


@given(gamma=st.floats(0.01, 1e4), beyond=st.floats(1.001, 1e3))
def test_strength_and_eigenvalue_belong_together(gamma: float, beyond: float) -> None:
    true = np.sqrt(gamma) * beyond
    eigenvalue = (1 + true) * (1 + gamma / true)
    strength, cosine2 = spike_strength(np.array([eigenvalue]), gamma)
    assert strength[0] == pytest.approx(true, rel=1e-4)
    want = (true**2 - gamma) / (true * (true + gamma))
    assert cosine2[0] == pytest.approx(want, rel=1e-2, abs=1e-6)
    assert 0 <= cosine2[0] < 1


def test_at_the_border_of_the_bulk_nothing_is_known_of_the_direction() -> None:
    gamma = 25.0
    strength, cosine2 = spike_strength(np.array([(1 + 5.0) ** 2, 1e9]), gamma)
    assert strength[0] == pytest.approx(5.0)
    assert cosine2[0] == pytest.approx(0.0, abs=1e-12)
    assert cosine2[1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [20.0, 60.0, 200.0])
def test_the_cosine_is_that_of_eigenvector_and_truth(strength: float) -> None:
    p, df = 2000, 60
    rng = np.random.default_rng(int(strength))
    codes = np.arange(df + 2) % 2
    cosine2, want, length2 = [], [], []
    for _ in range(12):
        u = rng.normal(size=p)
        u /= np.linalg.norm(u)
        X = np.sqrt(strength) * np.outer(rng.normal(size=df + 2), u)
        X += rng.normal(size=X.shape)
        moments = class_moments(X, codes, 2)
        samples = kept(X, codes)
        got = found(factors_about(samples, moments.means, np.ones(p), p))
        loading = got.loadings[:, 0]
        length2.append(loading @ loading)
        cosine2.append((loading @ u) ** 2 / length2[-1])
        residual = X - moments.means[codes]
        top = np.linalg.norm(residual, 2) ** 2 / df
        want.append(spike_strength(np.array([top]), p / df)[1][0])
    gamma = p / df
    limit = (1 - gamma / strength**2) / (1 + gamma / strength)
    assert np.mean(cosine2) == pytest.approx(limit, abs=0.03)
    assert np.mean(cosine2) == pytest.approx(np.mean(want), abs=0.03)
    # The loading is as long as the factor is strong, as far as its direction is known.
    assert np.mean(length2) == pytest.approx(strength * limit, rel=0.15)


def test_a_weight_is_a_number_of_equal_rows() -> None:
    X, codes = strong_factor()
    times = np.random.default_rng(1).integers(0, 4, len(X))
    want = factors_of(np.repeat(X, times, axis=0), np.repeat(codes, times))
    got = factors_of(X, codes, times.astype(float))
    np.testing.assert_allclose(common(got), common(want), atol=1e-9)
    np.testing.assert_allclose(found(got).specific, found(want).specific, atol=1e-9)


@pytest.mark.parametrize("elements", [1, 24 * 7, 24 * 50])
def test_tiles_of_any_width_give_the_same(elements: int) -> None:
    X, codes = strong_factor()
    want = factors_of(X, codes)
    with override(tile_elements=elements):
        got = factors_of(X, codes)
    np.testing.assert_allclose(common(got), common(want), atol=1e-10)
    np.testing.assert_allclose(found(got).specific, found(want).specific, atol=1e-10)


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_array])
def test_sparse_and_dense_give_the_same(layout: Any) -> None:
    X, codes = strong_factor()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = 0.0
    want, got = factors_of(X, codes), factors_of(layout(X), codes)
    np.testing.assert_allclose(common(got), common(want), atol=1e-10)
    np.testing.assert_allclose(found(got).specific, found(want).specific, atol=1e-10)


def test_units_and_class_means_do_not_matter() -> None:
    X, codes = strong_factor()
    rng = np.random.default_rng(3)
    other = X * rng.uniform(0.01, 100.0, X.shape[1])
    other += 10 * rng.normal(size=(3, X.shape[1]))[codes]
    np.testing.assert_allclose(
        common(factors_of(other, codes)), common(factors_of(X, codes)), atol=1e-9
    )


def test_some_of_the_samples_have_their_own_means() -> None:
    X, codes = strong_factor(n=60)
    moments = class_moments(X, codes, 3)
    variance = VARIANCES["pooled"].estimate(moments).within
    part = kept(X, codes).take(np.arange(30))
    p = X.shape[1]
    want = common(factors_about(part, moments.means, variance, p))
    # Residuals from other means: they come to the same once centred.
    for means in (part.moments(3).means, moments.means + 2 * np.sqrt(variance)):
        got = common(factors_about(part, means, variance, p))
        np.testing.assert_allclose(got, want, atol=1e-8)


def test_constants_have_no_loadings() -> None:
    X, codes = strong_factor()
    want = factors_of(X, codes)
    got = found(factors_of(np.insert(X, [0, 50, 120], 0.1, axis=1), codes))
    added = [0, 51, 122]
    np.testing.assert_allclose(got.loadings[added], 0.0, atol=1e-12)
    np.testing.assert_allclose(got.specific[added], 1.0, atol=1e-12)
    rest = np.delete(np.arange(123), added)
    np.testing.assert_allclose(common(got)[np.ix_(rest, rest)], common(want), atol=1e-9)


def test_no_feature_is_explained_to_the_end() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 1)) + 1e-6 * rng.normal(size=(200, 50))
    got = found(factors_of(X, np.arange(200) % 2))
    assert got.n_factors == 1
    np.testing.assert_allclose(got.specific, 0.05)


def test_as_many_samples_as_classes_have_no_factors() -> None:
    X = np.random.default_rng(5).normal(size=(3, 40))
    samples = kept(X, np.arange(3))
    assert factors_about(samples, np.zeros((3, 40)), np.ones(40), 40) is None


def test_memory_is_that_of_a_few_tiles() -> None:
    n, p = 30, 20_000
    X = np.random.default_rng(6).normal(size=(n, p))
    X += 0.5 * np.random.default_rng(7).normal(size=(n, 1))
    samples = kept(X, np.arange(n) % 2)
    means, variance = np.zeros((2, p)), np.ones(p)
    tracemalloc.start()
    try:
        got = factors_about(samples, means, variance, p)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found(got).n_factors == 1
    assert peak < 20 * MIB  # p x p would be 3 GiB
