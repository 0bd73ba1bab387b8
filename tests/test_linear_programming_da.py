"""Linear programming discriminant analysis: optimal, and certified to be."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.model_selection import StratifiedKFold

from ebda.baselines import IndependenceRule, LinearProgrammingDA, PseudoInverseLDA
from ebda.baselines.penalised_direction import LowRank, direction, joining, path
from ebda.datasets import load_khan, make_two_class
from ebda.paper import optimal_rule
from ebda.theory import AR1, error_rate


def problem(n: int, p: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * np.eye(p, k=1)) / np.sqrt(n)
    d = rng.normal(scale=0.3, size=p)
    d[:5] += 1
    return A, d


def by_highs(M: Any, d: Any, penalty: float) -> float:
    """The shortest length, from the dense program as it is written."""
    p = len(d)
    solution = linprog(
        np.ones(2 * p),
        A_ub=np.block([[M, -M], [-M, M]]),
        b_ub=np.append(d + penalty, penalty - d),
        method="highs",
    )
    assert solution.status == 0
    return float(solution.fun)


@pytest.mark.parametrize(
    ("n", "p", "ridge"), [(40, 15, 0.0), (15, 40, 0.3), (15, 40, 0.01), (20, 21, 0.0)]
)
@pytest.mark.parametrize("part", [0.9, 0.5, 0.25])
def test_it_agrees_with_highs(n: int, p: int, ridge: float, part: float) -> None:
    for seed in range(3):
        A, d = problem(n, p, seed)
        M = A.T @ A + ridge * np.eye(p)
        penalty = part * np.abs(d).max()
        found = direction(LowRank(A, ridge), d, penalty)
        assert found is not None
        length = np.abs(found.weights).sum()
        assert length == pytest.approx(by_highs(M, d, penalty), abs=1e-6, rel=1e-6)
        assert np.abs(M @ found.weights - d).max() <= penalty + 1e-7
        assert abs(found.gap) < 1e-7 * max(1, length)


@pytest.mark.slow
def test_the_gap_is_that_of_a_feasible_dual_vector() -> None:
    """By definition: of all feasible v, d' v - t |v| is below the shortest length."""
    A, d = problem(30, 300)
    for penalty in (1.5, 0.8, 0.5):
        found = direction(LowRank(A, 0.2), d, penalty)
        assert found is not None
        shortest = by_highs(A.T @ A + 0.2 * np.eye(300), d, penalty)
        length = np.abs(found.weights).sum()
        assert length - found.gap <= shortest + 1e-7
        assert shortest <= length + 1e-6


def test_uncorrelated_features_have_a_soft_threshold() -> None:
    d = np.array([2.0, -1.0, 0.3, 0.0, -3.0])
    found = direction(LowRank(np.eye(5), 0.0), d, 0.5)
    assert found is not None
    np.testing.assert_allclose(found.weights, [1.5, -0.5, 0, 0, -2.5], atol=1e-12)


def test_a_path_is_its_solutions() -> None:
    A, d = problem(30, 60)
    matrix, penalties = LowRank(A, 0.1), np.array([5.0, 1.0, 0.6, 0.4])
    for penalty, weights in zip(penalties, path(matrix, d, penalties), strict=True):
        alone = direction(matrix, d, penalty)
        assert alone is not None
        np.testing.assert_allclose(weights, alone.weights, atol=1e-7)
    assert not next(path(matrix, d, penalties)).any()


def test_ties_join_together() -> None:
    excess = np.repeat([1.0, 0.5, -1.0], [150, 150, 10])
    outside = np.zeros(310, dtype=bool)
    assert joining(excess, outside).sum() == 300
    assert joining(excess, excess == 1).nonzero()[0].tolist() == list(range(150, 300))


def test_without_penalty_it_is_lda() -> None:
    sim = make_two_class(40, 8, n_signals=4, effect=1, rho=0.5, random_state=0)
    lda = PseudoInverseLDA().fit(sim.data, sim.target)
    for scaled in (False, True):
        model = LinearProgrammingDA(0, scaled=scaled).fit(sim.data, sim.target)
        assert model.ridge_ == 0
        np.testing.assert_allclose(model.coef_, lda.coef_, rtol=1e-6)
        np.testing.assert_allclose(model.intercept_, lda.intercept_, rtol=1e-6)


def test_a_large_penalty_leaves_nothing() -> None:
    sim = make_two_class(10, 8, n_signals=4, effect=1, random_state=0)
    model = LinearProgrammingDA(1e3).fit(sim.data, sim.target)
    assert not model.selected_.any()
    np.testing.assert_allclose(model.predict_proba(sim.data), 0.5)


