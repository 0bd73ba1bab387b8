"""The shrinkage curves: what each rule makes of z."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.plotting.classes import contrast_row
from ebda.plotting.display import Display, check_has
from ebda.plotting.style import FIT, NULL, QUIET, SPARSE
from ebda.priors.posterior import Prior
from ebda.rule import shrinkage
from ebda.typing import FloatArray

# Where rules agree they cover each other: wide and light first, narrow and dark last.
_STYLES: dict[str, dict[str, Any]] = {
    "mean": {"color": FIT, "lw": 4, "alpha": 0.45},
    "sparse": {"color": SPARSE, "ls": "--", "lw": 1.6},
    "hard": {"color": NULL, "ls": ":", "lw": 2.2},
}


class ShrinkageDisplay(Display):
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
    def from_estimator(cls, model: Any, contrast: Any = None) -> ShrinkageDisplay:
        """From a fitted classifier, over the range of its z.

        Parameters
        ----------
        model : EBClassifier
            Fitted; its `zero_threshold` is that of the sparse and the hard rule.
        contrast : label of a class, optional
            For more than two classes: over the range of its differences only.
        """
        check_has(model, "z_", "prior_", "zero_threshold")
        row = contrast_row(model.classes_, contrast)
        z = np.atleast_2d(model.z_)
        z = z if row is None else z[row]
        return cls.from_prior(model.prior_, z, model.zero_threshold)

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
        axes = self._axes(ax)
        axes.plot(self.grid, self.grid, color=QUIET, lw=0.8, label="no shrinkage")
        for name, curve in self.curves.items():
            shown = _without_risers(curve)
            axes.plot(self.grid, shown, label=name, **_STYLES[name])
        axes.set(xlabel="normalised difference z", ylabel="estimate")
        axes.legend(frameon=False, loc="upper left")
        return self


def _without_risers(curve: FloatArray) -> FloatArray:
    """The curve, interrupted where a rule jumps: it takes no value on the way."""
    steps = (curve[1:] == 0) != (curve[:-1] == 0)
    jumps = np.flatnonzero(steps & (np.abs(np.diff(curve)) > 0.05))
    shown = curve.copy()
    shown[jumps] = np.nan
    return shown
