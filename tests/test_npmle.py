"""NPMLE: its optimality conditions, an independent solver, and known truths."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ebda import EBClassifier
from ebda.datasets import load_golub
from ebda.priors import NPMLE, DirichletProcess, DiscretePrior
from ebda.priors.kiefer_wolfowitz import occupied_grid


def mixture(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    eta = np.repeat([0.0, 4.0, -3.0], [n - 2 * (n // 10), n // 10, n // 10])
    return np.asarray(eta + rng.normal(size=n))


def directional(
    prior: DiscretePrior, z: np.ndarray, scale: np.ndarray | float, at: np.ndarray
) -> np.ndarray:
    """D(a), straight from its definition."""
    density = np.exp(prior.logpdf(z, scale))
    return np.array([np.mean(stats.norm.pdf(z, a, scale) / density) for a in at])


# Against an independent reference


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=30) + rng.choice([0, 3], 30)
    grid = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    likelihood = stats.norm.pdf(z[:, None], grid)
    reference = minimize(
        lambda w: -np.mean(np.log(likelihood @ w)),
        np.full(7, 1 / 7),
        jac=lambda w: -np.mean(likelihood / (likelihood @ w)[:, None], axis=0),
        bounds=[(0, 1)] * 7,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    npmle = NPMLE(grid=grid, tol=1e-11).fit(z)
    assert npmle.log_likelihood_ / 30 == pytest.approx(-reference.fun, abs=1e-9)
    assert npmle.log_likelihood_ / 30 >= -reference.fun - 1e-11
    weights = dict(zip(npmle.prior_.atoms, npmle.prior_.weights, strict=True))
    found = [weights.get(a, 0.0) for a in grid]
    np.testing.assert_allclose(found, reference.x, atol=1e-4)


@pytest.mark.slow
def test_is_what_the_em_of_jiang_and_zhang_comes_to() -> None:
    """On their grid, from equal weights; after many steps, for EM is slow."""
    z = mixture(200)
    grid = np.linspace(z.min(), z.max(), 60)
    likelihood = stats.norm.pdf(z[:, None], grid)
    weights = np.full(60, 1 / 60)
    for _ in range(30_000):
        weights *= (likelihood / (likelihood @ weights)[:, None]).mean(axis=0)
    joint = likelihood * weights
    means = joint @ grid / joint.sum(axis=1)
    found = NPMLE(grid=grid).fit(z).prior_.posterior(z).mean
    np.testing.assert_allclose(found, means, atol=2e-3)


@pytest.mark.parametrize("n", [200, 8000])
@pytest.mark.parametrize("equal", [True, False])
def test_meets_the_optimality_conditions_on_the_values(n: int, equal: bool) -> None:
    """Also above the size from which values are grouped to begin with."""
    z = mixture(n)
    scale = 1.0 if equal else np.random.default_rng(1).uniform(0.5, 2, n)
    npmle = NPMLE().fit(z, scale)
    d = directional(npmle.prior_, z, scale, npmle.grid_)
    assert d.max() - 1 == pytest.approx(npmle.duality_gap_, abs=1e-11)
    assert npmle.duality_gap_ <= 1e-8
    assert npmle.converged_
    at_atoms = directional(npmle.prior_, z, scale, npmle.prior_.atoms)
    assert npmle.prior_.weights @ at_atoms == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(at_atoms, 1, atol=1e-5)
    log_density = npmle.prior_.logpdf(z, scale)
    assert npmle.log_likelihood_ == pytest.approx(log_density.sum())


@pytest.mark.parametrize("seed", [0, 2, 13, 15])
def test_unequal_scales_do_not_stall_the_search(seed: int) -> None:
    """The duality gap of these stayed above 0.4, hundreds of nats too low."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.normal(0, 1, 2000))
    eta = np.where(rng.random(2000) < 0.2, rng.normal(0, 5, 2000), 0.0)
    npmle = NPMLE().fit(eta + scale * rng.normal(size=2000), scale)
    assert npmle.duality_gap_ <= 1e-8


