"""Pictures of a fit, in the manner of scikit-learn's Displays.

A display stores arrays and draws when asked; matplotlib comes with the extra
``ebda[plot]``.
"""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401  # checked here, once
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'ebda[plot]'") from error

from ebda.plotting.errors import ErrorDisplay
from ebda.plotting.fit import plot_fit
from ebda.plotting.marginal import MarginalDisplay
from ebda.plotting.shrinkage import ShrinkageDisplay

__all__ = ["ErrorDisplay", "MarginalDisplay", "ShrinkageDisplay", "plot_fit"]
