"""The empirical null: where the centre of the values lies, and how wide it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ebda.priors.null import Null, empirical_null


@pytest.mark.parametrize("loc", [-0.5, 0.0, 0.2])
@pytest.mark.parametrize("scale", [1.1, 1.6])
def test_location_and_scale_are_recovered_in_spite_of_effects(
    loc: float, scale: float
) -> None:
    rng = np.random.default_rng(0)
    z = loc + scale * rng.normal(size=(1, 20_000))
    z[0, :100] += 6.0
    z[0, 100:200] -= 6.0
    null = empirical_null(z)
    assert null is not None
    assert null.loc == pytest.approx(loc, abs=0.04)
    assert null.scale == pytest.approx(scale, rel=0.04)
    standard = null.standardise(z)
    assert abs(np.median(standard)) < 0.02
    assert stats.median_abs_deviation(standard[0], scale="normal") == pytest.approx(
        1.0, abs=0.001
    )


def test_location_and_scale_are_median_and_scaled_median_deviation() -> None:
    z = 0.4 + 1.5 * np.random.default_rng(1).standard_t(5, size=(2, 3000))
    null = empirical_null(z)
    assert null is not None
    np.testing.assert_allclose(np.ravel(null.loc), np.median(z, axis=1))
    mad = stats.median_abs_deviation(z, axis=1, scale="normal")
    np.testing.assert_allclose(np.ravel(null.scale), mad, rtol=1e-12)


@pytest.mark.parametrize("p", [100, 4000])
def test_theory_is_left_alone_where_it_holds(p: int) -> None:
    rng = np.random.default_rng(7)
    found = [empirical_null(rng.normal(size=(1, p))) is None for _ in range(100)]
    assert sum(found) >= 95


@pytest.mark.parametrize("scale", [0.0, 0.3, 0.9])
def test_the_null_is_never_narrower_than_in_theory(scale: float) -> None:
    z = scale * np.random.default_rng(2).normal(size=(1, 5000))
    assert empirical_null(z) is None
    moved = empirical_null(z + 0.5)
    assert moved is not None
    assert moved.loc == pytest.approx(0.5, abs=0.05)
    assert moved.scale == 1.0


def test_a_small_shift_counts_only_with_many_values() -> None:
    quantiles = stats.norm.ppf((np.arange(400) + 0.5) / 400)[None, :]
    assert empirical_null(quantiles + 0.1) is None
    null = empirical_null(np.tile(quantiles, 25) + 0.1)
    assert null is not None
    assert null.loc == pytest.approx(0.1, abs=0.01)


def test_each_contrast_has_its_own_null() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=(3, 10_000))
    z[1] += 0.3
    z[2] *= 1.4
    null = empirical_null(z)
    assert null is not None
    assert np.shape(null.loc) == np.shape(null.scale) == (3, 1)
    np.testing.assert_array_equal(null.loc[0], 0.0)
    np.testing.assert_array_equal(null.scale[[0, 1]], 1.0)
    np.testing.assert_allclose(null.loc[1:], [[0.3], [0.0]], atol=0.06)
    np.testing.assert_allclose(null.scale[2], 1.4, rtol=0.05)
    for row in range(1, 3):
        alone = empirical_null(z[[row]])
        assert alone is not None
        np.testing.assert_array_equal(alone.loc[0], null.loc[row])
        np.testing.assert_array_equal(alone.scale[0], null.scale[row])
    np.testing.assert_array_equal(null.standardise(z)[0], z[0])


def test_the_null_of_theory_changes_nothing() -> None:
    z = np.random.default_rng(4).normal(size=(2, 5))
    np.testing.assert_array_equal(Null().standardise(z), z)
