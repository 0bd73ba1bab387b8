"""Plots of models and predictions, in the manner of scikit-learn's Displays.

A display stores arrays, and draws when asked, into given axes or new ones. matplotlib
comes with the extra ``ebda[plot]``.

Of a fitted model:

- `MarginalDisplay`: histogram of z with the fitted density and its null part.
- `PriorDisplay`: atoms or density of the prior, and its mass at zero.
- `ShrinkageDisplay`: estimates as functions of z, one for each shrinkage.
- `EffectDisplay`: volcano plot, effect against the probability of no effect.
- `plot_fit`: marginal and shrinkage side by side.

Of predictions:

- `ScoreDisplay`: scores of samples by class, with the boundary.
- `CalibrationDisplay`: observed shares against predicted probabilities.
- `ErrorByMethodDisplay`: errors of several methods, with intervals.
- `ErrorDisplay`: errors of several methods over repetitions, as box plots.
- `PanelDisplay`: error against the number of features, and the panel that was chosen.
- `PlanningDisplay`: error to expect with other numbers of samples.

Of theory:

- `ExpectedErrorDisplay`: error of a classifier that knows the prior.
"""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401  # checked here, once
except ImportError as error:
    raise ImportError("plots need matplotlib: pip install 'ebda[plot]'") from error

from ebda.plotting.calibration import CalibrationDisplay
from ebda.plotting.effects import EffectDisplay
from ebda.plotting.errors import ErrorByMethodDisplay, ErrorDisplay
from ebda.plotting.expected_error import ExpectedErrorDisplay
from ebda.plotting.marginal import MarginalDisplay
from ebda.plotting.panels import PanelDisplay
from ebda.plotting.planning import PlanningDisplay
from ebda.plotting.prior import PriorDisplay
from ebda.plotting.scores import ScoreDisplay
from ebda.plotting.shrinkage import ShrinkageDisplay, plot_fit

__all__ = [
    "CalibrationDisplay",
    "EffectDisplay",
    "ErrorByMethodDisplay",
    "ErrorDisplay",
    "ExpectedErrorDisplay",
    "MarginalDisplay",
    "PanelDisplay",
    "PlanningDisplay",
    "PriorDisplay",
    "ScoreDisplay",
    "ShrinkageDisplay",
    "plot_fit",
]
