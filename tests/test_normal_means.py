"""NormalMeans: denoising a sequence of estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import (
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
)

from ebda import NormalMeans, load, save
from ebda.datasets import make_normal_means
from ebda.priors import DiscretePrior, Unimodal, make_prior


@pytest.fixture(scope="module")
def sequence() -> tuple[np.ndarray, np.ndarray]:
    eta = np.repeat([0.0, 2.0, 10.0], [900, 90, 10])
    return eta + np.random.default_rng(0).normal(size=1000), eta


def test_the_example_of_the_authors_package(sequence: Any) -> None:
    x, eta = sequence
    means = NormalMeans().fit(x)
    limit = DiscretePrior([0, 2, 10], [0.9, 0.09, 0.01]).posterior(x).mean
    error = np.mean((means.posterior_mean_ - eta) ** 2)
    assert error < 1.15 * np.mean((limit - eta) ** 2)
    assert error < 0.4 * np.mean((x - eta) ** 2)


def test_a_given_prior_gives_its_posterior(sequence: Any) -> None:
    x, _ = sequence
    prior = DiscretePrior([0, 2, 10], [0.9, 0.09, 0.01])
    means, expected = NormalMeans(prior=prior).fit(x), prior.posterior(x)
    np.testing.assert_array_equal(means.posterior_mean_, expected.mean)
    np.testing.assert_array_equal(means.posterior_sd_, expected.sd)
    np.testing.assert_array_equal(means.prob_zero_, expected.prob_zero)
    np.testing.assert_array_equal(means.lfsr_, expected.lfsr)
    np.testing.assert_array_equal(means.interval(0.8), expected.interval(0.8))
    assert means.log_likelihood_ == pytest.approx(prior.logpdf(x).sum())


def test_one_scale_is_a_unit(sequence: Any) -> None:
    x, _ = sequence
    one, ten = NormalMeans().fit(x), NormalMeans().fit(10 * x, scale=10)
    np.testing.assert_allclose(
        ten.posterior_mean_, 10 * one.posterior_mean_, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(ten.lfsr_, one.lfsr_, atol=1e-12)


def test_a_scale_each_beats_a_common_one() -> None:
    rng = np.random.default_rng(1)
    eta = np.repeat([0.0, 3.0], [1600, 400])
    scale = rng.uniform(0.3, 3, 2000)
    x = eta + scale * rng.normal(size=2000)
    each = NormalMeans().fit(x, scale).posterior_mean_
    common = NormalMeans().fit(x, np.sqrt(np.mean(scale**2))).posterior_mean_
    assert np.mean((each - eta) ** 2) < 0.7 * np.mean((common - eta) ** 2)


def test_predict_on_the_data_is_the_posterior_mean(sequence: Any) -> None:
    x, _ = sequence
    means = NormalMeans().fit(x)
    np.testing.assert_array_equal(means.predict(x), means.posterior_mean_)
    assert means.predict(0.0, scale=2.0).shape == ()


def test_intervals_cover_as_often_as_they_say(sequence: Any) -> None:
    x, eta = sequence
    prior = DiscretePrior([0, 2, 10], [0.9, 0.09, 0.01])
    lower, upper = NormalMeans(prior=prior).fit(x).interval(0.9)
    assert np.mean((lower <= eta) & (eta <= upper)) >= 0.9


def test_false_sign_rate_is_what_it_says(sequence: Any) -> None:
    x, eta = sequence
    means = NormalMeans().fit(x)
    called = means.lfsr_ < 0.4
    wrong = np.sign(x[called]) != np.sign(eta[called])
    assert called.sum() >= 15
    assert wrong.mean() < 0.4


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="must be a vector"):
        NormalMeans().fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="infinity at position 1"):
        NormalMeans().fit([0.0, np.inf, np.nan])
    with pytest.raises(ValueError, match="NaN in every row"):
        NormalMeans().fit([np.nan, np.nan])
    with pytest.raises(ValueError, match="no values"):
        NormalMeans().fit([])
    with pytest.raises(ValueError, match="null must be one of"):
        NormalMeans(null="none").fit([0.0])
    with pytest.raises(ValueError, match="mode must be a finite number"):
        NormalMeans(mode="median").fit([0.0])
    with pytest.raises(ValueError, match="df must be positive; at position 1 it is 0"):
        NormalMeans().fit([0.0, 1.0], df=[3, 0])
    with pytest.raises(ValueError, match=r"df has shape \(3,\), which does not fit"):
        NormalMeans().fit([0.0, 1.0], df=[3, 2, 1])
    with pytest.raises(ValueError, match="scale must be positive"):
        NormalMeans().fit([0.0, 1.0], scale=[1.0, 0.0])
    with pytest.raises(NotFittedError):
        NormalMeans().predict([1.0])
    with pytest.raises(AttributeError, match="fit first"):
        _ = NormalMeans().posterior_mean_


def test_is_an_estimator(sequence: Any) -> None:
    """scikit-learn's general checks skip estimators of vectors; these apply."""
    check_parameters_default_constructible("NormalMeans", NormalMeans())
    check_no_attributes_set_in_init("NormalMeans", NormalMeans())
    x, _ = sequence
    means = NormalMeans(prior="dp", random_state=3).fit(x)
    copy = clone(means)
    assert not hasattr(copy, "posterior_mean_")
    assert copy.get_params() == means.get_params()
    assert NormalMeans().__sklearn_tags__().input_tags.one_d_array