def test_held_out_errors_are_those_of_fits_without_the_fold() -> None:
    sim = make_two_class(12, 12, n_signals=4, effect=1.5, random_state=0)
    X, y = sim.data, sim.target
    penalties = [0.4, 0.8, 1.5]
    model = LinearProgrammingDA(penalties, cv=3, random_state=0).fit(X, y)
    want = np.zeros(3)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        for place, penalty in enumerate(penalties):
            part = LinearProgrammingDA(penalty).fit(X[train], y[train])
            want[place] += (part.predict(X[test]) != y[test]).sum()
    np.testing.assert_array_equal(model.errors_, want)
    assert model.penalty_ == penalties[np.flatnonzero(want == want.min())[-1]]


def test_a_solution_with_many_features_ends_the_path() -> None:
    sim = make_two_class(12, 40, n_signals=4, effect=1.5, random_state=0)
    X, y = sim.data, sim.target
    model = LinearProgrammingDA([0.05, 0.4, 1.5], cv=3, random_state=0).fit(X, y)
    assert np.isinf(model.errors_).tolist() == [True, False, False]


@pytest.mark.slow
def test_sparse_weights_are_found() -> None:
    """Differences everywhere, but weights in a few features only."""
    p, n = 120, 100
    weights = np.zeros(p)
    weights[[10, 40, 41, 80]] = [1.2, 1.5, -1.5, 1.2]
    covariance = 0.7 ** np.abs(np.subtract.outer(range(p), range(p)))
    difference = covariance @ weights
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], n)
    X = rng.normal(size=(2 * n, p)) @ np.linalg.cholesky(covariance).T
    X += np.outer(y, difference)
    model = LinearProgrammingDA(random_state=0).fit(X, y)
    zero = np.zeros(p)
    best = optimal_rule(zero, difference, AR1(0.7))

    def error(coef: Any, intercept: Any) -> float:
        return error_rate(coef, intercept, zero, difference, AR1(0.7))

    least = error(best.coef, best.intercept)
    rule = IndependenceRule().fit(X, y)
    found = error(model.coef_, model.intercept_)
    assert found < least + 0.03
    assert found < error(rule.coef_, rule.intercept_) - 0.01
    assert model.selected_[[10, 40, 41, 80]].all()
    assert model.selected_.sum() < 60


@pytest.mark.slow
def test_many_classes_have_a_program_each() -> None:
    khan = load_khan()
    X, y = khan.data[:, :200].astype(float), khan.target
    model = LinearProgrammingDA(0.5).fit(X, y)
    assert model.coef_.shape == (4, 200)
    assert model.score(X, y) > 0.9
    assert model.duality_gap_ < 1e-7


@pytest.mark.slow
def test_two_thousand_features_take_seconds() -> None:
    sim = make_two_class(50, 2000, n_signals=20, effect=1, rho=0.5, random_state=0)
    start = time.perf_counter()
    model = LinearProgrammingDA(0.5).fit(sim.data, sim.target)
    assert time.perf_counter() - start < 10
    assert model.selected_.sum() > 20
    assert abs(model.duality_gap_) < 1e-7


@pytest.mark.slow
def test_units_and_the_order_of_features_change_nothing() -> None:
    sim = make_two_class(20, 50, n_signals=5, rho=0.6, random_state=0)
    X, y = sim.data, sim.target
    model = LinearProgrammingDA(cv=3, random_state=0)
    want = model.fit(X, y).decision_function(X)
    order = np.random.default_rng(0).permutation(50)
    for other in (X[:, order], X * np.linspace(1, 9, 50) - 4):
        got = model.fit(other, y).decision_function(other)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    plain = LinearProgrammingDA(cv=3, scaled=False, random_state=0)
    want = plain.fit(X, y).decision_function(X)
    got = plain.fit(100 * X, y).decision_function(100 * X)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_penalty_without_solution_is_an_error() -> None:
    sim = make_two_class(5, 200, n_signals=5, random_state=0)
    X, y = sim.data, sim.target
    assert direction(LowRank(np.zeros((1, 2)), 0.0), np.ones(2), 0.5) is None
    with pytest.raises(ValueError, match=r"no weights meet penalty=0\.01 with ridge=0"):
        LinearProgrammingDA(0.01, ridge=0).fit(X, y)
    model = LinearProgrammingDA([0.01, 9.0], ridge=0, cv=2, random_state=0).fit(X, y)
    assert np.isinf(model.errors_[0])
    assert model.penalty_ == 9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1}, "penalty must be"),
        ({"ridge": -1}, "ridge must be"),
        ({"cv": 1}, "cv at least 2"),
    ],
)
def test_bad_parameters_are_refused(parameters: Any, message: str) -> None:
    sim = make_two_class(10, 20, n_signals=5, random_state=0)
    with pytest.raises(ValueError, match=message):
        LinearProgrammingDA(**parameters).fit(sim.data, sim.target)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        LinearProgrammingDA().fit(sparse.csr_matrix(sim.data), sim.target)
