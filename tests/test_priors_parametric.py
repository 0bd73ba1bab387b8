"""Point mass plus Laplace or normal: against quadrature, and known truths."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.optimize import minimize

from ebda.priors import (
    PointLaplace,
    PointLaplacePrior,
    PointNormal,
    PointNormalPrior,
)
from ebda.priors.slab_estimator import SpikeSlabEstimator, slab_weight
from ebda.priors.spike_slab import SpikeSlab, truncated_moments
from ebda.sizes import override

PRIORS = [
    PointLaplacePrior(0.8, 0.5),
    PointLaplacePrior(0.0, 2.0),
    PointLaplacePrior(0.3, 40.0),
    PointNormalPrior(0.8, 3.0),
    PointNormalPrior(0.0, 0.7),
    PointNormalPrior(0.3, 0.03),
]
FAMILIES = [PointLaplace, PointNormal]
SUMMARIES = ("mean", "prob_zero", "sd", "lfsr")


def slab_density(prior: Any, eta: float) -> float:
    """Density of the prior away from zero."""
    if isinstance(prior, PointLaplacePrior):
        slab = stats.laplace.pdf(eta, scale=1 / prior.rate)
    else:
        slab = stats.norm.pdf(eta, scale=prior.tau)
    return float((1 - prior.pi0) * slab)


class Integrated:
    """The posterior of one value by quadrature."""

    def __init__(self, prior: SpikeSlab, z: float, scale: float) -> None:
        self.prior, self.z, self.scale = prior, z, scale
        self.spike = prior.pi0 * stats.norm.pdf(z, 0, scale)
        self.marginal = self.spike + self.part(lambda e: 1.0, -np.inf, np.inf)
        self.mean = self.part(lambda e: e, -np.inf, np.inf) / self.marginal
        self.prob_zero = self.spike / self.marginal
        square = self.part(lambda e: (e - self.mean) ** 2, -np.inf, np.inf)
        self.sd = np.sqrt((square + self.spike * self.mean**2) / self.marginal)
        sides = self.below(0.0), self.part(lambda e: 1.0, 0, np.inf) / self.marginal
        self.lfsr = self.prob_zero + min(sides)
        self.logpdf = np.log(self.marginal)

    def part(self, function: Any, lower: float, upper: float) -> float:
        def integrand(eta: float) -> float:
            noise = stats.norm.pdf(self.z, eta, self.scale)
            return float(function(eta) * noise * slab_density(self.prior, eta))

        near = self.prior.slab(np.array([self.z]), np.array([self.scale]))
        location, sd = near[1][:, 0] * [1, -1], near[2][0]
        # Within reach of what the posterior can be, cut at zero where it has a kink.
        reach = 12 * sd
        ends = (min(location.min(), 0) - reach, max(location.max(), 0) + reach)
        lower, upper = max(lower, ends[0]), min(upper, ends[1])
        cuts = sorted({lower, upper, *(np.clip([0.0, *location], lower, upper))})
        return float(
            sum(
                integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-11, limit=200)[0]
                for a, b in pairwise(cuts)
            )
        )

    def below(self, eta: float) -> float:
        """P(slab part < eta | z), without the spike."""
        return self.part(lambda e: 1.0, -np.inf, eta) / self.marginal


# Against quadrature


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize(("z", "scale"), [(0.0, 1.0), (1.3, 1.0), (-4.0, 0.7)])
def test_posterior_equals_quadrature(prior: Any, z: float, scale: float) -> None:
    reference = Integrated(prior, z, scale)
    posterior = prior.posterior(z, scale)
    for name in SUMMARIES:
        expected = getattr(reference, name)
        found = getattr(posterior, name)
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-12), name
    assert prior.logpdf(z, scale) == pytest.approx(reference.logpdf, rel=1e-10)
    for level in (0.5, 0.95):
        tail = (1 - level) / 2
        for end, beyond in zip(
            posterior.interval(level), (tail, 1 - tail), strict=True
        ):
            spike = reference.prob_zero
            at_most = reference.below(float(end)) + spike * (end >= 0)
            less = reference.below(float(end)) + spike * (end > 0)
            assert less - 1e-8 <= beyond <= at_most + 1e-8


def test_moments_of_a_cut_normal_far_out_are_continuous() -> None:
    u = np.array([30 - 1e-9, 30 + 1e-9])
    for moment in truncated_moments(u):
        assert moment[0] == pytest.approx(moment[1], rel=1e-7)
    mean, variance = truncated_moments(np.array([-1e100, 1e8, 1e100]))
    np.testing.assert_allclose(mean, [1e100, 1e-8, 1e-100])
    np.testing.assert_allclose(variance, [1, 1e-16, 0], atol=1e-30)


# Closed forms and identities


def test_normal_without_a_spike_is_the_conjugate_posterior() -> None:
    z = np.linspace(-30, 30, 121)
    posterior = PointNormalPrior(0.0, 2.0).posterior(z, 0.5)
    kept = 4 / 4.25
    np.testing.assert_allclose(posterior.mean, kept * z, atol=1e-13)
    np.testing.assert_allclose(posterior.sd, np.sqrt(kept) * 0.5, rtol=1e-10)
    lower, upper = posterior.interval(0.9)
    quantile = stats.norm.ppf(0.95) * np.sqrt(kept) * 0.5
    np.testing.assert_allclose(lower, kept * z - quantile, atol=1e-10)
    np.testing.assert_allclose(upper, kept * z + quantile, atol=1e-10)
    sign = stats.norm.sf(np.abs(kept * z) / (np.sqrt(kept) * 0.5))
    np.testing.assert_allclose(posterior.lfsr, sign, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_far_out_a_laplace_slab_shrinks_by_a_constant(sign: float) -> None:
    prior = PointLaplacePrior(0.9, 0.5)
    for far in (1e3, 1e6, 1e50):
        posterior = prior.posterior(sign * far, 2.0)
        assert posterior.mean == pytest.approx(sign * (far - 0.5 * 4), rel=1e-15)
        assert posterior.sd == pytest.approx(2.0, rel=1e-12)
        assert posterior.prob_zero == posterior.lfsr == 0
        expected = np.log(0.1 * 0.25) + 0.5 - 0.5 * far
        assert prior.logpdf(sign * far, 2.0) == pytest.approx(expected, rel=1e-12)


def test_far_out_a_normal_slab_shrinks_by_a_factor() -> None:
    prior = PointNormalPrior(0.9, 3.0)
    posterior = prior.posterior([-1e6, 1e6])
    np.testing.assert_allclose(posterior.mean, [-9e5, 9e5], rtol=1e-14)
    np.testing.assert_allclose(posterior.sd, np.sqrt(0.9), rtol=1e-9)
    expected = np.log(0.1) + stats.norm.logpdf(1e6, scale=np.sqrt(10))
    np.testing.assert_allclose(prior.logpdf([-1e6, 1e6]), expected, rtol=1e-14)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_sign_symmetry(prior: Any) -> None:
    z = np.linspace(-9, 9, 41)
    a, b = prior.posterior(z), prior.posterior(-z)
    np.testing.assert_array_equal(a.mean, -b.mean)
    for name in ("prob_zero", "sd", "lfsr"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12)
    np.testing.assert_array_equal(a.interval(0.8)[0], -b.interval(0.8)[1])
    assert prior.posterior(0.0).mean == 0


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_interval_has_its_level_and_ends_in_order(prior: Any) -> None:
    z = np.linspace(-6, 6, 25)
    posterior = prior.posterior(z)
    previous: Any = None
    for level in (1e-9, 0.3, 0.9, 0.999999, 1 - 1e-16):
        lower, upper = posterior.interval(level)
        assert (lower <= upper).all()
        assert np.isfinite([lower, upper]).all()
        if previous is not None:
            assert (lower <= previous[0]).all()
            assert (upper >= previous[1]).all()
        previous = lower, upper
    for level in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="level must lie"):
            posterior.interval(level)


@given(
    st.floats(0, 1),
    st.floats(1e-3, 1e3),
    st.floats(-1e100, 1e100),
    st.floats(1e-3, 1e3),
)
def test_any_value_has_a_sound_posterior(
    pi0: float, width: float, z: float, scale: float
) -> None:
    for prior in (PointLaplacePrior(pi0, 1 / width), PointNormalPrior(pi0, width)):
        posterior = prior.posterior(z, scale)
        assert np.isfinite(prior.logpdf(z, scale))
        assert np.isfinite([getattr(posterior, name) for name in SUMMARIES]).all()
        assert 0 <= posterior.prob_zero <= posterior.lfsr + 1e-15 <= 1 + 2e-15
        assert abs(posterior.mean) <= abs(z) * (1 + 1e-9) + 1e-9
        lower, upper = posterior.interval(0.9)
        assert np.isfinite([lower, upper]).all()
        assert lower <= upper


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_shapes_are_kept(prior: Any) -> None:
    z = np.linspace(-4, 4, 6)
    flat = prior.posterior(z)
    for shape in ((6,), (2, 3), (1, 6, 1)):
        posterior = prior.posterior(z.reshape(shape), 1.0)
        for name in SUMMARIES:
            expected = getattr(flat, name).reshape(shape)
            np.testing.assert_array_equal(getattr(posterior, name), expected)
        assert posterior.interval(0.9)[0].shape == shape
        assert prior.logpdf(z.reshape(shape)).shape == shape
    assert prior.posterior(1.0).mean.shape == ()
    assert isinstance(prior.logpdf(1.0), float)
    assert prior.posterior([]).mean.shape == (0,)


@pytest.mark.parametrize("make", [PointLaplacePrior, PointNormalPrior])
def test_all_mass_at_zero_is_the_null(make: Any) -> None:
    prior = make(1.0, 2.0)
    posterior = prior.posterior([-3.0, 0.0, 1e6])
    for name, value in (("mean", 0), ("sd", 0), ("prob_zero", 1), ("lfsr", 1)):
        np.testing.assert_array_equal(getattr(posterior, name), value)
    np.testing.assert_array_equal(posterior.interval(0.9), 0)
    assert prior.logpdf(1.5) == pytest.approx(stats.norm.logpdf(1.5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PointLaplacePrior(1.1, 1.0), "pi0 must lie"),
        (lambda: PointNormalPrior(np.nan, 1.0), "pi0 must lie"),
        (lambda: PointLaplacePrior(0.5, 0.0), "rate must be"),
        (lambda: PointNormalPrior(0.5, np.inf), "tau must be"),
        (lambda: PointNormalPrior(0.5, 1.0).posterior(np.nan), "NaN"),
        (lambda: PointLaplacePrior(0.5, 1.0).logpdf(0.0, -1.0), "scale must be"),
        (lambda: PointLaplace(min_sd=0.0).fit([1.0]), "min_sd must be"),
    ],
)
def test_bad_parameters_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_priors_are_frozen_and_compare_by_value() -> None:
    prior = PointNormalPrior(0.5, 1.0)
    assert prior == PointNormalPrior(0.5, 1.0) != PointNormalPrior(0.5, 2.0)
    with pytest.raises(FrozenInstanceError):
        prior.pi0 = 0.1  # type: ignore[misc]


# Estimation


def draw(family: type[SpikeSlabEstimator], n: int, seed: int = 0) -> np.ndarray:
    """pi0 = 0.8 and a slab with sd 3."""
    rng = np.random.default_rng(seed)
    slab = rng.laplace(scale=3 / np.sqrt(2), size=n)
    if family is PointNormal:
        slab = 3 * rng.normal(size=n)
    return np.asarray(slab * (rng.random(n) < 0.2) + rng.normal(size=n))


def slab_sd(prior: Any) -> float:
    return np.sqrt(2) / prior.rate if hasattr(prior, "rate") else prior.tau


@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_a_general_optimiser(family: type[SpikeSlabEstimator]) -> None:
    z = draw(family, 2000)
    scale = np.random.default_rng(1).uniform(0.8, 1.25, 2000)
    estimator = family().fit(z, scale)

    def loss(x: np.ndarray) -> float:
        prior = family._prior(1 / (1 + np.exp(-x[0])), np.exp(x[1]))
        return -float(prior.logpdf(z, scale).sum())

    reference = minimize(
        loss, [1.0, 0.5], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}
    )
    assert estimator.log_likelihood_ == pytest.approx(-reference.fun, abs=1e-6)
    prior = estimator.prior_
    assert prior.pi0 == pytest.approx(1 / (1 + np.exp(-reference.x[0])), abs=1e-4)
    assert slab_sd(prior) == pytest.approx(np.exp(reference.x[1]), rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_recovers_the_truth(family: type[SpikeSlabEstimator]) -> None:
    prior = family().fit(draw(family, 100_000)).prior_
    assert prior.pi0 == pytest.approx(0.8, abs=0.01)
    assert slab_sd(prior) == pytest.approx(3, rel=0.03)


@pytest.mark.parametrize("family", FAMILIES)
def test_grouped_values_give_the_same_estimate(
    family: type[SpikeSlabEstimator],
) -> None:
    z = draw(family, 8000)
    grouped = family().fit(z)
    with override(binned_values=10_000):
        exact = family().fit(z)
    assert grouped.prior_.pi0 == pytest.approx(exact.prior_.pi0, abs=1e-4)
    assert slab_sd(grouped.prior_) == pytest.approx(slab_sd(exact.prior_), rel=1e-4)
    assert 0 <= exact.log_likelihood_ - grouped.log_likelihood_ < 1e-3


@pytest.mark.parametrize("ratios", [[0.5, 2.0, 1e300], [0.9, 0.8], [2.0, 3.0]])
def test_weight_meets_its_optimality_condition(ratios: list[float]) -> None:
    r = np.array(ratios)
    share = np.full(len(r), 1 / len(r))
    weight = slab_weight(np.log(r), share)
    slope = share @ ((r - 1) / (1 - weight + weight * r))
    if 0 < weight < 1:
        assert slope == pytest.approx(0, abs=1e-9)
    else:
        assert (slope <= 0) if weight == 0 else (slope >= 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_degenerate_values(family: type[SpikeSlabEstimator]) -> None:
    assert family().fit([0.0]).prior_.pi0 == 1
    assert family().fit(np.zeros(100)).prior_.pi0 == 1
    one = family().fit([5.0]).prior_
    assert one.pi0 == 0
    same = family().fit(np.full(100, 5.0)).prior_
    assert same == one or slab_sd(same) == pytest.approx(slab_sd(one), rel=1e-6)
    null = np.random.default_rng(2).normal(size=20_000)
    prior = family().fit(null).prior_
    assert np.mean(prior.posterior(null).mean ** 2) < 1e-3
    assert prior.pi0 > 0.8
    outlier = family().fit([0.1, -0.3, 1e100]).prior_
    assert np.isfinite(outlier.posterior([0.1, 1e100]).mean).all()


def test_equal_values_have_the_closed_form() -> None:
    """With pi0 = 0, tau**2 = mean of z**2 - 1."""
    prior = PointNormal().fit([5.0, 5.0, -5.0]).prior_
    assert prior.tau == pytest.approx(np.sqrt(24), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_order_units_and_signs_do_not_matter(family: type[SpikeSlabEstimator]) -> None:
    z = draw(family, 6000)
    scale = np.random.default_rng(3).uniform(0.5, 2, 6000)
    prior = family().fit(z, scale).prior_
    order = np.random.default_rng(4).permutation(6000)
    assert family().fit(z[order], scale[order]).prior_ == prior
    for factor in (1e-6, 1e12, -1.0):
        other = family().fit(factor * z, np.abs(factor) * scale).prior_
        assert other.pi0 == pytest.approx(prior.pi0, abs=1e-4)
        assert slab_sd(other) == pytest.approx(abs(factor) * slab_sd(prior), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_large_p_is_quick(family: type[SpikeSlabEstimator]) -> None:
    z = draw(family, 1_000_000)
    start = time.perf_counter()
    family().fit(z)
    assert time.perf_counter() - start < 10
