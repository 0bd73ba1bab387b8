"""Effects along an order: the renewal chain, its posterior, and the rule made of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import ebda
from ebda import EBClassifier
from ebda.covariance.neighbours import Autoregression
from ebda.datasets import make_two_class
from ebda.kernels.chain import messages
from ebda.moments.classwise import class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.moments.variance import pooled
from ebda.paper.repetition import _exact, seed_of
from ebda.paper.studies import TABLES
from ebda.priors import DirichletProcess, DiscretePrior, PointNormalPrior
from ebda.priors.chain import Chains, RenewalChain
from ebda.priors.chain_fit import climb, coarse, fit_chains
from ebda.priors.chain_posterior import ChainPosterior
from ebda.priors.posterior import mean_slope
from ebda.rule.effects import Effects
from ebda.rule.shrinkage import SHRINKAGES
from ebda.sizes import override

G = DiscretePrior([-1.5, 0.0, 2.0], [0.2, 0.5, 0.3])


def chain(
    p: int, q: float = 0.3, rho: float = 0.6, prior: DiscretePrior = G
) -> RenewalChain:
    return RenewalChain(prior, q, rho, np.zeros(p, dtype=bool))


def autoregression(p: int, rho: float) -> np.ndarray:
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def enumerated(
    model: RenewalChain, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Means and covariances of the effects, and the density, over all paths."""
    atoms, weights = model.distribution.atoms, model.distribution.weights
    noise = multivariate_normal(cov=autoregression(len(z), model.rho))
    total, first = 0.0, np.zeros(len(z))
    second = np.zeros((len(z), len(z)))
    for path in itertools.product(range(len(atoms)), repeat=len(z)):
        mass = weights[path[0]]
        for a, b in itertools.pairwise(path):
            mass *= (1 - model.renewal) * (a == b) + model.renewal * weights[b]
        eta = atoms[list(path)]
        mass *= noise.pdf(z - eta)
        total += mass
        first += mass * eta
        second += mass * np.outer(eta, eta)
    mean = first / total
    return mean, second / total - np.outer(mean, mean), float(np.log(total))


@pytest.mark.parametrize("p", [2, 3, 6])
@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.7])
@pytest.mark.parametrize("q", [0.05, 1.0])
@pytest.mark.parametrize("chain_steps", [2, 1 << 16])
def test_the_posterior_is_that_of_all_paths(
    p: int, rho: float, q: float, chain_steps: int
) -> None:
    z = np.random.default_rng(p).normal(size=p) * 2
    model = chain(p, q, rho)
    mean, covariance, log_density = enumerated(model, z)
    with override(chain_steps=chain_steps):
        posterior, found = model.posterior(z[None]), model.smooth(z[None])
    np.testing.assert_allclose(posterior.mean[0], mean, rtol=1e-10)
    variance = np.diag(covariance)
    np.testing.assert_allclose(posterior.sd[0] ** 2, variance, rtol=1e-9, atol=1e-12)
    beside = found.products[0, 0] - mean[1:] * mean[:-1]
    np.testing.assert_allclose(beside, np.diag(covariance, 1), rtol=1e-9, atol=1e-12)
    slope = np.diag(covariance @ np.linalg.inv(autoregression(p, rho)))
    np.testing.assert_allclose(mean_slope(posterior)[0], slope, rtol=1e-9, atol=1e-12)
    of_noise = multivariate_normal(cov=autoregression(p, rho)).logpdf(z)
    assert found.log_likelihood[0] == pytest.approx(log_density - of_noise, rel=1e-10)


def test_slopes_are_the_derivatives_of_the_means() -> None:
    p, h = 30, 1e-5
    z, model = np.random.default_rng(1).normal(size=p) * 2, chain(30)
    want = [
        (model.posterior(z + h * e).mean[j] - model.posterior(z - h * e).mean[j])
        / (2 * h)
        for j, e in enumerate(np.eye(p))
    ]
    np.testing.assert_allclose(mean_slope(model.posterior(z)), want, rtol=1e-5)


@pytest.mark.parametrize("shrinkage", ["mean", "sparse"])
def test_a_chain_that_is_always_renewed_is_the_exchangeable_prior(
    shrinkage: str,
) -> None:
    """With independent noise, it is the rule of independent features."""
    p = 400
    z = np.random.default_rng(2).normal(size=(2, p)) * 2
    got, want = chain(p, 1.0, 0.0).posterior(z), G.posterior(z)
    for name in ("mean", "prob_zero", "sd", "lfsr"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-10)
    np.testing.assert_allclose(mean_slope(got), want.sd**2, rtol=1e-9)
    for a, b in zip(got.interval(), want.interval(), strict=True):
        np.testing.assert_array_equal(a, b)
    estimate = SHRINKAGES[shrinkage].estimate
    np.testing.assert_allclose(
        estimate(z, got, 0.5), estimate(z, want, 0.5), rtol=1e-10
    )
    np.testing.assert_array_equal(chain(p).logpdf(z), G.logpdf(z))


