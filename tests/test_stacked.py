"""The default prior of NormalMeans: a mixture whose shares held-out values choose."""

from __future__ import annotations

import numpy as np
import pytest

from ebda.datasets import make_normal_means
from ebda.priors import DirichletProcess, NormalMixture, Stacked
from ebda.priors.mode import most_likely_mode


def test_it_is_the_mixture_of_both_priors() -> None:
    sim = make_normal_means("asym", 600, 0)
    stacked = Stacked().fit(sim.x)
    points, normals = (
        f.fit(sim.x).prior_ for f in (DirichletProcess(tol=1e-7), NormalMixture())
    )
    grid = np.linspace(-9, 9, 50)
    v, rest = stacked.shares_
    assert v + rest == pytest.approx(1.0)
    want = v * np.exp(points.logpdf(grid)) + rest * np.exp(normals.logpdf(grid))
    np.testing.assert_allclose(np.exp(stacked.prior_.logpdf(grid)), want, rtol=1e-4)


@pytest.mark.parametrize(("design", "discrete"), [("points", True), ("t2", False)])
def test_the_shares_are_right_where_one_is_clearly_better(
    design: str, discrete: bool
) -> None:
    shares = Stacked().fit(make_normal_means(design, 3000, 1).x).shares_
    assert (shares[0] > 0.5) == discrete


def test_few_values_do_not_choose() -> None:
    np.testing.assert_array_equal(Stacked().fit([0.3, 4.0, -1.0]).shares_, 0.5)


def test_the_folds_come_from_the_seed() -> None:
    x = make_normal_means("laplace", 400, 0).x
    default, zero, other = (
        Stacked(random_state=state).fit(x).shares_ for state in (None, 0, 1)
    )
    np.testing.assert_array_equal(default, zero)
    assert (default != other).any()
    with pytest.raises(ValueError, match="n_folds must be a whole number >= 2"):
        Stacked(n_folds=1).fit(x)


def test_the_mode_moves_with_the_values() -> None:
    sim = make_normal_means("dense_normal", 800, 0)
    mode = most_likely_mode(sim.x, sim.scale)
    assert mode == pytest.approx(np.mean(sim.x), abs=0.1)
    moved = most_likely_mode(5 + 2 * sim.x, 2 * sim.scale)
    assert moved == pytest.approx(5 + 2 * mode, abs=2e-3)
    assert most_likely_mode(np.full(30, 4.0), np.ones(30)) == 4.0
