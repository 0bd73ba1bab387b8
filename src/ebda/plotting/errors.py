"""Errors of several methods over repetitions, as box plots: the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ebda.plotting.display import Display
from ebda.plotting.style import DATA, FIT, plain


class ErrorDisplay(Display):
    """A box for each method over its errors, with every repetition as a point.

    Parameters
    ----------
    errors : mapping of str to sequence of float
        Errors by method, in the order in which they are drawn.

    Examples
    --------
    >>> from ebda.plotting import ErrorDisplay
    >>> list(ErrorDisplay({"DP": [0.1, 0.2], "IR": [0.3, 0.4]}).errors)
    ['DP', 'IR']
    """

    def __init__(self, errors: Mapping[str, Sequence[float]]) -> None:
        self.errors = {name: np.asarray(values) for name, values in errors.items()}

    def plot(self, ax: Any = None) -> ErrorDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        rng = np.random.default_rng(0)  # spreads the points; not a result
        for place, values in enumerate(self.errors.values(), start=1):
            spread = place + rng.uniform(-0.15, 0.15, len(values))
            axes.plot(spread, values, "o", ms=3, color=FIT, alpha=0.4, mew=0)
        axes.boxplot(
            list(self.errors.values()),
            tick_labels=[plain(name) for name in self.errors],
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": DATA, "alpha": 0.6},
            medianprops={"color": "black"},
        )
        axes.set(ylabel="misclassification error", ylim=(0, None))
        return self