# What is reported


def test_pure_noise_and_a_shift_are_not_called() -> None:
    """An atom at 0.1 held the bulk, and was sure of 195,201 signs of 200,000."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=20_000) + 0.1
    z[:1000] += rng.normal(0, 6, 1000)
    means = NormalMeans().fit(z)
    assert 500 < means.selected().sum() < 800
    assert means.selected()[1000:].sum() < 0.06 * means.selected().sum()
    assert means.null_loc_ == pytest.approx(0.1, abs=0.03)
    noise = NormalMeans().fit(z[1000:])
    assert not noise.selected().any()
    assert noise.prob_zero_.min() > 0.5


@pytest.mark.parametrize("prior", ["npmle", "dp", "kernel"])
def test_signs_are_honest_whatever_the_prior(prior: str) -> None:
    """Of npmle's own posterior 5 to 87 % were false at a stated 1 to 2 %."""
    called, wrong = 0, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        eta = np.where(rng.random(2000) < 0.1, rng.normal(0, 3, 2000), 0.0)
        x = eta + rng.normal(size=2000)
        for null in ("empirical", "point"):
            means = NormalMeans(prior, null=null).fit(x)
            chosen = means.selected()
            called += int(chosen.sum())
            wrong += int(np.sum(np.sign(x[chosen]) != np.sign(eta[chosen])))
    assert called > 200
    assert wrong < 0.07 * called


def test_intervals_cover_selected_rows() -> None:
    """Atoms covered 73 % of the selected rows at a nominal 95 %."""
    for design in ("sparse_normal", "dense_normal", "laplace", "t2", "asym", "hetero"):
        covered = []
        for seed in range(3):
            sim = make_normal_means(design, 2000, seed)
            means = NormalMeans("dp").fit(sim.x, sim.scale)
            lower, upper = means.interval()
            large = np.abs(sim.x / sim.scale) > 2
            covered.append(((lower <= sim.eta) & (sim.eta <= upper))[large])
        assert 0.93 < np.concatenate(covered).mean() < 0.985, design


@pytest.mark.slow
def test_no_family_is_much_better_than_the_default() -> None:
    for design in ("points", "dense_normal", "t2", "asym"):
        errors: dict[str, float] = {}
        for seed in range(3):
            sim = make_normal_means(design, 2000, seed)
            for prior in ("stacked", "dp", "normal_mixture", "unimodal"):
                family = make_prior(prior).fit(sim.x, sim.scale)
                mean = family.prior_.posterior(sim.x, sim.scale).mean
                error = float(np.mean((mean - sim.eta) ** 2))
                errors[prior] = errors.get(prior, 0.0) + error
        assert errors["stacked"] < 1.03 * min(errors.values()), design


def test_a_point_null_is_that_of_ashr() -> None:
    x = make_normal_means("laplace", 500, 0).x
    prior = Unimodal()
    means = NormalMeans(prior, null="point").fit(x)
    posterior = prior.fit(x).prior_.posterior(x)
    np.testing.assert_array_equal(means.lfsr_, posterior.lfsr)
    np.testing.assert_array_equal(means.prob_zero_, posterior.prob_zero)
    np.testing.assert_array_equal(means.interval(), posterior.interval())
    order = np.argsort(means.lfsr_)
    s = np.cumsum(means.lfsr_[order]) / np.arange(1, 501)
    np.testing.assert_allclose(means.s_value_[order], s, rtol=1e-9)
    ordered = np.sort(means.q_value_), np.sort(means.s_value_)
    assert (ordered[0] <= ordered[1] + 1e-12).all()


