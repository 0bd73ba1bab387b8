"""Log tail probabilities: SciPy's where these exist, and beyond."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ebda.rule.tails import log_f_tail, log_t_tail, normal_score


@pytest.mark.parametrize("df", [1.0, 3.7, 30.0, 1e4, 1e8])
def test_t_tails_are_those_of_scipy(df: float) -> None:
    t = np.array([-30.0, -4.0, -1.3, 0.0, 1e-9, 0.2, 2.5, 8.0])
    expected = np.log(2 * stats.t.sf(np.abs(t), df))
    np.testing.assert_allclose(log_t_tail(t, df), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("df1", "df2"), [(1.0, 5.0), (2.0, 70.0), (7.0, 2e4)])
def test_f_tails_are_those_of_scipy(df1: float, df2: float) -> None:
    f = np.array([0.0, 1e-6, 0.3, 1.0, 4.0, 60.0])
    expected = np.log(stats.f.sf(f, df1, df2))
    np.testing.assert_allclose(log_f_tail(f, df1, df2), expected, rtol=1e-9, atol=1e-12)


def test_tails_go_on_where_probabilities_underflow() -> None:
    """Of the t distribution the far tail is a power, and of the normal a parabola."""
    t = np.array([1e60, 1e70, 1e80, 1e120])
    slope = np.diff(log_t_tail(t, 8.0)) / np.diff(np.log(t))
    np.testing.assert_allclose(slope, -8.0, rtol=1e-12)
    z = np.array([39.7, 78.0, 300.0])
    expected = np.log(2) + stats.norm.logsf(z)
    np.testing.assert_allclose(log_t_tail(z, 1e12), expected, rtol=1e-6)


def test_both_ways_to_compute_a_tail_meet() -> None:
    """Around the value below which the continued fraction takes over."""
    t = np.linspace(30, 45, 400)
    log_p = log_t_tail(t, 1e7)
    assert log_p.min() < -700 < -600 < log_p.max() + 200
    bend = np.diff(log_p, 3)
    assert np.abs(bend).max() < 1e-6


def test_scores_have_the_tail_of_their_t() -> None:
    t = np.array([-12.0, -0.5, 0.0, 1.0, 60.0])
    z = normal_score(t, 6.0)
    np.testing.assert_allclose(stats.norm.sf(z), stats.t.sf(t, 6.0), rtol=1e-8)
    np.testing.assert_array_equal(np.sign(z), np.sign(t))
    # One for each value, too.
    each = normal_score(t, np.full(5, 6.0))
    np.testing.assert_allclose(each, z, rtol=1e-12)
