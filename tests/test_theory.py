"""Exact error rates, against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from ebda.theory import error_rate

RNG = np.random.default_rng(0)
P = 6
FACTOR = RNG.normal(size=(P, P))
COVARIANCES = {
    "number": 2.0,
    "vector": RNG.uniform(0.5, 2, P),
    "matrix": FACTOR @ FACTOR.T + np.eye(P),
}


@pytest.mark.parametrize("kind", sorted(COVARIANCES))
def test_error_rate_equals_simulation(kind: str) -> None:
    sigma = np.asarray(COVARIANCES[kind])
    full = sigma if sigma.ndim == 2 else sigma * np.eye(P)
    rng = np.random.default_rng(1)
    means = rng.normal(size=(2, P))
    coef = rng.normal(size=P)
    intercept = -coef @ means.mean(0) + 0.3
    n = 200_000
    noise = rng.multivariate_normal(np.zeros(P), full, size=n)
    wrong = [
        np.mean((means[0] + noise) @ coef + intercept > 0),
        np.mean((means[1] + noise) @ coef + intercept <= 0),
    ]
    for class_prior in ((0.5, 0.5), (0.9, 0.1)):
        rate = error_rate(coef, intercept, *means, sigma, class_prior)
        assert rate == pytest.approx(np.dot(class_prior, wrong), abs=0.005)


def test_a_rule_without_weights_takes_the_first_class() -> None:
    assert error_rate(np.zeros(3), 0.0, np.zeros(3), np.ones(3), 1.0) == 0.5
    rate = error_rate([[0.0, 0.0]], [1.0], np.zeros(2), np.ones(2), 1.0, (0.8, 0.2))
    assert rate == 0.8
