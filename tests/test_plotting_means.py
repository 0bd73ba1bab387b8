"""Displays of `NormalMeans`."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from ebda import NormalMeans
from ebda.datasets import make_normal_means
from ebda.plotting import (
    EffectDisplay,
    MarginalDisplay,
    PriorDisplay,
    ShrinkageDisplay,
    plot_fit,
)
from ebda.priors import DiscretePrior, NormalMixturePrior

DISPLAYS = [MarginalDisplay, PriorDisplay, ShrinkageDisplay, EffectDisplay]
FAMILIES = [
    "stacked",
    "dp",
    "npmle",
    "normal_mixture",
    "unimodal",
    "point_exponential",
    "horseshoe",
    "kernel",
]


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    x = make_normal_means("asym", 400, 0).x
    return np.append(x, np.nan)


@pytest.mark.parametrize("prior", FAMILIES)
def test_every_display_draws_every_family(prior: str, values: np.ndarray) -> None:
    means = NormalMeans(prior).fit(values, 2.0)
    for display in DISPLAYS:
        figure = display.from_estimator(means).plot().figure_
        figure.canvas.draw()
        mpl.pyplot.close(figure)
    plot_fit(means).canvas.draw()


@pytest.fixture(scope="module")
def means(values: np.ndarray) -> Any:
    return NormalMeans(mode=1.0).fit(values + 1)


def test_the_histogram_shows_estimates_and_the_null_that_is_used(means: Any) -> None:
    display = MarginalDisplay.from_estimator(means)
    assert display.edges[0] == pytest.approx(np.nanmin(means.x_))
    step = display.grid[1] - display.grid[0]
    null = display.null.sum() * step
    assert null == pytest.approx(np.nanmean(means.prob_zero_), abs=0.02)
    top = display.grid[np.argmax(display.null)]
    assert top == pytest.approx(1.0 + means.null_loc_, abs=2 * step)
    assert display.plot().ax_.get_xlabel() == "estimate"


def test_the_curve_is_the_posterior_mean(means: Any) -> None:
    display = ShrinkageDisplay.from_estimator(means)
    shown = np.interp(means.x_[:5], display.grid, display.curves["mean"])
    np.testing.assert_allclose(shown, means.posterior_mean_[:5], atol=1e-2)


def test_rows_keep_their_numbers_where_some_are_missing() -> None:
    x = np.append(np.random.default_rng(0).normal(size=200), [np.nan, 9.0, -8.0])
    display = EffectDisplay.from_estimator(NormalMeans().fit(x))
    best = display.order[:2]
    assert [display.names[j] for j in best] == ["row 202", "row 203"]
    assert display.sides[best].tolist() == [0, 1]
    assert np.count_nonzero(display.q_value <= 0.05) == 2
    with pytest.raises(ValueError, match="203 estimates"):
        EffectDisplay.from_estimator(NormalMeans().fit(x), names=["a"])


def test_atoms_and_a_density_are_both_shown() -> None:
    prior = NormalMixturePrior([0, 0, 0, 1.0], [5, 2, 1, 2], [0, 3, -3, 0])
    display = PriorDisplay.from_prior(prior)
    assert display.atoms.tolist() == [-3.0, 3.0]
    assert sum(display.masses.values()) == pytest.approx(1.0)
    assert display.masses["below zero"] == pytest.approx(0.2)
    step = display.grid[1] - display.grid[0]
    assert display.density.sum() * step == pytest.approx(0.2, abs=0.01)
    assert len(display.plot().figure_.axes) > 1
    only = PriorDisplay.from_prior(NormalMixturePrior([0, 0], [1, 1], [0, 2]))
    want = PriorDisplay.from_prior(DiscretePrior([0, 2], [1, 1]))
    np.testing.assert_array_equal(only.atoms, want.atoms)
    np.testing.assert_allclose(only.weights, want.weights)
    assert not len(only.grid)
