"""Moderated variances: limma's formulas, their limits, and what they recover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from ebda.kernels.rounding import ROUNDING
from ebda.kernels.threads import allow_threads
from ebda.kernels.variances import group_positive, pooled_variance, shrink_variance
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.moments.variance import (
    VARIANCES,
    VariancePrior,
    moderated,
    pooled,
    trigamma_inverse,
    variance_prior,
    weighted_median,
)
from ebda.sizes import override


def moments_with(s2: np.ndarray, df: int) -> ClassMoments:
    """Two classes of which the first has two samples, with these pooled variances."""
    counts = np.array([2.0, df])
    squares = np.vstack([0.25 * df * s2, 0.75 * df * s2])
    means = np.random.default_rng(0).normal(size=(2, len(s2))) * np.sqrt(s2)
    return ClassMoments(counts, means, squares)


def drawn_variances(d0: float, s0: float, df: int, p: int, seed: int) -> np.ndarray:
    """Sample variances whose true ones are ``d0 s0 / chi2(d0)``."""
    rng = np.random.default_rng(seed)
    true = d0 * s0 / rng.chisquare(d0, p) if np.isfinite(d0) else np.full(p, s0)
    return true * rng.chisquare(df, p) / df


def smyth(s2: np.ndarray, df: float) -> tuple[float, float]:
    """d0 and s0^2 by Smyth (2004), section 6.2; the root by bisection."""
    e = np.log(s2) - digamma(df / 2) + np.log(df / 2)
    excess = np.var(e, ddof=1) - polygamma(1, df / 2)
    if excess <= 0:
        return np.inf, np.exp(np.mean(e))
    log_half = brentq(
        lambda t: np.log(polygamma(1, np.exp(t)) / excess), -20, 20, xtol=1e-14
    )
    half = np.exp(log_half)
    return 2 * half, np.exp(np.mean(e) + digamma(half) - np.log(half))


def squeezed(s2: np.ndarray, df: float) -> np.ndarray:
    """limma's squeezeVar."""
    d0, s0 = smyth(s2, df)
    if np.isinf(d0):
        return np.full_like(s2, s0)
    return (d0 * s0 + df * s2) / (d0 + df)


@pytest.mark.parametrize("d0", [None, 3.0, 20.0, np.inf])
@pytest.mark.parametrize("df", [3, 10, 48])
def test_variances_are_those_of_limma(d0: float | None, df: int) -> None:
    if d0 is None:  # far apart: d0 is next to nothing
        s2 = np.exp(np.random.default_rng(df).uniform(-9, 9, 150))
    else:
        s2 = drawn_variances(d0, 1.7, df, 150, seed=df)
    prior = variance_prior(s2, df)
    assert prior.outlier_threshold == np.inf  # no outliers: the published formulas hold
    want_d0, want_s0 = smyth(s2, df)
    assert prior.degrees_of_freedom == pytest.approx(want_d0, rel=1e-9)
    assert prior.variance == pytest.approx(want_s0, rel=1e-9)
    got = moderated(moments_with(s2, df))
    np.testing.assert_allclose(got.within, squeezed(s2, df), rtol=1e-9)
    np.testing.assert_array_equal(got.by_class, got.within[None, :])
    assert got.degrees_of_freedom == pytest.approx(df + want_d0, rel=1e-9)


@pytest.mark.parametrize("x", np.geomspace(1e-9, 1e9, 19))
def test_trigamma_inverse_is_the_inverse(x: float) -> None:
    assert polygamma(1, trigamma_inverse(x)) == pytest.approx(x, rel=2e-6)


@given(y=st.floats(1e-3, 1e5))
def test_trigamma_inverse_finds_the_root(y: float) -> None:
    got = trigamma_inverse(float(polygamma(1, y)))
    assert got == pytest.approx(y, rel=1e-9)


def test_equal_variances_give_one_variance_with_infinite_degrees() -> None:
    s2 = np.full(50, 3.0)
    got = moderated(moments_with(s2, 10))
    assert got.degrees_of_freedom == np.inf
    np.testing.assert_array_equal(got.within, got.within[0])
    # The mean of log s^2 is below that of log sigma^2 by log(df/2) - psi(df/2).
    assert got.within[0] == pytest.approx(3.0 * 5 / np.exp(digamma(5.0)))


