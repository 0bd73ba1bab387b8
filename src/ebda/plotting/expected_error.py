"""The expected error of a classifier that knows the prior (`theory.expected_error`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import NullLocator, ScalarFormatter

from ebda.plotting.display import Display, look, percent
from ebda.rule.shrinkage import pointwise
from ebda.theory import expected_error
from ebda.typing import FloatArray

_NAMES = {"none": "none (independence rule)"}
_RULES = tuple(pointwise())


@dataclass(eq=False, repr=False)
class ExpectedErrorDisplay(Display):
    """Expected error against the number of samples per class, in theory.

    One curve per rule, for assumed effects of independent features: what a classifier
    would reach that knows the variances and the prior. To plan from data that are
    there, see :class:`PlanningDisplay`.

    Parameters
    ----------
    n : ndarray
        Samples per class.
    curves : dict of str to ndarray
        Expected errors for these sizes, by the name of the rule.

    Examples
    --------
    Row (3, 50) of the paper's Table 1:

    >>> from ebda.plotting import ExpectedErrorDisplay
    >>> display = ExpectedErrorDisplay.from_effects(
    ...     [12, 25], [3 / 12.5**0.5], 0.995, n_features=10_000, rules=["mean"]
    ... )
    >>> display.curves["mean"].round(2)
    array([0.16, 0.03])
    """

    n: FloatArray
    curves: dict[str, FloatArray]

    @classmethod
    def from_effects(
        cls,
        n: npt.ArrayLike,
        effects: Any,
        pi0: float | None = None,
        *,
        n_features: int,
        rules: Sequence[str] = _RULES,
        **options: Any,
    ) -> ExpectedErrorDisplay:
        """From assumed effects.

        Parameters
        ----------
        n : array-like
            Samples per class.
        effects, pi0, n_features, **options
            As for :func:`ebda.theory.expected_error`.
        rules : sequence of {"mean", "sparse", "hard", "none"}
            Which curves.
        """
        sizes = np.atleast_1d(np.asarray(n, dtype=np.float64))
        curves = {
            rule: expected_error(
                sizes, effects, pi0, n_features=n_features, rule=rule, **options
            )
            for rule in rules
        }
        return cls(sizes, curves)

    def plot(self, ax: Any = None) -> ExpectedErrorDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        for place, (rule, curve) in enumerate(self.curves.items()):
            style = look(place)
            axes.plot(
                self.n,
                curve,
                color=style.colour,
                ls=style.line,
                marker=style.marker,
                ms=4,
                label=_NAMES.get(rule, rule),
            )
        axes.set(xscale="log", xlabel="samples per class (log scale)")
        axes.set(ylim=(0, None), ylabel="expected misclassification error")
        axes.set_xticks(self.n[:: max(1, len(self.n) // 6)])
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        percent(axes.yaxis)
        axes.legend(frameon=False, loc="upper right")
        return self
