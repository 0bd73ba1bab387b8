"""Theorem 2, hard thresholding (Remark 2) and the tail of the t distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from ebda import theory

# Theorem 2


def test_the_ratio_is_that_of_theorem1_to_the_optimal_error() -> None:
    n, c, s, eps = 200.0, np.array([0.5, 4.0, 25.0, 100.0]), 10, 12.0
    found = theory.theorem2(n, c, s, eps, lambda_1=1.7, constant=0.4)
    bound = theory.theorem1_bound(n, c, s, eps, 1.7, constant=0.4)
    optimal = [theory.optimal_worst_case(value, 1.7) for value in c]
    np.testing.assert_allclose(found.ratio, bound / optimal, rtol=1e-10)
    np.testing.assert_allclose(
        stats.norm.cdf(-np.sqrt(found.xi) * (1 - found.tau)), bound, rtol=1e-12
    )


def test_theorem1_is_written_as_in_the_paper() -> None:
    n, c, s, eps, lam, k = 50.0, 9.0, 20.0, 30.0, 2.0, 0.7
    lost = np.sqrt(s * eps / n) + np.sqrt(eps * c) + np.sqrt(c)
    margin = np.sqrt(n / 8) * c - k * lost
    sd = np.sqrt(lam) * (np.sqrt(n * c / 2) + k * np.sqrt(eps))
    expected = stats.norm.cdf(-margin / sd)
    found = theory.theorem1_bound(n, c, s, eps, lam, constant=k)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("power", [0.2, 0.5, 0.8])
def test_the_ratio_tends_to_one_under_the_conditions(power: float) -> None:
    n = 10.0 ** np.arange(4, 25, 2)
    found = theory.theorem2(n, n**power, s_n=5, eps_n=8, lambda_1=2.0)
    assert (np.diff(found.ratio) < 0).all()
    assert (np.diff(found.tau * found.xi) < 0).all()
    expected = 0.5 * found.xi * found.tau * 2  # of the logarithm, to first order
    assert found.ratio[-1] == pytest.approx(1, abs=1e-2 if power > 0.7 else 1e-3)
    assert np.log(found.ratio[-1]) == pytest.approx(expected[-1], rel=1e-2)


def test_the_ratio_stays_away_from_one_where_a_condition_fails() -> None:
    n = 10.0 ** np.arange(4, 25, 2)
    fast = theory.theorem2(n, n, s_n=5, eps_n=8, lambda_1=2.0)  # C_p of the order n
    assert (fast.ratio > 5).all()
    product = fast.tau * fast.xi
    np.testing.assert_allclose(product, product[-1], rtol=1e-3)
    dense = theory.theorem2(n, n**0.2, s_n=n, eps_n=n, lambda_1=2.0)
    assert (np.diff(dense.ratio) >= 0).all()


def test_the_ratio_of_vanishing_errors_is_a_number() -> None:
    found = theory.theorem2(1e30, [1e6, 1e12, 1e20], 5, 8, 1.0, constant=1e-3)
    assert np.isfinite(found.ratio).all()
    assert (found.ratio >= 1).all()
    # Both errors are far below the smallest number.
    assert theory.optimal_worst_case(1e6, 1.0) == 0
    assert np.isfinite(theory.theorem2(10, 1e9, 5, 8, 1.0).ratio)


def test_without_losses_the_rule_is_optimal() -> None:
    found = theory.theorem2([5, 50], [1.0, 100.0], 5, 8, 1.5, constant=0.0)
    np.testing.assert_array_equal(found.tau, 0)
    np.testing.assert_allclose(found.ratio, 1, rtol=1e-15)


def test_growth_is_that_of_the_theorems() -> None:
    found = theory.growth(n=400, p=1000, c_p=4.0, s_n=20, eps_n=5.0, b_n=4.0)
    assert found.dimension == pytest.approx(np.log(1000) / 400)
    assert found.separation == pytest.approx(np.sqrt(np.log(980)) / 4)
    assert (found.threshold, found.estimation) == (16 / 400, 5 / 1600)
    assert (found.sparsity, found.signal) == (10 / 1600, 1 / 1600)
    assert (found.fast_signal, found.fast_sparsity) == (20 / 400, 10 / 400)
    assert found.theorem1 == found.separation
    assert found.theorem2 == found.separation
    # Remark 1: p may grow like exp(n^0.9).
    n = np.array([1e3, 1e6, 1e9])
    rows = [theory.growth(m, np.exp(min(m**0.4, 700)), 4.0, 10, 10, m**0.4) for m in n]
    assert (np.diff([row.theorem1 for row in rows]) < 0).all()
    assert (np.diff([row.theorem2 for row in rows]) < 0).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.growth(0, 100, 1.0, 1, 1.0, 1.0),
        lambda: theory.growth(10, 100, 1.0, 1, -1.0, 1.0),
        lambda: theory.growth(10, 100, 1.0, 100, 1.0, 1.0),
        lambda: theory.theorem2(10, 1.0, 1, 1, 0.5),
        lambda: theory.hard_threshold([1.0], -1.0),
        lambda: theory.hard_threshold_risk([1.0], np.inf),
        lambda: theory.t_tail_bound(0.0, 10),
        lambda: theory.t_tail_bound(1.0, 1),
        lambda: theory.null_effects_bound(1.0, 10, 5, 0.0),
    ],
)
def test_what_has_no_meaning_is_refused(call: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        call()


# The tail of t


@pytest.mark.parametrize("n", [2, 3, 25, 1000])
def test_the_tail_is_bounded(n: int) -> None:
    b = np.array([0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0])
    tail = 2 * stats.t(2 * n - 2).sf(b)
    bound = theory.t_tail_bound(b, n)
    assert (bound >= tail * (1 - 1e-12)).all()
    v = 2 * n - 2  # of the order of b^-v, with v / (v - 1) times the constant
    assert bound[-1] == pytest.approx(tail[-1] * v / (v - 1), rel=0.01)


def test_the_inequality_as_printed_is_none() -> None:
    """The exponent and the factor of the proof of Theorem 1 give less than the tail."""
    n = np.array([5, 25, 100, 1000])
    v, b = 2 * n - 2, 3.0
    density = stats.t(v).pdf(b)  # of which the printed bound is a multiple
    printed = v / (v - 1) / b * density
    assert (printed < 2 * stats.t(v).sf(b)).all()
    factor = 2 * (1 + b**2 / v)
    np.testing.assert_allclose(theory.t_tail_bound(b, n), printed * factor)


def test_the_bound_of_normal_tails_is_its_limit() -> None:
    b = np.array([1.0, 3.0, 6.0])
    np.testing.assert_allclose(
        theory.t_tail_bound(b, 10**9), 2 * stats.norm.pdf(b) / b, rtol=1e-6
    )


# Hard thresholding


def hard(z: np.ndarray) -> np.ndarray:
    return theory.hard_threshold(z, 3.0)


def test_hard_thresholding_meets_both_conditions() -> None:
    found = theory.check_conditions(hard, df=48)
    assert found.threshold == 3.0
    assert found.condition2
    # As printed, 1{|z| <= b_n} z, it would not be zero for small |z|.
    printed = theory.check_conditions(lambda z: z - hard(z), df=48)
    assert not printed.condition1


@pytest.mark.parametrize("eta", [0.0, 0.7, -2.5, 3.0, 6.0])
def test_the_risk_is_an_integral(eta: float) -> None:
    def loss(z: float) -> float:
        return float((hard(np.array(z)) - eta) ** 2 * stats.norm.pdf(z - eta))

    expected = sum(
        integrate.quad(loss, low, high, epsabs=1e-12)[0]
        for low, high in ((eta - 12, -3), (-3, 3), (3, max(eta, 3) + 12))
    )
    assert theory.hard_threshold_risk(eta, 3.0) == pytest.approx(expected, rel=1e-7)


def test_the_risk_of_strong_effects_is_their_number() -> None:
    eta = np.full(40, 30.0)
    assert theory.hard_threshold_risk(eta, 5.0).sum() == pytest.approx(40, rel=1e-12)
    assert theory.hard_threshold_risk(1.3, 0.0) == pytest.approx(1)
    assert theory.hard_threshold_risk(1.3, 40.0) == pytest.approx(1.3**2)


def test_null_features_vanish_as_fast_as_the_proof_says() -> None:
    rng = np.random.default_rng(5)
    n, n_null, size, b = 30, 50, 0.5, 5.0
    z = rng.standard_t(2 * n - 2, size=(20_000, n_null))
    found = (theory.hard_threshold(z, b) ** 2).sum(axis=1) > size
    exact = theory.check_conditions(lambda z: theory.hard_threshold(z, b), df=2 * n - 2)
    assert found.mean() > 0
    bounds = [
        theory.null_effects_bound(b, n, n_null, size, exact.fourth_moment),
        theory.null_effects_bound(b, n, n_null, size),
    ]
    assert found.mean() < bounds[0] < bounds[1]
    assert theory.null_effects_bound(b, 3, n_null, size) == np.inf
    # b_n grows faster than sqrt(log p): the bound vanishes although p is exp(n^0.4).
    later = [
        theory.null_effects_bound(2 * m**0.3, m, int(np.exp(m**0.4)), size)
        for m in (100, 1000, 10_000)
    ]
    assert (np.diff(later) < 0).all()