def test_the_table_has_every_row_and_nan_where_there_is_nothing() -> None:
    x = make_normal_means("sparse_normal", 300, 0).x
    gaps = np.insert(x, [5, 100], np.nan)
    scale = np.ones(302)
    scale[50] = np.nan
    means = NormalMeans().fit(gaps, scale)
    table = means.to_frame(level=0.9, index=np.arange(302) + 1)
    assert table.shape == (302, 10)
    assert table.index[0] == 1
    empty = table["posterior_mean"].isna().to_numpy()
    assert np.flatnonzero(empty).tolist() == [5, 50, 101]
    results = table.drop(columns=["estimate", "scale"])
    assert results[empty].isna().all(axis=None)
    assert not results[~empty].isna().any(axis=None)
    there = ~empty
    alone = NormalMeans().fit(gaps[there]).to_frame(level=0.9)
    np.testing.assert_array_equal(results[there], alone[results.columns])
    assert not means.selected()[empty].any()


def test_degrees_of_freedom_are_taken_into_account() -> None:
    """Read as z, a third of the calls were false with 5 + 5 samples."""
    shares = {}
    for df in (None, 8.0):
        called = wrong = 0
        for seed in range(4):
            rng = np.random.default_rng(seed)
            eta = np.where(rng.random(4000) < 0.1, rng.normal(0, 3, 4000), 0.0)
            scale = np.sqrt(rng.chisquare(8, 4000) / 8)
            x = eta + rng.normal(size=4000)
            means = NormalMeans("normal_mixture").fit(x, scale, df=df)
            chosen = means.selected()
            called += int(chosen.sum())
            wrong += int(np.sum(np.sign(x[chosen]) != np.sign(eta[chosen])))
        shares[df] = wrong / called
    assert shares[None] > 0.2
    assert shares[8.0] < 0.06


def test_infinite_degrees_of_freedom_change_nothing() -> None:
    x = make_normal_means("laplace", 300, 1).x
    plain, infinite = NormalMeans().fit(x, 2.0), NormalMeans().fit(x, 2.0, df=np.inf)
    np.testing.assert_allclose(infinite.posterior_mean_, plain.posterior_mean_)
    np.testing.assert_allclose(infinite.interval(), plain.interval())


def test_the_mode_can_be_given_or_estimated() -> None:
    sim = make_normal_means("laplace", 2000, 0)
    plain = NormalMeans("normal_mixture").fit(sim.x)
    moved = NormalMeans("normal_mixture", mode=3.0).fit(sim.x + 3)
    np.testing.assert_allclose(moved.posterior_mean_, plain.posterior_mean_ + 3)
    np.testing.assert_allclose(moved.interval()[0], plain.interval()[0] + 3)
    np.testing.assert_allclose(moved.lfsr_, plain.lfsr_, atol=1e-12)
    np.testing.assert_allclose(moved.predict(sim.x + 3), moved.posterior_mean_)
    found = NormalMeans("normal_mixture", mode="estimate").fit(sim.x + 3)
    assert found.mode_ == pytest.approx(3.0, abs=0.05)
    error = np.mean((found.posterior_mean_ - sim.eta - 3) ** 2)
    assert error < 1.03 * np.mean((plain.posterior_mean_ - sim.eta) ** 2)


def test_files_keep_what_is_reported(tmp_path: Path) -> None:
    x = np.append(make_normal_means("points", 300, 0).x, np.nan)
    means = NormalMeans(mode=0.5).fit(x, df=9)
    save(means, tmp_path / "means.ebda")
    again = load(tmp_path / "means.ebda")
    pd.testing.assert_frame_equal(again.to_frame(), means.to_frame())
    assert again.null_loc_ == means.null_loc_


def test_standard_errors_are_estimated_about_the_mode() -> None:
    rng = np.random.default_rng(4)
    x = 5 + 0.1 * rng.standard_t(4, size=150)
    x[:30] += rng.normal(size=30)
    moved = NormalMeans(mode=5.0).fit(x, 0.1, 4)
    plain = NormalMeans().fit(x - 5.0, 0.1, 4)
    np.testing.assert_allclose(moved.scale_, plain.scale_, rtol=1e-9)
    estimated = NormalMeans(mode="estimate").fit(x, 0.1, 4)
    assert abs(estimated.mode_ - 5) < 0.1
    assert np.median(estimated.scale_) < 0.2
