"""Local false discovery rates from values about zero, as R's ``fdrtool`` has them.

Most of the values are of the null ``N(0, s**2)``. Its width s and its share eta_0 are
estimated by maximum likelihood from the values inside a cutoff, which is where the
false nondiscovery rate is smallest (Strimmer 2008). P-values under that null have the
density f, the Grenander estimate, which falls from 0 to 1 and ends in eta_0; the local
false discovery rate is ``eta_0 / f(p)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr, ndtri
from sklearn.isotonic import isotonic_regression

from ebda.typing import FloatArray

_QUARTILE = float(ndtri(0.75))
# P-values from which the share of the null is guessed, and the quantile of the guesses.
_LARGE = np.arange(0, 0.925, 0.05)
_CAREFUL = 0.1
# At most this share of the values is inside the cutoff, which moves by this factor.
_MOST_INSIDE = 0.99
_STEP = 0.9
# Widths of the null that are possible, as multiples of a first guess.
_WIDEST = 1000.0
_SMALLEST = np.finfo(np.float64).eps
# R's kernel density: the normal distance of the quartiles, points, and how many
# bandwidths they reach beyond the values; bins of a bandwidth.
_NORMAL_RANGE = 1.34
_POINTS = 512
_BEYOND = 3.0
_BINS = 64


@dataclass(frozen=True, eq=False)
class NullShare:
    """The null, and its share of the values.

    Parameters
    ----------
    sd : float
        Standard deviation.
    share : float
        eta_0.
    """

    sd: float
    share: float

    def p_values(self, z: FloatArray) -> FloatArray:
        """Two-sided p-values."""
        return p_values(z, self.sd)


def p_values(z: FloatArray, sd: float) -> FloatArray:
    """Two-sided p-values under N(0, sd**2); none is zero."""
    p: FloatArray = np.maximum(2 * ndtr(-np.abs(z) / sd), _SMALLEST)
    return p


def local_fdr(z: FloatArray) -> FloatArray:
    """Local false discovery rate of each value.

    Parameters
    ----------
    z : ndarray of shape (n_values,)
        Values with a null about zero, not all equal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.append(rng.normal(size=2000), rng.normal(0, 6, size=200))
    >>> fdr = local_fdr(z)
    >>> bool(fdr[np.abs(z) > 6].max() < 0.01), float(np.median(fdr))
    (True, 1.0)
    """
    null = fit_null(z)
    p = null.p_values(z)
    density = grenander(p, null.share)
    fdr: FloatArray = np.minimum(null.share / density, 1.0)
    return fdr


def fit_null(z: FloatArray) -> NullShare:
    """Width and share of the null, from the values inside the cutoff."""
    size = np.abs(z)
    cutoff = cutoff_of(z)
    inside = z[size <= cutoff]
    guess = _width(inside)
    squares, count = float(inside @ inside), len(inside)

    def cost(log_sd: float) -> float:
        u = cutoff / np.exp(log_sd)
        # Log of 2 Phi(u) - 1.
        mass = np.log(-np.expm1(np.log(2) + log_ndtr(-u)))
        scaled = squares / np.exp(2 * log_sd)
        return float(count * (mass + log_sd) + scaled / 2)

    centre, reach = np.log(guess), np.log(_WIDEST)
    log_sd = minimize_scalar(
        cost,
        bounds=(centre - reach, centre + reach),
        method="bounded",
        options={"xatol": 1e-9},
    ).x
    sd = float(np.exp(log_sd))
    kept = 1 - float(p_values(np.array([cutoff]), sd)[0])
    return NullShare(sd, min(1.0, count / len(z) / kept))


def cutoff_of(z: FloatArray) -> float:
    """Where the share of false nondiscoveries stops to fall, from outside."""
    size, guess = np.abs(z), _width(z)
    p = p_values(z, guess)
    shares = [np.mean(p >= level) / (1 - level) for level in _LARGE]
    share = float(np.quantile(np.clip(shares, 0, 1), _CAREFUL))

    def nondiscovery(cutoff: float) -> float:
        inside = float(np.mean(size < cutoff))
        expected = share * (2 * float(ndtr(cutoff / guess)) - 1)
        return max(0.0, (inside - expected) / inside) if inside else 0.0

    cutoff = float(np.quantile(size, min(_MOST_INSIDE, share)))
    while nondiscovery(_STEP * cutoff) < nondiscovery(cutoff):
        cutoff *= _STEP
    return cutoff


def _width(z: FloatArray) -> float:
    """Standard deviation by the distance of the quartiles."""
    low, high = np.quantile(z, [0.25, 0.75])
    width = float(high - low) / (2 * _QUARTILE)
    if width <= 0:
        raise ValueError(
            "half of the values are equal, and have no local false discovery rates"
        )
    return width


def grenander(p: FloatArray, share: float) -> FloatArray:
    """Falling density of p-values, at least `share`, at each of them.

    The slopes of the least concave majorant of their distribution function, which lies
    between those of ``share * uniform`` alone and of all other p-values at zero.

    Parameters
    ----------
    p : ndarray of shape (n_values,)
        P-values.
    share : float
        Share of the null.

    >>> grenander(np.array([0.01, 0.02, 0.5, 0.9]), 0.5).round(2)
    array([25.  ,  0.52,  0.5 ,  0.5 ])
    """
    place, inverse, counts = np.unique(p, return_inverse=True, return_counts=True)
    cumulated = np.cumsum(counts) / len(p)
    cumulated = np.minimum(cumulated, 1 - share * (1 - place))
    cumulated = np.maximum(cumulated, share * place)
    # The last slope is the share.
    cumulated[-1] = 1 - share * (1 - place[-1])
    knots, heights = np.append(0.0, place), np.append(0.0, cumulated)
    if place[-1] < 1:
        knots, heights = np.append(knots, 1.0), np.append(heights, 1.0)
    width = np.diff(knots)
    slopes = isotonic_regression(
        np.diff(heights) / width, sample_weight=width, increasing=False
    )
    # To the right of each value; the smallest possible p-value counts as zero.
    right = np.minimum(np.arange(1, len(place) + 1), len(slopes) - 1)
    right[place <= _SMALLEST] = 0
    density: FloatArray = slopes[right][inverse]
    return density


def mode(z: FloatArray) -> float:
    """Where a normal kernel estimate of the density is largest.

    The bandwidth is Silverman's, ``0.9 n**-0.2`` times the smaller one of the standard
    deviation and the distance of the quartiles in its units (R's ``density``).

    >>> z = np.random.default_rng(0).normal(3, 1, size=5000)
    >>> round(mode(z), 1)
    2.8
    """
    low, high = np.quantile(z, [0.25, 0.75])
    spreads = np.std(z, ddof=1), (high - low) / _NORMAL_RANGE
    bandwidth = 0.9 * min(s for s in spreads if s > 0) * len(z) ** -0.2
    reach = _BEYOND * bandwidth
    points = np.linspace(z.min() - reach, z.max() + reach, _POINTS)
    # Bins that are narrow beside the bandwidth; a value is shared by two of them.
    start, stop = points[0] - bandwidth, points[-1] + bandwidth
    width = bandwidth / _BINS
    place = (z - start) / width
    left = np.floor(place).astype(np.intp)
    share = place - left
    size = int(np.ceil((stop - start) / width)) + 2
    counts = np.bincount(left, 1 - share, size) + np.bincount(left + 1, share, size)
    kept = np.flatnonzero(counts)
    centre = start + kept * width
    density = np.empty(_POINTS)
    for i, point in enumerate(points):
        density[i] = counts[kept] @ np.exp(-0.5 * ((point - centre) / bandwidth) ** 2)
    return float(points[density.argmax()])