def test_turned_around_it_is_the_same() -> None:
    z, model = np.random.default_rng(3).normal(size=500) * 2, chain(500, 0.05, 0.8)
    there, back = model.posterior(z), model.posterior(z[::-1])
    np.testing.assert_allclose(back.mean[::-1], there.mean, rtol=1e-9)


def test_constants_are_skipped_and_have_no_effect() -> None:
    rng = np.random.default_rng(4)
    constant = rng.random(60) < 0.3
    z = np.where(constant, 0.0, rng.normal(size=(2, 60)))
    model = RenewalChain(G, 0.2, 0.7, constant)
    posterior = model.posterior(z)
    want = chain(int((~constant).sum()), 0.2, 0.7).posterior(z[:, ~constant])
    np.testing.assert_array_equal(posterior.mean[:, ~constant], want.mean)
    np.testing.assert_array_equal(posterior.prob_zero[:, constant], 1.0)
    for name in ("mean", "sd", "mean_slope"):
        np.testing.assert_array_equal(getattr(posterior, name)[:, constant], 0.0)


def test_noise_of_another_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="noise of scale 1"):
        chain(3).posterior(np.zeros(3), 2.0)


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.999])
def test_values_that_no_state_expects_leave_numbers(rho: float) -> None:
    z = np.zeros(300)
    z[[0, 77, 78, 299]] = 50.0, -1e4, 1e6, -60.0
    far = chain(300, 1e-6, rho, DiscretePrior([-60, 0, 50], [0.01, 0.98, 0.01]))
    posterior = far.posterior(z)
    for name in ("mean", "prob_zero", "sd", "lfsr", "mean_slope"):
        assert np.isfinite(getattr(posterior, name)).all()
    assert posterior.mean[[0, 40, -1]] == pytest.approx([50.0, 0.0, -60.0], abs=1e-3)