def test_variances_that_differ_by_chance_alone_come_together() -> None:
    s2 = drawn_variances(np.inf, 2.0, 10, 20_000, seed=3)
    got = moderated(moments_with(s2, 10))
    np.testing.assert_allclose(got.within, 2.0, rtol=0.05)
    assert got.degrees_of_freedom > 300


def test_variances_of_any_size_stay_as_they_are() -> None:
    rng = np.random.default_rng(5)
    s2 = np.exp(rng.uniform(-200, 200, 300))
    got = moderated(moments_with(s2, 20))
    assert got.degrees_of_freedom == pytest.approx(20, abs=0.1)
    large = s2 > 1
    np.testing.assert_allclose(got.within[large], s2[large], rtol=2e-3)


@pytest.mark.parametrize("d0", [2.0, 6.0, 25.0])
@pytest.mark.parametrize("df", [4, 12, 60])
def test_the_prior_is_recovered(d0: float, df: int) -> None:
    prior = variance_prior(drawn_variances(d0, 0.3, df, 40_000, seed=9), df)
    # The logarithms carry less about d0 the larger it is against df.
    rtol = 0.05 * (1 + d0 / df)
    assert prior.degrees_of_freedom == pytest.approx(d0, rel=rtol)
    assert prior.variance == pytest.approx(0.3, rel=0.03)


def test_the_inverse_of_a_moderated_variance_is_the_mean_precision() -> None:
    rng = np.random.default_rng(11)
    d0, df, p = 6.0, 8, 60_000
    true = d0 * 2.0 / rng.chisquare(d0, p)
    s2 = true * rng.chisquare(df, p) / df
    within = moderated(moments_with(s2, df)).within
    for part in np.array_split(np.argsort(s2), 10):
        assert np.mean(within[part] / true[part]) == pytest.approx(1.0, abs=0.03)
    error = np.std(np.log(within / true))
    assert error < 0.8 * np.std(np.log(s2 / true))


def test_moderated_contrasts_of_nulls_are_t_with_more_degrees_of_freedom() -> None:
    rng = np.random.default_rng(2)
    d0, p = 6.0, 40_000
    codes = np.repeat([0, 1], [4, 5])
    X = rng.normal(size=(9, p)) * np.sqrt(d0 / rng.chisquare(d0, p))
    moments = class_moments(X, codes, 2)
    variance = moderated(moments)
    z = class_contrasts(moments, variance).z[0]
    assert stats.kstest(z, stats.t(variance.degrees_of_freedom).cdf).pvalue > 0.01
    assert stats.kstest(z, stats.t(7).cdf).pvalue < 0.01


def test_wild_features_leave_the_others_alone() -> None:
    s2 = drawn_variances(8.0, 1.0, 12, 1000, seed=1)
    assert variance_prior(s2, 12).outlier_threshold == np.inf
    want = moderated(moments_with(s2, 12))
    high, low = s2[:4] * 1e6, s2[:4] * 1e-12
    with_outliers = np.concatenate([high, s2, low])
    got = moderated(moments_with(with_outliers, 12))
    np.testing.assert_allclose(got.within[4:-4], want.within, rtol=1e-9)
    np.testing.assert_allclose(got.within[:4], high, rtol=1e-12)
    # One that is small by a wonder is as usual as the degrees of freedom allow.
    d0, s0 = smyth(s2, 12)
    np.testing.assert_allclose(got.within[-4:], d0 * s0 / (d0 + 12), rtol=1e-9)
    # Without this care the prior would be gone.
    assert smyth(with_outliers, 12)[0] < 0.2 * d0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1e6, 1e-6], ids=["high", "low"])
def test_one_wild_feature_in_a_hundred_changes_little(factor: float, seed: int) -> None:
    s2 = drawn_variances(5.0, 4.0, 20, 1000, seed=seed)
    with_outliers = s2.copy()
    with_outliers[:10] *= factor
    change, above = [], []
    for x in (s2, with_outliers):
        above.append(variance_prior(x, 20).outlier_threshold)
        change.append(moderated(moments_with(x, 20)).within)
    ratio = np.abs(change[1] / change[0] - 1)[10:]
    assert np.median(ratio) < 0.005
    # A feature that is at the outlier threshold may fall on either side.
    border = ((s2 > above[0]) != (s2 > above[1]))[10:]
    assert np.count_nonzero(border) <= 2
    assert ratio[~border].max() < 0.02


