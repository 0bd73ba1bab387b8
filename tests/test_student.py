"""t statistics as z."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ebda.priors.student import log_tail, se_of_t, z_of_t


@pytest.mark.parametrize("df", [1.0, 2.0, 4.5, 30.0, 1e4])
def test_tail_probabilities_are_those_of_scipy(df: float) -> None:
    t = np.linspace(-8, 8, 33)
    z = z_of_t(t, df)
    np.testing.assert_allclose(stats.norm.cdf(z), stats.t.cdf(t, df), rtol=1e-10)
    np.testing.assert_allclose(z_of_t(-t, df), -z, atol=1e-13)


def test_far_tails_are_those_of_50_digits() -> None:
    """mpmath 1.3.0: log of betainc(df / 2, 1 / 2, 0, df / (df + t**2)) / 2."""
    cases = [
        (45.0, 1e3, -557.6284334557529),
        (200.0, 1e3, -1861.1467781670601),
        (45.0, 1e6, -1016.2013086271892),
    ]
    t, df, want = np.array(cases).T
    np.testing.assert_allclose(log_tail(t, df), want, rtol=1e-12)


@pytest.mark.parametrize("df", [3.0, 50.0, 1e3, 1e6])
def test_order_is_kept_where_one_form_takes_over_from_the_other(df: float) -> None:
    t = np.geomspace(1e-3, 1e6, 4000)
    z = z_of_t(t, df)
    assert np.isfinite(z).all()
    assert (np.diff(z) > 0).all()
    assert (z < t).all()


def test_infinite_degrees_of_freedom_change_nothing() -> None:
    t = np.array([-3.0, 0.0, 1e100])
    np.testing.assert_array_equal(z_of_t(t, np.inf), t)
    np.testing.assert_array_equal(z_of_t(t, [np.inf, 2.0, np.inf]), t)


def test_shapes_and_nan_are_kept() -> None:
    t = np.array([[1.0, np.nan], [-2.0, 0.0]])
    z = z_of_t(t, 5)
    assert z.shape == (2, 2)
    assert np.isnan(z[0, 1])
    with pytest.raises(ValueError, match="must be positive"):
        z_of_t(t, 0)


def test_the_standard_error_leads_to_the_same_tail() -> None:
    t = np.linspace(-6, 6, 25)
    np.testing.assert_allclose(t / se_of_t(t, 4), z_of_t(t, 4), atol=1e-12)
    want = stats.norm.pdf(0) / stats.t.pdf(0, 4)
    np.testing.assert_allclose(se_of_t([0.0, 1e-6, 2e-5], 4), want, rtol=1e-8)
    np.testing.assert_array_equal(se_of_t([0.0, 3.0], np.inf), 1.0)
