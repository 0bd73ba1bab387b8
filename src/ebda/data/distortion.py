"""Whether features look like logarithms that were not taken.

A linear rule takes each feature to be about normal within the classes. Concentrations,
intensities and counts are products of many causes: skewed to the right as they are, and
about symmetric as logarithms. A monotone distortion like that costs accuracy (by half
in `benchmarks/distortions.py`), and can be seen without labels: if it is so, it is so
for most features, and few features differ between the classes.

The criterion has no unit: skewness, and logarithms of positive numbers. It looks at
some of the columns and rows only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import skew

from ebda.typing import FloatArray

# Columns and rows that are looked at.
_COLUMNS, _ROWS = 500, 1000
# Fewer samples or features tell too little.
_FEWEST = 10
# Half of the features must be more skewed than this, and half of the logarithms less
# skewed, in either direction, than this share of it.
_SKEWED, _LEFT = 0.6, 0.5
# Share of zeros from which logarithms do not help.
_ZEROS = 0.5


HINT = (
    "the features are skewed to the right and their logarithms are not: a linear rule "
    "usually does better with logarithms"
)


class LogarithmWarning(UserWarning):
    """The features look like logarithms that were not taken."""


def _some(n: int, most: int) -> npt.NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def _looked_at(X: Any) -> FloatArray:
    rows, columns = _some(X.shape[0], _ROWS), _some(X.shape[1], _COLUMNS)
    if sparse.issparse(X):
        part = sparse.csr_array(X)[rows][:, columns].toarray()
    else:
        part = np.asarray(X)[np.ix_(rows, columns)]
    numbers: FloatArray = part.astype(np.float64)
    return numbers


def log_hint(X: Any) -> str | None:
    """`HINT` where logarithms are wanted, else None.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features. With any negative value there is no hint. NaN is a missing value.

    Examples
    --------
    >>> normal = np.random.default_rng(0).normal(size=(50, 200))
    >>> log_hint(normal) is None
    True
    >>> log_hint(np.exp(normal))[:61]
    'the features are skewed to the right and their logarithms are'
    """
    if min(X.shape) < _FEWEST:
        return None
    part = _looked_at(X)
    missing = np.isnan(part)
    if np.isinf(part).any() or np.fmin.reduce(part, axis=None) < 0:
        return None
    enough = np.count_nonzero(~missing, axis=0) >= _FEWEST
    part = part[:, enough & (_spread(part) > 0)]
    zero = part == 0
    there = np.count_nonzero(~np.isnan(part))
    if part.shape[1] < _FEWEST or np.count_nonzero(zero) > _ZEROS * there:
        return None
    plain = float(np.median(_skewness(part)))
    if plain < _SKEWED:
        return None
    # Zeros become the smallest value that is not zero.
    least = np.fmin.reduce(part[~zero], axis=None)
    logarithm = np.log(np.where(zero, least, part))
    varied = _spread(logarithm) > 0
    left = float(np.median(_skewness(logarithm[:, varied]))) if varied.any() else 0.0
    values = X.data if sparse.issparse(X) else X
    if abs(left) > _LEFT * plain or np.fmin.reduce(values, axis=None) < 0:
        return None
    return HINT


def _spread(part: FloatArray) -> FloatArray:
    """Largest less smallest value of each column; NaN without any."""
    spread: FloatArray = np.fmax.reduce(part, axis=0) - np.fmin.reduce(part, axis=0)
    return spread


def _skewness(part: FloatArray) -> FloatArray:
    """Skewness of each column, of the values that are there."""
    if not np.isnan(part).any():
        return np.asarray(skew(part, axis=0))
    residual = part - np.nanmean(part, axis=0)
    square, cube = (np.nanmean(residual**k, axis=0) for k in (2, 3))
    skewness: FloatArray = cube / square**1.5
    return skewness
