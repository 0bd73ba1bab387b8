"""Contrasts: t statistics for two classes, nearest-centroid contrasts for more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ebda.moments.classwise import ClassMoments, class_moments
from ebda.moments.contrasts import Contrasts, class_contrasts, contrast_weights
from ebda.moments.variance import (
    VARIANCES,
    Variance,
    moderated,
    pooled,
    separate,
    variance_prior,
)
from ebda.sizes import override
from profiles import examples


def contrasts_of(
    X: np.ndarray,
    codes: np.ndarray,
    variance: Callable[[ClassMoments], Variance] = pooled,
) -> Contrasts:
    moments = class_moments(X, codes, int(codes.max()) + 1)
    return class_contrasts(moments, variance(moments))


def sample(sizes: list[int], p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Normal features, a standard deviation for each class, classes shuffled."""
    rng = np.random.default_rng(sum(sizes))
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(3.0, 1.0 + codes[:, None], size=(len(codes), p))
    X += rng.normal(size=(len(sizes), p))[codes]
    return X, codes


@pytest.mark.parametrize("sizes", [[8, 8], [5, 17], [1, 4], [2, 1]])
def test_two_class_z_is_the_pooled_t_statistic(sizes: list[int]) -> None:
    X, codes = sample(sizes)
    want = stats.ttest_ind(X[codes == 1], X[codes == 0]).statistic
    np.testing.assert_allclose(contrasts_of(X, codes).z[0], want, rtol=1e-12)


@pytest.mark.parametrize("sizes", [[8, 8], [5, 17], [2, 3]])
def test_separate_variances_give_the_statistic_of_welch(sizes: list[int]) -> None:
    X, codes = sample(sizes)
    test = stats.ttest_ind(X[codes == 1], X[codes == 0], equal_var=False)
    got = contrasts_of(X, codes, separate).z[0]
    np.testing.assert_allclose(got, test.statistic, rtol=1e-12)


def test_separate_rule_variance_is_proportional_to_the_squared_scale() -> None:
    X, codes = sample([5, 17])
    got = contrasts_of(X, codes, separate)
    np.testing.assert_allclose(got.variance * (1 / 5 + 1 / 17), got.scale[0] ** 2)


def test_positive_z_means_a_larger_second_class() -> None:
    X = np.array([[0.0, 5.0], [1.0, 6.0], [5.0, 0.0], [6.0, 1.0]])
    z = contrasts_of(X, np.array([0, 0, 1, 1])).z[0]
    assert z[0] > 0 > z[1]


def test_equal_sizes_give_the_formula_of_the_paper() -> None:
    n = 9
    X, codes = sample([n, n])
    first, second = X[codes == 0], X[codes == 1]
    d = second.mean(axis=0) - first.mean(axis=0)
    s = np.sqrt((first.var(axis=0, ddof=1) + second.var(axis=0, ddof=1)) / 2)
    got = contrasts_of(X, codes).z[0]
    np.testing.assert_allclose(got, np.sqrt(n / 2) * d / s, rtol=1e-12)


