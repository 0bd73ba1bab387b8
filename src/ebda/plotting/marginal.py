"""Histogram of z with the fitted marginal density and its null part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.plotting.display import (
    DATA,
    FIT,
    NULL,
    QUIET,
    Display,
    check_has,
    contrast_name,
    contrast_row,
    is_of_means,
)
from ebda.priors.posterior import Prior
from ebda.typing import FloatArray

_MOST_BINS = 200
# Where the values have different scales, the density is averaged over this many.
_MOST_SCALES = 64


@dataclass(eq=False, repr=False)
class MarginalDisplay(Display):
    """Histogram of z, the fitted density, and the part of it that is null.

    Parameters
    ----------
    edges, density : ndarray
        The histogram.
    grid, marginal, null : ndarray
        Fitted density of z, and its part from the mass at zero.
    name : str, optional
        The contrast that z is of.
    value_name : str
        Label of the horizontal axis.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.plotting import MarginalDisplay
    >>> from ebda.priors import DiscretePrior
    >>> z = np.random.default_rng(0).normal(size=500)
    >>> display = MarginalDisplay.from_prior(DiscretePrior([0], [1]), z)
    >>> bool(np.allclose(display.marginal, display.null))
    True
    """

    edges: FloatArray
    density: FloatArray
    grid: FloatArray
    marginal: FloatArray
    null: FloatArray
    name: str | None = None
    value_name: str = "normalised difference z"

    @classmethod
    def from_estimator(cls, model: Any, contrast: Any = None) -> MarginalDisplay:
        """From a fitted classifier: its z, without the constant features.

        Parameters
        ----------
        model : EBClassifier or NormalMeans
            Fitted. Of `NormalMeans` the estimates are shown.
        contrast : label of a class, optional
            For more than two classes: show only the differences of this class. The
            density remains that of all classes together, which the prior was fitted to.
        """
        if is_of_means(model):
            return cls._of_means(model)
        check_has(model, "z_", "prior_", "contrasts_")
        row = contrast_row(model.classes_, contrast)
        z = np.atleast_2d(model.z_)[:, ~model.contrasts_.constant]
        display = cls.from_prior(model.prior_, z if row is None else z[row])
        display.name = contrast_name(model.classes_, row)
        return display

    @classmethod
    def _of_means(cls, model: Any) -> MarginalDisplay:
        """The estimates, with the density of the null that signs are judged by."""
        there = ~np.isnan(model.posterior_mean_)
        x, scale = model.x_[there], model.scale_[there]
        display = cls.from_prior(model.prior_, x - model.mode_, scale)
        prior = getattr(model.signs_, "prior", None)
        if prior is not None:
            s = _representative(scale)[:, None]
            u = (display.grid / s - model.null_loc_) / model.null_scale_
            density = np.exp(-0.5 * u * u) / (
                np.sqrt(2 * np.pi) * model.null_scale_ * s
            )
            display.null = prior.pi0 * density.mean(axis=0)
        display.edges = display.edges + model.mode_
        display.grid = display.grid + model.mode_
        display.value_name = "estimate"
        return display

    @classmethod
    def from_prior(
        cls, prior: Prior, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0
    ) -> MarginalDisplay:
        """From a prior and the values that it was fitted to.

        Parameters
        ----------
        prior : Prior
            With ``logpdf`` and ``posterior``.
        z : array-like
            The values.
        scale : float or array-like
            Their standard errors; if these differ, the density is averaged over them.
        """
        values = np.asarray(z, dtype=np.float64).ravel()
        density, edges = np.histogram(values, bins=_bin_count(values), density=True)
        grid = np.linspace(edges[0], edges[-1], 501)
        scales = _representative(np.asarray(scale, dtype=np.float64).ravel())
        shape = (len(scales), len(grid))
        points = np.broadcast_to(grid, shape)
        noise = np.broadcast_to(scales[:, None], shape)
        marginal = np.exp(prior.logpdf(points, noise))
        null = marginal * prior.posterior(points, noise).prob_zero
        return cls(edges, density, grid, marginal.mean(axis=0), null.mean(axis=0))

    def plot(self, ax: Any = None, *, log: bool = False) -> MarginalDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        log : bool
            Use a log scale for densities. It shows the tails, where the features that
            differ are.
        """
        axes = self._axes(ax)
        axes.stairs(self.density, self.edges, fill=True, color=DATA, label="z")
        axes.stairs(self.density, self.edges, color=QUIET, lw=0.4)
        axes.plot(self.grid, self.marginal, color=FIT, label="fitted density")
        words = "of which no difference"
        axes.plot(self.grid, self.null, color=NULL, ls="--", label=words)
        axes.set_xlabel(", ".join(filter(None, [self.value_name, self.name])))
        if log:
            # The axis starts at half the density of a bin with one value.
            ends = self.density[self.density > 0].min() / 2, 8 * self.density.max()
            axes.set(yscale="log", ylim=ends, ylabel="density (log)")
        else:
            axes.set(ylim=(0, 1.3 * axes.get_ylim()[1]), ylabel="density")
        axes.legend(frameon=False, loc="upper right")
        return self


def _bin_count(values: FloatArray) -> int:
    """Number of bins by Freedman and Diaconis, limited in case of outliers."""
    low, high = np.percentile(values, [25, 75])
    width = 2 * (high - low) / len(values) ** (1 / 3)
    fewest = int(np.ceil(np.log2(len(values)))) + 1
    span = float(np.ptp(values))
    if width <= span / _MOST_BINS:
        return _MOST_BINS if width > 0 else fewest
    return max(fewest, int(np.ceil(span / width)))


def _representative(scales: FloatArray) -> FloatArray:
    """Quantiles of the scales."""
    size = min(_MOST_SCALES, len(scales))
    quantiles: FloatArray = np.quantile(scales, (np.arange(size) + 0.5) / size)
    return quantiles
