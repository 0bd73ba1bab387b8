"""Samples with a scale of their own: how noisy each of them is.

Elliptical distributions have samples

    x_i = m_k + s_i Sigma^1/2 u_i,    u_i ~ N(0, I),

each with a scale s_i: the multivariate t, where ``s_i^2`` is ``nu / chi2(nu)``, is one
of them. With p features the scale of a sample can be read off it, because the mean over
p features of its squared residuals is ``s_i^2`` up to a relative error of
``sqrt(2 / p)``. A sample with the weight ``1 / s_i^2`` counts in means and variances as
the likelihood has it: then ``W_k = sum_i 1 / s_i^2`` takes the place of the class sizes
in standard errors. Weights are normalised to the sum of the frequencies, so that
degrees of freedom stay ``N - K``.

Common factors are the same few numbers in all features, and tell little about s_i. The
scale is measured on what they leave. Let P project on what is orthogonal to the classes
and to the leading eigenvectors V of the n x n Gram matrix of the residuals R, each row
of which has been brought to the same length first: a wild sample is not a factor. (The
covariance of such rows is that of spatial signs, and has the eigenvectors of Sigma.)
Then

    E |(P R)_i|^2 = p s_i^2 P_ii.

Scales change the weights, these the means and variances, and these the scales. One
round from equal weights already finds most of it, and three all of it: residuals about
a mean that a wild sample has drawn to itself are put right in the Gram matrix, without
another look at X.

p features are not p independent ones. Their effective number is that of independent
features with the same squared cosines between samples, ``1 / mean cos^2``, to which
scales matter nothing. Given it, scales are moderated like variances (Smyth 2004): their
prior is ``s0^2 nu / chi2(nu)``, which is the multivariate t with nu degrees of freedom.
nu is infinite where the scales differ by no more than chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import digamma, polygamma
from scipy.stats import chi2

from ebda.covariance.factor import largest_by_chance
from ebda.covariance.residuals import centred
from ebda.covariance.summary import Summary
from ebda.kernels.threads import one_blas_thread
from ebda.moments.variance import trigamma_inverse
from ebda.typing import FloatArray, IntArray

# Rounds in which rows are brought to the same length about their own means.
_ROUNDS = 2
# A sample that factors and means explain all but this share of has told its scale.
_LEAST_LEFT = 0.1
# Squared cosines this close to 1 are those of equal samples.
_EQUAL = 1 - 1e-9
# Lengths this small, relative to the mean, are rounding.
_NEGLIGIBLE = 1e-12
# Nominal level at which equal scales are rejected. 1 to 8 % of simulated normal data
# sets are, the more the more factors they have; their gains are all below 1.02.
_LEVEL = 0.01
# What weights must promise before anything is computed for them, and before they are
# compared: as if there were so many times as many samples.
_HINT, _WORTHWHILE = 1.1, 1.25
# With fewer features the scale of a sample is a guess: its logarithm has an error of
# about sqrt(1 / (2 p)), a tenth for 50 features.
_FEWEST_FEATURES = 50


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of some samples.

    Parameters
    ----------
    precision : ndarray of shape (n_samples,)
        ``1 / s_i^2``; the mean over all samples is 1.
    degrees_of_freedom : float
        nu of the prior; infinite where scales differ by no more than chance.
    variance : float
        s0^2 of the prior, as a mean over features of squared residuals.
    unit : float
        That of a sample with precision 1.
    n_effective : float
        Effective number of features that scales were measured on.
    combine : ndarray of shape (n_samples, n_factors)
        Directions that were left out, as combinations of the residuals in units of the
        standard deviations.
    inflation : float
        How much longer residuals of new samples are than those that means and factors
        were fitted to, once these have been put right.
    gain : float
        ``mean(s^2) mean(1 / s^2)``: weighted means are as precise as if there were so
        many times as many samples.
    is_significant : bool
        Whether they differ by more than chance.
    """

    precision: FloatArray
    degrees_of_freedom: float
    variance: float
    unit: float
    n_effective: float
    combine: FloatArray
    inflation: float
    gain: float
    is_significant: bool

    @property
    def is_worthwhile(self) -> bool:
        """Whether weights might be worth their while."""
        return self.is_significant and self.gain >= _WORTHWHILE