@pytest.mark.parametrize("sizes", [[4, 4, 4], [3, 5, 11], [1, 2, 6, 9]])
def test_many_class_contrasts_compare_each_class_with_all_samples(
    sizes: list[int],
) -> None:
    X, codes = sample(sizes)
    n, k = len(X), len(sizes)
    squares = sum(X[codes == c].var(axis=0) * sizes[c] for c in range(k))
    s = np.sqrt(squares / (n - k))
    got = contrasts_of(X, codes)
    assert got.z.shape == got.scale.shape == (k, X.shape[1])
    for c, size in enumerate(sizes):
        d = X[codes == c].mean(axis=0) - X.mean(axis=0)
        se = s * np.sqrt(1 / size - 1 / n)
        np.testing.assert_allclose(got.scale[c], se, rtol=1e-12)
        np.testing.assert_allclose(got.z[c], d / se, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(got.variance, s**2, rtol=1e-12)


def test_many_classes_with_separate_variances_by_brute_force() -> None:
    sizes = [3, 5, 11]
    X, codes = sample(sizes)
    got = contrasts_of(X, codes, separate)
    for c in range(3):
        var = np.zeros(X.shape[1])
        for k, size in enumerate(sizes):
            weight = (k == c) - size / len(X)
            var += weight**2 * X[codes == k].var(axis=0, ddof=1) / size
        np.testing.assert_allclose(got.scale[c], np.sqrt(var), rtol=1e-12)
        d = X[codes == c].mean(axis=0) - X.mean(axis=0)
        np.testing.assert_allclose(got.z[c], d / np.sqrt(var), rtol=1e-11)


@examples(30)
@given(counts=st.lists(st.integers(1, 50), min_size=2, max_size=6))
def test_both_sides_of_a_contrast_are_weighted_means(counts: list[int]) -> None:
    positive, negative = contrast_weights(np.array(counts, dtype=float))
    assert len(positive) == (1 if len(counts) == 2 else len(counts))
    for side in (positive, negative):
        np.testing.assert_allclose(side.sum(axis=1), 1.0)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("sizes", [[6, 9], [4, 5, 6]])
@examples(25)
@given(
    unit=st.floats(1e-100, 1e100),
    sign=st.sampled_from([-1.0, 1.0]),
    origin=st.floats(-1e3, 1e3),
)
def test_z_knows_neither_unit_nor_origin(
    sizes: list[int], variance: str, unit: float, sign: float, origin: float
) -> None:
    X, codes = sample(sizes)
    X[:, -1] = codes  # a perfect separator among them
    want = contrasts_of(X, codes, VARIANCES[variance].estimate)
    got = contrasts_of(
        (X + origin) * (sign * unit), codes, VARIANCES[variance].estimate
    )
    np.testing.assert_allclose(got.z, sign * want.z, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got.scale, unit * want.scale, rtol=1e-8)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("sizes", [[7, 26], [5, 6, 10], [700, 2300]])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e8 / 3, 1e-30])
def test_constants_get_z_zero_and_are_marked(
    sizes: list[int], variance: str, value: float
) -> None:
    X, codes = sample(sizes, p=3)
    X[:, 1] = value
    got = contrasts_of(X, codes, VARIANCES[variance].estimate)
    np.testing.assert_array_equal(got.constant, [False, True, False])
    np.testing.assert_array_equal(got.z[:, 1], 0.0)
    np.testing.assert_array_equal(got.scale[:, 1], 0.0)
    assert got.variance[1] == 1.0
    alone = contrasts_of(X[:, [0, 2]], codes, VARIANCES[variance].estimate)
    np.testing.assert_allclose(got.z[:, [0, 2]], alone.z, rtol=1e-12)


def test_the_rounding_error_of_a_constant_is_no_variance() -> None:
    means = np.array([[0.1, 1.0], [np.nextafter(0.1, 1), 2.0]])
    squares = np.array([[1e-33, 3.0], [2e-33, 4.0]])
    moments = ClassMoments(np.array([4.0, 5.0]), means, squares)
    got = class_contrasts(moments, pooled(moments))
    np.testing.assert_array_equal(got.constant, [True, False])
    assert got.z[0, 0] == got.scale[0, 0] == 0.0
    assert got.z[0, 1] == pytest.approx(1 / np.sqrt((1 / 4 + 1 / 5) * 1.0))


def test_whether_a_feature_is_constant_is_for_the_moments_to_say() -> None:
    """A variance that is lent by the others makes nothing vary."""
    X, codes = sample([6, 9], p=40)
    X[:, :3] = [0.1, -1e8 / 3, 0.0]
    moments = class_moments(X, codes, 2)
    assert (moderated(moments).within > 0).all()
    for entry in VARIANCES.values():
        got = class_contrasts(moments, entry.estimate(moments))
        np.testing.assert_array_equal(np.flatnonzero(got.constant), [0, 1, 2])
        np.testing.assert_array_equal(got.z[:, :3], 0.0)
        np.testing.assert_array_equal(got.variance[:3], 1.0)


@pytest.mark.parametrize("variance", VARIANCES)
def test_constants_alone_are_no_error(variance: str) -> None:
    X = np.full((6, 4), 0.1)
    got = contrasts_of(X, np.arange(6) % 2, VARIANCES[variance].estimate)
    assert got.constant.all()
    np.testing.assert_array_equal(got.z, 0.0)


def test_a_small_variance_about_a_large_mean_is_no_constant() -> None:
    X, codes = sample([6, 9], p=2)
    want = contrasts_of(X, codes).z
    got = contrasts_of(1e8 + X, codes)
    assert not got.constant.any()
    np.testing.assert_allclose(got.z, want, rtol=1e-6)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("sizes", [[7, 9], [4, 5, 8]])
