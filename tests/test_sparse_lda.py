"""Sparse discriminant analysis: both thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from ebda.baselines import IndependenceRule, PseudoInverseLDA, SparseLDA, ThresholdedLDA
from ebda.datasets import load_khan, make_two_class
from ebda.paper import optimal_rule
from ebda.sizes import override
from ebda.theory import error_rate


def pairs(n: int, p: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Correlated pairs of features, five of which differ in one of the two."""
    rng = np.random.default_rng(seed)
    covariance = np.kron(np.eye(p // 2), np.array([[1.0, 0.8], [0.8, 1.0]]))
    difference = np.zeros(p)
    difference[:10:2] = 0.7
    y = np.repeat([0, 1], n)
    X = rng.normal(size=(2 * n, p)) @ np.linalg.cholesky(covariance).T
    return X + np.outer(y, difference), y, covariance, difference


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_its_definition(scaled: bool, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % n_classes
    X = rng.normal(size=(90, 12)) @ (np.eye(12) + 0.6 * np.eye(12, k=1))
    X = (X + np.outer(y, np.linspace(0, 1, 12))) * np.linspace(1, 3, 12)
    model = SparseLDA(1.2, 0.9, exponent=0.25, scaled=scaled).fit(X, y)

    means = np.array([X[y == k].mean(axis=0) for k in range(n_classes)])
    S = (X - means[y]).T @ (X - means[y]) / (90 - n_classes)
    unit = np.sqrt(np.diag(S)) if scaled else np.ones(12)
    S = S / np.outer(unit, unit)
    sparse_S = np.where(np.abs(S) > 1.2 * np.sqrt(np.log(12) / 90), S, 0.0)
    np.fill_diagonal(sparse_S, np.diag(S))
    share = np.bincount(y) / 90
    d = (means - share @ means) / unit
    middle = (means + share @ means) / 2
    if n_classes == 2:
        d, middle = np.diff(means / unit, axis=0), means.mean(axis=0)[None]
    d = np.where(np.abs(d) > 0.9 * (np.log(12) / 90) ** 0.25, d, 0.0)
    coef = np.linalg.solve(sparse_S, d.T).T / unit
    odds = np.log(share) if n_classes > 2 else np.diff(np.log(share))
    assert 0 < model.n_differences_ < 12
    assert 0 < model.n_pairs_ < 66
    assert model.n_differences_ == d.any(axis=0).sum()
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, atol=1e-12)
    want = odds - np.einsum("cj,cj->c", coef, middle)
    np.testing.assert_allclose(model.intercept_, want, rtol=1e-8, atol=1e-12)


def test_corners() -> None:
    X, y, _, _ = pairs(60, 10)
    plain = SparseLDA(0, 0).fit(X, y)
    lda = PseudoInverseLDA().fit(X, y)
    np.testing.assert_allclose(plain.coef_, lda.coef_, rtol=1e-8)
    half = SparseLDA(0.7, 0).fit(X, y)
    thresholded = ThresholdedLDA(constant=0.7).fit(X, y)
    np.testing.assert_array_equal(half.coef_, thresholded.coef_)
    independent = SparseLDA(30, 0).fit(X, y)
    rule = IndependenceRule().fit(X, y)
    np.testing.assert_allclose(independent.coef_, rule.coef_, rtol=1e-10)
    nothing = SparseLDA(1, 30).fit(X, y)
    assert not nothing.selected_.any()
    assert nothing.n_differences_ == 0
    np.testing.assert_allclose(nothing.predict_proba(X), 0.5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_held_out_errors_are_those_of_fits_without_the_fold(n_classes: int) -> None:
    if n_classes == 4:
        khan = load_khan()
        X, y = khan.data[:, :60].astype(float), khan.target
    else:
        X, y, _, _ = pairs(20, 40)
    first, second = [1.0, 3.0], [0.0, 0.5, 1.0]
    model = SparseLDA(first, second, cv=3, random_state=0).fit(X, y)
    want = np.zeros((2, 3))
    prior = np.unique(y, return_counts=True)[1] / len(y)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        for i, m1 in enumerate(first):
            for j, m2 in enumerate(second):
                part = SparseLDA(m1, m2, priors=prior).fit(X[train], y[train])
                want[i, j] += (part.predict(X[test]) != y[test]).sum()
    np.testing.assert_array_equal(model.errors_, want)
    least = np.argwhere(want == want.min())[-1]
    assert model.covariance_constant_ == first[least[0]]
    assert model.difference_constant_ == second[least[1]]


def test_it_is_consistent_where_both_are_sparse() -> None:
    """Nearer to the optimal rule than with either threshold alone."""
    X, y, covariance, difference = pairs(75, 200)
    zero = np.zeros(200)

    def error(rule: Any) -> float:
        return error_rate(rule.coef_, rule.intercept_, zero, difference, covariance)

    best = optimal_rule(zero, difference, covariance)
    least = error_rate(best.coef, best.intercept, zero, difference, covariance)
    both = error(SparseLDA(random_state=0).fit(X, y))
    covariances = error(SparseLDA(difference_constant=0, random_state=0).fit(X, y))
    differences = error(SparseLDA(covariance_constant=30, random_state=0).fit(X, y))
    assert least < both < least + 0.05
    assert both < min(covariances, differences) - 0.01


def test_a_correlated_feature_has_a_weight_without_a_difference() -> None:
    X, y, _, _ = pairs(150, 40)
    model = SparseLDA(2, 1.75).fit(X, y)
    assert model.n_differences_ == 5
    assert model.selected_.nonzero()[0].tolist() == list(range(10))


def test_units_and_the_order_of_features_change_nothing() -> None:
    X, y, _, _ = pairs(20, 40)
    model = SparseLDA(cv=3, random_state=0)
    want = model.fit(X, y).decision_function(X)
    order = np.random.default_rng(0).permutation(40)
    for other in (X[:, order], X * np.linspace(1, 9, 40) - 4):
        got = model.fit(other, y).decision_function(other)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"exponent": 0.5}, "exponent must lie between 0 and 0.5"),
        ({"covariance_constant": -1}, "covariance_constant must be"),
        ({"difference_constant": "rate"}, "difference_constant must be"),
        ({"cv": 1}, "cv at least 2"),
    ],
)
def test_bad_parameters_are_refused(parameters: Any, message: str) -> None:
    X, y, _, _ = pairs(10, 10)
    with pytest.raises(ValueError, match=message):
        SparseLDA(**parameters).fit(X, y)


def test_it_refuses_what_it_cannot_take() -> None:
    X, y, _, _ = pairs(10, 50)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        SparseLDA().fit(sparse.csr_matrix(X), y)
    with pytest.raises(ValueError, match="do not vary"):
        SparseLDA().fit(np.outer(y, np.ones(3)), y)
    with override(covariance_pairs=10):
        assert SparseLDA(cv=3, random_state=0).fit(X, y).n_pairs_ <= 10
        with pytest.raises(ValueError, match="10 are the limit"):
            SparseLDA(0.1, 1).fit(X, y)


@pytest.mark.slow
def test_simulated_designs_of_neighbours() -> None:
    sim = make_two_class(50, 400, n_signals=1, effect=1.5, rho=0.8, random_state=0)
    new = make_two_class(300, 400, n_signals=1, effect=1.5, rho=0.8, random_state=1)
    both = SparseLDA(random_state=0).fit(sim.data, sim.target)
    alone = IndependenceRule().fit(sim.data, sim.target)
    gain = both.score(new.data, new.target) - alone.score(new.data, new.target)
    assert gain > 0.1
