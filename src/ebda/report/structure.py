"""Structure of the samples besides their classes: batches, outliers, perfect features.

Everything here comes from X and y, where a report has them: the first common factors
within the classes, which may be batches, and features that separate the classes without
an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from ebda.covariance.factor import largest_by_chance
from ebda.data import InMemory, Labels, RowSamples, Samples
from ebda.typing import FloatArray, IntArray

# Covariates of the samples, and the slopes of the features on them.
Adjustment = tuple[FloatArray, FloatArray]

# Number of factors examined: a batch that matters is among the strongest.
_FACTORS = 3
# Share of a factor's variance between two groups. The normal distribution has 0.64, the
# uniform one 0.75; two groups that do not overlap come near 1.
_TWO_GROUPS = 0.85
# Share of a factor's variance in one sample that makes it an outlier.
_ONE_SAMPLE = 0.5
# Groups smaller than this are outliers rather than a batch.
_SMALLEST_GROUP = 4


@dataclass(frozen=True, eq=False)
class Factor:
    """A common factor within the classes that splits the samples.

    Parameters
    ----------
    share : float
        Share of the variance within the classes.
    samples : ndarray of int
        Rows of X: the smaller of two groups, or the outlier.
    rest : ndarray of int
        The other rows.
    """

    share: float
    samples: IntArray
    rest: IntArray


def strongest_factors(
    X: Any, codes: IntArray, n_classes: int, adjustment: Adjustment | None = None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Shares of variance and scores of the first factors that are beyond chance.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Samples.
    codes : ndarray of int of shape (n_samples,)
        Their classes.
    n_classes : int
        Number of classes.
    adjustment : tuple of two arrays, optional
        Covariates of the samples, and slopes of the features on them.

    Returns
    -------
    share : ndarray of shape (n_factors,)
    scores : ndarray of shape (n_samples, n_factors)
        Columns of unit length.
    rows : ndarray of int
        The rows of X that the scores belong to.
    """
    samples: Samples | None = RowSamples.of(X, codes, None).kept()
    taken = 0
    if adjustment is not None:
        labels = Labels(codes, n_classes, allow_missing=True)
        _, samples = InMemory(X).adjusted(*adjustment).summarise(labels, keep=True)
        taken = int(np.linalg.matrix_rank(adjustment[0]))
    assert isinstance(samples, RowSamples)
    moments = samples.moments(n_classes)
    samples = samples.as_in(moments)
    df = float(moments.counts.sum() - (moments.counts > 0).sum()) - taken
    variance = moments.centred_squares.sum(axis=0) / max(df, 1.0)
    varying = variance > 0
    if df < 2 or not varying.any():
        return np.empty(0), np.empty((len(samples), 0)), samples.number
    scale = np.where(varying, np.sqrt(variance), np.inf)
    value, vector = np.linalg.eigh(samples.gram(moments.means, scale) / df)
    found = np.flatnonzero(value > largest_by_chance(df, int(varying.sum())))[::-1]
    found = found[:_FACTORS]
    return value[found] / value.sum(), vector[:, found], samples.number


def two_groups(scores: FloatArray) -> tuple[float, float]:
    """The cut that leaves the least variance within two groups, and the share between.

    >>> cut, between = two_groups(np.array([0.0, 0.1, 5.0, 5.1]))
    >>> 0.1 < cut < 5.0, between > 0.99
    (True, True)
    """
    ordered = np.sort(scores)
    n = len(ordered)
    total = ((ordered - ordered.mean()) ** 2).sum()
    left = np.arange(1, n)
    below = np.cumsum(ordered)[:-1]
    apart = below / left - (ordered.sum() - below) / (n - left)
    between = left * (n - left) / n * apart**2
    at = int(np.argmax(between))
    cut = float((ordered[at] + ordered[at + 1]) / 2)
    return cut, float(between[at] / total) if total > 0 else 0.0


def batches_and_outliers(
    X: Any, codes: IntArray, n_classes: int, adjustment: Adjustment | None = None
) -> tuple[list[Factor], list[Factor]]:
    """Factors that split the samples into two groups, and those that are one sample.

    Parameters
    ----------
    X, codes, n_classes, adjustment
        As in `strongest_factors`.
    """
    share, scores, rows = strongest_factors(X, codes, n_classes, adjustment)
    batches, outliers = [], []
    for k, part in enumerate(share):
        u = scores[:, k]
        if (u**2).max() > _ONE_SAMPLE:
            one = np.abs(u) == np.abs(u).max()
            outliers.append(Factor(float(part), rows[one], rows[~one]))
            continue
        cut, between = two_groups(u)
        above = u > cut
        smaller = above if above.sum() * 2 <= len(u) else ~above
        if between > _TWO_GROUPS and smaller.sum() >= _SMALLEST_GROUP:
            batches.append(Factor(float(part), rows[smaller], rows[~smaller]))
    return batches, outliers


def perfect_features(X: Any, codes: IntArray, n_classes: int) -> IntArray:
    """Features with a cut that separates one class from all others."""
    present = [k for k in range(n_classes) if (codes == k).any()]
    if len(present) < 2:
        return np.empty(0, dtype=np.intp)
    ends = [_ends(X[np.flatnonzero(codes == k)]) for k in present]
    low, high = np.array(ends).swapaxes(0, 1)
    perfect = np.zeros(X.shape[1], dtype=bool)
    for k in range(len(present)):
        perfect |= low[k] > np.delete(high, k, axis=0).max(axis=0)
        perfect |= high[k] < np.delete(low, k, axis=0).min(axis=0)
    return np.flatnonzero(perfect)


def _ends(rows: Any) -> list[FloatArray]:
    """Smallest and largest value of each feature, dense."""
    ends = [rows.min(axis=0), rows.max(axis=0)]
    return [end.toarray().ravel() if sparse.issparse(end) else end for end in ends]


def perfect_by_chance(counts: FloatArray, n_features: int) -> float:
    """Expected number of perfect features among independent ones without a difference.

    >>> round(perfect_by_chance(np.array([3.0, 3.0]), 100), 6)
    10.0
    """
    n = counts.sum()
    orders = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    # What separates one of two classes separates the other.
    chance = 2 * np.exp(-orders)
    return float(n_features * (chance[0] if len(counts) == 2 else chance.sum()))