def moderate(
    squares: FloatArray, n_effective: float | FloatArray, df: float, variance: float
) -> FloatArray:
    """Posterior ``s^2`` given ``squares``, means over effective features.

    >>> moderate(np.array([1.0, 9.0]), 10.0, 10.0, 1.0).tolist()
    [1.0, 5.0]
    """
    own = 0.0 if np.isinf(df) else n_effective / (n_effective + df)
    return own * squares + (1 - own) * variance


def may_differ(data: Summary) -> bool:
    """A quick look: whether rows are of such different lengths that it may matter."""
    if data.n_varying < _FEWEST_FEATURES:
        return False
    samples = data.samples
    assert samples is not None
    f = samples.weight
    squares = np.einsum("ij,ij->i", data.rows, data.rows) / f
    share = f / np.bincount(samples.codes, f)[samples.codes]
    left = np.flatnonzero(share < 1)
    if not left.size or not squares[left].any():
        return False
    return (
        _gain(_positive(squares[left]) / (1 - share[left] / f[left]), f[left]) > _HINT
    )


def measure(data: Summary, by_class: bool = False) -> Scales:
    """Scales of the samples, from the Gram matrix of their residuals.

    Parameters
    ----------
    data : Summary
        Samples with the precision that is known so far, and moments that go with it.
    by_class : bool
        Whether the mean precision is 1 in each class, for classes with variances of
        their own; else in all.
    """
    samples, p = data.samples, data.n_varying
    assert samples is not None
    codes, f, n = samples.codes, samples.weight, len(samples)
    root_f = np.sqrt(f)
    known = np.sqrt(samples.information)
    raw = data.gram / np.outer(known, known)  # of residuals, about means of any weights
    w = samples.precision
    lengths = np.diag(_weighted(raw, codes, root_f * np.sqrt(w))) / f
    # A class of one sample, or of equal ones, does not tell their scale.
    told = lengths > _NEGLIGIBLE * lengths.mean()
    for _ in range(_ROUNDS):
        lengths = np.diag(_weighted(raw, codes, root_f * np.sqrt(w))) / f
        w = np.where(told, w * _left(w, f, codes) * p / _positive(lengths), w)
    # Rows of equal length.
    gram = _weighted(raw, codes, root_f * np.sqrt(w))
    vectors = _leading(gram, float(f.sum()) - len(np.unique(codes)), p)
    rest = gram - vectors @ (vectors.T @ gram)
    left = _left(w, f, codes) - np.einsum("ik,ik->i", vectors, vectors) / f
    left = np.maximum(left, _LEAST_LEFT)
    squares = _positive(np.diag(rest) / f) / (left * w * p)

    counted = np.where(told, f, 0.0)
    n_effective = effective_features(rest, vectors, codes, np.sqrt(f * w), counted, p)
    n_means = len(np.unique(codes[told]))
    df, variance, is_significant = prior(squares[told], f[told], n_effective, n_means)
    s2 = np.where(told, moderate(squares, n_effective, df, variance), variance)
    precision = _normalised(1 / s2, f, codes if by_class else np.zeros(n, np.intp))
    unit = float(np.average(precision * s2, weights=f))
    # R' combine are the directions, of unit length; R are plain residuals.
    strength = np.einsum("ik,ij,jk->k", vectors, gram, vectors)
    combine = vectors * np.sqrt(f * w)[:, None] / np.sqrt(strength)
    return Scales(
        precision,
        df,
        variance,
        unit,
        n_effective,
        combine,
        float(np.average(1 / left, weights=counted)),
        _gain(s2, f),
        is_significant,
    )


