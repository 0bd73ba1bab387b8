"""Unimodal, point exponential and horseshoe priors: quadrature, degenerate cases."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import exp1

from ebda.priors import (
    NPMLE,
    Horseshoe,
    HorseshoePrior,
    NormalMixture,
    PointExponential,
    PointExponentialPrior,
    PointLaplacePrior,
    Unimodal,
    UnimodalPrior,
)
from ebda.priors.unimodal import UniformComponents, log_mass

UNIMODAL = UnimodalPrior([0.0, -2.0, 1.0, 6.0], [0.6, 0.1, 0.2, 0.1])
EXPONENTIAL = PointExponentialPrior(0.6, 0.5)
HORSESHOE = HorseshoePrior(0.3)


def slab(prior: Any, eta: float) -> float:
    """The density away from zero, straight from the definitions."""
    if prior is UNIMODAL:
        return float(
            sum(
                w * (min(a, 0) <= eta <= max(a, 0)) / abs(a)
                for w, a in zip([0.1, 0.2, 0.1], [-2.0, 1.0, 6.0], strict=True)
            )
        )
    if prior is EXPONENTIAL:
        return 0.4 * stats.expon.pdf(eta, scale=2.0)
    # Carvalho, Polson and Scott (2010), in closed form.
    u = eta**2 / (2 * 0.3**2)
    tail = float(np.exp(u) * exp1(u)) if u < 500 else 1 / u - 1 / u**2
    return tail / (0.3 * np.sqrt(2 * np.pi**3))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [UNIMODAL, EXPONENTIAL, HORSESHOE])
@pytest.mark.parametrize("z", [-3.0, 0.4, 4.0])
def test_the_posterior_is_that_of_numerical_integration(prior: Any, z: float) -> None:
    scale = 0.8
    atom = (0.6 if prior is not HORSESHOE else 0.0) * stats.norm.pdf(z, 0, scale)
    # One pass over a fine grid on either side, denser near zero.
    node, weight = np.polynomial.legendre.leggauss(60)
    edges = np.unique(
        np.concatenate([[0.0], np.geomspace(1e-9, 12, 25), [1.0, 2.0, 6.0]])
    )
    eta = np.concatenate([(b - a) / 2 * node + (a + b) / 2 for a, b in pairs(edges)])
    step = np.concatenate([(b - a) / 2 * weight for a, b in pairs(edges)])
    mass = {}
    for sign in (1.0, -1.0):
        density = np.array([slab(prior, sign * e) for e in eta])
        mass[sign] = step * density * stats.norm.pdf(z, sign * eta, scale)
    total = atom + sum(m.sum() for m in mass.values())
    mean = sum(sign * (m @ eta) for sign, m in mass.items()) / total
    second = sum(m @ eta**2 for m in mass.values()) / total
    posterior = prior.posterior(z, scale)
    assert prior.logpdf(z, scale) == pytest.approx(np.log(total), abs=1e-6)
    assert posterior.mean == pytest.approx(mean, abs=1e-6)
    assert posterior.sd == pytest.approx(np.sqrt(second - mean**2), abs=1e-6)
    assert posterior.prob_zero == pytest.approx(atom / total, abs=1e-6)
    smaller = min(m.sum() for m in mass.values())
    assert posterior.lfsr == pytest.approx((atom + smaller) / total, abs=1e-6)
    lower, upper = posterior.interval(0.8)
    inside = sum(
        m[(lower <= sign * eta) & (sign * eta <= upper)].sum()
        for sign, m in mass.items()
    )
    inside += atom * (lower <= 0 <= upper)
    assert inside / total >= 0.79


def pairs(edges: np.ndarray) -> list[tuple[float, float]]:
    return list(pairwise(edges))


# Unimodal


@pytest.mark.parametrize(
    ("z", "lower", "upper"),
    [
        (0.0, 0.0, 1e-3),
        (0.5, 0.0, 1.0),
        (40.0, 0.0, 3.0),
        (-40.0, 0.0, 3.0),
        (5e5, 0.0, 1e6),
        (1e6, -8.0, 0.0),
        (3.0, 0.0, 5e5),
    ],
)
def test_truncated_normal_moments(z: float, lower: float, upper: float) -> None:
    """Against a quadrature over the part of the interval that has any mass."""
    parts = UniformComponents(
        np.array([z]), np.ones(1), np.array([[lower]]), np.array([[upper]])
    )
    nearest = np.clip(z, lower, upper)
    reach = 40 / max(1.0, abs(z - nearest)) + 10 * (nearest == z)
    a, b = max(lower, nearest - reach), min(upper, nearest + reach)
    node, weight = np.polynomial.legendre.leggauss(400)
    distance = (b - a) / 2 * node + (a + b) / 2 - nearest
    offset = nearest - z
    density = weight * np.exp(-0.5 * distance**2 - offset * distance)
    density /= density.sum()
    mean = density @ distance
    sd = np.sqrt(density @ (distance - mean) ** 2)
    assert float(parts.mean[0, 0]) - nearest == pytest.approx(
        mean, rel=1e-5, abs=1e-12 * abs(z) + 1e-9
    )
    assert float(parts.sd[0, 0]) == pytest.approx(sd, rel=1e-4)


def test_masses_do_not_cancel_in_either_tail() -> None:
    a = np.array([-1.0, 5.0, -6.0, 30.0, -31.0])
    b = a + 1
    want = [
        stats.norm.logsf(x)
        + np.log1p(-np.exp(stats.norm.logsf(y) - stats.norm.logsf(x)))
        for x, y in ((-1.0, 0.0), (5.0, 6.0), (5.0, 6.0), (30.0, 31.0), (30.0, 31.0))
    ]
    np.testing.assert_allclose(log_mass(a, b), want, rtol=1e-12)


def test_unimodal_follows_one_side_where_there_is_only_one() -> None:
    rng = np.random.default_rng(0)
    eta = rng.exponential(3, 4000) * (rng.random(4000) < 0.3)
    x = eta + rng.normal(size=4000)
    both = np.mean((NormalMixture().fit(x).prior_.posterior(x).mean - eta) ** 2)
    one = np.mean((Unimodal().fit(x).prior_.posterior(x).mean - eta) ** 2)
    best = np.mean((PointExponential().fit(x).prior_.posterior(x).mean - eta) ** 2)
    assert best <= one < 0.97 * both
    assert Unimodal().fit(x).prior_.share_below < 0.05


def test_unimodal_is_between_the_symmetric_and_any_prior() -> None:
    z = np.random.default_rng(1).standard_t(3, 1000)
    fits = [
        f.fit(z).log_likelihood_
        for f in (NormalMixture(), Unimodal(zero_count=0.0), NPMLE())
    ]
    assert fits[0] - 2 < fits[1] < fits[2] + 1


# Point exponential


def test_the_exponential_is_the_upper_half_of_the_laplace() -> None:
    z = np.linspace(2, 12, 21)
    both = PointLaplacePrior(0.0, 0.7).posterior(z)
    one = PointExponentialPrior(0.0, 0.7).posterior(z)
    above = np.exp(both.masses.log_sides[0] - both.masses.log_total)
    assert (above[-5:] > 1 - 1e-9).all()
    np.testing.assert_allclose(one.mean[-5:], both.mean[-5:], rtol=1e-8)
    np.testing.assert_allclose(one.lfsr, 0.0, atol=1e-15)


def test_negative_values_are_zero_to_an_exponential() -> None:
    posterior = EXPONENTIAL.posterior([-1e6, -50.0])
    np.testing.assert_allclose(posterior.prob_zero, 1.0, atol=0.02)
    np.testing.assert_allclose(posterior.mean, 0.0, atol=1e-3)
    assert (posterior.interval(0.9)[0] == 0).all()


# Horseshoe


def test_the_horseshoe_has_a_known_weight() -> None:
    """With tau = 1, lambda / (1 + lambda) is Beta(1/2, 1/2) in squares: E = 1/2."""
    posterior = HorseshoePrior(1.0).posterior(0.0)
    # E(kappa | z = 0) by quadrature: kappa**1/2 times the Beta(1/2, 1/2) density.
    top = quad(lambda k: (1 - k) * k**0.5 / np.sqrt(k * (1 - k)), 0, 1)[0]
    all_mass = quad(lambda k: k**0.5 / np.sqrt(k * (1 - k)), 0, 1)[0]
    assert posterior.sd**2 == pytest.approx(top / all_mass, rel=1e-6)


def test_the_horseshoe_leaves_large_values_alone() -> None:
    posterior = HorseshoePrior(0.01).posterior([0.5, 10.0, 1e6])
    assert posterior.mean[0] < 0.01
    assert posterior.mean[1] == pytest.approx(10 - 2 / 10, abs=0.05)
    assert posterior.mean[2] == pytest.approx(1e6, rel=1e-9)
    assert Horseshoe().fit(np.zeros(50)).prior_.tau == pytest.approx(0.02, rel=0.01)


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="ends must be finite"):
        Unimodal(ends=[np.inf]).fit([1.0])
    with pytest.raises(ValueError, match="weights must be"):
        UnimodalPrior([1.0], [-1.0])
    with pytest.raises(ValueError, match="one length"):
        UnimodalPrior([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="tau must be positive"):
        HorseshoePrior(0.0)
