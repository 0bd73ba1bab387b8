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
        Features. With any negative value there is no hint.

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
    if not np.isfinite(part).all() or part.min() < 0:
        return None
    part = part[:, np.ptp(part, axis=0) > 0]
    zero = part == 0
    if part.shape[1] < _FEWEST or zero.mean() > _ZEROS:
        return None
    plain = float(np.median(skew(part, axis=0)))
    if plain < _SKEWED:
        return None
    # Zeros become the smallest value that is not zero.
    logarithm = np.log(np.where(zero, part[~zero].min(), part))
    varied = np.ptp(logarithm, axis=0) > 0
    left = float(np.median(skew(logarithm[:, varied], axis=0))) if varied.any() else 0.0
    if abs(left) > _LEFT * plain or X.min() < 0:
        return None
    return HINT