def prior(
    squares: FloatArray, weight: FloatArray, n_effective: float, n_classes: int
) -> tuple[float, float, bool]:
    """nu and s0^2, and whether scales differ at all.

    The moments of ``log s^2`` are those of :func:`ebda.moments.variance_prior`.

    Parameters
    ----------
    squares : ndarray of shape (n_samples,)
        Means over features of squared residuals.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    n_effective : float
        Effective number of features.
    n_classes : int
        Means that were fitted.

    >>> rng = np.random.default_rng(0)
    >>> s2 = 3 / rng.chisquare(3, 2000) * rng.chisquare(500, 2000) / 500
    >>> df, variance, differ = prior(s2, np.ones(2000), 500.0, 2)
    >>> round(df, 1), round(variance, 1), differ
    (3.0, 1.0, True)
    """
    e = np.log(squares)
    e = e - (digamma(n_effective / 2) - np.log(n_effective / 2))
    centre = float(np.average(e, weights=weight))
    free = float(weight.sum()) - n_classes
    found = float(weight @ (e - centre) ** 2) / free
    chance = float(polygamma(1, n_effective / 2))
    if found <= chance:
        return np.inf, float(np.exp(centre)), False
    df = 2 * trigamma_inverse(found - chance)
    log_s0 = centre + float(digamma(df / 2)) - np.log(df / 2)
    differ = bool(chi2.sf(free * found / chance, free) < _LEVEL)
    return df, float(np.exp(log_s0)), differ


def effective_features(
    rest: FloatArray,
    vectors: FloatArray,
    codes: IntArray,
    root: FloatArray,
    weight: FloatArray,
    p: int,
) -> float:
    """Independent features with the same squared cosines between samples.

    Parameters
    ----------
    rest : ndarray of shape (n_samples, n_samples)
        Gram matrix of what means and factors leave.
    vectors : ndarray of shape (n_samples, n_factors)
        The factors, orthonormal.
    codes : ndarray of shape (n_samples,)
        Classes.
    root : ndarray of shape (n_samples,)
        Square roots of what each sample counts in a class mean.
    weight : ndarray of shape (n_samples,)
        Frequency weights; 0 for samples to leave out.
    p : int
        Number of features: there are no more.
    """
    # Of single samples, of which a row stands for as many as its weight says.
    every = np.eye(len(rest))
    explained = every - centred(every, codes, root) + vectors @ vectors.T
    times = np.sqrt(np.where(weight > 0, weight, 1.0))
    projection = every - explained / np.outer(times, times)
    found, expected = _squared_cosines(rest), _squared_cosines(projection)
    pairs = np.outer(weight, weight) * (found < _EQUAL)
    np.fill_diagonal(pairs, 0.0)
    if not pairs.any():
        return float(p)
    excess = float(np.average(found - expected, weights=pairs))
    return float(np.clip(1 / max(excess, 1 / p), 1.0, p))


def _squared_cosines(gram: FloatArray) -> FloatArray:
    size = np.sqrt(_positive(np.diag(gram)))
    cosines: FloatArray = gram / np.outer(size, size)
    cosines *= cosines
    return cosines


def _weighted(raw: FloatArray, codes: IntArray, root: FloatArray) -> FloatArray:
    """Gram matrix of rows times `root`, free of the class means."""
    gram = raw * np.outer(root, root)
    return centred(centred(gram, codes, root).T, codes, root)


def _left(w: FloatArray, f: FloatArray, codes: IntArray) -> FloatArray:
    """What a class mean leaves of the squared length of a sample."""
    left: FloatArray = 1 - w / np.bincount(codes, f * w)[codes]
    return np.maximum(left, _LEAST_LEFT)


def _leading(gram: FloatArray, df: float, p: int) -> FloatArray:
    """Eigenvectors beyond what chance reaches."""
    with one_blas_thread():
        value, vectors = eigh(gram, check_finite=False, driver="evd")
    size = value / (value.sum() / p)  # rows have the mean square 1
    n_factors = int(np.count_nonzero(size > largest_by_chance(df, p)))
    n_factors = min(n_factors, int(df // 2))
    leading: FloatArray = vectors[:, len(value) - n_factors :]
    return leading


def _positive(x: FloatArray) -> FloatArray:
    """x, and not less than rounding."""
    positive: FloatArray = np.maximum(x, _NEGLIGIBLE * x.mean())
    return positive


def _gain(s2: FloatArray, weight: FloatArray) -> float:
    return float(np.average(s2, weights=weight) * np.average(1 / s2, weights=weight))


def _normalised(w: FloatArray, f: FloatArray, group: IntArray) -> FloatArray:
    """Mean 1 in each group."""
    normalised: FloatArray = (
        w * (np.bincount(group, f) / np.bincount(group, f * w))[group]
    )
    return normalised
