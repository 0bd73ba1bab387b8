"""Units, shifts and the order of the features do not change what is predicted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ebda import EBClassifier
from ebda.datasets import make_two_class


@pytest.mark.slow
@given(seed=st.integers(0, 10_000))
def test_three_coarse_features_in_any_units(seed: int) -> None:
    """Features of few values have ties, which rounding must not decide."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60)
    X = rng.integers(0, rng.integers(2, 6), size=(n, 3)).astype(float)
    y = rng.integers(0, 2, n)
    X[:, 0] += 2 * y * rng.random()
    assume(np.bincount(y, minlength=2).min() >= 5)
    assume((np.ptp(X, axis=0) > 0).all())
    want = EBClassifier().fit(X, y).predict_proba(X)
    for other in (3.7 * X, X + 11.3, X[:, [2, 0, 1]], 1e-5 * X):
        got = EBClassifier().fit(other, y).predict_proba(other)
        # Searches end within a tolerance, from where rounding had them begin.
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_extreme_units(scale: float) -> None:
    sim = make_two_class(15, 200, n_signals=20, effect=2.0, random_state=0)
    want = EBClassifier().fit(sim.data, sim.target).predict_proba(sim.data)
    X = scale * sim.data
    got = EBClassifier().fit(X, sim.target).predict_proba(X)
    np.testing.assert_allclose(got, want, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e-155, 1e-160, 1e-200])
def test_values_whose_squares_underflow_are_an_error(scale: float) -> None:
    sim = make_two_class(15, 50, n_signals=20, effect=2.0, random_state=0)
    with pytest.raises(ValueError, match=r"too small .* in columns 0, 1"):
        EBClassifier().fit(scale * sim.data, sim.target)
    X = sim.data.copy()
    X[:, 7] *= scale
    with pytest.raises(ValueError, match=r"too small .* in column 7;"):
        EBClassifier().fit(X, sim.target)
