"""Scale mixtures of normal distributions: optimality, known cases, quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ebda.priors import NormalMixture, NormalMixturePrior, PointNormalPrior
from ebda.sizes import override

PRIOR = NormalMixturePrior([0.0, 0.5, 3.0, 1.0], [0.6, 0.1, 0.2, 0.1], [0, 0, 0, 2.0])


def draw(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=n) + (rng.random(n) < 0.2) * rng.laplace(0, 2, n))


# Against an independent reference


def test_agrees_with_a_general_solver() -> None:
    z, scale = draw(60), np.linspace(0.5, 2, 60)
    sds = np.array([0.0, 0.7, 1.5, 3.0, 6.0])
    likelihood = stats.norm.pdf(z[:, None], 0, np.hypot(scale[:, None], sds))
    reference = minimize(
        lambda w: -np.mean(np.log(likelihood @ w)),
        np.full(5, 0.2),
        jac=lambda w: -np.mean(likelihood / (likelihood @ w)[:, None], axis=0),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    found = NormalMixture(sds=sds[1:], tol=1e-11).fit(z, scale)
    assert found.log_likelihood_ / 60 == pytest.approx(-reference.fun, abs=1e-8)


@pytest.mark.parametrize("z", [-4.0, 0.3, 9.0])
def test_the_posterior_is_that_of_numerical_integration(z: float) -> None:
    scale, atom = 0.8, 0.6 * stats.norm.pdf(z, 0, 0.8)

    def density(eta: float) -> float:
        slab = 0.1 * stats.norm.pdf(eta, 0, 0.5) + 0.2 * stats.norm.pdf(eta, 0, 3)
        slab += 0.1 * stats.norm.pdf(eta, 2, 1)
        return float(slab * stats.norm.pdf(z, eta, scale))

    def mass(low: float, high: float, power: int = 0) -> float:
        points = [p for p in (-1.0, 0.0, 1.0, z) if low < p < high]
        return quad(
            lambda eta: eta**power * density(eta), low, high, points=points, limit=200
        )[0]

    total = atom + mass(-25, 25)
    mean = mass(-25, 25, 1) / total
    posterior = PRIOR.posterior(z, scale)
    assert PRIOR.logpdf(z, scale) == pytest.approx(np.log(total), abs=1e-7)
    assert posterior.mean == pytest.approx(mean, abs=1e-6)
    second = mass(-25, 25, 2) / total
    assert posterior.sd == pytest.approx(np.sqrt(second - mean**2), abs=1e-6)
    assert posterior.prob_zero == pytest.approx(atom / total, abs=1e-7)
    sides = np.array([mass(-25, 0), mass(0, 25)]) / total
    assert posterior.lfsr == pytest.approx(atom / total + sides.min(), abs=1e-7)

    def below(t: float) -> float:
        return (mass(-25, t) + atom * (t >= 0)) / total

    for end, tail in zip(posterior.interval(0.8), (0.1, 0.9), strict=True):
        if end == 0:  # the quantile is the atom
            assert below(-1e-9) <= tail <= below(0.0)
        else:
            assert below(float(end)) == pytest.approx(tail, abs=1e-7)


# Optimality


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("equal", [True, False])
def test_the_gap_certifies_the_maximum(n: int, equal: bool) -> None:
    z = draw(n)
    scale = np.ones(n) if equal else np.exp(np.random.default_rng(1).normal(0, 1, n))
    found = NormalMixture().fit(z, scale)
    assert found.converged_
    assert found.duality_gap_ <= 1e-8
    density = np.exp(found.prior_.logpdf(z, scale))
    ratio = [
        np.mean(stats.norm.pdf(z, 0, np.hypot(scale, sd)) / density)
        for sd in np.append(0, np.geomspace(0.1, 20, 40))
    ]
    # Between the points of the grid, and of values that were grouped.
    assert max(ratio) - 1 < 2e-3


def test_a_pseudo_count_is_that_many_zeros() -> None:
    z = draw(400)
    plain, biased = NormalMixture().fit(z), NormalMixture(zero_count=9.0).fit(z)
    assert biased.prior_.pi0 > plain.prior_.pi0
    assert biased.log_likelihood_ < plain.log_likelihood_
    objective = [
        fit.log_likelihood_ + 9 * np.log(fit.prior_.pi0) for fit in (plain, biased)
    ]
    assert objective[1] > objective[0]


def test_no_steps_are_a_warning() -> None:
    with pytest.warns(ConvergenceWarning, match="duality gap is .* after 1 Newton"):
        NormalMixture(max_iter=1).fit(draw(500))


# Degenerate cases


def test_one_component_is_the_point_normal() -> None:
    z, scale = np.linspace(-5, 5, 41), np.linspace(0.5, 2, 41)
    prior = NormalMixturePrior([0.0, 2.0], [0.7, 0.3])
    one, two = prior.posterior(z, scale), PointNormalPrior(0.7, 2.0).posterior(z, scale)
    for name in ("mean", "sd", "prob_zero", "lfsr"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-10)
    np.testing.assert_allclose(one.interval(0.9), two.interval(0.9), atol=1e-7)
    assert prior.pi0 == 0.7
    assert prior.slab_sd == 2.0


def test_one_scale_is_a_unit() -> None:
    z = draw(500)
    one, ten = NormalMixture().fit(z), NormalMixture().fit(10 * z, 10.0)
    np.testing.assert_allclose(10 * one.prior_.sds, ten.prior_.sds, rtol=1e-9)
    np.testing.assert_allclose(one.prior_.weights, ten.prior_.weights, atol=1e-9)


def test_blocks_do_not_change_a_result() -> None:
    z = draw(300)
    whole = PRIOR.posterior(z)
    with override(posterior_elements=64):
        parts = PRIOR.posterior(z)
        np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-14, atol=1e-16)
        ends = parts.interval(0.9)
    np.testing.assert_array_equal(ends, whole.interval(0.9))


def test_the_ends_are_never_off_the_atom() -> None:
    prior = NormalMixturePrior([0.0, 1.0], [0.999, 0.001])
    lower, upper = prior.posterior(np.zeros(3)).interval(0.95)
    assert not lower.any()
    assert not upper.any()


# A known truth


def test_the_prior_is_recovered() -> None:
    rng = np.random.default_rng(0)
    eta = rng.standard_t(3, 20_000)
    prior = NormalMixture().fit(eta + rng.normal(size=20_000)).prior_
    grid = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(
        (1 - prior.pi0) * prior.slab_density(grid), stats.t.pdf(grid, 3), atol=0.05
    )


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="zero_count must be zero or more"):
        NormalMixture(zero_count=-1).fit([1.0])
    with pytest.raises(ValueError, match="sds must be finite and positive"):
        NormalMixture(sds=[0.0]).fit([1.0])
    for arguments in (([1, 2], [1]), ([-1], [1]), ([1], [0]), ([1], [1], [np.inf])):
        with pytest.raises(ValueError, match="must be"):
            NormalMixturePrior(*arguments)
