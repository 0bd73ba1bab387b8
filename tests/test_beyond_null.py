"""What lies beyond the bulk of the values: calls, their signs, and no signal at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ebda.moments import VARIANCES, class_contrasts, class_moments
from ebda.priors.null import Null, beyond_null, bulk_null
from ebda.priors.student import z_of_t
from ebda.rule.ranking import tail_average

DATA = Path(os.environ.get("EBDA_DATA", Path(__file__).parents[2] / "shared" / "data"))


def test_the_bulk_is_the_truncated_normal_distribution_of_most_likelihood() -> None:
    z = np.random.default_rng(0).standard_t(5, size=(1, 3000)) + 0.3
    null = bulk_null(z)
    loc, scale = float(np.ravel(null.loc)[0]), float(np.ravel(null.scale)[0])
    inside = z[np.abs(z - loc) < 1.75 * scale]

    def log_likelihood(m: float, s: float) -> float:
        ends = (loc + np.array([-1.75, 1.75]) * scale - m) / s
        mass = np.log(np.diff(stats.norm.cdf(ends))[0])
        return float(np.sum(stats.norm.logpdf(inside, m, s) - mass))

    best = log_likelihood(loc, scale)
    for m, s in [(0.02, 1), (-0.02, 1), (0, 1.02), (0, 0.98)]:
        assert log_likelihood(loc + m * scale, scale * s) < best


@pytest.mark.parametrize(("loc", "scale"), [(0.0, 1.0), (0.2, 1.3), (-0.5, 2.0)])
def test_the_bulk_is_recovered_in_spite_of_effects(loc: float, scale: float) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=20_000)
    z[:2000] += rng.normal(0, 6, 2000)
    null = bulk_null(loc + scale * z[None, :])
    assert np.ravel(null.loc)[0] == pytest.approx(loc, abs=0.05)
    assert np.ravel(null.scale)[0] == pytest.approx(scale, rel=0.05)


def test_the_bulk_moves_with_the_values_and_does_not_see_their_order() -> None:
    z = np.random.default_rng(2).normal(0, 1.5, size=(1, 500))
    one, two = bulk_null(z), bulk_null(-2 * z[:, ::-1] + 1)
    np.testing.assert_allclose(two.loc, 1 - 2 * np.asarray(one.loc), atol=1e-5)
    np.testing.assert_allclose(two.scale, 2 * np.asarray(one.scale), rtol=1e-5)
    again = bulk_null(z[:, ::-1].copy())
    np.testing.assert_array_equal(again.scale, one.scale)


def test_few_values_and_ties_have_the_null_of_theory() -> None:
    null = bulk_null(np.full((1, 99), 7.0))
    assert (null.loc, null.scale) == (0.0, 1.0)
    ties = np.zeros((1, 500))
    ties[0, :20] = 5.0
    null = bulk_null(ties)
    assert float(np.ravel(null.loc)[0]) == 0.0
    assert float(np.ravel(null.scale)[0]) == 1.0
    beyond = beyond_null(ties)
    assert np.flatnonzero(tail_average(beyond.lfsr) <= 0.05).tolist() == list(range(20))


def test_a_common_shift_makes_no_calls_but_effects_do() -> None:
    """An atom at 0.1 held the bulk, and 195,201 signs were called certain."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=200_000) + 0.1
    effect = rng.normal(0, 6, 10_000)
    z[:10_000] += effect
    beyond = beyond_null(z)
    called = tail_average(beyond.lfsr) <= 0.05
    assert 5500 < called.sum() < 7500  # a sure sign needs an effect of 2.5 or so
    truth = np.zeros(200_000)
    truth[:10_000] = np.sign(effect)
    side = np.sign(z - np.ravel(beyond.null.loc)[0])
    assert np.mean(side[called] != truth[called]) < 0.06


def test_one_row_has_its_own_null_whatever_is_beside_it() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=(2, 1000))
    z[1] = 2 * z[1] + 1
    both, alone = beyond_null(z), beyond_null(z[1])
    assert both.lfsr.shape == (2, 1000)
    np.testing.assert_array_equal(both.lfsr[1], alone.lfsr)
    np.testing.assert_array_equal(both.prob_zero[1], alone.prob_zero)


def test_the_null_of_theory_is_that_of_the_family() -> None:
    from ebda.priors import NormalMixture

    z = np.random.default_rng(4).normal(size=600) * np.repeat([1.0, 4.0], [500, 100])
    prior = NormalMixture(zero_count=9.0).fit(z).prior_
    beyond = beyond_null(z, null=Null())
    np.testing.assert_array_equal(beyond.lfsr, prior.posterior(z).lfsr)


def test_each_value_may_have_its_own_noise() -> None:
    rng = np.random.default_rng(5)
    scale = np.exp(rng.normal(0, 0.6, 4000))
    eta = np.where(rng.random(4000) < 0.1, rng.normal(0, 5, 4000), 0.0)
    x = eta + 1.2 * scale * rng.normal(size=4000) + 0.1 * scale
    beyond = beyond_null(x, scale)
    called = tail_average(beyond.lfsr) <= 0.05
    assert called.sum() > 80
    wrong = np.sign(x[called]) != np.sign(eta[called])
    assert wrong.mean() < 0.1


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data sets in {DATA}: set EBDA_DATA")
def test_permuted_labels_give_hardly_any_call() -> None:
    with_calls = fits = 0
    for path in sorted(DATA.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            X, y = file["X"].astype(np.float64), file["y"]
        classes, counts = np.unique(y, return_counts=True)
        kept = np.isin(y, classes[counts > 4])
        X, y = X[kept], y[kept]
        if np.abs(X).max() > 100:
            X = np.sign(X) * np.log1p(np.abs(X))
        for seed in range(3):
            codes = np.unique(y, return_inverse=True)[1]
            codes = np.random.default_rng(seed).permutation(codes)
            moments = class_moments(X, codes, codes.max() + 1)
            variance = VARIANCES["moderated"].estimate(moments)
            contrasts = class_contrasts(moments, variance)
            t = contrasts.z[:, ~contrasts.constant]
            for row in z_of_t(t, variance.degrees_of_freedom):
                calls = np.count_nonzero(tail_average(beyond_null(row).lfsr) <= 0.05)
                assert calls < 0.1 * len(row)
                with_calls += calls > 0
                fits += 1
    assert with_calls <= fits / 20
