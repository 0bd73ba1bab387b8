"""q-values and local rates from p-values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from ebda.rule.discoveries import local_rates, null_share, q_values

P_VALUES = arrays.arrays(
    np.float64,
    st.integers(1, 40),
    elements=st.sampled_from([1e-9, 0.01, 0.2, 0.2000001, 0.5, 0.9, 1.0]),
)


@given(p=P_VALUES)
def test_without_pi0_they_are_those_of_benjamini_and_hochberg(p: np.ndarray) -> None:
    expected = stats.false_discovery_control(p)
    np.testing.assert_allclose(q_values(np.log(p), 1.0), expected, rtol=1e-9)


@given(p=P_VALUES, order=st.randoms())
def test_the_order_of_features_does_not_matter(p: np.ndarray, order: object) -> None:
    shuffled = np.arange(len(p))
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    log_p = np.log(p)
    for rates in (q_values, local_rates):
        np.testing.assert_allclose(
            rates(log_p[shuffled], 0.8), rates(log_p, 0.8)[shuffled], rtol=1e-12
        )


@given(p=P_VALUES)
def test_local_rates_are_no_smaller_and_in_the_same_order(p: np.ndarray) -> None:
    log_p = np.log(p)
    local = local_rates(log_p, 0.8)
    assert ((local >= 0) & (local <= 1)).all()
    assert (np.diff(local[np.argsort(p, kind="stable")]) >= 0).all()
    assert (local >= q_values(log_p, 0.8) * (1 - 1e-9)).all()


def test_pi0_is_recovered_and_never_below_a_half() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(size=7000), 1e-4 * rng.uniform(size=3000)])
    assert abs(null_share(np.log(p)) - 0.7) < 0.03
    assert null_share(np.full(1000, -9.0)) == 0.5
    assert null_share(np.full(49, -9.0)) == 1.0


def test_local_rates_are_calibrated() -> None:
    """Of features with about this rate, about this share does not differ."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=100_000)
    z[:10_000] += 2.5
    null = np.arange(100_000) >= 10_000
    local = local_rates(np.log(2 * stats.norm.sf(np.abs(z))), 0.9)
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6)):
        bin_ = (local >= low) & (local < high)
        assert bin_.sum() > 500
        assert abs(null[bin_].mean() - local[bin_].mean()) < 0.05


def test_probabilities_that_underflow_have_a_rate_of_zero() -> None:
    log_p = np.array([-5000.0, -800.0, *np.log(np.linspace(0.01, 1, 100))])
    assert (q_values(log_p, 1.0)[:2] == 0).all()
    assert (local_rates(log_p, 1.0)[:2] < 1e-100).all()
