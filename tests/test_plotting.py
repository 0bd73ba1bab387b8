"""Displays store what they draw."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from ebda import EBClassifier
from ebda.plotting import MarginalDisplay, ShrinkageDisplay, plot_fit
from ebda.priors import DiscretePrior

PRIOR = DiscretePrior([0.0, 3.0], [0.8, 0.2])


@pytest.fixture(autouse=True)
def _no_screen() -> None:
    mpl.use("agg")


def test_marginal_is_the_density_of_the_data() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=5000) + np.repeat([0.0, 3.0], [4000, 1000])
    display = MarginalDisplay.from_prior(PRIOR, z)
    middle = (display.edges[1:] + display.edges[:-1]) / 2
    fitted = np.interp(middle, display.grid, display.marginal)
    np.testing.assert_allclose(display.density, fitted, atol=0.04)
    area = display.null.sum() * (display.grid[1] - display.grid[0])
    assert area == pytest.approx(0.8, abs=0.01)


def test_displays_draw_on_demand_and_into_given_axes() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    shrinkage = ShrinkageDisplay.from_prior(PRIOR, [-3.0, 6.0])
    assert not hasattr(shrinkage, "ax_")
    assert shrinkage.plot(axes).ax_ is axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["no shrinkage", "mean", "sparse", "hard"]
    new = MarginalDisplay.from_prior(PRIOR, np.zeros(10)).plot()
    assert new.figure_ is new.ax_.figure
    mpl.pyplot.close(new.figure_)
    other = shrinkage.plot()
    mpl.pyplot.close(other.figure_)


def test_curves_are_the_shrinkages() -> None:
    display = ShrinkageDisplay.from_prior(PRIOR, [-3.0, 6.0], zero_threshold=0.5)
    posterior = PRIOR.posterior(display.grid)
    np.testing.assert_array_equal(display.curves["mean"], posterior.mean)
    kept = posterior.prob_zero <= 0.5
    np.testing.assert_array_equal(display.curves["hard"][kept], display.grid[kept])
    assert not display.curves["sparse"][~kept].any()


def test_figure_of_a_fit_has_both_panels() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 200))
    X[15:, :20] += 2
    figure = plot_fit(EBClassifier().fit(X, np.repeat([0, 1], 15)))
    assert len(figure.axes) == 2
    assert "200 features" in figure.axes[0].get_title()