@pytest.mark.parametrize("unit", [1.0, 0.1, 1e-9, -1e9])
@pytest.mark.parametrize("strength", [0.0, 50.0], ids=["weak", "strong"])
def test_a_perfect_separator_has_a_z_that_belongs_to_its_scale(
    sizes: list[int], variance: str, unit: float, strength: float
) -> None:
    others, codes = with_strongest(sizes, strength)
    X = np.column_stack([others, unit * (codes + 1)])
    got = contrasts_of(X, codes, VARIANCES[variance].estimate)
    assert not got.constant.any()
    assert np.isfinite(got.z).all()
    assert (got.variance > 0).all()
    assert np.sign(got.z[-1, -1]) == np.sign(unit)
    d = X[codes == codes.max(), -1].mean()
    d -= X[codes == 0, -1].mean() if len(sizes) == 2 else X[:, -1].mean()
    assert got.z[-1, -1] * got.scale[-1, -1] == pytest.approx(d, rel=1e-12)
    # Its variance and its scale belong together, as those of any other feature.
    n = np.array(sizes)
    factor = np.sum(1 / n) if len(n) == 2 else 1 / n - 1 / n.sum()
    np.testing.assert_allclose(got.scale[:, -1] ** 2, factor * got.variance[-1])
    # The others do not notice.
    alone = contrasts_of(others, codes, VARIANCES[variance].estimate)
    np.testing.assert_allclose(got.z[:, :-1], alone.z, rtol=1e-9)


