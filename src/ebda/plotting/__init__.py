"""Pictures of a fit, in the manner of scikit-learn's Displays.

A display stores arrays and draws when asked, into axes that are given or made;
matplotlib comes with the extra ``ebda[plot]``.

Of a fitted model:

- `MarginalDisplay`: histogram of z with the fitted density and its null part.
- `PriorDisplay`: atoms or density of the prior, and its mass at zero.
- `ShrinkageDisplay`: what "mean", "sparse" and "hard" make of z.
- `EffectDisplay`: effect against the probability of no effect, the volcano.
- `PlanningDisplay`: error to expect of studies of other sizes.
- `plot_fit`: the first and the third side by side.

Of predictions:

- `ScoreDisplay`: scores of samples by class, with the boundary.
- `CalibrationDisplay`: observed shares against predicted probabilities.
- `ErrorByMethodDisplay`: cross-validated error of several methods, with intervals.
- `ErrorDisplay`: errors over repetitions, as box plots.
"""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401  # checked here, once
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'ebda[plot]'") from error

from ebda.plotting.calibration import CalibrationDisplay
from ebda.plotting.effects import EffectDisplay
from ebda.plotting.errors import ErrorDisplay
from ebda.plotting.fit import plot_fit
from ebda.plotting.marginal import MarginalDisplay
from ebda.plotting.methods import ErrorByMethodDisplay
from ebda.plotting.planning import PlanningDisplay
from ebda.plotting.prior import PriorDisplay
from ebda.plotting.scores import ScoreDisplay
from ebda.plotting.shrinkage import ShrinkageDisplay

__all__ = [
    "CalibrationDisplay",
    "EffectDisplay",
    "ErrorByMethodDisplay",
    "ErrorDisplay",
    "MarginalDisplay",
    "PlanningDisplay",
    "PriorDisplay",
    "ScoreDisplay",
    "ShrinkageDisplay",
    "plot_fit",
]
