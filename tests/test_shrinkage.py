"""Shrinkages: the largest differences alone, and what is said of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.base import clone

from ebda import EBClassifier
from ebda.covariance import COVARIANCES, Summary
from ebda.data import RowSamples
from ebda.moments import class_contrasts
from ebda.moments.classwise import class_moments
from ebda.moments.variance import pooled
from ebda.priors import DiscretePrior, FixedPrior
from ebda.rule.effects import Effects
from ebda.rule.shrinkage import SHRINKAGES, Shrinkage, largest, pointwise, threshold
from ebda.theory import expected_error

TOP = [name for name, how in SHRINKAGES.items() if not how.is_pointwise]
VALUES = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=1, max_dims=3, max_side=12),
    # Few different values, so that there are ties.
    elements=st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0]),
)


# It has no attribute that a shrinkage could look at.
NOTHING: Any = object()


def estimate(how: Shrinkage, z: np.ndarray) -> np.ndarray:
    return how.estimate(z, NOTHING, 0.5)


def slope(how: Shrinkage, z: np.ndarray) -> np.ndarray:
    assert how.slope is not None
    return how.slope(z, NOTHING)


# The n largest


@given(z=VALUES, n=st.integers(1, 14))
def test_the_threshold_is_that_of_a_sort(z: np.ndarray, n: int) -> None:
    rows = z.reshape(-1, z.shape[-1])
    sizes = [sorted((abs(v) for v in row), reverse=True) for row in rows.tolist()]
    want = [size[n] if n < len(size) else 0.0 for size in sizes]
    got = threshold(z, n)
    assert got.shape == (*z.shape[:-1], 1)
    np.testing.assert_array_equal(got.ravel(), want)


@given(z=VALUES, n=st.integers(1, 14))
def test_the_largest_are_thresholded_softly(z: np.ndarray, n: int) -> None:
    """Row by row, whatever the other rows are; ties at the cut are all zero."""
    rows = z.reshape(-1, z.shape[-1])
    want, kept = np.zeros_like(rows), np.zeros_like(rows)
    for i, row in enumerate(rows):
        order = np.argsort(-np.abs(row))
        cut = np.abs(row[order[n]]) if n < len(row) else 0.0
        for j in order[:n]:
            want[i, j] = np.sign(row[j]) * (np.abs(row[j]) - cut)
            kept[i, j] = np.abs(row[j]) > cut
    before = z.copy()
    np.testing.assert_array_equal(estimate(largest(n), z), want.reshape(z.shape))
    np.testing.assert_array_equal(slope(largest(n), z), kept.reshape(z.shape))
    np.testing.assert_array_equal(z, before)


def test_n_features_are_left_and_the_sign_stays() -> None:
    z = np.random.default_rng(0).normal(size=(3, 200))
    for n in (1, 10, 199):
        e = estimate(largest(n), z)
        assert (np.count_nonzero(e, axis=1) == n).all()
        assert (e * z >= 0).all()
        np.testing.assert_array_equal(estimate(largest(n), -z), -e)
        # All of them are moved by the same amount.
        moved = np.where(e != 0, np.abs(z) - np.abs(e), np.nan)
        np.testing.assert_allclose(np.nanmax(moved, 1), np.nanmin(moved, 1))


@pytest.mark.parametrize("n", [5, 6, 1000])
def test_all_features_are_no_shrinkage(n: int) -> None:
    z = np.random.default_rng(1).normal(size=(2, 5))
    np.testing.assert_array_equal(estimate(largest(n), z), z)
    none = SHRINKAGES["none"]
    np.testing.assert_array_equal(slope(largest(n), z), slope(none, z))


def test_equal_values_leave_nothing() -> None:
    assert not estimate(largest(3), np.array([[2.0, -2.0, 2.0, 2.0, -2.0]])).any()


def test_the_order_of_the_features_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(size=(4, 300)).round(1)  # with ties
    order = rng.permutation(300)
    for name in TOP:
        how = SHRINKAGES[name]
        for function in (estimate, slope):
            np.testing.assert_array_equal(
                function(how, z)[:, order], function(how, z[:, order])
            )


def test_last_digits_decide_no_ties() -> None:
    """Equal features have z that differ by rounding; a slope must not jump with it."""
    z = np.array([5.0, 3.0, 3.0, 1.0])
    for k in (1, 2):
        noisy = z.copy()
        noisy[k] *= 1 + 1e-15
        assert noisy[k] > 3.0
        np.testing.assert_array_equal(slope(largest(2), noisy), [1, 0, 0, 0])
        np.testing.assert_allclose(
            estimate(largest(2), noisy), [2, 0, 0, 0], atol=1e-14
        )


def test_the_slope_is_the_degrees_of_freedom() -> None:
    """Stein's lemma, by simulation: ``E e(z)'(z - eta) = E sum_j de_j/dz_j``."""
    rng = np.random.default_rng(3)
    eta = np.concatenate([np.full(5, 2.0), np.zeros(25)])
    z = eta + rng.normal(size=(40_000, 30))
    how = largest(6)
    by_noise = (estimate(how, z) * (z - eta)).sum(axis=1)
    by_slope = slope(how, z).sum(axis=1)
    difference = by_noise - by_slope
    error = difference.std() / np.sqrt(len(z))
    assert abs(difference.mean()) < 4 * error < 0.1
    assert (by_slope == 6).all()


def correlated(K: int) -> Summary:
    """Classes of unequal size with a common factor, and a constant feature."""
    rng = np.random.default_rng(K)
    codes = np.repeat(np.arange(K), np.arange(K) * 6 + 8)
    X = rng.normal(size=(len(codes), 40))
    X += 2 * rng.normal(size=(len(codes), 1)) * rng.normal(size=40)
    X[:, :5] += codes[:, None]
    X[:, 7] = 0.1
    moments = class_moments(X, codes, K)
    contrasts = class_contrasts(moments, pooled(moments))
    return Summary(moments, contrasts, RowSamples.of(X, codes, None))


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    ("name", "rtol"),
    # The cut is a feature, too, and common factors tie it to those that are left: that
    # is not counted, and hardly matters.
    [("diagonal", 1e-5), ("shrunken", 1e-5), ("factor", 0.02)],
)
def test_the_divergence_is_a_numerical_derivative(
    name: str, rtol: float, K: int
) -> None:
    """Of the whole way from the contrasts to the estimate, feature by feature."""
    data, how, step = correlated(K), largest(4), 1e-6
    covariance = COVARIANCES[name](data)
    assert covariance.is_diagonal == (name == "diagonal")
    values = covariance.decorrelate(data.contrasts.z)
    prior = FixedPrior(DiscretePrior([0.0], [1.0]))
    effects = Effects(data.contrasts, covariance, values, prior)

    def restored(z: np.ndarray) -> np.ndarray:
        values = covariance.decorrelate(z)
        return covariance.restore(estimate(how, values.z), values)

    want = np.zeros(len(data.contrasts.z))
    for j in np.flatnonzero(~data.contrasts.constant):
        moved = np.zeros_like(data.contrasts.z)
        moved[:, j] = step
        above, below = (restored(data.contrasts.z + s * moved) for s in (1, -1))
        want += (above - below)[:, j] / (2 * step)
    got = effects.divergence(how, 0.5).sum(axis=1)
    np.testing.assert_allclose(got, want, rtol=rtol)
    assert (want > 0.5).all()


# On a part of the features


def test_the_number_is_scaled_on_a_part_of_the_features() -> None:
    assert SHRINKAGES["top100"].on_part(0.1).n_largest == 10
    assert SHRINKAGES["top100"].on_part(0.126).n_largest == 13
    assert SHRINKAGES["top10"].on_part(1e-4).n_largest == 1
    z = np.random.default_rng(4).normal(size=(2, 500))
    for name in TOP:
        how = SHRINKAGES[name]
        np.testing.assert_array_equal(
            estimate(how.on_part(1.0), z), estimate(how, z), err_msg=name
        )
    for how in pointwise().values():
        assert how.on_part(0.01) is how


# The entries


def test_what_the_entries_say() -> None:
    assert TOP == ["top10", "top100", "top1000"]
    assert [SHRINKAGES[name].n_largest for name in TOP] == [10, 100, 1000]
    assert list(pointwise()) == ["mean", "sparse", "hard", "none"]
    # Posterior means start with the odds of e.
    ahead = {name: how.head_start for name, how in SHRINKAGES.items() if how.head_start}
    assert ahead == {"mean": 1.0}


def test_pointwise_is_of_one_value_alone() -> None:
    rng = np.random.default_rng(5)
    prior = DiscretePrior([-2.0, 0.0, 3.0], [0.1, 0.8, 0.1])
    z = rng.normal(size=(1, 2000))
    for how in SHRINKAGES.values():
        whole = how.estimate(z, prior.posterior(z), 0.5)[:, :5]
        alone = how.estimate(z[:, :5], prior.posterior(z[:, :5]), 0.5)
        assert np.allclose(whole, alone) == how.is_pointwise, how.name


@pytest.mark.parametrize("name", TOP)
def test_what_is_no_function_of_z_has_no_curve(name: str) -> None:
    with pytest.raises(ValueError, match=r"rule must be one of \['mean', 'sparse'"):
        expected_error(20, effects=[1.0], pi0=0.9, n_features=50, rule=name)


# In the classifier


@pytest.mark.parametrize("K", [2, 3])
def test_a_rule_of_the_largest_differences(K: int) -> None:
    rng = np.random.default_rng(6)
    y = np.repeat(np.arange(K), 12)
    X = rng.normal(size=(len(y), 300))
    for k in range(1, K):
        X[y == k, 20 * k : 20 * k + 20] += 1.5
    rule = EBClassifier(covariance="diagonal", shrinkage="top10", calibrate=False)
    model = rule.fit(X, y)
    z = np.atleast_2d(model.contrasts_.z)
    want = np.zeros_like(z)
    for row, own in zip(want, z, strict=True):
        order = np.argsort(-np.abs(own))
        cut = np.abs(own[order[10]])
        row[order[:10]] = own[order[:10]] - np.sign(own[order[:10]]) * cut
    scale, variance = model.contrasts_.scale, model.contrasts_.variance
    np.testing.assert_allclose(model.coef_, want * scale / variance, atol=1e-12)
    assert model.selected_.sum() == np.any(want != 0, axis=0).sum()
    assert model.score(X, y) > 0.9
    order = rng.permutation(300)
    other = clone(rule).fit(X[:, order], y)
    np.testing.assert_allclose(other.coef_, model.coef_[:, order], atol=1e-12)
    np.testing.assert_allclose(other.intercept_, model.intercept_, rtol=1e-9)
