"""Nonparametric priors of differences and variances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ebda.baselines import DickerZhao, IndependenceRule, MeanVarianceAdaptive
from ebda.baselines.mixture_weights import mixture_weights
from ebda.datasets import load_khan, make_two_class
from ebda.priors import NPMLE


def oh_and_park(
    share: float, sparse_means: bool, base: float, other: float, seed: int
) -> tuple[Any, Any, Any, Any]:
    """Training and test samples of their design, as their scripts draw it.

    A hundred features differ by 1, and the others not at all or by N(0, 0.01). The
    first features, `share` of all, have variance `base`, and the others `other`.
    """
    rng = np.random.default_rng(seed)
    p, n = 2000, 25
    means = np.zeros((2, p))
    means[0, :100] = 1
    if not sparse_means:
        means[0, 100:] = rng.normal(scale=0.1, size=p - 100)
    sd = np.sqrt(np.where(np.arange(p) < share * p, base, other))
    y, labels = np.repeat([0, 1], n), np.repeat([0, 1], 200)
    X = means[y] + rng.normal(size=(2 * n, p)) * sd
    return X, y, means[labels] + rng.normal(size=(400, p)) * sd, labels


def mixed(n: int, p: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(2 * n) % 2
    sd = rng.choice([0.5, 1.0, 2.0], p)
    X = rng.normal(size=(2 * n, p)) * sd
    X[:, : p // 5] += np.outer(y, np.ones(p // 5))
    return X + 10, y


# Weights of a mixture


@pytest.mark.parametrize("seed", range(3))
def test_weights_agree_with_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    L = rng.gamma(0.5, size=(40, 6))
    found = mixture_weights(np.log(L) + rng.normal(size=(40, 1)), (2, 3), 1e-11, 100)
    reference = minimize(
        lambda w: -np.mean(np.log(L @ w)),
        np.full(6, 1 / 6),
        jac=lambda w: -np.mean(L / (L @ w)[:, None], axis=0),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    np.testing.assert_allclose(found.weights, reference.x, atol=1e-4)
    assert np.mean(np.log(L @ found.weights)) >= -reference.fun - 1e-11


def test_weights_are_those_of_the_prior_of_one_dimension() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=600) + np.repeat([0.0, 4.0], [500, 100])
    grid = np.linspace(-3, 7, 101)
    theirs = NPMLE(grid=grid).fit(z)
    found = mixture_weights(stats.norm.logpdf(z[:, None], grid), (101,), 1e-9, 100)
    assert found.gap <= 1e-9
    L = stats.norm.pdf(z[:, None], grid)
    assert np.log(L @ found.weights).sum() == pytest.approx(
        theirs.log_likelihood_, abs=1e-5
    )
    d = (L / (L @ found.weights)[:, None]).mean(axis=0)
    assert d.max() - 1 == pytest.approx(found.gap, abs=1e-10)


# The estimator


@pytest.mark.parametrize("joint", [False, True])
def test_the_priors_meet_the_optimality_conditions(joint: bool) -> None:
    """D(u, v) is at most 1 on the grid, straight from the densities."""
    X, y = mixed(10, 300)
    model = MeanVarianceAdaptive(joint, n_means=25, n_variances=12, tol=1e-9).fit(X, y)
    assert model.duality_gap_ <= 1e-9
    means = np.array([X[y == k].mean(axis=0) for k in (0, 1)])
    difference = means[1] - means[0]
    variance = ((X - means[y]) ** 2).sum(axis=0) / 18
    u = np.union1d(np.linspace(difference.min(), difference.max(), 25), 0.0)
    v = np.geomspace(variance.min(), variance.max(), 12)
    chi2 = stats.chi2.pdf(variance[:, None] * 18 / v, 18) * 18 / v
    normal = stats.norm.pdf(
        difference[:, None, None], u[:, None], np.sqrt(0.2 * v)
    )  # features x means x variances
    if joint:
        density = (normal * chi2[:, None, :]).reshape(300, -1)
        weights = np.zeros((len(u), len(v)))
        i = np.abs(model.mean_atoms_[:, None] - u).argmin(axis=1)
        j = np.abs(model.variance_atoms_[:, None] - v).argmin(axis=1)
        weights[i, j] = model.weights_
        mixture = density @ weights.ravel()
        d = (density / mixture[:, None]).mean(axis=0)
    else:
        of_variance = np.zeros(12)
        j = np.abs(model.variance_atoms_[:, None] - v).argmin(axis=1)
        np.add.at(of_variance, j, model.weights_)
        d = (chi2 / (chi2 @ of_variance)[:, None]).mean(axis=0)
        assert d.max() <= 1 + 1e-8
        of_mean = np.zeros(len(u))
        i = np.abs(model.mean_atoms_[:, None] - u).argmin(axis=1)
        np.add.at(of_mean, i, model.weights_)
        density = (normal * (chi2 * of_variance)[:, None, :]).sum(axis=2)
        d = (density / (density @ of_mean)[:, None]).mean(axis=0)
    assert d.max() <= 1 + 1e-8


@pytest.mark.parametrize("joint", [False, True])
def test_weights_are_posterior_means_of_the_ratio(joint: bool) -> None:
    X, y = mixed(8, 60)
    model = MeanVarianceAdaptive(joint).fit(X, y)
    means = np.array([X[y == k].mean(axis=0) for k in (0, 1)])
    difference = means[1] - means[0]
    variance = ((X - means[y]) ** 2).sum(axis=0) / 14
    u, v = model.mean_atoms_, model.variance_atoms_
    weight = (
        model.weights_
        * stats.norm.pdf(difference[:, None], u, np.sqrt(v / 4))
        * stats.chi2.pdf(variance[:, None] * 14 / v, 14)
        / v
    )
    weight /= weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.coef_[0], weight @ (u / v), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.posterior_mean_, weight @ u, rtol=1e-7, atol=1e-12)
    at_middle = model.coef_[0] @ means.mean(axis=0)
    np.testing.assert_allclose(model.intercept_, -at_middle, rtol=1e-9)


def test_with_one_variance_it_is_the_npmle_of_the_differences() -> None:
    X, y = mixed(12, 400)
    model = MeanVarianceAdaptive(n_variances=1, n_means=60, tol=1e-9).fit(X, y)
    means = np.array([X[y == k].mean(axis=0) for k in (0, 1)])
    difference = means[1] - means[0]
    variance = ((X - means[y]) ** 2).sum(axis=0).mean() / 22
    grid = np.union1d(np.linspace(difference.min(), difference.max(), 60), 0.0)
    scale = np.sqrt(variance / 6)
    prior = NPMLE(grid=grid, tol=1e-10).fit(difference, scale).prior_
    want = prior.posterior(difference, scale).mean
    np.testing.assert_allclose(model.posterior_mean_, want, atol=1e-4)
    np.testing.assert_allclose(model.coef_[0], model.posterior_mean_ / variance)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("sparse_means", [False, True])
def test_the_design_of_the_paper(share: float, sparse_means: bool) -> None:
    """Ahead where features that differ have small variances.

    Jointly also where they have the large ones, if most features have small ones.
    """
    models = [
        MeanVarianceAdaptive(),
        MeanVarianceAdaptive(joint=True),
        DickerZhao("linear"),
        IndependenceRule(),
    ]

    def errors(base: float, other: float) -> Any:
        found = []
        for seed in range(3):
            X, y, new, labels = oh_and_park(share, sparse_means, base, other, seed)
            found.append([1 - m.fit(X, y).score(new, labels) for m in models])
        return np.mean(found, axis=0)

    independent, joint, other, none = errors(4.0, 12.0)
    assert max(independent, joint) < other < none
    _, joint, other, none = errors(10.0, 2.0)
    assert joint < min(other, none) + 0.05
    if share < 0.5:
        assert joint < min(other, none) - 0.03


def test_the_prior_is_recovered() -> None:
    """Of 3000 features with 100 degrees of freedom and three variances."""
    rng = np.random.default_rng(0)
    sd = rng.choice([0.5, 1.0, 2.0], 3000)
    y = np.arange(102) % 2
    X = rng.normal(size=(102, 3000)) * sd
    model = MeanVarianceAdaptive().fit(X, y)
    shares = [
        model.weights_[np.abs(np.log2(model.variance_atoms_) - k) < 0.7].sum()
        for k in (-2, 0, 2)
    ]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.03)
    assert model.weights_[np.abs(model.mean_atoms_) < 0.1].sum() > 0.95
    assert model.weights_.sum() == pytest.approx(1)


@pytest.mark.slow
def test_many_classes() -> None:
    khan = load_khan()
    for joint in (False, True):
        model = MeanVarianceAdaptive(joint).fit(khan.data, khan.target)
        assert model.coef_.shape == model.posterior_mean_.shape == (4, 2308)
        assert model.score(khan.data, khan.target) > 0.95


@pytest.mark.parametrize("joint", [False, True])
def test_units_shifts_order_and_constants_change_nothing(joint: bool) -> None:
    X, y = mixed(10, 80)
    model = MeanVarianceAdaptive(joint, tol=1e-9)
    want = model.fit(X, y).decision_function(X)
    order = np.random.default_rng(0).permutation(80)
    for other in (X[:, order], 1e4 * X, X - 7):
        got = model.fit(other, y).decision_function(other)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    wider = np.column_stack([X, np.full(20, 3.0), y])
    got = model.fit(wider, y).decision_function(wider)
    np.testing.assert_allclose(got, want, rtol=1e-9)
    assert model.selected_.tolist() == [True] * 80 + [False] * 2


def test_too_few_steps_are_a_warning() -> None:
    X, y = mixed(10, 80)
    with pytest.warns(ConvergenceWarning, match="the duality gap is .* raise max_iter"):
        MeanVarianceAdaptive(max_iter=1, tol=1e-12).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_means": 0}, "n_means must be at least 1"),
        ({"n_variances": -1}, "n_variances must be at least 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"tol": 0}, "tol must be positive"),
    ],
)
def test_bad_parameters_are_refused(parameters: Any, message: str) -> None:
    sim = make_two_class(5, 20, n_signals=5, random_state=0)
    with pytest.raises(ValueError, match=message):
        MeanVarianceAdaptive(**parameters).fit(sim.data, sim.target)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        MeanVarianceAdaptive().fit(sparse.csr_matrix(sim.data), sim.target)