def test_zero_variances_are_no_part_of_the_prior_but_get_one() -> None:
    s2 = drawn_variances(10.0, 1.0, 10, 200, seed=4)
    d0, s0 = smyth(s2, 10)
    got = moderated(moments_with(np.concatenate([[0.0, 0.0], s2, [0.0]]), 10))
    np.testing.assert_allclose(got.within[2:-1], squeezed(s2, 10), rtol=1e-9)
    zeros = got.within[[0, 1, -1]]
    np.testing.assert_allclose(zeros, d0 * s0 / (d0 + 10), rtol=1e-9)
    assert (got.within > 0).all()


def test_the_rounding_error_of_constants_is_no_part_of_the_prior() -> None:
    """Weighted means over many rows leave such variances."""
    rng = np.random.default_rng(6)
    n = 3000
    X = rng.normal(size=(n, 300))
    X[:, 100:] = rng.uniform(-10, 10, 200)
    codes, weight = np.arange(n) % 2, rng.uniform(0.1, 3, n)
    want = moderated(class_moments(X[:, :100], codes, 2, weight))
    got = moderated(class_moments(X, codes, 2, weight))
    np.testing.assert_allclose(got.within[:100], want.within, rtol=1e-6)


@pytest.mark.parametrize(
    "s2", [[2.5], [0.0], [0.0, 2.5], [0.0] * 4], ids=["one", "none", "zero", "zeros"]
)
def test_fewer_than_two_variances_teach_nothing(s2: list[float]) -> None:
    moments = moments_with(np.array(s2), 6)
    got, plain = moderated(moments), pooled(moments)
    np.testing.assert_allclose(got.within, plain.within, rtol=1e-12)
    assert got.degrees_of_freedom == plain.degrees_of_freedom == 6


@pytest.mark.parametrize("ratio", [1.0, 1.5, 100.0])
def test_two_features_are_enough(ratio: float) -> None:
    s2 = np.array([1.0, ratio])
    got = moderated(moments_with(s2, 6)).within
    np.testing.assert_allclose(got, squeezed(s2, 6), rtol=1e-9)


@given(seed=st.integers(0, 10_000), p=st.integers(1, 40), zeros=st.integers(0, 3))
def test_the_order_of_the_features_does_not_matter(
    seed: int, p: int, zeros: int
) -> None:
    s2 = np.append(drawn_variances(3.0, 1.0, 5, p, seed), np.zeros(zeros))
    order = np.random.default_rng(seed).permutation(len(s2))
    got = moderated(moments_with(s2[order], 5)).within
    np.testing.assert_allclose(got, moderated(moments_with(s2, 5)).within[order], 1e-8)