def test_the_gap_bounds_what_is_lost() -> None:
    z = mixture(500)
    best = NPMLE(tol=1e-12).fit(z)
    rough = NPMLE(tol=1e-2).fit(z)
    lost = (best.log_likelihood_ - rough.log_likelihood_) / 500
    assert -1e-12 <= lost <= rough.duality_gap_ <= 1e-2


def test_no_other_prior_on_the_grid_is_likelier() -> None:
    z = mixture(3000)
    npmle = NPMLE().fit(z)
    rng = np.random.default_rng(2)
    for _ in range(20):
        atoms = rng.choice(npmle.grid_, 8)
        other = DiscretePrior(atoms, rng.dirichlet(np.ones(8)))
        assert other.logpdf(z).sum() < npmle.log_likelihood_
    dp = DirichletProcess().fit(z).prior_
    assert dp.logpdf(z).sum() < npmle.log_likelihood_ + 0.1


def test_fitted_values_have_the_mean_of_the_data() -> None:
    """At the maximum the posterior weights average to the weights of G."""
    z = mixture(2000)
    npmle = NPMLE(tol=1e-12).fit(z)
    mean = npmle.prior_.posterior(z).mean.mean()
    assert mean == pytest.approx(npmle.prior_.atoms @ npmle.prior_.weights, abs=1e-6)


# Degenerate cases


@pytest.mark.parametrize("value", [0.0, 2.5, -1e6, 1e90])
def test_equal_values_are_one_atom(value: float) -> None:
    for values in ([value], [value] * 50):
        npmle = NPMLE().fit(values)
        assert npmle.prior_ == DiscretePrior([value], [1.0])
        assert npmle.converged_


def test_two_values_far_apart_are_two_atoms() -> None:
    prior = NPMLE().fit([-20.0, 20.0]).prior_
    np.testing.assert_allclose(prior.atoms, [-20, 20], atol=1e-9)
    np.testing.assert_allclose(prior.weights, 0.5, atol=1e-9)


def test_a_grid_of_one_point_is_that_point() -> None:
    assert NPMLE(grid=[0.0]).fit(mixture(100)).prior_ == DiscretePrior([0.0], [1.0])
    far = NPMLE(grid=[1e4]).fit(mixture(100))
    assert far.prior_ == DiscretePrior([1e4], [1.0])
    assert far.duality_gap_ == pytest.approx(0, abs=1e-12)


def test_null_values_are_shrunk_to_nothing() -> None:
    z = np.random.default_rng(3).normal(size=5000)
    assert np.mean(NPMLE().fit(z).prior_.posterior(z).mean ** 2) < 0.01


def test_one_wild_value_spoils_nothing() -> None:
    z = mixture(6000)
    outlier = NPMLE().fit(np.append(z, 1e6))
    assert outlier.converged_
    assert outlier.prior_.atoms[-1] == pytest.approx(1e6)
    at = np.linspace(-4, 5, 50)
    clean = NPMLE().fit(z).prior_.posterior(at).mean
    np.testing.assert_allclose(outlier.prior_.posterior(at).mean, clean, atol=0.02)


def test_far_values_within_one_cell_are_all_covered() -> None:
    z = np.append(mixture(6000), [1e6, 1e6 + 300, 1e6 + 600])
    npmle = NPMLE().fit(z)
    assert npmle.converged_
    assert np.isfinite(npmle.log_likelihood_)


@pytest.mark.slow
def test_heavy_tails_converge() -> None:
    z = np.random.default_rng(4).standard_cauchy(6000) * 3
    assert NPMLE().fit(z).duality_gap_ <= 1e-8


@given(st.lists(st.floats(-1e8, 1e8), min_size=1, max_size=30), st.integers(3, 40))
def test_any_values_converge(values: list[float], n_grid: int) -> None:
    npmle = NPMLE(n_grid=n_grid).fit(values)
    assert npmle.duality_gap_ <= 1e-8
    assert 0.0 in npmle.grid_


# Recovery


