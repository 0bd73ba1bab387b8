"""The error that studies of other sizes would reach: `theory.expected_error` drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import NullLocator, ScalarFormatter

from ebda.plotting.display import Display, check_has, percent
from ebda.plotting.style import FIT, NULL, PURPLE, QUIET, SPARSE
from ebda.priors import DiscretePrior
from ebda.theory import expected_error
from ebda.typing import FloatArray

_STYLES: dict[str, dict[str, Any]] = {
    "mean": {"color": FIT, "lw": 2.2, "marker": "o"},
    "sparse": {"color": SPARSE, "ls": "--", "marker": "s"},
    "hard": {"color": NULL, "ls": ":", "lw": 1.8, "marker": "^"},
    "none": {"color": PURPLE, "ls": "-.", "marker": "D"},
}
_NAMES = {"none": "none (independence rule)"}
_RULES = tuple(_STYLES)
# Sizes of the curve unless given: from a quarter of the study to four times it.
_FACTORS = 2.0 ** np.arange(-2, 2.5, 0.5)


class PlanningDisplay(Display):
    """Expected error over the number of samples a class, for each rule.

    Parameters
    ----------
    n : ndarray
        Samples a class.
    curves : dict of str to ndarray
        The expected error at each, by the name of the shrinkage.
    current : float, optional
        Samples a class of the study at hand.

    Examples
    --------
    Row (3, 50) of the paper's Table 1:

    >>> from ebda.plotting import PlanningDisplay
    >>> display = PlanningDisplay.from_effects(
    ...     [12, 25], [3 / 12.5**0.5], 0.995, n_features=10_000, rules=["mean"]
    ... )
    >>> display.curves["mean"].round(2)
    array([0.16, 0.03])
    """

    def __init__(
        self, n: FloatArray, curves: dict[str, FloatArray], current: float | None = None
    ) -> None:
        self.n = n
        self.curves = curves
        self.current = current

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
    ) -> PlanningDisplay:
        """From effects that one assumes.

        Parameters
        ----------
        n : array-like
            Samples a class.
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

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        n: npt.ArrayLike | None = None,
        rules: Sequence[str] = _RULES,
    ) -> PlanningDisplay:
        """From the effects that a classifier of two classes has found.

        The theory is of independent features with the prior that was estimated. Real
        features hang together, and the error of a real study is larger: the curve is
        a guide to what more samples bring, and no promise.

        Parameters
        ----------
        model : EBClassifier
            Fitted, with a discrete prior.
        n : array-like, optional
            Samples a class; by default a quarter of those of the fit to four times
            as many.
        rules : sequence of {"mean", "sparse", "hard", "none"}
            Which curves.
        """
        check_has(model, "prior_", "moments_", "contrasts_")
        if len(model.classes_) != 2:
            raise ValueError(
                f"the expected error is that of two classes; the model has "
                f"{len(model.classes_)}"
            )
        if not isinstance(model.prior_, DiscretePrior):
            raise TypeError(
                "the expected error needs a discrete prior, as prior='dp' or 'npmle' "
                f"give; the model has a {type(model.prior_).__name__}"
            )
        # The harmonic mean: z has the scale of two classes of this size.
        current = 2 / float(np.sum(1 / model.moments_.counts))
        sizes = (
            np.unique(np.ceil(np.maximum(current * _FACTORS, 2))) if n is None else n
        )
        display = cls.from_effects(
            sizes,
            model.prior_.rescale(np.sqrt(2 / current)),
            n_features=int(np.count_nonzero(~model.contrasts_.constant)),
            rules=rules,
            zero_threshold=model.zero_threshold,
        )
        display.current = current
        return display

    def plot(self, ax: Any = None) -> PlanningDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        """
        axes = self._axes(ax)
        for rule, curve in self.curves.items():
            axes.plot(
                self.n, curve, ms=4, label=_NAMES.get(rule, rule), **_STYLES[rule]
            )
        if self.current is not None:
            axes.axvline(
                self.current,
                color=QUIET,
                lw=1,
                label=f"this study ({self.current:.3g})",
            )
        axes.set(
            xscale="log",
            xlabel="samples a class (log scale)",
            ylabel="expected misclassification error",
            ylim=(0, None),
        )
        axes.set_xticks(self.n[:: max(1, len(self.n) // 6)])
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        percent(axes.yaxis)
        axes.legend(frameon=False, loc="upper right")
        return self
