"""What every prior family must do, for each name of the registry."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ebda import EBClassifier, NormalMeans
from ebda.priors import PRIORS, DiscretePrior, FixedPrior, Kernel, make_prior

FAMILIES = sorted(PRIORS)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Any:
    if request.param == "fixed":
        return FixedPrior(DiscretePrior([-3.0, 0.0, 4.0], [0.05, 0.9, 0.05]))
    return make_prior(request.param, random_state=0)


@pytest.fixture(scope="module")
def z() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=1500) + np.repeat([0.0, 4.0, -3.0], [1350, 75, 75])


def test_fit_returns_itself_and_sets_the_prior(family: Any, z: np.ndarray) -> None:
    assert family.fit(z) is family
    assert callable(family.prior_.posterior)
    assert callable(family.prior_.logpdf)


def test_parameters_are_only_stored(family: Any, z: np.ndarray) -> None:
    before = family.get_params()
    copy = clone(family)
    family.fit(z)
    assert family.get_params().keys() == before.keys()
    assert all(family.get_params()[key] is before[key] for key in before)
    assert not hasattr(copy, "prior_")


def test_fit_is_deterministic_and_can_be_repeated(family: Any, z: np.ndarray) -> None:
    first = family.fit(z).prior_.posterior(z).mean
    np.testing.assert_array_equal(first, family.fit(z).prior_.posterior(z).mean)
    np.testing.assert_array_equal(first, clone(family).fit(z).prior_.posterior(z).mean)


def test_posterior_summaries_are_consistent(family: Any, z: np.ndarray) -> None:
    posterior = family.fit(z).prior_.posterior(z)
    for name in ("mean", "prob_zero", "sd", "lfsr"):
        values = getattr(posterior, name)
        assert values.shape == z.shape
        assert np.isfinite(values).all()
    assert ((posterior.prob_zero >= 0) & (posterior.prob_zero <= 1)).all()
    assert (posterior.sd >= 0).all()
    assert ((posterior.lfsr >= 0) & (posterior.lfsr <= 1)).all()
    assert (posterior.lfsr >= posterior.prob_zero - 1e-12).all()
    lower, upper = posterior.interval(0.9)
    assert (lower <= upper).all()
    wide_lower, wide_upper = posterior.interval(0.99)
    assert (wide_lower <= lower).all()
    assert (wide_upper >= upper).all()


def test_posterior_mean_rises_with_z(family: Any, z: np.ndarray) -> None:
    if isinstance(family, Kernel):
        pytest.skip("a kernel estimate of the density need not be that of any prior")
    grid = np.linspace(-8, 8, 801)
    mean = family.fit(z).prior_.posterior(grid).mean
    assert (np.diff(mean) >= -1e-9).all()


def test_posterior_mean_obeys_tweedie(family: Any, z: np.ndarray) -> None:
    """E(eta | z) = z + d/dz log f(z) for every prior, with unit noise."""
    prior = family.fit(z).prior_
    grid, step = np.linspace(-5, 6, 111), 1e-5
    slope = (prior.logpdf(grid + step) - prior.logpdf(grid - step)) / (2 * step)
    np.testing.assert_allclose(prior.posterior(grid).mean, grid + slope, atol=1e-5)


@pytest.mark.slow
def test_marginal_density_integrates_to_one(family: Any, z: np.ndarray) -> None:
    # Wide enough for a slab with exponential tails.
    grid = np.linspace(-150, 150, 60_001)
    density = np.exp(family.fit(z).prior_.logpdf(grid))
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-6)


def test_extreme_values_stay_finite(family: Any, z: np.ndarray) -> None:
    posterior = family.fit(z).prior_.posterior(np.array([-1e6, 1e6]))
    assert np.isfinite(posterior.mean).all()
    assert np.isfinite(posterior.sd).all()
    assert (posterior.prob_zero == 0).all()


def test_shrinks_the_error_below_that_of_the_data(family: Any, z: np.ndarray) -> None:
    eta = np.repeat([0.0, 4.0, -3.0], [1350, 75, 75])
    mean = family.fit(z).prior_.posterior(z).mean
    assert np.mean((mean - eta) ** 2) < 0.5 * np.mean((z - eta) ** 2)


def test_takes_a_scale_for_each_value(family: Any, z: np.ndarray) -> None:
    scale = np.linspace(0.5, 2, len(z))
    posterior = family.fit(z, scale).prior_.posterior(z, scale)
    assert np.isfinite(posterior.mean).all()


def test_shape_of_the_values_does_not_matter(family: Any, z: np.ndarray) -> None:
    flat = family.fit(z).prior_.posterior(1.5).mean
    assert flat == family.fit(z.reshape(3, -1)).prior_.posterior(1.5).mean


def test_survives_pickle(family: Any, z: np.ndarray) -> None:
    family.fit(z)
    copy = pickle.loads(pickle.dumps(family))
    np.testing.assert_array_equal(
        copy.prior_.posterior(z).mean, family.prior_.posterior(z).mean
    )


def test_works_in_the_estimators(family: Any, z: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 50))
    X[10:, :10] += 3
    y = np.repeat([0, 1], 10)
    assert EBClassifier(prior=family).fit(X, y).score(X, y) == 1
    assert np.isfinite(NormalMeans(prior=family).fit(z).posterior_mean_).all()


@pytest.mark.parametrize(
    ("values", "scale", "message"),
    [
        ([], 1.0, "no values"),
        ([0.0, np.nan], 1.0, "NaN at position 1"),
        ([0.0, np.inf, np.nan], 1.0, "infinity at position 1 and 1 more"),
        ([0.0, 1.0], 0.0, "scale must be positive"),
        ([0.0, 1.0], [1.0, -1.0], "scale must be positive and finite; at position 1"),
        ([0.0, 1e200], 1.0, "position 1 lies more than 1e\\+100 standard errors"),
        ([0.0, 0.0], [1e-200, 1.0], "scales differ"),
        ([0.0, 1.0], [1.0, 1.0, 1.0], "does not fit"),
    ],
)
def test_bad_values_are_named(
    family: Any, values: list[float], scale: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        family.fit(values, scale)


# The registry


def test_names_estimators_and_priors_all_make_a_prior() -> None:
    given = DiscretePrior([0, 2], [0.5, 0.5])
    assert make_prior(given).fit([1.0]).prior_ is given
    named = make_prior("dp", n_jobs=2, random_state=1, unknown=3)
    assert named.get_params()["n_jobs"] == 2
    estimator = PRIORS["dp"](alpha=2.0)
    assert make_prior(estimator) is not estimator
    assert make_prior(estimator).get_params() == estimator.get_params()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="prior must be one of"):
        make_prior("gauss")
    with pytest.raises(TypeError, match="posterior"):
        make_prior(3).fit([1.0])


def test_fixed_needs_its_prior() -> None:
    with pytest.raises(TypeError, match="must be given"):
        FixedPrior().fit([1.0])
    with pytest.raises(TypeError, match="must be given"):
        EBClassifier(prior="fixed").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