def test_recovers_separate_atoms() -> None:
    truth = DiscretePrior([-6.0, 0.0, 6.0], [0.1, 0.7, 0.2])
    rng = np.random.default_rng(5)
    z = rng.choice(truth.atoms, 50_000, p=truth.weights) + rng.normal(size=50_000)
    prior = NPMLE(grid=np.arange(-10, 11, 2)).fit(z).prior_
    for atom, weight in zip(truth.atoms, truth.weights, strict=True):
        assert prior.weights[prior.atoms == atom] == pytest.approx(weight, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("equal", [True, False])
def test_posterior_means_come_near_the_oracle(equal: bool) -> None:
    rng = np.random.default_rng(6)
    n = 20_000
    eta = rng.normal(size=n) * 2 + 1
    scale = np.ones(n) if equal else rng.uniform(0.5, 2, n)
    z = eta + scale * rng.normal(size=n)
    mean = NPMLE().fit(z, scale).prior_.posterior(z, scale).mean
    oracle = 1 + (z - 1) * 4 / (4 + scale**2)
    assert np.mean((mean - eta) ** 2) < 1.01 * np.mean((oracle - eta) ** 2)


# Equivariance


@pytest.mark.slow
def test_order_changes_no_bit() -> None:
    z, scale = mixture(6000), np.random.default_rng(7).uniform(0.5, 2, 6000)
    order = np.random.default_rng(8).permutation(6000)
    a, b = NPMLE().fit(z, scale), NPMLE().fit(z[order], scale[order])
    assert a.prior_ == b.prior_
    assert a.log_likelihood_ == b.log_likelihood_


@pytest.mark.parametrize("factor", [1e-6, 3.7, 1e12])
def test_units_do_not_matter(factor: float) -> None:
    z, scale = mixture(1000), np.random.default_rng(9).uniform(0.5, 2, 1000)
    a, b = NPMLE().fit(z, scale), NPMLE().fit(factor * z, factor * scale)
    np.testing.assert_allclose(b.grid_, factor * a.grid_, rtol=1e-9)
    np.testing.assert_allclose(
        b.prior_.posterior(factor * z, factor * scale).mean,
        factor * a.prior_.posterior(z, scale).mean,
        atol=1e-3 * factor,
    )
    assert b.log_likelihood_ == pytest.approx(
        a.log_likelihood_ - 1000 * np.log(factor), rel=1e-7
    )


def test_signs_do_not_matter() -> None:
    z = mixture(1000)
    a, b = NPMLE().fit(z), NPMLE().fit(-z)
    np.testing.assert_allclose(b.grid_, -a.grid_[::-1], atol=1e-12)
    np.testing.assert_allclose(
        b.prior_.posterior(-z).mean, -a.prior_.posterior(z).mean, atol=1e-3
    )


def test_grid_covers_the_data_with_zero_on_it() -> None:
    z = mixture(1000)
    grid = occupied_grid(z, np.ones(1000), 300)
    assert 299 <= len(grid) <= 302
    assert 0 in grid
    assert (grid[0], grid[-1]) == (z.min(), z.max())
    assert np.diff(grid).max() < 1.5 * np.ptp(z) / 299
    assert 0 in occupied_grid(z + 100, np.ones(1000), 300)


# The estimator


@pytest.mark.slow
def test_large_p_is_quick() -> None:
    z = mixture(100_000)
    start = time.perf_counter()
    npmle = NPMLE().fit(z)
    assert time.perf_counter() - start < 10
    assert npmle.duality_gap_ <= 1e-8


def test_says_when_it_has_not_converged() -> None:
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        npmle = NPMLE(max_iter=1).fit(mixture(500))
    assert not npmle.converged_
    assert npmle.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        NPMLE(tol=1e-300).fit(mixture(500))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_grid": 2}, "n_grid must be"),
        ({"n_grid": 10.5}, "n_grid must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"grid": []}, "grid must hold"),
        ({"grid": [0.0, np.nan]}, "grid must hold"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NPMLE(**parameters).fit([0.0, 1.0])


def test_classifies_golub() -> None:
    golub = load_golub()
    train = golub.split == "train"
    classifier = EBClassifier(prior="npmle", shrinkage="mean", covariance="diagonal")
    classifier.fit(golub.data[train], golub.target[train])
    assert classifier.prior_estimator_.converged_
    assert classifier.score(golub.data[~train], golub.target[~train]) > 0.85
