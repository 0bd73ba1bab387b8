"""Thresholded covariances, and the rules that are made of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ebda.baselines import IndependenceRule, PseudoInverseLDA, ThresholdedLDA
from ebda.baselines.kept_pairs import keep_pairs
from ebda.baselines.sparse_covariance import LEAST_EIGENVALUE, SparseCovariance
from ebda.baselines.thresholded_covariance import Threshold, rate, split_risks
from ebda.datasets import make_two_class
from ebda.paper import optimal_rule
from ebda.sizes import override
from ebda.theory import error_rate

KINDS = [(soft, adaptive) for soft in (False, True) for adaptive in (False, True)]


def residuals(n: int, p: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * np.eye(p, k=1))
    A *= rng.uniform(0.5, 2, p)
    return A - A.mean(axis=0)


def by_definition(A: Any, df: int, soft: bool, adaptive: bool, step: float) -> Any:
    S = A.T @ A / df
    unit = np.ones(S.shape)
    if adaptive:
        summands = A[:, :, None] * A[:, None, :]
        unit = np.sqrt(((summands - S) ** 2).mean(axis=0))
    kept = np.abs(S) > step * unit
    T = np.where(kept, S - soft * np.sign(S) * step * unit, 0.0)
    np.fill_diagonal(T, np.diag(S))
    return T


def sparse_covariance(A: Any, df: int, kind: Threshold, step: float) -> Any:
    kept, lowest = keep_pairs(A, df, kind, np.array([step]))
    assert lowest == 0
    return kept.covariance(step)


def dense(found: SparseCovariance, p: int) -> Any:
    whole = np.eye(p)
    whole[np.ix_(found.connected, found.connected)] = found.correlation.toarray()
    return whole * np.outer(found.sd, found.sd)


@pytest.mark.parametrize(("soft", "adaptive"), KINDS)
@pytest.mark.parametrize("step", [0.0, 0.3, 0.7, 50.0])
def test_a_threshold_is_its_definition(soft: bool, adaptive: bool, step: float) -> None:
    A = residuals(30, 12)
    want = by_definition(A, 29, soft, adaptive, step)
    for size in (1 << 20, 25):
        with override(covariance_block=size):
            found = sparse_covariance(A, 29, Threshold(soft, adaptive), step)
            np.testing.assert_allclose(dense(found, 12), want, rtol=1e-9, atol=1e-12)
    assert found.n_pairs == (np.count_nonzero(want) - 12) // 2
    if step == 50:
        assert found.n_pairs == 0
    if step == 0:
        assert found.n_pairs == 66


@pytest.mark.parametrize(("soft", "adaptive"), KINDS)
def test_risks_are_their_definition(soft: bool, adaptive: bool) -> None:
    A1, A2 = residuals(30, 12), residuals(14, 12, seed=1)
    steps = np.array([0.0, 0.2, 0.5, 1.0, 9.0])
    S2 = A2.T @ A2 / 13
    want = [
        ((by_definition(A1, 29, soft, adaptive, step) - S2) ** 2)[
            np.triu_indices(12, 1)
        ].sum()
        for step in steps
    ]
    for size in (1 << 20, 25):
        with override(covariance_block=size):
            kind = Threshold(soft, adaptive)
            found = split_risks(A1, 29, A2, 13, kind, steps)
            np.testing.assert_allclose(np.diff(found), np.diff(want), rtol=1e-8)


@pytest.mark.parametrize("size", [1 << 20, 25])
@pytest.mark.parametrize(("soft", "adaptive"), KINDS)
def test_pairs_are_found_once_for_all_thresholds(
    soft: bool, adaptive: bool, size: int
) -> None:
    A, kind = residuals(30, 12), Threshold(soft, adaptive)
    steps = np.array([0.0, 0.2, 0.5, 1.0, 9.0])
    with override(covariance_block=size):
        alone = [sparse_covariance(A, 29, kind, step) for step in steps]
        assert alone[0].n_pairs > 30 >= alone[2].n_pairs > 0
        for most in (np.inf, 30):
            kept, lowest = keep_pairs(A, 29, kind, steps, most)
            # The lowest that keeps few enough.
            assert lowest == sum(one.n_pairs > most for one in alone)
            for step, want in zip(steps[lowest:], alone[lowest:], strict=True):
                found = kept.covariance(step)
                np.testing.assert_array_equal(dense(found, 12), dense(want, 12))


@pytest.mark.parametrize("dense_features", [1, 12, 1000])
def test_a_positive_definite_matrix_is_inverted_as_it_is(dense_features: int) -> None:
    A = residuals(400, 25)
    with override(dense_features=dense_features):
        found = sparse_covariance(A, 399, Threshold(), 0.3)
        assert 0 < found.n_pairs < 100
        assert found.lift == 0
        rows = np.random.default_rng(0).normal(size=(3, 25))
        want = rows @ np.linalg.inv(dense(found, 25))
        np.testing.assert_allclose(found.solve(rows), want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dense_features", [1, 12, 1000])
def test_an_indefinite_matrix_is_lifted(dense_features: int) -> None:
    """Its smallest eigenvalue, in units of standard deviations, becomes the least."""
    A = residuals(10, 40)
    with override(dense_features=dense_features):
        found = sparse_covariance(A, 9, Threshold(), 0.4)
        plain = dense(found, 40)
        correlation = plain / np.outer(found.sd, found.sd)
        assert np.linalg.eigvalsh(plain)[0] < 0
        lifted = correlation + found.lift * np.eye(40)
        least = np.linalg.eigvalsh(lifted)[0]
        assert least == pytest.approx(LEAST_EIGENVALUE, abs=1e-3)
        rows = np.random.default_rng(0).normal(size=(2, 40))
        want = rows / found.sd @ np.linalg.inv(lifted) / found.sd
        np.testing.assert_allclose(found.solve(rows), want, rtol=1e-6, atol=1e-8)


def test_a_matrix_that_is_not_positive_definite_has_no_solution() -> None:
    correlation = sparse.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]]))
    unsound = SparseCovariance(np.ones(2), np.arange(2), correlation, 0.0, 1)
    with override(dense_features=0), pytest.raises(ArithmeticError, match="larger thr"):
        unsound.solve(np.array([[1.0, -1.0]]))


def test_without_threshold_it_is_lda() -> None:
    sim = make_two_class(100, 8, n_signals=4, effect=1, rho=0.5, random_state=0)
    model = ThresholdedLDA(constant=0).fit(sim.data, sim.target)
    lda = PseudoInverseLDA().fit(sim.data, sim.target)
    assert model.lift_ == 0
    np.testing.assert_allclose(model.coef_, lda.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, lda.intercept_, rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_a_high_threshold_it_is_the_independence_rule(n_classes: int) -> None:
    X, y = residuals(45, 60) + 1, np.arange(45) % n_classes
    X[:, 5], X[:, 9] = 2.0, y
    model = ThresholdedLDA(constant=30).fit(X, y)
    rule = IndependenceRule().fit(X, y)
    rule.coef_[:, 9] = 0  # it does not vary within the classes
    np.testing.assert_allclose(model.coef_, rule.coef_, rtol=1e-8, atol=1e-12)
    assert model.n_pairs_ == 0


def test_the_threshold_of_a_sparse_covariance_is_found() -> None:
    """Of 2485 pairs of features 69 are correlated."""
    sim = make_two_class(100, 70, n_signals=5, rho=0.0, random_state=0)
    data = sim.data.copy()
    data[:, 1:] += data[:, :-1]  # correlation 1/2 of neighbours, none of others
    model = ThresholdedLDA(random_state=0).fit(data, sim.target)
    assert 60 <= model.n_pairs_ <= 80
    assert 0 < model.constant_ < 4
    assert model.risks_[model.constants_ == model.constant_][0] == model.risks_.min()
    plain = ThresholdedLDA(kind="soft", random_state=0).fit(sim.data, sim.target)
    assert plain.n_pairs_ < 60


@pytest.mark.slow
def test_it_is_consistent_where_the_covariance_is_sparse() -> None:
    """Near the error of the optimal rule, which the independence rule is not."""
    p, n = 300, 150
    rng = np.random.default_rng(0)
    covariance = np.kron(np.eye(p // 2), np.array([[1.0, 0.8], [0.8, 1.0]]))
    root = np.linalg.cholesky(covariance)
    difference = np.zeros(p)
    difference[:10:2] = 0.5
    y = np.repeat([0, 1], n)
    X = rng.normal(size=(2 * n, p)) @ root.T + np.outer(y, difference)

    def error(rule: Any) -> float:
        coef, intercept = getattr(rule, "coef_", None), getattr(rule, "intercept_", 0)
        if coef is None:
            coef, intercept = rule.coef, rule.intercept
        return error_rate(coef, intercept, np.zeros(p), difference, covariance)

    models = [
        ThresholdedLDA(kind="hard", random_state=0),
        ThresholdedLDA(kind="hard", adaptive=True, random_state=0),
        ThresholdedLDA(kind="soft", scaled=False, random_state=0),
    ]
    least = error(optimal_rule(np.zeros(p), difference, covariance))
    independence = error(IndependenceRule().fit(X, y))
    for model in models:
        assert least < error(model.fit(X, y)) < independence - 0.05
        assert model.n_pairs_ >= p // 2


def test_constants_that_do_not_fit_are_left_out() -> None:
    sim = make_two_class(20, 50, random_state=0, n_signals=5)
    with override(covariance_pairs=100):
        model = ThresholdedLDA(random_state=0).fit(sim.data, sim.target)
        assert model.constants_[0] > 0.5
        assert model.n_pairs_ <= 100
        with pytest.raises(ValueError, match=r"keeps .* pairs .* 100 are the limit"):
            ThresholdedLDA(constant=0.1).fit(sim.data, sim.target)


@pytest.mark.parametrize("adaptive", [False, True])
def test_units_and_the_order_of_features_change_nothing(adaptive: bool) -> None:
    sim = make_two_class(20, 50, n_signals=5, rho=0.6, random_state=0)
    X, y = sim.data, sim.target
    model = ThresholdedLDA(adaptive=adaptive, random_state=0)
    want = model.fit(X, y).decision_function(X)
    order = np.random.default_rng(0).permutation(50)
    for other in (X[:, order], X * np.linspace(1, 9, 50) - 4):
        got = model.fit(other, y).decision_function(other)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_the_rate() -> None:
    assert rate(1000, 100) == pytest.approx(np.sqrt(np.log(1000) / 100))
    assert rate(1, 100) > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "firm"}, "kind must be one of"),
        ({"constant": -1}, "constant must be"),
        ({"n_splits": 0}, "n_splits must be at least 1"),
    ],
)
def test_bad_parameters_are_refused(parameters: Any, message: str) -> None:
    sim = make_two_class(20, 20, n_signals=5, random_state=0)
    with pytest.raises(ValueError, match=message):
        ThresholdedLDA(**parameters).fit(sim.data, sim.target)


def test_it_refuses_what_it_cannot_take() -> None:
    sim = make_two_class(3, 20, n_signals=5, random_state=0)
    X, y = sim.data, sim.target
    with pytest.raises(ValueError, match="too few to be split in two"):
        ThresholdedLDA().fit(X[1:5], y[1:5])
    assert ThresholdedLDA(constant=1).fit(X[1:5], y[1:5]).coef_.any()
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        ThresholdedLDA().fit(sparse.csr_matrix(X), y)


@pytest.mark.slow
def test_many_features_take_little_memory() -> None:
    """A dense covariance of 10,000 features would be 763 MiB."""
    code = (
        "from ebda.baselines import ThresholdedLDA\n"
        "from ebda.datasets import make_two_class\n"
        "sim = make_two_class(50, 10_000, rho=0.5, random_state=0)\n"
        "model = ThresholdedLDA(constant=[1, 1.5], n_splits=5, random_state=0)\n"
        "model.fit(sim.data, sim.target)\n"
        "assert model.n_pairs_ > 4000\n"
        # Not getrusage: its peak is at least that of the process that started this one.
        "status = open('/proc/self/status').read()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )
    peak = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout
    assert int(peak) < 700 * 1024