def with_strongest(sizes: list[int], strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Features without differences but for the first."""
    X, codes = sample(sizes)
    for k in range(len(sizes)):
        X[codes == k] -= X[codes == k].mean(axis=0)
    X[:, 0] += strength * codes
    return X, codes


@pytest.mark.parametrize("variance", [pooled, separate])
@pytest.mark.parametrize("sizes", [[7, 9], [4, 5, 8]])
@pytest.mark.parametrize("unit", [1.0, 0.1, 1e-9, -1e9])
@pytest.mark.parametrize("strength", [0.0, 50.0], ids=["weak", "strong"])
def test_a_perfect_separator_gets_the_largest_z_in_any_unit(
    sizes: list[int],
    variance: Callable[[ClassMoments], Variance],
    unit: float,
    strength: float,
) -> None:
    X, codes = with_strongest(sizes, strength)
    others = np.abs(contrasts_of(X, codes, variance).z).max()
    largest = max(others, np.sqrt(len(X)))
    X = np.column_stack([X, unit * (codes + 1)])
    got = contrasts_of(X, codes, variance)
    assert np.abs(got.z[:, -1]).max() == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("sizes", [[7, 9], [4, 5, 8]])
@pytest.mark.parametrize("unit", [1.0, 0.1, 1e-9, -1e9])
def test_a_moderated_separator_has_what_the_others_say_of_its_variance(
    sizes: list[int], unit: float
) -> None:
    X, codes = with_strongest(sizes, 50.0)
    X *= np.geomspace(1, 20, X.shape[1])  # so that the prior is not all there is
    moments = class_moments(X, codes, len(sizes))
    prior = variance_prior(pooled(moments).within, len(X) - len(sizes))
    assert 0 < prior.degrees_of_freedom < np.inf
    got = contrasts_of(np.column_stack([X, unit * (codes + 1)]), codes, moderated)
    want = prior.shrink(np.zeros(1), len(X) - len(sizes))
    assert got.variance[-1] == pytest.approx(want[0], rel=1e-9)
    # In the same unit as the others, z is proportional to the difference.
    twice = contrasts_of(np.column_stack([X, 2 * unit * codes]), codes, moderated)
    np.testing.assert_allclose(twice.z[:, -1], 2 * got.z[:, -1], rtol=1e-9)


@pytest.mark.parametrize("variance", VARIANCES)
def test_a_perfect_separator_alone_gets_the_root_of_the_number_of_samples(
    variance: str,
) -> None:
    codes = np.repeat([0, 1], [4, 12])
    got = contrasts_of(codes[:, None] * -3.0, codes, VARIANCES[variance].estimate)
    assert got.z[0, 0] == pytest.approx(-4.0, rel=1e-12)


def test_pooled_works_with_a_class_of_one_sample_and_separate_says_why_not() -> None:
    X = np.array([[0.0], [2.0], [10.0]])
    codes = np.array([0, 0, 1])
    # d = 9, s**2 = 2 with one degree of freedom.
    assert contrasts_of(X, codes).z[0, 0] == pytest.approx(9 / np.sqrt(2 * 1.5))
    want = r"two samples in every class; class number 1 has 1 .*'pooled'"
    with pytest.raises(ValueError, match=want):
        contrasts_of(X, codes, separate)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_of_one_sample_each_have_no_variance(n_classes: int) -> None:
    X = np.random.default_rng(0).normal(size=(n_classes, 3))
    with pytest.raises(ValueError, match="every class has a single sample"):
        contrasts_of(X, np.arange(n_classes))


def test_degrees_of_freedom_count_samples_less_classes() -> None:
    X, codes = sample([3, 5, 11])
    moments = class_moments(X, codes, 3)
    for estimate in (pooled, separate):
        assert estimate(moments).degrees_of_freedom == 19 - 3
    # Those of a moderated variance are more by what the other features say.
    prior = variance_prior(pooled(moments).within, 16.0)
    got = moderated(moments).degrees_of_freedom
    assert got == 16 + prior.degrees_of_freedom > 16


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("sizes", [[8, 9], [5, 6, 7]])
@pytest.mark.parametrize(
    "small",
    [
        {"block_features": 5},
        {"compiled_features": 1},
        {"compiled_features": 1, "threaded_features": 5},
    ],
    ids=["blocks", "loops", "blocks of loops"],
)
def test_blocks_and_compiled_loops_do_not_matter(
    sizes: list[int], variance: str, small: dict[str, int]
) -> None:
    """Constants and perfect separators in some blocks, none in others."""
    X, codes = sample(sizes, p=40)
    X[:, 3] = 0.1
    X[:, 17] = 5.0 * codes
    X[:, 18] = -2.0
    want = contrasts_of(X, codes, VARIANCES[variance].estimate)
    assert want.constant.nonzero()[0].tolist() == [3, 18]
    with override(**small):
        got = contrasts_of(X, codes, VARIANCES[variance].estimate)
    for name in ("z", "scale", "variance"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=1e-12, err_msg=name
        )
    np.testing.assert_array_equal(got.constant, want.constant)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("sizes", [[8, 9], [6, 8, 5]])
@pytest.mark.parametrize(
    "small", [{}, {"compiled_features": 1}], ids=["NumPy", "loops"]
)
def test_a_constant_does_not_change_its_block(
    sizes: list[int], variance: str, small: dict[str, int]
) -> None:
    """A block without constants is quickly done, one with a constant with care."""
    X, codes = sample(sizes, p=30)
    moments = class_moments(X, codes, len(sizes))
    estimate = VARIANCES[variance].estimate(moments)
    means, squares = moments.means.copy(), moments.centred_squares.copy()
    means[:, -1], squares[:, -1] = 0.1, 0.0
    with_constant = ClassMoments(moments.counts, means, squares)
    with override(**small):
        quick = class_contrasts(moments, estimate)
        careful = class_contrasts(with_constant, estimate)
    assert not quick.any_constant
    np.testing.assert_array_equal(careful.constant, np.arange(30) == 29)
    exact = {} if not small else {"rtol": 1e-12}
    for name in ("z", "scale", "variance"):
        got, want = (getattr(c, name)[..., :-1] for c in (careful, quick))
        np.testing.assert_allclose(got, want, **{"rtol": 0, "atol": 0, **exact})


def test_a_second_call_gives_the_same_bits() -> None:
    """Whatever the process has done: the choice of a kernel is one of size alone."""
    X, codes = sample([8, 9], p=50)
    moments = class_moments(X, codes, 2)
    first = class_contrasts(moments, moderated(moments))
    with override(compiled_features=1):
        class_contrasts(moments, moderated(moments))
    second = class_contrasts(moments, moderated(moments))
    for name in ("z", "scale", "variance", "constant"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_variance_factor_is_the_variance_of_a_contrast_over_that_of_the_rule() -> None:
    X, codes = sample([5, 6, 7])
    n = np.array([5, 6, 7])
    common = contrasts_of(X, codes, pooled).variance_factor
    np.testing.assert_allclose(common, (1 / n - 1 / n.sum())[:, None], rtol=1e-12)
    own = contrasts_of(X, codes, separate)
    assert own.variance_factor.shape == own.z.shape
    np.testing.assert_allclose(
        own.scale, np.sqrt(own.variance_factor * own.variance), rtol=1e-12
    )