@given(
    n=st.integers(2, 60),
    k=st.integers(1, 4),
    rows=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_probabilities_and_their_logarithms_agree(
    n: int, k: int, rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sites, pair = rng.normal(size=(k, rows, n)) * 5, rng.normal(size=(k, k)) * 5
    plain, total = messages(sites[None], pair[None], logs=False)
    logs, log_total = messages(sites[None], pair[None], logs=True)
    np.testing.assert_allclose(log_total, total, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(logs), plain, rtol=1e-9, atol=1e-300)
    # Step by step.
    now, want = sites[..., 0], []
    for j in range(1, n):
        now = logsumexp(now[:, None] + pair[:, :, None], axis=0) + sites[..., j]
        want.append(now - logsumexp(now, axis=0))
    np.testing.assert_allclose(logs[0, ..., 1:], np.moveaxis(want, 0, 2), atol=1e-9)
    np.testing.assert_allclose(log_total[0], logsumexp(now, axis=0), rtol=1e-10)


@pytest.mark.parametrize("rows", [1, 400])
def test_chains_side_by_side_do_not_know_of_each_other(rows: int) -> None:
    """Neither the atoms nor the arithmetic of the others matter."""
    models = [
        chain(40),
        chain(40, 0.9, -0.3, DiscretePrior([0.0, 1.0], [0.7, 0.3])),
        chain(40, 1e-3, 0.999, DiscretePrior([-60, 0, 50], [0.01, 0.98, 0.01])),
        chain(40, 0.1, 0.0, DiscretePrior([-3, -1, 0, 1, 2], [1, 1, 4, 2, 1])),
    ]
    z = np.random.default_rng(9).normal(size=(4, rows, 40)) * 2
    together = Chains.of(models).smooth(z)
    for k, model in enumerate(models):
        alone, states = model.smooth(z[k]), len(model.distribution.atoms)
        for name in ("weights", "pairs"):
            got = getattr(together, name)[k, :states]
            got = got[:, :states] if name == "pairs" else got
            np.testing.assert_allclose(got, getattr(alone, name)[0], atol=1e-10)
        np.testing.assert_array_equal(together.weights[k, states:], 0.0)
        for name in ("log_likelihood", "products"):
            got, want = getattr(together, name)[k], getattr(alone, name)[0]
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


# The fit


def simulated(
    p: int, q: float, rho: float, seed: int, rows: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Values and effects of chains with the prior G."""
    rng = np.random.default_rng(seed)
    eta = rng.choice(G.atoms, (rows, p), p=G.weights)
    stays = rng.random((rows, p)) > q
    for j in range(1, p):
        eta[:, j] = np.where(stays[:, j], eta[:, j - 1], eta[:, j])
    root = np.linalg.cholesky(autoregression(p, rho))
    return eta + rng.normal(size=(rows, p)) @ root.T, eta


def fitted(z: np.ndarray, rho: float) -> RenewalChain:
    prior = DirichletProcess().fit(z.ravel()).prior_
    return fit_chains([z], [rho], [prior], np.zeros(z.shape[1], dtype=bool))[0]


@pytest.mark.parametrize("rho", [0.3, 0.7])
@pytest.mark.parametrize("q", [0.03, 0.3])
def test_a_chain_is_recovered(q: float, rho: float) -> None:
    z, eta = simulated(2000, q, rho, seed=5, rows=2)
    model = fitted(z, rho)
    truth = RenewalChain(G, q, rho, model.constant)
    assert model.renewal == pytest.approx(q, rel=0.5)

    def loss(mean: np.ndarray) -> float:
        return float(np.mean((mean - eta) ** 2))

    best = loss(truth.posterior(z).mean)
    assert loss(model.posterior(z).mean) < 1.1 * best + 0.005
    if q < 0.1:
        assert best < 0.7 * loss(G.posterior(z).mean)


def test_effects_that_are_not_alike_are_found_to_be_independent() -> None:
    z, _ = simulated(3000, 1.0, 0.5, seed=6)
    assert fitted(z, 0.5).renewal > 0.7


def test_each_step_is_uphill() -> None:
    z, _ = simulated(800, 0.1, 0.6, seed=7, rows=3)
    model = chain(800, 0.5, 0.6, DiscretePrior([-1, 0, 0.5, 1], [0.1, 0.7, 0.1, 0.1]))
    found = []
    for _ in range(12):
        ((model, log_likelihood),) = climb([model], z[None], 1)
        found.append(log_likelihood)
    assert (np.diff(found) > -1e-9).all()
    assert 0.0 in model.distribution.atoms


@pytest.mark.parametrize(
    "prior",
    [
        DiscretePrior([1.0, 3.0], [0.5, 0.5]),
        DiscretePrior(np.linspace(-4, 4, 81), np.ones(81)),
        DiscretePrior([0.0], [1.0]),
        PointNormalPrior(0.8, 2.0),
        PointNormalPrior(1.0, 2.0),
    ],
    ids=repr,
)
def test_any_prior_has_a_few_atoms_that_stand_for_it(prior: PointNormalPrior) -> None:
    z = np.random.default_rng(8).normal(size=2000) * 2
    got = coarse(prior, z)
    assert len(got.atoms) <= 6
    assert 0.0 in got.atoms
    assert np.abs(got.atoms).max() <= np.abs(z).max()


# The rule


@pytest.mark.parametrize("shrinkage", ["mean", "sparse", "hard", "none"])
def test_the_divergence_is_the_sum_of_derivatives(shrinkage: str) -> None:
    """Exact for the posterior mean; a difference quotient where there are jumps."""
    p, rho = 500, 0.6
    sim = make_two_class(15, p, 0, rho=rho, random_state=0)
    X, differs = sim.data, np.random.default_rng(0).random(p // 2) < 0.2
    X[15:] += np.repeat(differs, 2) * 0.9
    moments = class_moments(X, np.repeat([0, 1], 15), 2)
    contrasts = class_contrasts(moments, pooled(moments))
    covariance = Autoregression(rho, contrasts.constant)
    prior = DirichletProcess().fit(contrasts.z.ravel())
    values = covariance.decorrelate(contrasts.z)
    effects = Effects(contrasts, covariance, values, prior)
    how, z = SHRINKAGES[shrinkage], contrasts.z
    h = 1e-4 if shrinkage == "mean" else 0.1
    total = 0.0
    for j in range(p):
        shifted = np.stack([z, z])
        shifted[:, 0, j] += h, -h
        up, down = how.estimate(shifted, effects.posterior_of(shifted), 0.5)
        total += float(up[0, j] - down[0, j]) / (2 * h)
    got = effects.divergence(how, 0.5).sum()
    close = {"mean": 1e-4, "none": 1e-10, "sparse": 0.2, "hard": 0.2}[shrinkage]
    assert total > 5
    assert got == pytest.approx(total, rel=close)


def clusters(rho: float, n: tuple[int, int], seed: int) -> tuple[np.ndarray, ...]:
    """Three runs of features that differ, after as many fresh samples."""
    sim = make_two_class(max(n) + 300, 900, 0, rho=rho, random_state=seed)
    X, y = sim.data, (sim.target == "b").astype(int)
    X[np.ix_(y == 1, np.r_[50:90, 400:460, 700:720])] += 0.5
    rank = np.arange(len(y)) % (max(n) + 300)
    train = rank < np.array(n)[y]
    return X[train], y[train], X[rank >= max(n)], y[rank >= max(n)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [(20, 20), (40, 12)])
@pytest.mark.parametrize("rho", [0.4, 0.7])
def test_clusters_are_found_and_the_midpoint_is_right(
    rho: float, n: tuple[int, int]
) -> None:
    found: dict[str, list[float]] = {"neighbours": [], "diagonal": []}
    shares = []
    for seed in range(4):
        X, y, fresh, truth = clusters(rho, n, seed)
        for name, errors in found.items():
            model = EBClassifier(
                covariance=name, shrinkage="mean", calibrate=False, priors="uniform"
            )
            predicted = model.fit(X, y).predict(fresh)
            errors.append(float(np.mean(predicted != truth)))
            if name == "neighbours":
                shares.append(predicted.mean())
    assert np.mean(found["neighbours"]) < 0.85 * np.mean(found["diagonal"])
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)


def test_a_model_comes_back_with_its_posterior(tmp_path: Path) -> None:
    X, y, fresh, _ = clusters(0.7, (10, 10), 0)
    model = EBClassifier(covariance="neighbours").fit(X, y)
    assert isinstance(model.posterior_, ChainPosterior)
    ebda.save(model, tmp_path / "model.ebda")
    again = ebda.load(tmp_path / "model.ebda")
    for name in ("mean", "prob_zero", "sd", "lfsr", "mean_slope"):
        np.testing.assert_array_equal(
            getattr(again.posterior_, name), getattr(model.posterior_, name)
        )
    np.testing.assert_array_equal(
        again.posterior_.interval(), model.posterior_.interval()
    )
    np.testing.assert_array_equal(
        again.predict_proba(fresh), model.predict_proba(fresh)
    )


@pytest.mark.slow
def test_samples_that_are_held_out_are_not_separated_without_a_signal() -> None:
    found = []
    for seed in range(25):
        sim = make_two_class(20, 1500, 0, rho=0.7, random_state=seed)
        model = EBClassifier(covariance="neighbours").fit(sim.data, sim.target)
        assert model.selection_.candidates == [("neighbours", "mean")]
        found.append(model.selection_.separation[0])
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(len(found))


@pytest.mark.slow
def test_many_classes_and_jobs() -> None:
    """Four classes with a run of features each; threads change nothing."""
    sim = make_two_class(200, 800, 0, rho=0.6, random_state=1)
    X, y = sim.data, np.arange(400) % 4
    for k in range(4):
        X[np.ix_(y == k, np.arange(100 * k, 100 * k + 60))] += 0.6
    train = np.arange(400) < 80
    errors = {}
    for name in ("neighbours", "diagonal"):
        model = EBClassifier(covariance=name).fit(X[train], y[train])
        errors[name] = 1 - model.score(X[~train], y[~train])
    assert errors["neighbours"] < 0.85 * errors["diagonal"]
    one, two = (EBClassifier(n_jobs=n).fit(X[train], y[train]) for n in (1, 2))
    assert ("neighbours", "mean") in one.selection_.candidates
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "bar"), [(0, 1.0), (1, 1.0), (2, 0.85), (3, 0.85)])
@pytest.mark.parametrize("table", ["table3", "table4", "table5"])
def test_features_with_an_order_are_classified_better_by_it(
    table: str, row: int, bar: float
) -> None:
    """The default against the rule of independent features."""
    error: dict[str, float] = {"auto": 0.0, "diagonal": 0.0}
    for repetition in range(2):
        sim = TABLES[table].rows[row].draw(seed_of(3, table, row, repetition, "data"))
        for covariance in error:
            model = EBClassifier(covariance=covariance).fit(sim.data, sim.target)
            error[covariance] += _exact(model.coef_, model.intercept_, sim)
    assert error["auto"] < bar * error["diagonal"]
