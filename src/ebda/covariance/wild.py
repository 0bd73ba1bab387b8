"""Single wild values: of one feature of one sample, and not of the whole sample.

A value is wild if it lies further from the median of its class than any of so many
values would. How far that is the values say themselves: the ratio of two quantiles of
all of them, in robust standard deviations of their features and their samples, is that
of a t distribution with nu degrees of freedom, and its tail is extrapolated to where
one of N p values lies with a probability of a thousandth,

    P(|t_nu| > bound) = 1 / (1000 N p).

The quantiles of 80 and 95 % do not feel a few wild values. Normal values have a bound
of 6 to 7. Real expression data have heavier tails, and bounds of 20 and far more: next
to nothing in them is wild.

The mean of the class medians takes the place of a wild value, so that nothing is left
of it in means, variances and correlations. (The median of its own class would tell
held-out samples by their class: in 80 simulated sets without any difference they were
separated by 0.16 standard deviations then, by 0.13 with midpoints, and by 0.18 with
wild values kept.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from ebda.covariance.summary import Summary
from ebda.data import RowSamples, Samples
from ebda.moments import ClassMoments, choose_features
from ebda.moments.variance import variance_prior
from ebda.registry import Entry, Registry
from ebda.sizes import sizes
from ebda.storage.fields import COUNT, Array, Scalar
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray, IntArray

# Any of the values is wild with this probability, where none is.
_LEVEL = 1e-3
# Quantiles whose ratio tells the tail.
_INNER, _OUTER = 0.8, 0.95
# Features that the tail is measured on, and the fewest that tell it.
_MEASURED, _FEWEST = 512, 50
_FEWEST_SAMPLES = 10
# A median of absolute residuals tells as much of a variance as so many squares.
_EFFICIENCY = 0.37
# The normal distribution: the median of its absolute values.
_MEDIAN = float(ndtri(0.75))
# A feature with a larger share of them has another distribution, and no wild values.
_MOST = 0.05
# A wild value is so many times as far out as any that is not, in the same feature:
# counts and long tails of some features have no such gap.
_APART = 3.0
# Standard deviations over the usual one from which residuals have lost digits.
_FEW_DIGITS = 1e4
# A value that is wild has at least this part of what it would have if it were alone.
_SAFETY = 0.6


@dataclass(frozen=True)
class Replacing(Entry):
    """What is done with single wild values.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`.
    is_done : bool
        Whether midpoints take their place.
    """

    is_done: bool


WILD_VALUES: Registry[Replacing] = Registry(
    "wild_values",
    Replacing("auto", "midpoints take the place of wild values", is_done=True),
    Replacing("keep", "all values count", is_done=False),
)


@dataclass(frozen=True, eq=False)
class WildValues:
    """Single wild values of the training samples; ``print(wild_values)`` says it.

    Parameters
    ----------
    samples, features : ndarray of int of shape (n_values,)
        Where they are: rows of all samples, and columns.
    bound : float
        From how many robust standard deviations on a value is wild.
    degrees_of_freedom : float
        Those of the t distribution whose tail the values have.
    n_values : int
        Number of all values.
    moments : ClassMoments
        Moments with the means of the class medians in their place.
    """

    samples: IntArray
    features: IntArray
    bound: float
    degrees_of_freedom: float
    n_values: int
    moments: ClassMoments

    def __str__(self) -> str:
        n = len(self.samples)
        what = "single value lies" if n == 1 else "single values lie"
        them = "its" if n == 1 else "their"
        return (
            f"{n} {what} more than {self.bound:.1f} robust standard deviations from "
            f"the median of {them} class, further than any of {self.n_values:,} values "
            f"would by chance. The midpoint of the classes has taken {them} place."
        )


register(
    Schema(
        WildValues,
        {
            "samples": Array(("w",), ("zero or more",), np.int64),
            "features": Array(("w",), ("zero or more",), np.int64, below="p"),
            "bound": Scalar((float,), least=0.0),
            "degrees_of_freedom": Scalar((float,), least=0.0, finite=False),
            "n_values": COUNT,
            "moments": Nested(("ClassMoments",)),
        },
    )
)


def column_medians(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted median of each column: a weight of 2 counts as two equal rows.

    >>> column_medians(np.array([[5.0], [1.0], [2.0]]), np.array([1.0, 1.0, 2.0]))
    array([2.])
    """
    if (weight == weight[0]).all():
        return np.asarray(np.median(rows, axis=0))
    order = np.argsort(rows, axis=0)
    until = np.cumsum(weight[order], axis=0)
    half = until[-1] / 2
    low = np.argmax(until >= half, axis=0)
    high = np.where(until[-1] > half, np.argmax(until > half, axis=0), low)
    at = np.arange(rows.shape[1])
    low, high = order[low, at], order[high, at]
    middle: FloatArray = (rows[low, at] + rows[high, at]) / 2
    return middle


def tail_degrees_of_freedom(values: FloatArray, weight: FloatArray) -> float:
    """Degrees of freedom of the t distribution with the same ratio of quantiles.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Values about zero.
    weight : ndarray of shape (n_samples,)
        Frequency weights.

    >>> rng = np.random.default_rng(0)
    >>> round(tail_degrees_of_freedom(rng.standard_t(5, (100, 1000)), np.ones(100)))
    5
    """
    size = np.abs(values).ravel()
    if (weight == weight[0]).all():
        inner, outer = np.quantile(size, [_INNER, _OUTER])
    else:
        order = np.argsort(size)
        until = np.cumsum(np.repeat(weight, values.shape[1])[order])
        places = np.searchsorted(until, np.array([_INNER, _OUTER]) * until[-1])
        inner, outer = size[order[places]]
    found = outer / inner if inner > 0 else np.inf

    def ratio(df: float) -> float:
        return float(stdtrit(df, (1 + _OUTER) / 2) / stdtrit(df, (1 + _INNER) / 2))

    least, most = 1.0, 1e4
    if found >= ratio(least):
        return least
    if found <= ratio(most):
        return np.inf
    return float(brentq(lambda df: ratio(df) - found, least, most, rtol=1e-6))


def bound_of(df: float, n_values: float) -> float:
    """Beyond which one of so many values of a t distribution lies one time in 1000.

    >>> round(bound_of(np.inf, 1e6), 1)
    6.1
    """
    tail = _LEVEL / (2 * n_values)
    return -float(ndtri(tail) if np.isinf(df) else stdtrit(df, tail))


@dataclass(frozen=True, eq=False)
class Cells:
    """Wild values, and what takes their place.

    Parameters
    ----------
    rows, features : ndarray of int of shape (n_values,)
        Where they are among the samples that are looked at again.
    midpoints : ndarray of shape (n_values,)
        Means over the classes of the medians of the feature, in the units of X.
    bound, degrees_of_freedom, n_values
        As in :class:`WildValues`.
    """

    rows: IntArray
    features: IntArray
    midpoints: FloatArray
    bound: float
    degrees_of_freedom: float
    n_values: int


def without_wild_values(data: Summary) -> tuple[WildValues, Samples] | None:
    """The wild values of the samples, and the samples with midpoints in their place.

    None without any, or where it cannot be told: it takes all samples with all of their
    values, independent of each other, and few enough to be in memory.

    Parameters
    ----------
    data : Summary
        The samples, and moments of all of them.
    """
    samples, moments = data.samples, data.moments
    if (
        samples is None
        or moments.observed is not None
        or moments.design is not None
        or len(samples) * data.p > sizes.residual_elements
        or not np.isclose(samples.weight.sum(), data.total)
    ):
        return None
    cells = find(data)
    if cells is None:
        return None
    n_classes, p = moments.means.shape
    values = samples.residual_rows(np.zeros((n_classes, p)), np.ones(p))
    values[cells.rows, cells.features] = cells.midpoints
    known = samples.codes, samples.weight, samples.precision, samples.number
    tame = RowSamples(np.arange(len(values)), *known, values)
    changed = np.unique(cells.features)
    part = tame.features(changed).moments(n_classes)
    means, squares = moments.means.copy(), moments.centred_squares.copy()
    means[:, changed], squares[:, changed] = part.means, part.centred_squares
    found = WildValues(
        samples.number[cells.rows],
        cells.features,
        cells.bound,
        cells.degrees_of_freedom,
        cells.n_values,
        replace(moments, means=means, centred_squares=squares),
    )
    return found, tame


def find(data: Summary) -> Cells | None:
    """The wild values of samples without missing ones; None without any.

    Parameters
    ----------
    data : Summary
        As in `without_wild_values`.
    """
    samples, df = data.samples, data.moments.residual_df
    assert samples is not None
    varying = np.flatnonzero(~data.contrasts.constant)
    if len(varying) < _FEWEST or data.total < _FEWEST_SAMPLES:
        return None
    f, codes = samples.weight, samples.codes
    rows = data.rows if (f == 1).all() else data.rows / np.sqrt(f)[:, None]
    # The tail, from some of the features.
    some = varying
    if len(some) > _MEASURED:
        some = varying[choose_features(data.moments.features(varying), _MEASURED)]
    about = rows[:, some] - _medians(rows[:, some], codes, f)[codes]
    squares = _squares(about, f, df) * data.scale[some] ** 2
    told = squares > 0
    if np.count_nonzero(told) < _FEWEST:
        return None
    usual = variance_prior(squares[told], _EFFICIENCY * df)
    unit = np.sqrt(usual.shrink(squares[told], _EFFICIENCY * df))
    about = about[:, told] / (unit / data.scale[some][told])
    # Of the samples, as far as they are noisier than most.
    noise = np.maximum(np.median(np.abs(about), axis=1) / _MEDIAN, 1.0)[:, None]
    tail, n = tail_degrees_of_freedom(about / noise, f), data.total * len(varying)
    bound = bound_of(tail, n)
    # A wild value makes the standard deviation of its feature larger, too.
    alone = bound / np.sqrt(1 + bound**2 / df)
    far = np.abs(rows).max(axis=0) > _SAFETY * alone
    chosen = varying[far[varying]]
    if not chosen.size:
        return None
    scale = data.scale[chosen]
    if (scale > _FEW_DIGITS * np.median(data.scale[varying])).any():
        # A very large value leaves no digits of the others in residuals about a mean
        # that it is part of.
        none, one = np.zeros((int(codes.max()) + 1, len(chosen))), np.ones(len(chosen))
        raw = samples.features(chosen).residual_rows(none, one)
    else:
        raw = rows[:, chosen] * scale + data.moments.means[codes][:, chosen]
    middle = _medians(raw, codes, f)
    about = (raw - middle[codes]) / scale
    squares = _squares(about, f, df) * scale**2
    unit = np.sqrt(usual.shrink(squares, _EFFICIENCY * df)) / scale
    wild = (np.abs(about) > bound * noise * unit) & (squares > 0)
    # Far from the other values of its feature, too, whose tail may be longer.
    others = np.where(wild, 0.0, np.abs(about)).max(axis=0)
    wild &= np.abs(about) > _APART * others
    wild &= f @ wild <= max(_MOST * data.total, 1.0)
    at, which = np.nonzero(wild)
    if not at.size:
        return None
    midpoints = middle.mean(axis=0)
    return Cells(at, chosen[which], midpoints[which], bound, tail, round(n))


def _medians(rows: FloatArray, codes: IntArray, weight: FloatArray) -> FloatArray:
    """Of the classes: (n_classes, n_features)."""
    return np.stack(
        [
            column_medians(rows[codes == k], weight[codes == k])
            for k in range(int(codes.max()) + 1)
        ]
    )


def _squares(about: FloatArray, weight: FloatArray, df: float) -> FloatArray:
    """Robust variances from residuals about medians."""
    n = float(weight.sum())
    deviation = column_medians(np.abs(about), weight) / _MEDIAN
    squares: FloatArray = deviation**2 * (n / df)
    return squares
