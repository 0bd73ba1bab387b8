"""Covariances: against explicit matrices, there and back, and when they stand aside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ebda.covariance import COVARIANCES, Covariance, Decorrelated, Diagonal, Summary
from ebda.covariance.factor import Factors
from ebda.covariance.neighbours import Autoregression
from ebda.covariance.sparse import Sparse
from ebda.data import RowSamples
from ebda.datasets import make_factor_classes, make_two_class
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.moments.contrasts import Contrasts, class_contrasts
from ebda.moments.variance import VARIANCES, pooled
from ebda.rule.linear_rule import linear_rule
from ebda.rule.shrinkage import SHRINKAGES

P = 30


def factor_covariance(k: int = 2, p: int = P, seed: int = 0) -> Factors:
    rng = np.random.default_rng(seed)
    loadings = rng.uniform(-0.8, 0.8, size=(p, k)) / np.sqrt(k)
    return Factors(loadings, 1 - (loadings**2).sum(axis=1))


def neighbour_covariance(rho: float = 0.9) -> Autoregression:
    constant = np.zeros(P, dtype=bool)
    constant[[0, 7, 8, P - 1]] = True
    return Autoregression(rho, constant)


def sparse_covariance() -> Sparse:
    """Every third feature has no partners."""
    rng = np.random.default_rng(2)
    connected = np.flatnonzero(np.arange(P) % 3)
    L = np.tril(rng.uniform(-0.8, 0.8, (len(connected),) * 2), -1)
    L[rng.random(L.shape) < 0.8] = 0.0
    return Sparse(connected, sparse.csr_array(L + 1.2 * np.eye(len(L))), 40)


def correlation_of(covariance: Covariance) -> np.ndarray:
    """The explicit matrix; constants, which have no noise, as if independent."""
    match covariance:
        case Factors(loadings=L, specific=psi):
            return L @ L.T + np.diag(psi)
        case Autoregression(rho=rho, constant=constant):
            varying = np.flatnonzero(~constant)
            place = np.arange(len(varying))
            R = np.eye(len(constant))
            R[np.ix_(varying, varying)] = rho ** np.abs(np.subtract.outer(place, place))
            return R
        case Diagonal():
            return np.eye(P)
        case Sparse(connected=connected, root=root):
            inverse = np.eye(P)
            inverse[np.ix_(connected, connected)] = (root.T @ root).toarray()
            return np.linalg.inv(inverse)
    raise TypeError


MODELS: dict[str, Any] = {
    "diagonal": Diagonal,
    "factor": factor_covariance,
    "four factors": lambda: factor_covariance(k=4, seed=3),
    "neighbours": neighbour_covariance,
    "against each other": lambda: neighbour_covariance(-0.6),
    "sparse": sparse_covariance,
}
model = pytest.mark.parametrize("name", MODELS)


def constants_of(covariance: Covariance) -> np.ndarray:
    return getattr(covariance, "constant", np.zeros(P, dtype=bool))


@model
@pytest.mark.parametrize("rows", [1, 3])
def test_solve_is_the_inverse_of_the_explicit_matrix(name: str, rows: int) -> None:
    covariance = MODELS[name]()
    d = np.random.default_rng(4).normal(size=(rows, P))
    d[:, constants_of(covariance)] = 0.0
    before = d.copy()
    want = np.linalg.solve(correlation_of(covariance), d.T).T
    np.testing.assert_allclose(covariance.solve(d), want, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(d, before)


@model
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_rule_is_the_difference_over_the_explicit_covariance(
    name: str, variance: str, n_classes: int
) -> None:
    """Its coefficients are the inverse of S R S times the estimated differences."""
    covariance = MODELS[name]()
    rng = np.random.default_rng(20)
    codes = np.arange(17) % n_classes
    X = rng.normal(size=(17, P)) * rng.uniform(0.3, 3.0, P) + codes[:, None]
    constant = constants_of(covariance)
    X[:, constant] = 0.1
    moments = class_moments(X, codes, n_classes)
    contrasts = class_contrasts(moments, VARIANCES[variance].estimate(moments))
    np.testing.assert_array_equal(contrasts.constant, constant)
    eta = rng.normal(size=contrasts.z.shape)
    S = np.diag(np.sqrt(contrasts.variance))
    d = eta * contrasts.scale  # zero for constants
    want = np.linalg.solve(S @ correlation_of(covariance) @ S, d.T).T
    rule = linear_rule(
        moments, contrasts, eta, covariance, np.full(n_classes, 1 / n_classes)
    )
    np.testing.assert_allclose(rule.coef, want, rtol=1e-9, atol=1e-9)
    # Within a class the scores vary as the covariance has it.
    assert rule.score_sd**2 == pytest.approx(np.sum(want * d), rel=1e-9)


@model
def test_there_and_back(name: str) -> None:
    covariance = MODELS[name]()
    z = np.random.default_rng(5).normal(size=(2, P))
    z[:, constants_of(covariance)] = 0.0
    before = z.copy()
    values = covariance.decorrelate(z)
    if isinstance(covariance, Factors):  # without the shrinkage of g
        L, psi = covariance.loadings, covariance.specific
        weighted = L / psi[:, None]
        g = np.linalg.solve(L.T @ weighted, weighted.T @ z.T).T
        values = Decorrelated(values.z, g)
    np.testing.assert_allclose(covariance.restore(values.z, values), z, atol=1e-10)
    np.testing.assert_array_equal(z, before)


def test_diagonal_leaves_contrasts_alone() -> None:
    z = np.random.default_rng(6).normal(size=(2, P))
    covariance = Diagonal()
    values = covariance.decorrelate(z)
    np.testing.assert_array_equal(values.z, z)
    np.testing.assert_array_equal(covariance.restore(z, values), z)
    slope = np.random.default_rng(7).random((2, P))
    np.testing.assert_allclose(values.divergence(slope), slope)


@pytest.mark.parametrize("k", [1, 4])
def test_factors_leave_white_noise_but_for_their_own_directions(k: int) -> None:
    covariance = factor_covariance(k)
    A = covariance.decorrelate(np.eye(P)).z.T  # rows are inputs
    noise = A @ correlation_of(covariance) @ A.T
    # I less a projection on the k directions that g was fitted to.
    lost = np.eye(P) - noise
    np.testing.assert_allclose(lost @ lost, lost, atol=1e-10)
    assert np.trace(lost) == pytest.approx(k)
    L, psi = covariance.loadings, covariance.specific
    np.testing.assert_allclose(A @ L, 0.0, atol=1e-10)
    np.testing.assert_allclose(lost @ (L.T / np.sqrt(psi)).T, (L.T / np.sqrt(psi)).T)


def test_noise_of_the_model_comes_out_white_and_effects_stay() -> None:
    rng = np.random.default_rng(8)
    p, n = 200, 4000
    covariance = factor_covariance(p=p)
    eta = np.zeros(p)
    eta[::20] = 5.0
    root = np.linalg.cholesky(correlation_of(covariance))
    values = covariance.decorrelate(eta + rng.normal(size=(n, p)) @ root.T)
    empirical = np.cov(values.z.T)
    assert np.abs(empirical - np.eye(p)).max() < 0.12  # 5 standard errors and P
    assert np.mean(np.diag(empirical)) == pytest.approx(1.0, abs=0.02)
    want = covariance.decorrelate(eta[None, :]).z[0]
    np.testing.assert_allclose(values.z.mean(axis=0), want, atol=5 / np.sqrt(n))


def test_a_difference_of_factors_is_kept_as_far_as_it_is_no_chance() -> None:
    covariance = factor_covariance(k=2)
    L = covariance.loadings
    for size, kept in [(0.9, 0.0), (2.0, 0.5), (100.0, 1 - 2 / 1e4)]:
        g = size * np.array([[0.6, 0.8]])
        values = covariance.decorrelate(g @ L.T)
        np.testing.assert_allclose(values.z, 0.0, atol=1e-10)
        np.testing.assert_allclose(values.common, kept * g, atol=1e-9)
        back = covariance.restore(values.z, values)
        np.testing.assert_allclose(back, kept * g @ L.T, atol=1e-9)


def test_no_difference_at_all_is_no_error() -> None:
    values = factor_covariance().decorrelate(np.zeros((1, P)))
    np.testing.assert_array_equal(values.z, 0.0)
    np.testing.assert_array_equal(values.common, 0.0)
    assert np.isfinite(values.divergence(np.ones((1, P)))).all()


@pytest.mark.parametrize("common", [0.0, 1.5, 8.0], ids=["chance", "some", "much"])
@model
def test_the_divergence_is_that_of_the_estimate(name: str, common: float) -> None:
    covariance = MODELS[name]()
    varying = np.flatnonzero(~constants_of(covariance))
    z = 2 * np.random.default_rng(9).normal(size=(1, P))
    z[:, constants_of(covariance)] = 0.0
    if isinstance(covariance, Factors):
        L = covariance.loadings
        weighted = L / covariance.specific[:, None]
        g = np.linalg.solve(L.T @ weighted, weighted.T @ z[0])
        # Make |g|^2 this many times the number of factors.
        z += g * (np.sqrt(common * len(g) / (g @ g)) - 1) @ L.T

    def eta(z: np.ndarray) -> np.ndarray:
        values = covariance.decorrelate(z)
        return covariance.restore(values.z - np.tanh(values.z), values)[0]

    step, want = 1e-5, 0.0
    for j in varying:
        above, below = z.copy(), z.copy()
        above[0, j] += step
        below[0, j] -= step
        want += (eta(above)[j] - eta(below)[j]) / (2 * step)
    values = covariance.decorrelate(z)
    slope = np.tanh(values.z) ** 2
    slope[:, constants_of(covariance)] = 0.0
    np.testing.assert_allclose(values.divergence(slope).sum(axis=1), [want], rtol=1e-6)


def test_stein_s_identity_holds_for_the_factor_part() -> None:
    """E noise' R^-1 eta(z) is the mean divergence."""
    rng = np.random.default_rng(10)
    covariance = factor_covariance(k=4)
    R = correlation_of(covariance)
    noise = rng.normal(size=(50_000, P)) @ np.linalg.cholesky(R).T
    z = noise + np.array([1.0, 0.5, -0.5, 0.2]) @ covariance.loadings.T
    values = covariance.decorrelate(z)
    zero = np.zeros_like(z)
    product = np.sum(noise @ np.linalg.inv(R) * covariance.restore(zero, values), 1)
    error = np.std(product) / np.sqrt(len(product))
    got = np.mean(values.divergence(zero).sum(axis=1))
    assert got == pytest.approx(np.mean(product), abs=4 * error)


