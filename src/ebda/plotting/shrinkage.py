"""The shrinkage curves: what each rule makes of z."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda import shrinkage
from ebda.arrays import FloatArray
from ebda.plotting.style import FIT, NULL, QUIET, SPARSE
from ebda.posterior import Prior

_STYLES: dict[str, dict[str, Any]] = {
    "mean": {"color": FIT, "lw": 2.2},
    "sparse": {"color": SPARSE, "ls": "--"},
    "hard": {"color": NULL, "ls": ":"},
}


class ShrinkageDisplay:
    """Estimates of eta as functions of z, for every shrinkage.

    Parameters
    ----------
    grid : ndarray
        Values of z.
    curves : dict of str to ndarray
        The estimate at each, by the name of the shrinkage.

    Examples
    --------
    >>> from ebda.plotting import ShrinkageDisplay
    >>> from ebda.priors import DiscretePrior
    >>> prior = DiscretePrior([0, 3], [0.9, 0.1])
    >>> display = ShrinkageDisplay.from_prior(prior, [-4, 4])
    >>> sorted(display.curves)
    ['hard', 'mean', 'sparse']
    """

    def __init__(self, grid: FloatArray, curves: dict[str, FloatArray]) -> None:
        self.grid = grid
        self.curves = curves

    @classmethod
    def from_prior(
        cls, prior: Prior, z: npt.ArrayLike, zero_threshold: float = 0.5
    ) -> ShrinkageDisplay:
        """From a prior, over the range of the given values."""
        values = np.asarray(z, dtype=np.float64)
        grid = np.linspace(values.min(), values.max(), 1001)
        posterior = prior.posterior(grid)
        curves = {
            name: shrink(grid, posterior, zero_threshold)
            for name, shrink in shrinkage.SHRINKAGES.items()
        }
        return cls(grid, curves)

    def plot(self, ax: Any = None) -> ShrinkageDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        import matplotlib.pyplot as plt

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self.ax_.plot(self.grid, self.grid, color=QUIET, lw=0.8, label="no shrinkage")
        for name, curve in self.curves.items():
            self.ax_.plot(self.grid, curve, label=name, **_STYLES[name])
        self.ax_.set(xlabel="normalised difference z", ylabel="estimate")
        self.ax_.legend(frameon=False)
        return self
