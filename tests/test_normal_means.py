"""NormalMeans: denoising a sequence of estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import (
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
)

from ebda import NormalMeans
from ebda.priors import DiscretePrior


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
    wrong = np.sign(means.posterior_mean_[called]) != np.sign(eta[called])
    assert called.sum() > 20
    assert wrong.mean() < 0.4


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="must be a vector"):
        NormalMeans().fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN at position 1"):
        NormalMeans().fit([0.0, np.nan])
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
