"""The mass away from zero where no component of the Dirichlet process is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, norm
from sklearn.metrics import roc_auc_score

from ebda import EBClassifier
from ebda.priors import DirichletProcess, DiscretePrior, PointNormalPrior, make_prior
from ebda.priors.cells import each_value, group
from ebda.priors.dp.unseen import unseen_effects
from ebda.priors.dp.variational import Model

MODEL = Model(alpha=1.0, sigma=4.0, zero_weight=0.8)


def few_effects(seed: int = 0, p: int = 5000) -> np.ndarray:
    """Five effects that are no larger than the largest of the others."""
    z = np.random.default_rng(seed).normal(size=p)
    z[:5] = [2.4, 2.7, 2.9, 3.1, 3.4]
    return z


@pytest.mark.parametrize("model", [MODEL, Model(3.0, 2.0, 0.5), Model(10.0, 4.0, 0.9)])
def test_the_mass_is_that_of_an_independent_integral(model: Model) -> None:
    rng = np.random.default_rng(1)
    z = np.append(rng.normal(size=60), [3.0, 3.5])
    scale = rng.uniform(0.8, 1.2, 62)
    null = norm.pdf(z, 0, scale)
    slab = norm.pdf(z, 0, np.hypot(scale, model.sigma / 2))
    prior = beta(model.alpha * (1 - model.zero_weight), model.alpha * model.zero_weight)

    def weighted(u: float, power: int) -> float:
        pi = prior.ppf(u)  # the singularity at zero is gone
        fit = np.log1p(pi * (slab / null - 1)).sum()
        return float(pi**power * np.exp(fit))

    points = prior.cdf([1e-4, 1e-2, 0.05, 0.2, 0.5])
    area, first = (
        quad(weighted, 0, 1, (power,), points=points, limit=500)[0] for power in (0, 1)
    )
    got = unseen_effects(each_value(z, scale), model)
    assert 1 - got.pi0 == pytest.approx(first / area, rel=2e-3)
    assert got.tau == model.sigma / 2


def test_values_that_say_nothing_leave_the_mass_of_the_base_measure() -> None:
    z = few_effects()
    model = Model(alpha=1.0, sigma=1e-6, zero_weight=0.8)
    assert unseen_effects(group(z, np.ones(len(z))), model).pi0 == pytest.approx(
        0.8, abs=5e-3
    )


def test_a_component_that_is_found_leaves_nothing_to_do() -> None:
    z = few_effects()
    z[:50] += 4
    plain, unseen = DirichletProcess().fit(z), DirichletProcess(unseen=True).fit(z)
    assert len(plain.prior_.atoms) > 1
    assert plain.prior_ == unseen.prior_


def test_where_nothing_is_found_the_largest_values_keep_some_weight() -> None:
    z = few_effects()
    assert DirichletProcess().fit(z).prior_ == DiscretePrior([0.0], [1.0])
    posterior = make_prior("dp", for_classifier=True).fit(z).prior_.posterior(z)
    mean = np.asarray(posterior.mean)
    order = np.argsort(-np.abs(z))
    np.testing.assert_array_equal(np.argsort(-np.abs(mean))[:100], order[:100])
    assert (np.abs(mean) > 0).all()
    assert np.abs(mean[order[:5]]).min() > 10 * np.median(np.abs(mean))


def test_without_signal_it_still_says_zero() -> None:
    rng = np.random.default_rng(2)
    least = []
    for _ in range(40):
        z = rng.normal(size=2000)
        prior = make_prior("dp", for_classifier=True).fit(z).prior_
        assert prior.pi0 > 0.99
        least.append(prior.posterior(z).prob_zero.min())
    # At a level of 5 % no value is taken for an effect but in one drawing of twenty.
    assert np.mean(np.array(least) < 0.05) <= 0.05
    assert np.mean(np.array(least) < 0.5) < 0.2


def test_a_start_where_nothing_was_seen_leads_to_the_same() -> None:
    z = few_effects()
    far = DirichletProcess(unseen=True).fit(z)
    near = DirichletProcess(unseen=True, start=far.prior_).fit(z)
    assert isinstance(far.prior_, PointNormalPrior)
    assert near.prior_ == far.prior_


def test_units_do_not_matter() -> None:
    z = few_effects()
    one = DirichletProcess(unseen=True).fit(z).prior_
    five = DirichletProcess(unseen=True).fit(5 * z, 5.0).prior_
    assert five.pi0 == pytest.approx(one.pi0, abs=1e-9)
    assert five.tau == pytest.approx(5 * one.tau)


def test_a_rare_class_with_few_effects_is_ranked() -> None:
    rng = np.random.default_rng(3)
    areas = []
    for _ in range(4):
        y, truth = np.repeat([0, 1], [90, 10]), np.repeat([0, 1], 200)
        X, new = rng.normal(size=(100, 3000)), rng.normal(size=(400, 3000))
        X[:, :5] += 1.0 * y[:, None]
        new[:, :5] += 1.0 * truth[:, None]
        model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
        areas.append(roc_auc_score(truth, model.decision_function(new)))
    assert np.mean(areas) > 0.65
