"""The histogram of z with the fitted marginal density and its null part."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.arrays import FloatArray
from ebda.plotting.style import DATA, FIT, NULL
from ebda.posterior import Prior


class MarginalDisplay:
    """Histogram of z, the fitted density, and the part of it that is null.

    Parameters
    ----------
    edges, density : ndarray
        The histogram.
    grid, marginal, null : ndarray
        Fitted density of z, and its part from the mass at zero.

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

    def __init__(
        self,
        edges: FloatArray,
        density: FloatArray,
        grid: FloatArray,
        marginal: FloatArray,
        null: FloatArray,
    ) -> None:
        self.edges = edges
        self.density = density
        self.grid = grid
        self.marginal = marginal
        self.null = null

    @classmethod
    def from_prior(cls, prior: Prior, z: npt.ArrayLike) -> MarginalDisplay:
        """From a prior and the values that it was fitted to."""
        values = np.asarray(z, dtype=np.float64).ravel()
        density, edges = np.histogram(values, bins="auto", density=True)
        grid = np.linspace(edges[0], edges[-1], 501)
        marginal = np.exp(prior.logpdf(grid))
        null = marginal * prior.posterior(grid).prob_zero
        return cls(edges, density, grid, marginal, null)

    def plot(self, ax: Any = None) -> MarginalDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        import matplotlib.pyplot as plt

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self.ax_.stairs(self.density, self.edges, fill=True, color=DATA, label="z")
        self.ax_.plot(self.grid, self.marginal, color=FIT, label="fitted density")
        self.ax_.plot(
            self.grid, self.null, color=NULL, ls="--", label="of which no difference"
        )
        self.ax_.set(xlabel="normalised difference z", ylabel="density", ylim=(0, None))
        self.ax_.set_ylim(top=1.3 * self.ax_.get_ylim()[1])
        self.ax_.legend(frameon=False)
        return self
