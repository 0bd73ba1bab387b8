"""The null distribution of z: N(0, 1) in theory, or estimated from the central values.

In theory a feature without a difference has ``z ~ N(0, 1)``. Correlation that is not
accounted for shifts and widens the null values of a data set together, and a prior
fitted to them takes that for thousands of small effects. Where most features do not
differ, the central values show the actual null (Efron 2004): the median estimates its
location, and the median absolute deviation its scale. The null is never taken to be
narrower than in theory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ebda.typing import FloatArray

# Median absolute deviation of the standard normal distribution, and the standard errors
# of the median and of that deviation divided by it, times sqrt(n).
_MAD = float(norm.ppf(0.75))
_SE_MEDIAN = 1.2533
_SE_MAD = 1.1664
# With fewer values the central ones say too little.
_FEWEST = 50
# Standard errors by which the null must differ from N(0, 1) to be used.
_SIGNIFICANT = 3.0


@dataclass(frozen=True, eq=False)
class Null:
    """Location and scale of the null of each contrast.

    Parameters
    ----------
    loc, scale : ndarray of shape (n_contrasts, 1) or float
    """

    loc: FloatArray | float = 0.0
    scale: FloatArray | float = 1.0

    @property
    def is_standard(self) -> bool:
        """Whether it is N(0, 1)."""
        return np.ndim(self.loc) == 0 and self.loc == 0 and self.scale == 1

    def repeated(self, times: int) -> Null:
        """The same for a stack of the contrasts."""
        if self.is_standard:
            return self
        loc, scale = (np.tile(v, (times, 1)) for v in (self.loc, self.scale))
        return Null(loc, scale)

    def standardise(self, z: FloatArray) -> FloatArray:
        """Values shifted and scaled so that the null is N(0, 1)."""
        if self.is_standard:
            return z
        standard: FloatArray = (z - self.loc) / self.scale
        return standard


def empirical_null(z: FloatArray) -> Null | None:
    """The null of each row of values, or None if N(0, 1) holds for all of them.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1, 10_000))
    >>> empirical_null(z) is None
    True
    >>> null = empirical_null(0.3 + 1.2 * z)
    >>> null.loc.round(1), null.scale.round(1)
    (array([[0.3]]), array([[1.2]]))
    """
    if z.shape[1] < _FEWEST:
        return None
    loc = np.median(z, axis=1, keepdims=True)
    scale = np.median(np.abs(z - loc), axis=1, keepdims=True) / _MAD
    margin = _SIGNIFICANT / np.sqrt(z.shape[1])
    moved = np.abs(loc) > margin * _SE_MEDIAN * np.maximum(scale, 1.0)
    wider = scale > 1 + margin * _SE_MAD
    if not (moved.any() or wider.any()):
        return None
    return Null(np.where(moved, loc, 0.0), np.where(wider, scale, 1.0))
