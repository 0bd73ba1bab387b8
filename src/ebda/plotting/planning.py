"""The error expected of studies of other sizes, by `theory.expected_error`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import NullLocator, ScalarFormatter

from ebda.plotting.display import QUIET, Display, check_has, look, percent
from ebda.rule.shrinkage import pointwise
from ebda.theory import expected_error
from ebda.typing import FloatArray

_NAMES = {"none": "none (independence rule)"}
_RULES = tuple(pointwise())
# Default sizes: from a quarter of the study to four times its size.
_FACTORS = 2.0 ** np.arange(-2, 2.5, 0.5)


@dataclass(eq=False, repr=False)
class PlanningDisplay(Display):
    """Expected error against the number of samples per class, for each rule.

    Parameters
    ----------
    n : ndarray
        Samples per class.
    curves : dict of str to ndarray
        Expected errors for these sizes, by the name of the rule.
    current : float, optional
        Samples per class of the study at hand.

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

    n: FloatArray
    curves: dict[str, FloatArray]
    current: float | None = None

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

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        n: npt.ArrayLike | None = None,
        rules: Sequence[str] = _RULES,
    ) -> PlanningDisplay:
        """From the effects that a classifier of two classes has estimated.

        The theory takes features as independent and the estimated prior as true. Real
        features are correlated, and the error of a real study is larger: the curve
        shows what more samples would bring, and is not a promise.

        Parameters
        ----------
        model : EBClassifier
            Fitted, with a discrete prior.
        n : array-like, optional
            Samples per class; by default from a quarter to four times those of the
            fit.
        rules : sequence of {"mean", "sparse", "hard", "none"}
            Which curves.
        """
        check_has(model, "prior_", "moments_", "contrasts_")
        if len(model.classes_) != 2:
            raise ValueError(
                "the expected error is that of two classes; the model has "
                f"{len(model.classes_)}"
            )
        if not hasattr(model.prior_, "atoms"):
            raise TypeError(
                "the expected error needs a discrete prior, as prior='npmle' gives, "
                "and 'dp' where it finds an effect; the model has a "
                f"{type(model.prior_).__name__}"
            )
        # The harmonic mean: z has the scale of two classes of this size.
        current = 2 / float(np.sum(1 / model.moments_.counts))
        if n is None:
            n = np.unique(np.ceil(np.maximum(current * _FACTORS, 2)))
        display = cls.from_effects(
            n,
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
        if self.current is not None:
            words = f"this study ({self.current:.3g})"
            axes.axvline(self.current, color=QUIET, lw=1, label=words)
        axes.set(xscale="log", xlabel="samples per class (log scale)")
        axes.set(ylim=(0, None), ylabel="expected misclassification error")
        axes.set_xticks(self.n[:: max(1, len(self.n) // 6)])
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        percent(axes.yaxis)
        axes.legend(frameon=False, loc="upper right")
        return self
