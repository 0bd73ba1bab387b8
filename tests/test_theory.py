"""Theory: against simulation, against dense p x p arithmetic, and in simple cases."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from ebda import theory
from ebda.priors import DiscretePrior
from ebda.rule import shrinkage
from ebda.theory import AR1, Dense, Diagonal, LowRank
from ebda.theory.worst_case import variance_range

RNG = np.random.default_rng(0)
P = 6
FACTOR = RNG.normal(size=(P, P))
LOADINGS, NOISE = RNG.normal(size=(P, 2)), RNG.uniform(0.5, 2, P)
VARIANCE = RNG.uniform(0.5, 2, P)
LAGS = np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
SDS = np.sqrt(np.outer(VARIANCE, VARIANCE))

# What a user gives, and the matrix that it stands for.
COVARIANCES: dict[str, tuple[Any, np.ndarray]] = {
    "number": (2.0, 2.0 * np.eye(P)),
    "vector": (VARIANCE, np.diag(VARIANCE)),
    "matrix": (FACTOR @ FACTOR.T + np.eye(P), FACTOR @ FACTOR.T + np.eye(P)),
    "ar1": (AR1(0.7), 0.7**LAGS),
    "ar1 negative": (AR1(-0.95, VARIANCE), (-0.95) ** LAGS * SDS),
    "ar1 none": (AR1(0.0, 3.0), 3.0 * np.eye(P)),
    "low rank": (LowRank(LOADINGS, NOISE), LOADINGS @ LOADINGS.T + np.diag(NOISE)),
    "one factor": (
        LowRank(LOADINGS[:, 0], 0.1),
        np.outer(LOADINGS[:, 0], LOADINGS[:, 0]) + 0.1 * np.eye(P),
    ),
    "no factor": (LowRank(np.zeros((P, 2)), NOISE), np.diag(NOISE)),
}
KINDS = sorted(COVARIANCES)


def correlation(full: np.ndarray) -> np.ndarray:
    sd = np.sqrt(np.diag(full))
    return full / np.outer(sd, sd)


# Covariances


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_equal_their_matrices(kind: str) -> None:
    given, full = COVARIANCES[kind]
    covariance = theory.as_covariance(given, P)
    a = np.random.default_rng(1).normal(size=P)
    assert covariance.quadratic_form(a) == pytest.approx(a @ full @ a, rel=1e-12)
    np.testing.assert_allclose(covariance.solve(a), np.linalg.solve(full, a), 1e-9)
    np.testing.assert_allclose(covariance.diagonal(P), np.diag(full), rtol=1e-14)
    top = np.linalg.eigvalsh(correlation(full))[-1]
    assert covariance.lambda_max(P) == pytest.approx(top, rel=1e-12)


@pytest.mark.parametrize("rho", [-0.99, -0.3, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("p", [1, 2, 3, 50])
def test_the_largest_eigenvalue_of_ar1_is_exact(rho: float, p: int) -> None:
    lags = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    top = np.linalg.eigvalsh(rho**lags)[-1]
    assert AR1(rho).lambda_max(p) == pytest.approx(top, rel=1e-10)


def test_one_feature_is_a_number() -> None:
    a = np.array([3.0])
    for covariance in (AR1(0.9, 4.0), LowRank([[1.0]], 3.0), Dense([[4.0]])):
        assert covariance.quadratic_form(a) == pytest.approx(36)
        assert covariance.solve(a) == pytest.approx([0.75])
        assert covariance.lambda_max(1) == pytest.approx(1)


def test_lanczos_agrees_with_the_other_ways() -> None:
    p = 600
    rng = np.random.default_rng(2)
    low_rank = LowRank(rng.normal(size=(p, 3)), 1.0)
    full = low_rank.loadings @ low_rank.loadings.T + np.eye(p)
    assert Dense(full).lambda_max(p) == pytest.approx(low_rank.lambda_max(p), rel=1e-10)
    lags = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    ar1 = AR1(0.8)
    assert Dense(0.8**lags).lambda_max(p) == pytest.approx(ar1.lambda_max(p), rel=1e-8)


def test_a_million_ar1_features_take_well_under_two_seconds() -> None:
    p = 10**6
    rng = np.random.default_rng(3)
    a, d = rng.normal(size=(2, p)) / np.sqrt(p)
    covariance = AR1(0.9, variance=2.0)
    start = time.perf_counter()
    error = theory.error_rate(d, -d @ d / 2, np.zeros(p), d, covariance)
    best = theory.optimal_error(np.zeros(p), d, covariance)
    eigenvalue = covariance.lambda_max(p)
    assert time.perf_counter() - start < 2
    assert best <= error < 0.5
    assert eigenvalue == pytest.approx(1.9 / 0.1, rel=1e-6)
    # R R^-1 = I, by the polarised quadratic form.
    x = covariance.solve(a)
    form = covariance.quadratic_form
    assert (form(x + d) - form(x - d)) / 4 == pytest.approx(a @ d, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theory.as_covariance([1.0, 2.0], 3), "for 2 features, but there are"),
        (lambda: theory.as_covariance(np.eye(2), 3), "for 2 features"),
        (lambda: theory.as_covariance(LowRank(np.ones((2, 1)), 1.0), 3), "loadings is"),
        (lambda: theory.as_covariance(np.ones((2, 2, 2)), 2), "number, a vector"),
        (lambda: theory.as_covariance(-1.0, 2), "positive and finite"),
        (lambda: AR1(1.0), "between -1 and 1"),
        (lambda: AR1(0.5, np.ones((2, 2))).diagonal(2), "a number or a vector"),
        (lambda: LowRank(np.ones((2, 1, 1)), 1.0), "shape"),
        (lambda: Dense(np.ones((2, 3))), "square"),
        (lambda: Dense([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda: Dense([[1.0, 2.0], [2.0, 1.0]]).solve(np.ones(2)), "not positive def"),
    ],
)
def test_wrong_covariances_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# Error rates (equation 5)


@pytest.mark.parametrize("kind", KINDS)
def test_error_rate_equals_simulation(kind: str) -> None:
    given, full = COVARIANCES[kind]
    rng = np.random.default_rng(1)
    means = rng.normal(size=(2, P))
    coef = rng.normal(size=P)
    intercept = -coef @ means.mean(0) + 0.3
    n = 100_000
    noise = rng.multivariate_normal(np.zeros(P), full, size=n)
    wrong = [
        np.mean((means[0] + noise) @ coef + intercept > 0),
        np.mean((means[1] + noise) @ coef + intercept <= 0),
    ]
    errors = theory.error_rates(coef, intercept, *means, given)
    assert errors == pytest.approx(wrong, abs=4 * 0.5 / np.sqrt(n))
    for prior in ((0.5, 0.5), (0.9, 0.1)):
        rate = theory.error_rate(coef, intercept, *means, given, prior)
        assert rate == pytest.approx(np.dot(prior, errors), rel=1e-12)


def test_a_rule_without_weights_takes_the_first_class() -> None:
    assert theory.error_rate(np.zeros(3), 0.0, np.zeros(3), np.ones(3), 1.0) == 0.5
    rate = theory.error_rate(
        [[0.0, 0.0]], [1.0], np.zeros(2), np.ones(2), 1.0, (0.8, 0.2)
    )
    assert rate == 0.8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.8, 0.2)])
def test_optimal_error_is_that_of_the_bayes_rule(
    kind: str, prior: tuple[float, float]
) -> None:
    given, full = COVARIANCES[kind]
    rng = np.random.default_rng(4)
    mean1, mean2 = rng.normal(size=(2, P))
    best = theory.optimal_error(mean1, mean2, given, prior)
    coef = np.linalg.solve(full, mean2 - mean1)
    intercept = -coef @ (mean1 + mean2) / 2 + np.log(prior[1] / prior[0])
    rule = theory.error_rate(coef, intercept, mean1, mean2, full, prior)
    assert best == pytest.approx(rule, rel=1e-9)
    for _ in range(20):
        other = coef + 0.3 * rng.normal(size=P)
        shift = intercept + 0.3 * rng.normal()
        assert theory.error_rate(other, shift, mean1, mean2, given, prior) >= best


def test_optimal_error_of_classes_that_need_no_data() -> None:
    same = np.ones(3)
    assert theory.optimal_error(same, same, 1.0, (0.7, 0.3)) == pytest.approx(0.3)
    assert theory.optimal_error(same, 2 * same, 1.0, (1.0, 0.0)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_c_p_is_the_distance_without_correlation(kind: str) -> None:
    given, full = COVARIANCES[kind]
    d = np.arange(1.0, P + 1)
    expected = d @ np.diag(1 / np.diag(full)) @ d
    assert theory.c_p(d, np.zeros(P), given) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), 0.0, np.ones(2), np.ones(3), 1.0), "mean1 must be a vector of 3"),
        (
            (np.ones(2), [0.0, 1.0], np.ones(2), np.ones(2), 1.0),
            "intercept must be one",
        ),
        ((np.ones(2), 0.0, np.ones(2), [0, np.nan], 1.0), "mean2 must be finite"),
        (([], 0.0, [], [], 1.0), "coef must be a vector"),
        ((np.ones(2), 0.0, np.ones(2), np.ones(2), 1.0, (1, 2)), "class_prior"),
    ],
)
def test_wrong_rules_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        theory.error_rate(*arguments)


# The worst case (equation 6, Theorem 1)


def random_correlation(rng: np.random.Generator, p: int, bound: float) -> np.ndarray:
    """A correlation matrix with largest eigenvalue at the bound, or below it."""
    x = rng.normal(size=(p, rng.integers(1, p + 1)))
    R = correlation(x @ x.T)
    top = np.linalg.eigvalsh(R)[-1]
    weight = min(1.0, (bound - 1) / (top - 1))
    return weight * R + (1 - weight) * np.eye(p)


def test_no_correlation_is_worse_than_the_worst_case() -> None:
    rng = np.random.default_rng(5)
    p = 5
    for _ in range(200):
        bound = rng.uniform(1, p)
        coef, mean1, mean2 = rng.normal(size=(3, p))
        variance = rng.uniform(0.5, 2, p)
        intercept = rng.normal()
        prior = (0.3, 0.7)
        rule = coef, intercept, mean1, mean2
        worst = theory.worst_case_error(*rule, variance, bound, prior)
        for _ in range(5):
            R = random_correlation(rng, p, bound)
            S = R * np.sqrt(np.outer(variance, variance))
            assert theory.error_rate(*rule, S, prior) <= worst + 1e-12


@pytest.mark.parametrize("bound", [1.3, 2.0, 3.5, 6.0])
@pytest.mark.parametrize("side", ["largest", "least"])
def test_a_correlation_matrix_reaches_the_range(bound: float, side: str) -> None:
    # Ascent over correlation matrices: a step along u u', then alternating
    # projections on {diag = 1} and {0 <= R <= bound}.
    u = np.array([3.0, 2.0, 1.0, 1.0, 0.8, 0.7, 0.6, 0.5])
    sign = 1 if side == "largest" else -1
    step = sign * np.outer(u, u) / (u @ u)
    R = np.eye(u.size)
    for size in np.repeat([1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4], 40):
        R = R + size * step
        for _ in range(15):
            values, vectors = np.linalg.eigh(R)
            R = vectors * np.clip(values, 0, bound) @ vectors.T
            np.fill_diagonal(R, 1.0)
    low, high = variance_range(u, bound)
    end = high if side == "largest" else low
    assert u @ R @ u == pytest.approx(end, abs=0.01 * (u @ u))


def test_the_range_is_that_of_the_proof_when_no_weight_dominates() -> None:
    u = RNG.uniform(0.9, 1.1, 100)
    low, high = variance_range(u, 7.0)
    assert high == pytest.approx(7 * (u @ u), rel=1e-12)
    assert low == pytest.approx(0, abs=1e-9)
    assert variance_range(u, 1.0) == pytest.approx((u @ u, u @ u))
    assert variance_range(np.array([2.0, 0.0]), 5.0) == pytest.approx((4, 4))
    assert variance_range(u, 1e9)[1] == pytest.approx(u.sum() ** 2)


def test_worst_case_without_correlation_is_the_error() -> None:
    rng = np.random.default_rng(6)
    coef, mean1, mean2 = rng.normal(size=(3, P))
    rule = coef, 0.1, mean1, mean2
    worst = theory.worst_case_error(*rule, VARIANCE, 1.0)
    assert worst == pytest.approx(theory.error_rate(*rule, VARIANCE), rel=1e-12)


def test_worst_case_of_a_mean_on_the_wrong_side() -> None:
    ones = np.ones(50)
    # Both wrong: no spread is the worst, and reached.
    assert theory.worst_case_error(ones, 0.0, ones, -ones, 1.0, 3.0) == 1
    # One wrong: the maximum over a fine grid of spreads.
    rule = np.ones(50), 0.0, -0.2 * ones, -0.05 * ones
    spreads = np.sqrt(np.linspace(1e-6, 150, 20_001))
    grid = 0.5 * ndtr(-10 / spreads) + 0.5 * ndtr(2.5 / spreads)
    worst = theory.worst_case_error(*rule, 1.0, 3.0)
    assert worst == pytest.approx(grid.max(), abs=1e-6)
    assert worst > max(grid[0], grid[-1]) - 1e-6


def test_optimal_worst_case_is_reached_along_an_eigenvector() -> None:
    p, bound = 8, 3.0
    rho = (bound - 1) / (p - 1)
    S = (1 - rho) * np.eye(p) + rho
    d = np.full(p, 0.7)
    c = theory.c_p(d, np.zeros(p), S)
    for prior in ((0.5, 0.5), (0.8, 0.2)):
        worst = theory.optimal_worst_case(c, bound, prior)
        reached = theory.optimal_error(d, np.zeros(p), S, prior)
        assert worst == pytest.approx(reached, rel=1e-12)
    rng = np.random.default_rng(7)
    worst = theory.optimal_worst_case(c, bound)
    for _ in range(100):
        R = random_correlation(rng, p, bound) + 1e-6 * np.eye(p)
        d = rng.normal(size=p)
        d *= np.sqrt(c / theory.c_p(d, np.zeros(p), R))
        assert theory.optimal_error(d, np.zeros(p), R) <= worst + 1e-4
    # The independence rule on d reaches it as well: Theorem 1's leading term.
    d = np.full(p, 0.7)
    rule = theory.worst_case_error(d, 0.0, -d / 2, d / 2, 1.0, bound)
    assert rule == pytest.approx(worst, rel=1e-12)


def test_theorem1_bound_tends_to_the_optimal_worst_case() -> None:
    c, bound = 9.0, 2.5
    limit = theory.optimal_worst_case(c, bound)
    n = 10.0 ** np.arange(1, 13)
    curve = theory.theorem1_bound(n, c, 30, 100, bound)
    assert (np.diff(curve) < 0).all()
    assert curve[-1] == pytest.approx(limit, rel=1e-4)
    exact = theory.theorem1_bound(20, c, 30, 100, bound, constant=0.0)
    assert exact == pytest.approx(limit, rel=1e-12)


def test_theorem1_bound_holds_for_hard_thresholding_in_simulation() -> None:
    rng = np.random.default_rng(8)
    p, s, n, effect, b, bound = 2000, 20, 100, 0.8, 4.0, 2.0
    d = np.where(np.arange(p) < s, effect, 0.0)
    eta = np.sqrt(n / 2) * d
    worst, eps = [], []
    for _ in range(50):
        mean1, mean2 = rng.normal(size=(2, p)) / np.sqrt(n) + [np.zeros(p), d]
        z = np.sqrt(n / 2) * (mean2 - mean1)
        hat = np.where(np.abs(z) > b, z, 0.0)
        eps.append(np.sum((hat - eta)[:s] ** 2))
        middle = -hat @ (mean1 + mean2) / 2
        worst.append(theory.worst_case_error(hat, middle, np.zeros(p), d, 1.0, bound))
    c = theory.c_p(np.zeros(p), d, 1.0)
    limit = theory.optimal_worst_case(c, bound)
    upper = theory.theorem1_bound(n, c, s, np.mean(eps), bound)
    assert limit <= np.mean(worst) <= upper


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.optimal_worst_case(-1.0, 2.0),
        lambda: theory.optimal_worst_case(1.0, 0.5),
        lambda: theory.worst_case_error([1.0], 0.0, [0.0], [1.0], 1.0, 0.5),
        lambda: theory.worst_case_error([1.0], 0.0, [0.0], [1.0], [[1.0]], 2.0),
        lambda: theory.theorem1_bound(0, 1.0, 1, 1, 1.0),
        lambda: theory.theorem1_bound(10, 1.0, 1, 1, 0.5),
    ],
)
def test_what_is_outside_the_parameter_space_is_refused(call: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        call()


# Conditions 1 and 2

PRIOR = DiscretePrior([-3.0, 0.0, 4.0], [0.02, 0.95, 0.03])


def sparse_rule(z: np.ndarray) -> np.ndarray:
    return shrinkage.sparse(z, PRIOR.posterior(z), 0.5)


def mean_rule(z: np.ndarray) -> np.ndarray:
    return PRIOR.posterior(z).mean


def soft_rule(z: np.ndarray) -> np.ndarray:
    return np.sign(z) * np.maximum(np.abs(z) - 1.7, 0)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [sparse_rule, mean_rule, soft_rule])
@pytest.mark.parametrize("df", [None, 6.0])
def test_the_fourth_moment_equals_an_integral_and_simulation(
    rule: Any, df: float | None
) -> None:
    null = stats.norm if df is None else stats.t(df)
    found = theory.check_conditions(rule, df=df)
    z = np.linspace(-1000, 1000, 2_000_001)
    fourth = rule(z) ** 4 * null.pdf(z)
    expected = integrate.trapezoid(fourth, z)
    assert found.fourth_moment == pytest.approx(expected, rel=2e-3)
    draws = rule(null.rvs(size=200_000, random_state=9)) ** 4
    error = draws.std() / np.sqrt(draws.size)
    if df is None:  # with six degrees of freedom the draws have no variance
        assert abs(draws.mean() - found.fourth_moment) < 4 * error


def test_thresholds_are_found() -> None:
    b = theory.check_conditions(sparse_rule).threshold
    assert PRIOR.posterior(b).prob_zero > 0.5
    other = max(PRIOR.posterior(s * (b + 1e-9)).prob_zero <= 0.5 for s in (-1.0, 1.0))
    assert other
    assert theory.check_conditions(soft_rule).threshold == pytest.approx(1.7, abs=1e-12)
    assert not theory.check_conditions(mean_rule).condition1
    assert theory.check_conditions(lambda z: z).threshold == 0
    nothing = theory.check_conditions(np.zeros_like)
    assert nothing.threshold == 64
    assert nothing.fourth_moment == 0


@pytest.mark.parametrize("df", [2.0, 4.0, 4.5, 10.0])
def test_the_fourth_moment_of_t_itself(df: float) -> None:
    found = theory.check_conditions(lambda z: z, df=df)
    expected = 3 * df**2 / ((df - 2) * (df - 4)) if df > 4 else np.inf
    assert found.fourth_moment == pytest.approx(expected, rel=1e-6)
    assert found.condition2 is (df > 4)
    # A bounded estimate has every moment.
    assert theory.check_conditions(np.tanh, df=df).condition2


def test_estimates_tell_what_their_function_does() -> None:
    z = np.random.default_rng(10).normal(size=20_000) * 2
    exact = theory.check_conditions(sparse_rule)
    seen = theory.check_conditions(sparse_rule(z), z)
    assert seen.threshold == pytest.approx(exact.threshold, abs=0.01)
    assert seen.threshold <= exact.threshold
    assert seen.fourth_moment == pytest.approx(exact.fourth_moment, rel=0.03)
    assert theory.check_conditions(np.zeros(3), [1.0, -2.0, 0.5]).threshold == 2
    assert theory.check_conditions(np.ones(2), [1.0, 2.0]).threshold == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(2),), "z must be given if eta_hat is an array"),
        ((np.tanh, np.ones(2)), "must not be given if eta_hat is a function"),
        ((np.ones(2), np.ones(3)), "eta_hat must be a vector of"),
        ((np.ones(2), [0.0, np.inf]), "must be finite"),
        ((np.tanh, None, -1.0), "df must be positive"),
        ((lambda z: np.full_like(z, np.nan),), "finite for every"),
    ],
)
def test_wrong_estimates_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        theory.check_conditions(*arguments)


# Planning


def simulated_errors(
    n: int, prior: DiscretePrior, p: int, rule: str, reps: int, fixed: bool = False
) -> np.ndarray:
    """Exact errors of the classifier over training sets with known variances."""
    rng = np.random.default_rng(11)
    scale = np.sqrt(2 / n)
    errors = np.empty(reps)
    for i in range(reps):
        if fixed:
            d = np.repeat(prior.atoms, np.rint(p * prior.weights).astype(int))
        else:
            d = rng.choice(prior.atoms, p, p=prior.weights)
        mean1, mean2 = rng.normal(size=(2, p)) / np.sqrt(n)
        mean2 = mean2 + d
        z = (mean2 - mean1) / scale
        posterior = prior.rescale(1 / scale).posterior(z)
        eta = (
            z
            if rule == "none"
            else shrinkage.SHRINKAGES[rule].estimate(z, posterior, 0.5)
        )
        middle = -eta @ (mean1 + mean2) / 2
        errors[i] = theory.error_rate(eta, middle, np.zeros(p), d, 1.0)
    return errors


EFFECTS = DiscretePrior([-0.4, 0.0, 0.7], [0.02, 0.96, 0.02])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["mean", "sparse", "hard", "none"])
@pytest.mark.parametrize("fixed", [False, True])
def test_expected_error_equals_simulation(rule: str, fixed: bool) -> None:
    p, sizes = 2000, [8, 15, 30, 100]
    curve = theory.expected_error(
        sizes, EFFECTS, n_features=p, rule=rule, fixed_counts=fixed
    )
    for n, expected in zip(sizes, curve, strict=True):
        errors = simulated_errors(n, EFFECTS, p, rule, 200, fixed)
        standard_error = errors.std() / np.sqrt(errors.size)
        assert abs(errors.mean() - expected) < 3.5 * standard_error + 1e-12, n


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["mean", "sparse"])
def test_expected_error_is_right_for_a_handful_of_features(rule: str) -> None:
    # No Gaussian limit here: often no feature at all passes the threshold.
    prior = DiscretePrior([0.0, 1.0], [0.9, 0.1])
    for p in (1, 5):
        expected = theory.expected_error(8, prior, n_features=p, rule=rule)
        errors = simulated_errors(8, prior, p, rule, 3000)
        standard_error = errors.std() / np.sqrt(errors.size)
        assert abs(errors.mean() - expected) < 3.5 * standard_error


def test_expected_error_is_the_limit_measured_for_table_1() -> None:
    # research.md, section 3: 50 simulated sets per row.
    rows = {(1, 1000): 0.0260, (1, 500): 0.1490, (2, 200): 0.0279, (3, 50): 0.0288}
    for (effect, signals), limit in rows.items():
        expected = theory.expected_error(
            25,
            [effect / np.sqrt(12.5)],
            1 - signals / 10_000,
            n_features=10_000,
            fixed_counts=True,
        )
        assert expected == pytest.approx(limit, rel=0.06)


def test_expected_error_with_known_effects_is_normal() -> None:
    # One atom: the rule knows d, and only the midpoint is noisy.
    n, d = 4, 0.5
    for p in (1, 10, 4000):
        spread = np.sqrt(1 + 1 / (2 * n))
        exact = ndtr(-np.sqrt(p) * d / (2 * spread))
        for fixed in (False, True):
            expected = theory.expected_error(n, [d], n_features=p, fixed_counts=fixed)
            assert expected == pytest.approx(exact, rel=1e-7)


def test_expected_error_with_many_samples_is_optimal() -> None:
    d = np.repeat([0.0, 0.6], [90, 10])
    expected = theory.expected_error(
        10**6, [0.6], 0.9, n_features=100, fixed_counts=True
    )
    assert expected == pytest.approx(theory.optimal_error(0 * d, d, 1.0), rel=1e-4)


def test_expected_error_without_effects_is_a_half() -> None:
    for rule in ("mean", "sparse", "none"):
        half = theory.expected_error(10, [0.0], n_features=50, rule=rule)
        assert half == pytest.approx(0.5, abs=1e-9)
    assert theory.expected_error(10, [1.0], pi0=1.0, n_features=50) == 0.5


def test_expected_error_takes_effects_in_any_form() -> None:
    prior = theory.expected_error([5, 20], EFFECTS, n_features=500)
    listed = theory.expected_error(
        [5, 20], [0.7, -0.4, 0.0], weights=[1, 1, 48], n_features=500
    )
    others = theory.expected_error([5, 20], [0.7, -0.4], 0.96, n_features=500)
    np.testing.assert_allclose(listed, prior, rtol=1e-8)
    np.testing.assert_allclose(others, prior, rtol=1e-8)
    assert prior.shape == (2,)
    assert prior[0] > prior[1]
    one = theory.expected_error(5, EFFECTS, n_features=500)
    assert np.ndim(one) == 0
    assert one == prior[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n must be at least 1"),
        ({"n_features": 0}, "n_features must be"),
        ({"rule": "best"}, "rule must be one of"),
        ({"pi0": 1.5}, "pi0 must lie"),
        ({"weights": [1.0, 2.0]}, "vectors of one length"),
        ({"weights": [-1.0]}, "non-negative"),
        ({"effects": EFFECTS, "weights": [1.0]}, "is a prior"),
    ],
)
def test_a_study_that_cannot_be_planned_is_refused(changes: Any, message: str) -> None:
    study = {"n": 10, "effects": [0.5], "n_features": 100} | changes
    with pytest.raises(ValueError, match=message):
        theory.expected_error(**study)


def test_objects_are_the_public_ones() -> None:
    assert isinstance(theory.as_covariance(1.0, 3), Diagonal)
    assert isinstance(AR1(0.1), theory.Covariance)


# Elliptical distributions.


def test_an_elliptical_error_is_that_of_drawn_samples() -> None:
    rng = np.random.default_rng(0)
    n, p, df = 200_000, 5, 2.5
    mean1, mean2, coef = rng.normal(size=(3, p))
    S = np.cov(rng.normal(size=(p, 3 * p)))
    prior = (0.7, 0.3)
    codes = (rng.random(n) < prior[1]).astype(int)
    u = rng.normal(size=(n, p)) @ np.linalg.cholesky(S).T
    mixed = theory.MixedScale([0.5, 1.0, 8.0], [0.3, 0.5, 0.2])
    for scale, s in (
        (theory.StudentScale(df), np.sqrt(df / rng.chisquare(df, n))),
        (mixed, rng.choice([0.5, 1.0, 8.0], n, p=[0.3, 0.5, 0.2])),
    ):
        x = np.stack([mean1, mean2])[codes] + s[:, None] * u
        drawn = np.mean((x @ coef + 0.3 > 0) != codes)
        exact = theory.elliptical_error_rate(coef, 0.3, mean1, mean2, S, scale, prior)
        assert exact == pytest.approx(drawn, abs=4 * np.sqrt(0.25 / n))


def test_scales_of_one_are_the_normal_distribution() -> None:
    rng = np.random.default_rng(1)
    mean1, mean2, coef = rng.normal(size=(3, 4))
    rule = coef, -0.2, mean1, mean2, theory.AR1(0.5)
    normal = theory.error_rate(*rule, (0.4, 0.6))
    for scale in (theory.StudentScale(np.inf), theory.MixedScale([1.0], [1.0])):
        found = theory.elliptical_error_rate(*rule, scale, (0.4, 0.6))
        assert found == pytest.approx(normal, rel=1e-12)
    nearly = theory.elliptical_error_rate(*rule, theory.StudentScale(1e9), (0.4, 0.6))
    assert nearly == pytest.approx(normal, rel=1e-6)
    nothing = theory.elliptical_error_rate(
        np.zeros(4), 1.0, mean1, mean2, 1.0, theory.StudentScale(1), (0.4, 0.6)
    )
    assert nothing == 0.4


def test_the_t_distribution_is_a_mixture_over_its_scale() -> None:
    q = (np.arange(20_000) + 0.5) / 20_000
    s = np.sqrt(3 / stats.chi2(3).ppf(q))
    mixture = theory.MixedScale(s, np.full(len(q), 1 / len(q)))
    for margin in (-1.0, 0.0, 0.5, 2.0, 6.0):
        exact = theory.StudentScale(3).tail(margin)
        assert mixture.tail(margin) == pytest.approx(exact, abs=1e-4)


def test_the_best_linear_rule_is_that_of_the_normal_distribution() -> None:
    """With equal classes and any scale, among rules of other directions and cuts."""
    rng = np.random.default_rng(2)
    S, d = np.cov(rng.normal(size=(4, 12))), rng.normal(size=4)
    scale = theory.StudentScale(1.5)
    best = np.linalg.solve(S, d)
    least = theory.elliptical_error_rate(best, -best @ d / 2, np.zeros(4), d, S, scale)
    for _ in range(20):
        a, b = best + 0.3 * rng.normal(size=4), -best @ d / 2 + 0.3 * rng.normal()
        assert theory.elliptical_error_rate(a, b, np.zeros(4), d, S, scale) > least


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theory.StudentScale(0.0), "df must be positive"),
        (lambda: theory.MixedScale([1.0, -1.0], [0.5, 0.5]), "values must be positive"),
        (lambda: theory.MixedScale([1.0], [0.5, 0.5]), "values must be positive"),
        (lambda: theory.MixedScale([1.0, 2.0], [0.5, 0.6]), "sum to one"),
    ],
)
def test_impossible_scales_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
