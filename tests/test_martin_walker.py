"""The posterior of Martin and Walker, whose slabs are centred at the values."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import norm

from ebda import EBClassifier, NormalMeans
from ebda.datasets import make_two_class
from ebda.modelfile import load, save
from ebda.plotting import MarginalDisplay, PriorDisplay
from ebda.priors import DiscretePrior, MartinWalker, check_prior
from ebda.priors.martin_walker import log_ratio, posterior_of_share
from ebda.priors.posterior import mean_slope

X = np.array([0.1, -0.4, 1.2, 2.1, -3.0, 0.9, 4.2, -1.7, 0.0])


def by_enumeration(x: Any, model: MartinWalker) -> Any:
    """P(eta_i is not zero) from the probabilities of all sets of effects."""
    n, count = len(x), model.alpha * len(x)
    sets = np.array(list(product([False, True], repeat=n)))
    size = sets.sum(axis=1)
    # omega^(a n - 1 + n - s) (1 - omega)^s is integrated out.
    log_p = betaln(count + n - size, 1 + size) + sets @ log_ratio(x, model)
    p = np.exp(log_p - log_p.max())
    return (p / p.sum()) @ sets


@pytest.mark.parametrize("alpha", [0.02, 0.25, 3.0])
@pytest.mark.parametrize(("kappa", "tau"), [(0.99, 10.0), (0.5, 1.0), (1.0, 30.0)])
def test_it_is_the_sum_over_all_sets(alpha: float, kappa: float, tau: float) -> None:
    model = MartinWalker(alpha, kappa, tau)
    for x in (X, X[:1], X[6:7], 3 * X):
        posterior = model.fit(x).prior_.posterior(x)
        want = by_enumeration(x, model)
        np.testing.assert_allclose(1 - posterior.prob_zero, want, rtol=1e-8)
        np.testing.assert_allclose(posterior.mean, x * want, rtol=1e-7, atol=1e-14)


def test_the_slab_is_its_definition() -> None:
    model = MartinWalker(0.3, 0.8, 2.0)
    posterior = model.fit(X).prior_.posterior(X)
    for x, p, sd in zip(X, 1 - posterior.prob_zero, posterior.sd, strict=True):

        def density(off: float) -> float:
            power = np.exp(-model.kappa * off**2 / 2)
            return float(power * norm.pdf(off, scale=model.tau))

        mass = quad(density, -40, 40)[0]
        second = quad(lambda off: off**2 * density(off), -40, 40)[0]
        zero = np.exp(-model.kappa * x**2 / 2)
        assert log_ratio(np.array([x]), model)[0] == pytest.approx(np.log(mass / zero))
        variance = p * (second / mass + x**2) - (p * x) ** 2
        assert sd == pytest.approx(np.sqrt(variance))


def test_intervals_are_quantiles_of_point_mass_and_normal() -> None:
    model = MartinWalker(0.3, 0.8, 2.0).fit(X)
    posterior = model.prior_.posterior(X)
    sd = model.tau / np.sqrt(1 + model.kappa * model.tau**2)
    for level in (0.5, 0.9):
        for end, tail in zip(posterior.interval(level), (-1, 1), strict=True):
            slab = (1 - posterior.prob_zero) * norm.cdf(end, X, sd)
            below = slab + posterior.prob_zero * (end > 0)
            up_to = slab + posterior.prob_zero * (end >= 0)
            want = (1 + tail * level) / 2
            assert (below <= want + 1e-9).all()
            assert (up_to >= want - 1e-9).all()


def test_the_share_of_zeros() -> None:
    """Where all values are zeros or none can be, omega has a beta distribution."""
    n, count = 200, 50.0
    for ratio, want in ((-600.0, (count + n) / (count + n + 1)), (600.0, 50 / 251)):
        points, weights = posterior_of_share(np.full(n, ratio), count)
        mean = weights @ (1 / (1 + np.exp(-points)))
        assert mean == pytest.approx(want, rel=1e-9)


def test_units_and_order_change_nothing() -> None:
    want = MartinWalker().fit(X).prior_.posterior(X)
    scaled = MartinWalker().fit(1e8 * X[::-1], 1e8).prior_.posterior(1e8 * X, 1e8)
    np.testing.assert_allclose(scaled.mean, 1e8 * want.mean, rtol=1e-9)
    np.testing.assert_allclose(mean_slope(scaled), mean_slope(want), rtol=1e-9)


def test_large_effects_are_not_shrunk() -> None:
    """Unlike by priors that are the same for all values."""
    rng = np.random.default_rng(0)
    eta = np.repeat([0.0, 7.0], [1900, 100])
    x = eta + rng.normal(size=2000)
    prior = MartinWalker().fit(x).prior_
    mean = prior.posterior(x).mean
    assert prior.pi0 == pytest.approx(0.95, abs=0.01)
    np.testing.assert_allclose(mean[x > 6], x[x > 6], rtol=1e-4)
    assert np.mean((mean - eta)[:1900] ** 2) < 0.05
    far = prior.posterior(np.array([1e100]))
    assert far.mean[0] == 1e100


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"kappa": 1.1}, "kappa must be at most 1"),
        ({"tau": np.inf}, "tau must be positive"),
    ],
)
def test_bad_parameters_are_refused(parameters: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MartinWalker(**parameters).fit(X)


# Posteriors alone


def test_there_is_no_density() -> None:
    prior = MartinWalker().fit(X).prior_
    for call in (
        lambda: prior.logpdf(X),
        lambda: MarginalDisplay.from_prior(prior, X),
        lambda: PriorDisplay.from_prior(prior, X),
    ):
        with pytest.raises(TypeError, match="no marginal density"):
            call()


def test_the_estimators_do_without(tmp_path: Path) -> None:
    means = NormalMeans(prior="martin_walker").fit(X)
    assert means.log_likelihood_ is None
    want = MartinWalker().fit(X).prior_.posterior(X).mean
    np.testing.assert_array_equal(means.posterior_mean_, want)
    given = NormalMeans(prior=means.prior_).fit(X)
    np.testing.assert_array_equal(given.posterior_mean_, want)
    save(means, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.posterior_mean_, want)
    np.testing.assert_array_equal(
        mean_slope(again.posterior_), mean_slope(means.posterior_)
    )

    sim = make_two_class(n_features=500, effect=1.2, random_state=0)
    model = EBClassifier(prior="martin_walker").fit(sim.data, sim.target)
    assert model.score(sim.data, sim.target) == 1


class Without(MartinWalker):
    """Right but for its `logpdf`, or its slope."""

    def __init__(self, change: str = "") -> None:
        super().__init__()
        self.change = change

    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        super().fit(z, scale)
        self.prior_ = Changed(self.prior_, self.change)  # type: ignore[assignment]
        return self


class Changed:
    has_density = False

    def __init__(self, prior: Any, change: str) -> None:
        self.prior, self.change = prior, change

    def posterior(self, z: Any, scale: Any = 1.0) -> Any:
        posterior = self.prior.posterior(z, scale)
        if self.change == "slope":
            object.__setattr__(posterior, "mean_slope", posterior.sd**2)
        if self.change == "no slope":
            object.__setattr__(posterior, "mean_slope", None)
        return posterior

    def logpdf(self, z: Any, scale: Any = 1.0) -> Any:
        if self.change == "density":
            return DiscretePrior([0.0], [1.0]).logpdf(z, scale)
        if self.change == "words":
            raise TypeError("no")
        return self.prior.logpdf(z, scale)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("density", "has_density is False, but logpdf raises no TypeError"),
        ("words", "does not say that there is none"),
        ("slope", "mean_slope is not the derivative"),
        ("no slope", "has no mean_slope"),
    ],
)
def test_the_check_of_such_priors(change: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_prior(Without(change))
