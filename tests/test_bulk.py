"""The bulk of the values: what is chance in its place and its width, and p-values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ebda.covariance import Summary
from ebda.data import RowSamples
from ebda.moments import class_contrasts, class_moments
from ebda.moments.variance import pooled
from ebda.rule.bulk import (
    Bulk,
    bulk_of,
    chance_shift,
    chance_width,
    mean_squared_correlation,
    width_of_f,
)


def summary(X: np.ndarray, y: np.ndarray, has_missing: bool = False) -> Summary:
    moments = class_moments(X, y, int(y.max()) + 1)
    contrasts = class_contrasts(moments, pooled(moments))
    samples = RowSamples.of(X, y, None).kept()
    if has_missing:
        samples = samples.as_in(moments)
    return Summary(moments, contrasts, samples)


# The correlation within the classes


def test_the_squared_correlation_is_recovered() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    for loading in (0.0, 0.5, 1.0):
        found = []
        for _ in range(20):
            X = rng.normal(size=(80, 300)) + loading * rng.normal(size=(80, 1))
            found.append(mean_squared_correlation(summary(X, y)))
        truth = (loading**2 / (1 + loading**2)) ** 2
        assert np.mean(found) == pytest.approx(truth, abs=0.02 + 0.1 * truth)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_missing_values_hardly_change_the_squared_correlation(share: float) -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 40)
    for loading in (0.0, 0.5, 1.0):
        complete, found = [], []
        for _ in range(20):
            X = rng.normal(size=(80, 300)) + loading * rng.normal(size=(80, 1))
            complete.append(mean_squared_correlation(summary(X, y)))
            X[rng.random(X.shape) < share] = np.nan
            found.append(mean_squared_correlation(summary(X, y, has_missing=True)))
        # Half of the values have a quarter of it, if the overlap is not put right.
        assert np.mean(found) == pytest.approx(np.mean(complete), rel=0.2, abs=1e-3)


def test_nothing_missing_is_the_same_squared_correlation() -> None:
    X = np.random.default_rng(2).normal(size=(60, 200)) + np.arange(60)[:, None] / 20
    y = np.repeat([0, 1], 30)
    plain = summary(X, y)
    counts = np.tile(plain.moments.counts[:, None], (1, 200))
    moments = replace(plain.moments, observed=counts)
    same = Summary(moments, plain.contrasts, plain.samples)
    want = mean_squared_correlation(plain)
    assert mean_squared_correlation(same) == pytest.approx(want, abs=1e-3)


def test_without_samples_nothing_is_known_of_it() -> None:
    X = np.random.default_rng(0).normal(size=(10, 60))
    known = summary(X, np.repeat([0, 1], 5))
    assert mean_squared_correlation(known) is not None
    none = Summary(known.moments, known.contrasts, None)
    assert mean_squared_correlation(none) is None


# What of place and width is chance


def test_little_of_a_wide_bulk_is_chance_where_features_are_independent() -> None:
    assert chance_width(2.0, 0.0, 5000) == pytest.approx(1.0, abs=1e-3)
    assert chance_width(1.02, 0.0, 5000) == pytest.approx(1.02, abs=0.002)


def test_with_one_strong_factor_all_of_it_may_be() -> None:
    assert chance_width(2.0, 0.25, 5000) > 1.8
    assert chance_width(60.0, 0.25, 5000) == pytest.approx(1.0, abs=1e-3)
    # With several contrasts less so.
    assert chance_width(2.0, 0.25, 5000, df1=7) < chance_width(2.0, 0.25, 5000)


@pytest.mark.parametrize("width", [0.2, 1.0])
def test_a_narrow_bulk_is_never_narrower_than_in_theory(width: float) -> None:
    assert chance_width(width, 0.1, 1000) == 1.0
    f = width * stats.f.ppf((np.arange(99) + 0.5) / 99, 2, 30)
    assert width_of_f(f, 2, 30, 0.1) == pytest.approx(1.0)


def test_without_a_known_correlation_the_bulk_is_what_it_is() -> None:
    assert chance_width(3.0, None, 1000) == 3.0
    assert chance_shift(None, 1000) == np.inf
    z = 0.7 + 2 * np.random.default_rng(0).normal(size=5000)
    found = bulk_of(z, None)
    assert (found.loc, found.scale) == (
        pytest.approx(0.7, abs=0.1),
        pytest.approx(2.0, abs=0.1),
    )


# The fit


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1, 0.2])
def test_a_common_shift_is_found(shift: float) -> None:
    z = np.random.default_rng(1).normal(size=50_000) + shift
    z[:1000] += 5
    found = bulk_of(z, 0.0)
    assert found.loc == pytest.approx(shift, abs=0.02)
    assert found.scale == pytest.approx(1.0, abs=0.02)
    assert found.share == pytest.approx(0.98, abs=0.01)


def test_differences_of_one_sign_do_not_move_the_bulk() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(size=4500)
    z[:1000] += 2.7
    found = bulk_of(z, 0.0)
    assert abs(found.loc) < 0.1
    assert found.share == pytest.approx(0.78, abs=0.06)


def test_few_values_are_judged_by_theory() -> None:
    found = bulk_of(np.full(49, 3.0), 0.2)
    assert (found.loc, found.scale, found.share) == (0.0, 1.0, 1.0)


# p-values


def test_with_equal_signs_it_is_the_two_sided_p_value() -> None:
    means = len(bulk_of(np.zeros(10), 0.0).weights)
    null = Bulk(0.0, 1.0, 0.9, np.full(means, 0.1 / means))
    z = np.array([-30.0, -6.0, -2.0, 0.1, 1.0, 3.0, 9.0])
    expected = np.log(2) + stats.norm.logsf(np.abs(z))
    np.testing.assert_allclose(null.log_tail(z), expected, rtol=1e-3, atol=1e-3)


def test_they_are_uniform_under_the_null_and_no_smaller_within_the_interval() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=4500)
    z[:400] += 3.0  # one sign
    null = bulk_of(z, 0.0)
    draws = rng.normal(size=40_000)
    for m in (0.0, null.loc):
        p = np.exp(null.log_tail(m + null.scale * draws))
        for level in (0.001, 0.01, 0.1):
            error = 4 * np.sqrt(level / len(draws))
            assert np.mean(p <= level) <= level + error
    # Closer to the one-sided p-value on the side where differences lie.
    right, left = np.exp(null.log_tail(np.array([3.0, -3.0])))
    assert stats.norm.sf(3) < right < 1.9 * stats.norm.sf(3) < left


def test_the_evidence_rises_to_both_sides() -> None:
    z = np.concatenate([np.random.default_rng(4).normal(size=2000), [-70.0, 39.0, 500]])
    null = bulk_of(z, 0.01)
    log_p = null.log_tail(z)
    assert np.isfinite(log_p).all()
    for side in (z > 1, z < -1):
        order = np.argsort(np.abs(z[side]))
        assert (np.diff(log_p[side][order]) <= 1e-9).all()