@given(seed=st.integers(0, 10_000), p=st.integers(1, 40), unit=st.floats(-100.0, 100.0))
def test_a_common_unit_is_a_factor_of_the_variances(
    seed: int, p: int, unit: float
) -> None:
    s2 = drawn_variances(3.0, 1.0, 5, p, seed)
    s2[: p // 8] *= 1e9
    want, got = (moderated(moments_with(x, 5)) for x in (s2, 10.0**unit * s2))
    np.testing.assert_allclose(got.within, 10.0**unit * want.within, rtol=1e-8)
    # d0 has no digits where the excess is a difference of nearly equal numbers.
    share = [5 / v.degrees_of_freedom for v in (got, want)]
    assert share[0] == pytest.approx(share[1], rel=1e-6, abs=1e-9)


def test_moderation_is_between_the_variance_and_the_prior() -> None:
    prior = VariancePrior(4.0, 2.0)
    s2 = np.array([0.0, 1.0, 2.0, 5.0])
    got = prior.shrink(s2, 12.0)
    np.testing.assert_allclose(got, 2.0 + 0.75 * (s2 - 2.0))
    np.testing.assert_array_equal(VariancePrior(0.0, 1.0).shrink(s2, 12.0), s2)
    np.testing.assert_array_equal(VariancePrior(np.inf, 2.0).shrink(s2, 12.0), 2.0)
    outlier = VariancePrior(4.0, 2.0, outlier_threshold=3.0).shrink(s2, 12.0)
    np.testing.assert_array_equal(outlier, [*got[:3], 5.0])


def test_inputs_stay_as_they_are() -> None:
    s2 = drawn_variances(3.0, 1.0, 5, 30, seed=0)
    before = s2.copy()
    prior = variance_prior(s2, 5)
    prior.shrink(s2, 5)
    np.testing.assert_array_equal(s2, before)


def test_a_class_of_one_sample_is_no_obstacle_and_all_such_classes_are() -> None:
    X = np.random.default_rng(0).normal(size=(4, 20))
    got = moderated(class_moments(X, np.array([0, 0, 0, 1]), 2))
    assert got.degrees_of_freedom >= 2
    with pytest.raises(ValueError, match="every class has a single sample"):
        moderated(class_moments(X, np.arange(4), 4))


@pytest.mark.parametrize("name", VARIANCES)
def test_an_estimator_says_how_few_samples_of_a_class_are_enough(name: str) -> None:
    entry = VARIANCES[name]
    X = np.random.default_rng(1).normal(size=(5 + entry.min_samples, 20))
    codes = np.repeat([0, 1], [5, entry.min_samples])
    assert (entry.estimate(class_moments(X, codes, 2)).within > 0).all()
    if entry.min_samples > 1:
        with pytest.raises(ValueError, match="needs two samples in every class"):
            entry.estimate(class_moments(X[:-1], codes[:-1], 2))


# Many variances, grouped


LOOPS = pytest.mark.parametrize("compiled_features", [1, 10**9], ids=["loops", "NumPy"])


@pytest.mark.parametrize("d0", [3.0, 20.0, np.inf])
@pytest.mark.parametrize("df", [3, 48])
def test_grouped_variances_have_the_prior_of_all(d0: float, df: int) -> None:
    s2 = drawn_variances(d0, 1e-3, df, 20_000, seed=df)
    s2[:3] = 0.0  # and some that are none
    with override(grouped_variances=len(s2) + 1):
        exact = variance_prior(s2, df)
    with override(grouped_variances=len(s2)):
        grouped = variance_prior(s2, df)
    assert grouped != exact  # it was another way
    # A variance at the outlier threshold may fall on either side.
    assert grouped.variance == pytest.approx(exact.variance, rel=3e-5)
    # What matters is the weight of a feature's own variance.
    shares = [df / (df + prior.degrees_of_freedom) for prior in (grouped, exact)]
    assert shares[0] == pytest.approx(shares[1], rel=1e-3)
    outlier = [s2 > prior.outlier_threshold for prior in (grouped, exact)]
    border = outlier[0] != outlier[1]
    assert np.count_nonzero(border) <= 3
    np.testing.assert_allclose(
        grouped.shrink(s2, df)[~border], exact.shrink(s2, df)[~border], rtol=2e-3
    )


def test_wild_variances_are_found_among_groups() -> None:
    s2 = drawn_variances(8.0, 1.0, 12, 5000, seed=1)
    s2[:20] *= 1e6
    with override(grouped_variances=10**9):
        exact = variance_prior(s2, 12)
    with override(grouped_variances=1):
        grouped = variance_prior(s2, 12)
    assert np.isfinite(exact.outlier_threshold)
    assert grouped.outlier_threshold == pytest.approx(exact.outlier_threshold, rel=0.01)
    assert grouped.degrees_of_freedom == pytest.approx(
        exact.degrees_of_freedom, rel=1e-3
    )


@pytest.mark.parametrize("s2", [[0.0] * 5, [0.0, 3.0, 0.0], [2.0] * 4])
def test_groups_of_few_or_equal_variances(s2: list[float]) -> None:
    exact = variance_prior(np.array(s2), 7)
    with override(grouped_variances=1):
        grouped = variance_prior(np.array(s2), 7)
    assert grouped.degrees_of_freedom == exact.degrees_of_freedom
    assert grouped.variance == pytest.approx(exact.variance, rel=1e-12)


@LOOPS
def test_groups_hold_every_variance_at_their_mean(compiled_features: int) -> None:
    rng = np.random.default_rng(4)
    s2 = np.append(np.exp(rng.uniform(-700, 700, 3000)), [0.0, 5e-324])
    with override(
        block_features=700, threaded_features=700, compiled_features=compiled_features
    ):
        variance, count = group_positive(s2)
    e = np.log(variance)
    known = np.sort(np.log(s2[s2 >= np.finfo(float).tiny]))
    assert count.sum() == len(known)
    order = np.argsort(e)
    each = np.repeat(e[order], count[order].astype(int))
    np.testing.assert_allclose(each, known, atol=0.002)
    assert abs(count @ e / count.sum() - known.mean()) < 5e-7


@given(
    x=st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    seed=st.integers(0, 1000),
)
def test_the_weighted_median_is_that_of_repeated_values(
    x: list[int], seed: int
) -> None:
    values = np.array(x, dtype=float)
    count = np.random.default_rng(seed).integers(1, 5, len(x)).astype(float)
    want = np.median(np.repeat(values, count.astype(int)))
    assert weighted_median(values, count) == want


@LOOPS
@pytest.mark.parametrize("mean", [1.0, -1.0, 1e8, -1e-8])
def test_a_quick_look_sees_what_may_be_rounding(
    mean: float, compiled_features: int
) -> None:
    border = (ROUNDING * abs(mean)) ** 2
    means = np.array([[0.0, mean], [0.0, 0.0]])

    def suspicious(means: np.ndarray, *variances: float) -> bool:
        squares = 2 * np.array([variances, np.zeros(len(variances))])
        with override(compiled_features=compiled_features):
            within, found = pooled_variance(means, squares, 2.0)
        np.testing.assert_array_equal(within, variances)
        return found

    assert suspicious(means, 1e20, border)
    assert suspicious(means, border, 1e20)
    assert suspicious(means, 1e20, 0.0)
    assert not suspicious(means, 1e20, 1.001 * border)
    assert suspicious(np.zeros((2, 1)), 0.0)
    assert suspicious(means, 1e20, np.nan)


@LOOPS
def test_constants_in_one_block_leave_the_other_blocks_alone(
    compiled_features: int,
) -> None:
    rng = np.random.default_rng(7)
    X, codes = rng.normal(size=(20, 200)), np.arange(20) % 2
    want = moderated(class_moments(X, codes, 2))
    X = np.hstack([X, np.full((20, 60), 1 / 3)])
    with override(
        block_features=50, threaded_features=50, compiled_features=compiled_features
    ):
        got = moderated(class_moments(X, codes, 2))
    np.testing.assert_allclose(got.within[:200], want.within, rtol=1e-10)


@LOOPS
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_many_variances_must_be_finite(bad: float, compiled_features: int) -> None:
    s2 = np.linspace(1, 2, 200)
    s2[170] = bad
    with (
        override(
            grouped_variances=1,
            block_features=50,
            threaded_features=50,
            compiled_features=compiled_features,
        ),
        pytest.raises(ValueError, match="variances must be finite"),
    ):
        variance_prior(s2, 8)


@pytest.mark.parametrize("threshold", [np.inf, 2.0])
def test_blocks_and_loops_shrink_alike(threshold: float) -> None:
    s2 = drawn_variances(3.0, 1.0, 5, 333, seed=0)
    want = np.where(s2 > threshold, s2, 0.25 * s2 + 0.5)
    for small in ({"block_features": 50}, {"compiled_features": 1}):
        with override(threaded_features=50, **small):
            got = shrink_variance(s2, 0.25, 0.5, threshold, np.empty_like(s2))
            np.testing.assert_allclose(got, want, rtol=1e-12)
            own = s2.copy()  # in place
            assert shrink_variance(own, 0.25, 0.5, threshold, own) is own
        np.testing.assert_array_equal(own, got)


def test_the_prior_is_the_same_for_any_number_of_threads() -> None:
    s2 = drawn_variances(8.0, 1.0, 12, 5000, seed=1)
    found = []
    for n_jobs in (1, 2, 3):
        with (
            override(grouped_variances=1, compiled_features=1, threaded_features=100),
            allow_threads(n_jobs),
        ):
            found.append(moderated(moments_with(s2, 12)).within)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
