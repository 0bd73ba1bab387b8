"""What the samples look like beside their classes: groups, outliers, single features.

Everything here is read off X and y, where a report has them: the first common factors
within the classes, which may be batches, and features that tell the classes apart
without any error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from ebda.covariance.factors import largest_by_chance
from ebda.data.samples import Samples
from ebda.typing import FloatArray, IntArray

# Factors that are looked at: a batch that matters is among the strongest.
_FACTORS = 3
# Share of a factor's variance between two groups. A normal law has 0.64, a uniform one
# 0.75; two groups that do not overlap come near 1.
_TWO_GROUPS = 0.85
# Share of a factor's variance in one sample that makes it an outlier.
_ONE_SAMPLE = 0.5
# Groups smaller than this are outliers rather than a batch.
_SMALLEST_GROUP = 4


@dataclass(frozen=True, eq=False)
class Factor:
    """A common factor within the classes, as the samples have it.

    Parameters
    ----------
    share : float
        Of the variance within the classes.
    samples : ndarray of int
        Rows of X: the smaller of two groups, or the outlier.
    rest : ndarray of int
        The other rows.
    """

    share: float
    samples: IntArray
    rest: IntArray


def strongest_factors(
    X: Any, codes: IntArray, n_classes: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Shares of variance and scores of the first factors that are not chance.

    Returns
    -------
    share : ndarray of shape (n_factors,)
    scores : ndarray of shape (n_samples, n_factors)
        Of unit length.
    rows : ndarray of int
        The rows of X that they are of.
    """
    samples = Samples.of(X, codes, None)
    moments = samples.moments(n_classes)
    n, df = len(samples), float(moments.counts.sum() - (moments.counts > 0).sum())
    variance = moments.centred_squares.sum(axis=0) / max(df, 1.0)
    varying = variance > 0
    nothing = np.empty(0), np.empty((n, 0)), samples.rows
    if df < 2 or not varying.any():
        return nothing
    scale = np.where(varying, np.sqrt(variance), np.inf)
    gram = np.zeros((n, n))
    for _, tile in samples.standardised(moments.means, scale):
        gram += tile @ tile.T
    value, vector = np.linalg.eigh(gram / df)
    found = np.flatnonzero(value > largest_by_chance(df, int(varying.sum())))[::-1]
    found = found[:_FACTORS]
    return value[found] / value.sum(), vector[:, found], samples.rows


def two_groups(scores: FloatArray) -> tuple[float, float]:
    """The cut that leaves least variance within two groups, and the share between.

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
    X: Any, codes: IntArray, n_classes: int
) -> tuple[list[Factor], list[Factor]]:
    """Factors that split the samples into two groups, or that are one sample."""
    share, scores, rows = strongest_factors(X, codes, n_classes)
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
    """Features with a cut that has one class on one side and the rest on the other."""
    everything = np.arange(len(codes))
    samples = Samples(X, everything, codes, np.ones(len(codes)), everything)
    members = [codes == k for k in range(n_classes) if (codes == k).any()]
    if len(members) < 2:
        return np.empty(0, dtype=np.intp)
    perfect = np.zeros(X.shape[1], dtype=bool)
    for cols, tile in samples.tiles():
        for member in members[: 1 if len(members) == 2 else None]:
            own, others = tile[member], tile[~member]
            above = own.min(axis=0) > others.max(axis=0)
            below = own.max(axis=0) < others.min(axis=0)
            perfect[cols] |= above | below
    found: IntArray = np.flatnonzero(perfect)
    return found


def perfect_by_chance(counts: FloatArray, n_features: int) -> float:
    """Expected number of such features among independent ones without a difference.

    >>> round(perfect_by_chance(np.array([3.0, 3.0]), 100), 6)
    10.0
    """
    n = counts.sum()
    orders = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    # Of two classes, one apart is the other apart.
    chance = 2 * np.exp(-orders)
    return float(n_features * (chance[0] if len(counts) == 2 else chance.sum()))
