"""The shrinkage curves, alone or beside the histogram of z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.plotting.display import (
    Display,
    check_has,
    contrast_row,
    is_of_means,
    look,
)
from ebda.plotting.marginal import MarginalDisplay
from ebda.priors.posterior import Prior
from ebda.rule.shrinkage import mean, none, pointwise
from ebda.typing import FloatArray


@dataclass(eq=False, repr=False)
class ShrinkageDisplay(Display):
    """Estimates of eta as functions of z, one for each shrinkage.

    Parameters
    ----------
    grid : ndarray
        Values of z.
    curves : dict of str to ndarray
        Estimates at these values, by the name of the shrinkage.
    value_name, estimate_name : str
        Labels of the axes.

    Examples
    --------
    >>> from ebda.plotting import ShrinkageDisplay
    >>> from ebda.priors import DiscretePrior
    >>> prior = DiscretePrior([0, 3], [0.9, 0.1])
    >>> display = ShrinkageDisplay.from_prior(prior, [-4, 4])
    >>> sorted(display.curves)
    ['hard', 'mean', 'none', 'sparse']
    """

    grid: FloatArray
    curves: dict[str, FloatArray]
    value_name: str = "normalised difference z"
    estimate_name: str = "estimate"

    @classmethod
    def from_estimator(cls, model: Any, contrast: Any = None) -> ShrinkageDisplay:
        """From a fitted classifier, over the range of its z, or from `NormalMeans`.

        Parameters
        ----------
        model : EBClassifier or NormalMeans
            Fitted; a classifier's `zero_threshold` is used. For estimates with several
            standard errors the curves are those of the median one.
        contrast : label of a class, optional
            For more than two classes: use the range of its differences only.
        """
        if is_of_means(model):
            return cls._of_means(model)
        check_has(model, "z_", "prior_", "zero_threshold")
        row = contrast_row(model.classes_, contrast)
        z = np.atleast_2d(model.z_)
        z = z if row is None else z[row]
        return cls.from_prior(model.prior_, z, model.zero_threshold)

    @classmethod
    def _of_means(cls, model: Any) -> ShrinkageDisplay:
        grid = np.linspace(np.nanmin(model.x_), np.nanmax(model.x_), 1001)
        scale = float(np.nanmedian(model.scale_))
        estimates = {none: grid, mean: model.predict(grid, scale)}
        curves = {
            name: estimates[how.estimate]
            for name, how in pointwise().items()
            if how.estimate in estimates
        }
        return cls(grid, curves, "estimate", "posterior mean")

    @classmethod
    def from_prior(
        cls, prior: Prior, z: npt.ArrayLike, zero_threshold: float = 0.5
    ) -> ShrinkageDisplay:
        """From a prior, over the range of the values `z`."""
        values = np.asarray(z, dtype=np.float64)
        grid = np.linspace(values.min(), values.max(), 1001)
        posterior = prior.posterior(grid)
        curves = {
            name: shrinkage.estimate(grid, posterior, zero_threshold)
            for name, shrinkage in pointwise().items()
        }
        return cls(grid, curves)

    def plot(self, ax: Any = None) -> ShrinkageDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        for place, (name, curve) in enumerate(self.curves.items()):
            # Curves that agree cover each other: the first is wide and light, below all
            # others; of these an earlier one is above a later one.
            style, wide = look(place), place == 0
            axes.plot(
                self.grid,
                _without_risers(curve),
                color=style.colour,
                ls=style.line,
                lw=4 if wide else 1.8,
                alpha=0.45 if wide else 1,
                zorder=1.5 if wide else 2 - place / 100,
                label=name,
            )
        axes.set(xlabel=self.value_name, ylabel=self.estimate_name)
        axes.legend(frameon=False, loc="upper left")
        return self


def _without_risers(curve: FloatArray) -> FloatArray:
    """The curve, interrupted where it jumps."""
    steps = (curve[1:] == 0) != (curve[:-1] == 0)
    jumps = np.flatnonzero(steps & (np.abs(np.diff(curve)) > 0.05))
    shown = curve.copy()
    shown[jumps] = np.nan
    return shown


def plot_fit(model: Any) -> Any:
    """Histogram of z with the fitted density, beside the shrinkage curves.

    Parameters
    ----------
    model : EBClassifier or NormalMeans
        Fitted.

    Returns
    -------
    matplotlib Figure
        Made without a screen; save it with ``savefig``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    MarginalDisplay.from_estimator(model).plot(left)
    ShrinkageDisplay.from_estimator(model).plot(right)
    if is_of_means(model):
        left.set_title(f"{len(model.x_)} estimates")
    else:
        share = f"{model.prior_.pi0:.0%} null"
        left.set_title(f"{model.n_features_in_} features, {share}")
    right.set_title("shrinkage")
    return figure
