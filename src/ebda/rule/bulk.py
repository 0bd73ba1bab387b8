"""The null distribution of a list: an interval around the bulk of the values.

In theory a feature that does not differ has a statistic with the t distribution, hence
a normal score ``z ~ N(0, 1)``. In a data set it has not quite: features that are
correlated shift and widen their values together, and so does a common shift of one
class, such as another total. Where most features do
not differ, the bulk of the values shows it (Efron 2004). It is found by fitting

    z ~ pi0 N(m, w^2) + sum_k pi_k N(m_k, w^2),      |m_k| of 1.5 and more,

by the EM algorithm: what lies nearer than 1.5 standard errors cannot be told from the
bulk, and belongs to it.

But a wide bulk may also be what is sought, thousands of features that do differ. How
much of its place and width can be chance is known from the correlation within the
classes: the mean square of p null values with mean squared correlation a^2 has mean 1
and variance ``2 a^2``, which in real data is nearly all due to the first common factor,
``1 - a + a chi^2_1``; and their mean has a variance of at most a. So m is bounded by
what chance makes of it at 95 %, and w lies between 1 and what chance probably made of
the width of the bulk (:func:`chance_width`).

A p-value is the probability that the null has a value with such a likelihood ratio

    r(z) = sum_k pi_k N(z; m_k, w^2) / N(z; m, w^2)

or a larger one, the most powerful test there is. Where larger and smaller values are as
frequent it is the two-sided p-value; where nearly all differences have one sign it is
closer to the one-sided one. r is convex, so that such values are two tails. The null is
the interval of the N(m', w^2) with m' between 0 and m, and of these probabilities the
largest counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, logsumexp
from scipy.stats import chi2, norm
from scipy.stats import f as f_distribution

from ebda.covariance import Summary
from ebda.typing import FloatArray

# Median absolute deviation of the standard normal distribution.
_MAD = float(norm.ppf(0.75))
# With fewer values the bulk says too little, and theory is taken.
_FEWEST = 50
# What chance makes of the place is exceeded in one of twenty data sets.
_LEVEL = 0.95
_QUANTILES = 200
_ODDS = 20.0
# A shift of all features by so many standard errors needs no correlation: samples of
# one class with a larger total are enough.
_SHIFT = 0.25
# Means of the features that differ.
_MEANS = np.concatenate([np.arange(1.5, 5.0, 0.5), np.arange(5.0, 9.0)])
_MEANS = np.concatenate([-_MEANS[::-1], _MEANS])
# Larger values say no more about the bulk; the width of the cells that z is counted in.
_REACH, _CELL = 8.0, 0.05
# Values without a difference that are added, as in ashr.
_PSEUDO = 10.0
# What either sign has of the other's weight, so that no value is out of the question.
_OTHER_SIGN = 0.3
_STEPS, _TOL = 300, 1e-5
# Points at which the likelihood ratio is tabulated.
_POINTS = 801


@dataclass(frozen=True, eq=False)
class Bulk:
    """The null distributions of one contrast, and the features beside them.

    Parameters
    ----------
    loc, scale : float
        The null is N(m, scale^2), for any m between 0 and loc.
    share : float
        pi0: the share of the features that belong to it.
    weights : ndarray of shape (n_means,)
        Shares of the others, by their means.
    """

    loc: float
    scale: float
    share: float
    weights: FloatArray

    def log_ratio(self, z: FloatArray) -> FloatArray:
        """Logarithm of the likelihood ratio r, a convex function."""
        w = self.weights + _OTHER_SIGN * self.weights[::-1]
        w = np.log(w + 1e-6 / len(w))
        a = (_MEANS - self.loc) / self.scale**2
        b = (_MEANS**2 - self.loc**2) / (2 * self.scale**2)
        ratio: FloatArray = logsumexp(w - b + np.multiply.outer(z, a), axis=-1)
        return ratio

    def log_tail(self, z: FloatArray) -> FloatArray:
        """Log p-value of each value, the largest over the interval."""
        reach = max(2 * float(np.abs(z).max(initial=0.0)), 2 * _REACH) + 1
        # Dense near zero.
        half = reach * np.linspace(0, 1, _POINTS) ** 2
        grid = np.concatenate([-half[:0:-1], half])
        ratio = self.log_ratio(grid)
        lowest = int(ratio.argmin())
        left, right = grid[: lowest + 1][::-1], grid[lowest:]
        on_left, on_right = ratio[: lowest + 1][::-1], ratio[lowest:]
        own = self.log_ratio(z)
        is_right = z > grid[lowest]
        other = np.where(
            is_right, np.interp(own, on_left, left), np.interp(own, on_right, right)
        )
        low, high = np.where(is_right, other, z), np.where(is_right, z, other)
        tails = [
            np.logaddexp(
                log_ndtr((low - m) / self.scale), log_ndtr((m - high) / self.scale)
            )
            for m in (0.0, self.loc)
        ]
        log_p: FloatArray = np.minimum(np.maximum(*tails), 0.0)
        return log_p


def mean_squared_correlation(data: Summary) -> float | None:
    """Mean squared correlation of two features within the classes, without bias.

    With C the sample correlation, on f degrees of freedom, and R its expectation,
    ``E tr C^2 = (1 + 1 / f) tr R^2 + p^2 / f``. Where a share q of the values is there,
    an entry off the diagonal of C has the mean ``k r`` and the variance
    ``(1 + r^2) k / (q f)``, with k the overlap (:mod:`ebda.covariance.summary`), and
    one on it the variance ``2 / (q f)``.

    Parameters
    ----------
    data : Summary
        Moments, and the samples if they were kept.

    Returns
    -------
    float or None
        Between 0 and 1; None without samples, or with one degree of freedom.
    """
    p = data.n_varying
    spectrum = None if data.samples is None else data.spectrum
    if spectrum is None or spectrum.df <= 1 or p < 2:
        return None
    f = spectrum.df
    share = spectrum.eigenvalue / spectrum.eigenvalue.sum()
    if data.moments.observed is not None:
        return _of_overlapping(data, float(share @ share), f)
    # Of tr R^2 / p^2, with the eigenvalues in units of their sum.
    square = (float(share @ share) - 1 / f) * f**2 / ((f - 1) * (f + 2))
    return float(np.clip((square - 1 / p) / (1 - 1 / p), 0.0, 1.0))


def _of_overlapping(data: Summary, square: float, df: float) -> float:
    """Mean squared correlation where values are missing.

    Parameters
    ----------
    data : Summary
        With samples.
    square : float
        ``tr C^2 / (tr C)^2``.
    df : float
        Degrees of freedom of features with all values.
    """
    p, overlap = data.n_varying, data.overlap
    own = df / float(np.mean(1 / data.share[~data.contrasts.constant]))
    pairs = (square - (1 + 2 / own) / p) / (1 - 1 / p)
    chance = overlap / own
    return float(np.clip((pairs - chance) / (overlap**2 + chance), 0.0, 1.0))


def chance_width(
    width: float, correlation: float | None, n_values: int, df1: int = 1
) -> float:
    """What of the mean square of the bulk is chance.

    Either all of it, with the density of ``1 - a + a chi^2_1``; or that and the mean
    square x of many small effects, with the density ``1 / (1 + x)^2``. The first is
    twenty times as probable in advance. The result is the average, with the expectation
    1 for the chance part in the second case.

    Parameters
    ----------
    width : float
        The mean square of the bulk.
    correlation : float, optional
        Mean squared correlation of two features; None where it is not known, and the
        bulk may have any width by chance.
    n_values : int
        Number of features.
    df1 : int
        Number of independent contrasts that the mean is over.

    >>> round(chance_width(1.1, 0.0, 1000), 2), round(chance_width(1.1, 0.01, 1000), 2)
    (1.1, 1.1)
    >>> round(chance_width(2.5, 0.01, 1000), 2), round(chance_width(2.5, 0.2, 1000), 2)
    (1.08, 2.28)
    """
    if width <= 1 or correlation is None:
        return max(width, 1.0)
    a = np.sqrt(correlation + (1 - correlation) / n_values) / df1
    chance = chi2.logpdf((width - 1 + a * df1) / a, df1) - np.log(a)
    # The convolution of both densities, on quantiles of the first.
    quantiles = chi2.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES, df1)
    part = 1 + a * (quantiles - df1)
    both = np.mean(np.where(part < width, 1 / (1 + width - part) ** 2, 0.0))
    share = expit(chance - np.log(both) + np.log(_ODDS))
    return float(1 + share * (width - 1))


def chance_shift(correlation: float | None, n_values: int) -> float:
    """Largest shift of the bulk that chance explains.

    The variance of the mean is the mean correlation, and that is at most the root of
    the mean square.

    >>> round(chance_shift(0.0, 10**6), 3), round(chance_shift(0.01, 10**6), 3)
    (0.25, 0.62)
    """
    if correlation is None:
        return np.inf
    square = correlation + (1 - correlation) / n_values
    two_sided = norm.ppf((1 + _LEVEL) / 2)
    return float(max(_SHIFT, two_sided * square**0.25))


def bulk_variance(z: FloatArray) -> FloatArray:
    """Mean square of the bulk of each row, from the median absolute deviation.

    >>> bulk_variance(np.array([[-1.0, 0.0, 1.0, 90.0]])).round(2)
    array([[2.2]])
    """
    middle = np.median(z, axis=-1, keepdims=True)
    deviation = np.median(np.abs(z - middle), axis=-1, keepdims=True)
    variance: FloatArray = (deviation / _MAD) ** 2
    return variance


def bulk_of(z: FloatArray, correlation: float | None) -> Bulk:
    """The null of the normal scores of one contrast.

    Parameters
    ----------
    z : ndarray of shape (n_features,)
        Normal scores of features that vary.
    correlation : float, optional
        Mean squared correlation of two features.

    Examples
    --------
    >>> z = 0.1 + np.random.default_rng(0).normal(size=20_000)
    >>> null = bulk_of(z, correlation=0.0)
    >>> round(null.loc, 1), round(null.scale, 1)
    (0.1, 1.0)
    """
    symmetric = np.full(len(_MEANS), 1 / len(_MEANS))
    if len(z) < _FEWEST:
        return Bulk(0.0, 1.0, 1.0, symmetric)
    shift = chance_shift(correlation, len(z))
    cells = np.round(np.clip(z, -_REACH, _REACH) / _CELL)
    place, count = np.unique(cells, return_counts=True)
    x = place * _CELL
    loc = float(np.clip(np.median(z), -shift, shift))
    square = float(bulk_variance(z)[0])
    width = float(np.sqrt(chance_width(square, correlation, len(z))))
    scale = width
    share, weights = 0.9, 0.1 * symmetric
    for _ in range(_STEPS):
        before = (loc, scale, share)
        density = np.exp(-0.5 * ((x[:, None] - _MEANS) / scale) ** 2) * weights
        null = share * np.exp(-0.5 * ((x - loc) / scale) ** 2)
        total = count / (null + density.sum(axis=1) + 1e-300)
        in_null = null * total
        n_null = in_null.sum()
        loc = float(np.clip(in_null @ x / n_null, -shift, shift))
        # Cells add the variance of their width.
        square = in_null @ (x - loc) ** 2 / n_null - _CELL**2 / 12
        scale = float(np.clip(np.sqrt(square), 1.0, width))
        weights = density.T @ total / (len(z) + _PSEUDO)
        share = float((n_null + _PSEUDO) / (len(z) + _PSEUDO))
        if max(abs(a - b) for a, b in zip(before, (loc, scale, share), strict=True)) < (
            _TOL
        ):
            break
    return Bulk(loc, scale, share, weights)


def width_of_f(
    f: FloatArray, df1: int, df2: float | FloatArray, correlation: float | None
) -> float:
    """By what the F distribution is to be multiplied to be the null of F statistics.

    So that its median is that of the values; at least 1, and at most what chance
    probably made of it.

    Parameters
    ----------
    f : ndarray of shape (n_features,)
        F statistics of features that vary.
    df1 : int
        Number of independent contrasts.
    df2 : float or ndarray of shape (n_features,)
        Degrees of freedom of the variance.
    correlation : float, optional
        As in :func:`bulk_of`.

    Examples
    --------
    >>> f = np.random.default_rng(0).f(2, 30, 1000)
    >>> round(width_of_f(1.2 * f, 2, 30, correlation=0.1), 1)
    1.2
    """
    if len(f) < _FEWEST:
        return 1.0
    middle = float(np.median(f / f_distribution.ppf(0.5, df1, df2)))
    return chance_width(middle, correlation, len(f), df1)