def test_without_factors_or_correlation_all_are_the_diagonal() -> None:
    d = np.random.default_rng(12).normal(size=(2, P))
    np.testing.assert_array_equal(Diagonal().solve(d), d)
    weak = Factors(np.full((P, 1), 1e-9), np.ones(P))
    apart = Autoregression(0.0, np.zeros(P, dtype=bool))
    for covariance in (weak, apart):
        np.testing.assert_allclose(covariance.solve(d), d, rtol=1e-9)
    np.testing.assert_array_equal(apart.decorrelate(d).z, d)


def test_components_say_what_they_are() -> None:
    facts = {
        name: (covariance.is_diagonal, covariance.n_factors)
        for name, covariance in ((name, make()) for name, make in MODELS.items())
    }
    assert facts == {
        "diagonal": (True, 0),
        "factor": (False, 2),
        "four factors": (False, 4),
        "neighbours": (False, 0),
        "against each other": (False, 0),
        "sparse": (False, 0),
    }


@given(seed=st.integers(0, 1000), k=st.integers(1, 4))
def test_solve_is_symmetric_and_positive(seed: int, k: int) -> None:
    covariance = factor_covariance(k, seed=seed)
    inverse = covariance.solve(np.eye(P))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-9)
    assert np.linalg.eigvalsh(inverse)[0] > 0


