"""What rounding alone makes of a constant."""

from __future__ import annotations

import numpy as np

# A standard deviation this small against the mean is the rounding error of a constant.
ROUNDING = 16 * np.finfo(np.float64).eps


def rounding_variance(mean: float) -> float:
    """The largest variance that rounding alone gives to a constant of this size."""
    return (ROUNDING * float(mean)) ** 2
