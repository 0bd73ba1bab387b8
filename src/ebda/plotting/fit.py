"""One figure of a fit: the data with the density, and the shrinkage curves."""

from __future__ import annotations

from typing import Any

from ebda.plotting.marginal import MarginalDisplay
from ebda.plotting.shrinkage import ShrinkageDisplay


def plot_fit(model: Any) -> Any:
    """Histogram of z with the fitted density, beside the shrinkage curves.

    Parameters
    ----------
    model : EBClassifier
        Fitted classifier.

    Returns
    -------
    matplotlib Figure
        Drawn without a screen; save it with ``savefig``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    MarginalDisplay.from_estimator(model).plot(left)
    ShrinkageDisplay.from_estimator(model).plot(right)
    left.set_title(f"{model.n_features_in_} features, {model.prior_.pi0:.0%} null")
    right.set_title("shrinkage")
    return figure