def kept(X: np.ndarray, codes: np.ndarray) -> RowSamples:
    return RowSamples.of(X, codes, None)


def estimated(
    name: str, X: np.ndarray, codes: np.ndarray
) -> tuple[Covariance, Contrasts, ClassMoments]:
    moments = class_moments(X, codes, int(codes.max()) + 1)
    contrasts = class_contrasts(moments, pooled(moments))
    covariance = COVARIANCES[name](Summary(moments, contrasts, kept(X, codes)))
    return covariance, contrasts, moments


def autoregressive(rho: float, p: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    sim = make_two_class(20, p, n_signals=20, rho=rho, random_state=0)
    return sim.data, (sim.target == "b").astype(int)


@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_neighbours_are_used_where_they_are_alike(rho: float) -> None:
    found, contrasts, _ = estimated("neighbours", *autoregressive(rho))
    assert isinstance(found, Autoregression)
    assert found.rho == pytest.approx(rho, abs=0.03)
    # Contrasts stay as they are: their prior knows of the noise.
    np.testing.assert_array_equal(found.decorrelate(contrasts.z).z, contrasts.z)


@pytest.mark.parametrize(("rho", "p"), [(0.0, 2000), (0.15, 2000), (0.9, 8), (0.6, 20)])
def test_neighbours_that_may_be_alike_by_chance_are_not_used(
    rho: float, p: int
) -> None:
    sim = make_two_class(20, p, n_signals=0, rho=rho, random_state=0)
    codes = (sim.target == "b").astype(int)
    assert isinstance(estimated("neighbours", sim.data, codes)[0], Diagonal)


def test_features_without_an_order_have_no_neighbours() -> None:
    X, codes = autoregressive(0.95)
    shuffled = X[:, np.random.default_rng(13).permutation(X.shape[1])]
    assert isinstance(estimated("neighbours", shuffled, codes)[0], Diagonal)
    common = X[:, ::50] + 10 * np.random.default_rng(14).normal(size=(len(X), 1))
    assert isinstance(estimated("neighbours", common, codes)[0], Diagonal)


@pytest.mark.parametrize("every", [20, 10, 3])
def test_constants_do_not_hide_the_order(every: int) -> None:
    X, codes = autoregressive(0.95)
    constant = np.arange(X.shape[1]) % every == 1
    without = estimated("neighbours", X[:, ~constant], codes)[0]
    assert isinstance(without, Autoregression)
    X[:, constant] = 0.1
    got = estimated("neighbours", X, codes)[0]
    assert isinstance(got, Autoregression)
    np.testing.assert_array_equal(got.constant, constant)
    assert got.rho == pytest.approx(without.rho, abs=0.02)


def test_factors_are_used_where_there_are_some() -> None:
    sim = make_factor_classes(n_features=1500, n_test=2, random_state=0)
    codes = (sim.target == "b").astype(int)
    got, _, _ = estimated("factor", sim.data, codes)
    assert isinstance(got, Factors)
    assert got.n_factors == 3
    independent = np.random.default_rng(15).normal(size=sim.data.shape)
    none, _, _ = estimated("factor", independent, codes)
    assert isinstance(none, Diagonal)


@pytest.mark.parametrize("name", COVARIANCES)
def test_those_that_need_samples_say_so(name: str) -> None:
    X, codes = autoregressive(0.9, p=50)
    _, contrasts, moments = estimated("diagonal", X, codes)
    if COVARIANCES[name].needs_samples:
        with pytest.raises(ValueError, match=f"'{name}' needs the samples"):
            COVARIANCES[name](Summary(moments, contrasts, None))
    else:
        assert COVARIANCES[name](Summary(moments, contrasts, None)).is_diagonal


def test_the_facts_of_the_entries() -> None:
    def named(fact: str) -> list[str]:
        return [name for name, entry in COVARIANCES.items() if getattr(entry, fact)]

    assert {"diagonal", "shrunken", "factor", "neighbours"} <= set(named("in_auto"))
    assert set(COVARIANCES) - set(named("in_auto")) == {"sparse"}
    assert "diagonal" not in named("needs_samples")
    assert set(named("needs_samples")) == set(COVARIANCES) - {"diagonal"}
    assert named("needs_order") == ["neighbours"]
    # Where no samples can be held out exactly one of those compared is taken.
    assert len(named("is_usual")) == 1
    assert set(named("is_usual")) <= set(named("in_auto"))
    for entry in COVARIANCES.values():
        assert set(entry.compared) <= set(SHRINKAGES)
        if entry.beside_others is not None:
            assert set(entry.beside_others) < set(entry.compared)
