"""The moderated t and F statistics of each feature by itself, from the moments.

They are those of limma (Smyth 2004): with variances ``s_j^2`` that are shrunken to what
is usual, d the degrees of freedom of the residuals and d0 those of the prior,

    t = difference of the means / (s_j unit),        df = d + d0,
    F = sum_k n_k (m_k - m)^2 / ((K - 1) s_j^2) = sum_k (1 - n_k / N) t_k^2 / (K - 1),

and t_k compares class k with the mean of all samples. Common factors are not removed.
Where values are missing, n_k, N and d are those of the feature.

Where the classes have other variances, t and F are too large or too small unless the
classes are of one size. So a feature is judged by two statistics, and the weaker
evidence counts: t, and the same with a variance for each class, shrunken to what is
usual in this class, which has the degrees of freedom of Welch and Satterthwaite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.moments import ClassMoments, Contrasts, class_contrasts
from ebda.moments.contrasts import error_factor, variance_of
from ebda.moments.variance import moderated, variance_prior
from ebda.rule.tails import normal_score
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is known of each difference, before it is judged.

    Parameters
    ----------
    t : ndarray of shape (n_contrasts, n_features)
        Differences over their standard errors.
    df : float or ndarray of shape (n_features,)
        Degrees of freedom of the variances.
    counts : ndarray of shape (n_classes, 1) or (n_classes, n_features)
        Samples of each class, or values of each feature.
    ratio : ndarray of shape (n_contrasts, n_features) or float
        Variance of the difference with a variance for each class, over that with one.
    own_df : ndarray of shape (n_contrasts, n_features) or float
        Degrees of freedom of the former.
    """

    t: FloatArray
    df: float | FloatArray
    counts: FloatArray
    ratio: FloatArray | float = 1.0
    own_df: FloatArray | float = np.inf

    @property
    def share(self) -> FloatArray:
        """``(1 - n_k / N) / (K - 1)``: what t_k^2 has of F."""
        k = len(self.counts)
        if k == 2:
            return np.ones((1, 1))
        total = np.maximum(self.counts.sum(axis=0), 1.0)
        share: FloatArray = (1 - self.counts / total) / (k - 1)
        return share

    @property
    def f(self) -> FloatArray:
        """The F statistic of each feature; the square of t for two classes."""
        with np.errstate(over="ignore"):
            f: FloatArray = (self.share * np.square(self.t)).sum(axis=0)
        return f

    @property
    def df1(self) -> int:
        """Degrees of freedom of the numerator of F."""
        return len(self.counts) - 1

    @property
    def scores(self) -> FloatArray:
        """The normal value with the tail probability of each t, the weaker of two."""
        plain = normal_score(self.t, self.df)
        if np.isscalar(self.ratio):
            return plain
        own = normal_score(self.t / np.sqrt(self.ratio), self.own_df)
        return np.where(np.abs(own) < np.abs(plain), own, plain)

    @property
    def cautious_f(self) -> FloatArray:
        """F over its expectation with a variance for each class, where that is more."""
        # This is 1 with equal variances, since the shares add up to 1.
        expected = (self.share * np.ones_like(self.t) * self.ratio).sum(axis=0)
        return np.asarray(self.f / np.maximum(expected, 1.0))


def moderated_t(moments: ClassMoments) -> tuple[Statistics, Contrasts]:
    """limma's statistics, and the contrasts that they are of.

    Examples
    --------
    >>> from ebda.moments import class_moments
    >>> X = np.random.default_rng(0).normal(size=(8, 100))
    >>> X[4:, 0] += 8
    >>> found, _ = moderated_t(class_moments(X, np.repeat([0, 1], 4), 2))
    >>> int(np.abs(found.t).argmax()), bool(found.df > 6)
    (0, True)
    """
    variance = moderated(moments, without_outliers=False)
    contrasts = class_contrasts(moments, variance)
    df = np.minimum(variance.degrees_of_freedom, most_df(moments, contrasts))
    ratio, own_df = by_class(moments, contrasts, df)
    t = contrasts.z if moments.observed is None else _t_of_values(moments, contrasts)
    return Statistics(t, df, moments.n_values, ratio, own_df), contrasts


def _t_of_values(moments: ClassMoments, contrasts: Contrasts) -> FloatArray:
    """t of the values that there are, against the mean of those of all classes."""
    n_contrasts = len(contrasts.z)
    difference = np.zeros_like(contrasts.z)
    factor = np.zeros_like(contrasts.z)
    for k, n in enumerate(_counted(moments)):
        w = _weights(moments, n_contrasts, k)
        difference += w * moments.means[k]
        factor += w**2 / n
    t: FloatArray = difference / np.sqrt(factor * contrasts.variance)
    if moments.design is not None:  # groups make the class means alike
        w = contrasts.positive - contrasts.negative
        t *= np.sqrt(error_factor(w**2, moments.n_values) / variance_of(w, w, moments))
    t[:, contrasts.constant] = 0.0
    return t


def _counted(moments: ClassMoments) -> FloatArray:
    """Number of values; one where there is none, which has no weight."""
    return np.maximum(moments.n_values, 1.0)


def _weights(moments: ClassMoments, n_contrasts: int, k: int) -> FloatArray:
    """What each contrast has of the mean of class k, one column per feature or one."""
    if n_contrasts == 1:
        return np.full((1, 1), 2.0 * k - 1.0)
    n = moments.n_values
    own = (np.arange(n_contrasts) == k)[:, None]
    weights: FloatArray = own - n[k] / np.maximum(n.sum(axis=0), 1.0)
    return weights


def most_df(moments: ClassMoments, contrasts: Contrasts) -> float:
    """Degrees of freedom of all features together, which none has more of."""
    own = float(moments.counts.sum() - len(moments.counts))
    return own * max(int(np.count_nonzero(~contrasts.constant)), 1)


def by_class(
    moments: ClassMoments, contrasts: Contrasts, df: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """`ratio` and `own_df` of :class:`Statistics`.

    The variance of a difference is ``v = sum_k a_k``, with ``a_k = w_k^2 s_k^2 / n_k``,
    and its degrees of freedom are ``v^2 / sum_k (a_k^2 / df_k)``. Classes with one
    sample have the common variance.

    Parameters
    ----------
    moments : ClassMoments
        Of all samples.
    contrasts : Contrasts
        With the common variance.
    df : float or ndarray of shape (n_features,)
        Degrees of freedom of the common variance.
    """
    total = np.zeros_like(contrasts.z)
    squares = np.zeros_like(contrasts.z)
    common = np.zeros_like(contrasts.z)
    for k, n in enumerate(_counted(moments)):
        variance, n_free = contrasts.variance, df
        if moments.counts[k] > 1:
            free = n - 1 if len(n) > 1 else float(n[0] - 1)
            s2 = moments.centred_squares[k] / np.maximum(free, 1.0)
            prior = variance_prior(s2, free)
            several = n > 1
            variance = np.where(several, prior.shrink(s2, free), variance)
            own = free + np.minimum(prior.degrees_of_freedom, df)
            n_free = np.where(several, own, df)
        part = _weights(moments, len(contrasts.z), k) ** 2 / n
        a = part * variance
        common += part
        total += a
        squares += a**2 / n_free
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = total / (common * contrasts.variance)
        own_df = np.where(squares > 0, total**2 / squares, df)
    # Without any variance within the classes the common one decides.
    return np.where(total > 0, ratio, 1.0), own_df
