"""Within-class variance of each feature, from the moments.

An estimator of the variance is a function from
:class:`~ebda.moments.classwise.ClassMoments` to :class:`Variance`. `VARIANCES` is the
registry that the `variance` parameter of the classifier names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammainccinv, gammaincinv, polygamma

from ebda.kernels.rounding import ROUNDING
from ebda.kernels.variances import group_positive, pooled_variance, shrink_variance
from ebda.moments.classwise import ClassMoments
from ebda.registry import Entry, Registry
from ebda.sizes import sizes
from ebda.typing import FloatArray

# Logarithms of variances this close are ties: they differ by rounding.
_TIED = 1e-9


@dataclass(frozen=True, eq=False)
class Variance:
    """Estimated variances of the features within the classes.

    Parameters
    ----------
    within : ndarray of shape (n_features,)
        The diagonal of D in the linear rule, common to all classes.
    by_class : ndarray of shape (1, n_features) or (n_classes, n_features)
        Variance of a sample of each class; one row where they are pooled.
    degrees_of_freedom : float or ndarray of shape (n_features,)
        Degrees of freedom of `within`; infinite where it is the same for all
        features. One per feature where values are missing.
    known : ndarray of bool of shape (n_features,), optional
        Features with values enough for a variance; None for all of them. The variance
        of the others is 1.
    """

    within: FloatArray
    by_class: FloatArray
    degrees_of_freedom: float | FloatArray
    known: npt.NDArray[np.bool_] | None = None


def degrees_of_freedom(moments: ClassMoments) -> float | FloatArray:
    """Those of the pooled variances: values less classes that have any.

    One number, or one per feature where values are missing.
    """
    if moments.observed is None:
        return moments.residual_df
    n = moments.n_values
    df: FloatArray = n.sum(axis=0) - np.count_nonzero(n > 0, axis=0)
    if moments.design is not None:
        plain = moments.counts.sum() - len(moments.counts)
        values = moments.design.values
        if values is not None:
            df = df - values.rank
            plain = plain - len(values.inverse)
        df = df * (moments.residual_df / max(float(plain), 1e-300))
    return np.maximum(df, 0.0)


def pooled(moments: ClassMoments) -> Variance:
    """One variance for all classes: the sums of squares over ``N - K``.

    Classes with one sample take part through their mean alone.

    >>> import numpy as np
    >>> from ebda.moments.classwise import class_moments
    >>> X = np.array([[0.0], [2.0], [10.0]])
    >>> pooled(class_moments(X, np.array([0, 0, 1]), 2)).within
    array([2.])
    """
    return _pooled(moments)[0]


def _pooled(moments: ClassMoments) -> tuple[Variance, bool]:
    """The same, and whether some of them may be the rounding error of a constant."""
    df, known = degrees_of_freedom(moments), None
    if not np.any(df > 0):
        raise ValueError(
            "cannot estimate a pooled variance: every class has a single "
            f"{'sample' if moments.observed is None else 'value'}; "
            "at least one class needs two"
        )
    used = df
    if isinstance(df, np.ndarray) and not (df > 0).all():
        known = df > 0
        used = np.where(known, df, 1.0)
    if moments.design is not None:
        used = used * (moments.expected_squares / moments.residual_df)
    within, suspicious = pooled_variance(moments.means, moments.centred_squares, used)
    if known is not None:
        within[~known] = 1.0
    return Variance(within, within[None, :], df, known), suspicious


def separate(moments: ClassMoments) -> Variance:
    """A variance for each class, as the paper's authors use on the leukemia data.

    The variance of a class mean is then ``s_k**2 / n_k``, so that two classes have
    ``z = d / sqrt(s1**2/n1 + s2**2/n2)``. The rule's D is the average of the class
    variances with weights ``1/n_k``, which for two classes is proportional to the
    square of that denominator.
    """
    counts = moments.counts
    lonely = np.flatnonzero(counts <= 1)
    if lonely.size:
        raise ValueError(
            f"variance='separate' needs two samples in every class; class number "
            f"{lonely[0]} has {counts[lonely[0]]:g} (variance='pooled' needs only one)"
        )
    if moments.design is not None and moments.design.slope_covariance is not None:
        raise ValueError(
            "variance='separate' does not allow for what covariates take of the "
            "degrees of freedom; use 'moderated' or 'pooled' with covariates"
        )
    if moments.observed is None:
        by_class = moments.centred_squares / (counts - 1)[:, None]
        within = (1 / counts) @ by_class / np.sum(1 / counts)
        return Variance(within, by_class, float(counts.sum() - len(counts)))
    known: npt.NDArray[np.bool_] = np.min(moments.observed, axis=0) > 1
    n = np.where(known, moments.observed, 2.0)
    by_class = np.where(known, moments.centred_squares / (n - 1), 1.0)
    within = (by_class / n).sum(axis=0) / (1 / n).sum(axis=0)
    return Variance(within, by_class, degrees_of_freedom(moments), known)


@dataclass(frozen=True)
class VariancePrior:
    """Scaled inverse chi-square prior of the variances: ``d0 s0^2 / chi2(d0)``.

    Parameters
    ----------
    degrees_of_freedom : float
        d0: the weight of the prior, in samples. Infinite where the variances differ
        by no more than chance; 0 where nothing is known.
    variance : float
        s0^2, the value that the variances are shrunken towards.
    outlier_threshold : float or ndarray of shape (n_features,)
        Larger variances do not belong to the prior, and are not shrunken.
    """

    degrees_of_freedom: float
    variance: float
    outlier_threshold: float | FloatArray = np.inf

    def shrink(
        self, s2: FloatArray, df: float | FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Posterior variances ``(d0 s0^2 + df s^2) / (d0 + df)``.

        Parameters
        ----------
        s2 : ndarray of shape (n_features,)
            Variances.
        df : float or ndarray of shape (n_features,)
            Their degrees of freedom; the variance of the prior alone where there are
            none.
        out : ndarray of shape (n_features,), optional
            Where to write; `s2` itself is allowed.
        """
        d0 = self.degrees_of_freedom
        own: float | FloatArray = 0.0 if np.isinf(d0) else df / (d0 + df)
        return shrink_variance(
            s2,
            own,
            (1 - own) * self.variance,
            self.outlier_threshold,
            np.empty_like(s2) if out is None else out,
        )


def variance_prior(
    s2: FloatArray, df: float | FloatArray, without_outliers: bool = True
) -> VariancePrior:
    """The prior of the variances, by the moments of their logarithms (Smyth 2004).

    ``log s^2`` has mean ``log s0^2 + psi(df/2) - log(df/2) - psi(d0/2) + log(d0/2)``
    and variance ``psi'(df/2) + psi'(d0/2)``, which are solved for d0 and s0. Values
    more than five robust standard deviations from the median are outliers, and left
    out: a handful of them would otherwise distort the prior for all others.

    Parameters
    ----------
    s2 : ndarray of shape (n_features,)
        Variances; zeros are left out.
    df : float or ndarray of shape (n_features,)
        Their degrees of freedom. Where each has its own, ``psi'(df/2)`` is the mean
        over the features.
    without_outliers : bool
        False takes all variances, as limma does.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s2 = 2.0 * rng.chisquare(10, 5000) / 10      # all variances are 2
    >>> variance_prior(s2, 10).degrees_of_freedom > 100
    True
    >>> s2 *= 6 / rng.chisquare(6, 5000)             # now they vary, with d0 = 6
    >>> round(variance_prior(s2, 10).degrees_of_freedom)
    6
    """
    if isinstance(df, np.ndarray):
        return _prior_of_unequal(s2, df)
    e, count = _log_variances(s2)
    if count.sum() < 2 or df < 1:
        return VariancePrior(0.0, 1.0)
    e -= digamma(df / 2) - np.log(df / 2)
    middle = weighted_median(e, count)
    reach = 5 * 1.4826 * weighted_median(np.abs(e - middle), count)
    # With few degrees of freedom chance alone reaches far down.
    by_chance = np.log(gammaincinv(df / 2, 0.5) / gammaincinv(df / 2, 1e-7))
    outlier_threshold = np.inf
    if without_outliers and reach > _TIED:
        inside = (e <= middle + reach) & (e >= middle - reach - by_chance)
        if not inside.all():
            outlier_threshold = float(np.exp(middle + reach + digamma(df / 2)) * 2 / df)
            e, count = e[inside], count[inside]
    total = float(count.sum())
    centre = float(count @ e) / total
    variance = float(count @ (e - centre) ** 2) / (total - 1)
    excess = variance - float(polygamma(1, df / 2))
    return _from_logarithms(centre, excess, outlier_threshold)


def _from_logarithms(
    centre: float, excess: float, outlier_threshold: float | FloatArray
) -> VariancePrior:
    """d0 and s0 from the mean of the logarithms, and their variance beyond chance."""
    if excess <= 0:
        return VariancePrior(np.inf, float(np.exp(centre)), outlier_threshold)
    d0 = 2 * trigamma_inverse(excess)
    log_s0 = centre + float(digamma(d0 / 2)) - np.log(d0 / 2)
    return VariancePrior(d0, float(np.exp(log_s0)), outlier_threshold)


def _prior_of_unequal(s2: FloatArray, df: FloatArray) -> VariancePrior:
    """The prior where each variance has degrees of freedom of its own.

    As with equal ones. What chance alone reaches above the median, too, is more than
    usual for a variance with fewer degrees of freedom than most.
    """
    some, kind = np.unique(np.maximum(df, 1.0), return_inverse=True)
    usable = (s2 > 0) & (df >= 1)
    if np.count_nonzero(usable) < 2:
        return VariancePrior(0.0, 1.0)
    half = some / 2
    own = kind[usable]
    shift = (digamma(half) - np.log(half))[own]
    e = np.log(s2[usable]) - shift
    one = np.ones(len(e))
    middle = weighted_median(e, one)
    reach = 5 * 1.4826 * weighted_median(np.abs(e - middle), one)
    chance = polygamma(1, half)
    outlier_threshold: float | FloatArray = np.inf
    if reach > _TIED:
        median = gammaincinv(half, 0.5)
        down = np.log(median / gammaincinv(half, 1e-7))
        up = np.log(gammainccinv(half, 1e-7) / median)
        usual = weighted_median(up[own], one)
        further = np.maximum(up - usual, 0.0)
        inside = (e <= middle + reach + further[own]) & (
            e >= middle - reach - down[own]
        )
        if not inside.all():
            top = middle + reach + further + digamma(half)
            outlier_threshold = (np.exp(top) / half)[kind]
            e, own = e[inside], own[inside]
    centre = float(e.mean())
    variance = float(((e - centre) ** 2).sum()) / max(len(e) - 1, 1)
    excess = variance - float(chance[own].mean())
    return _from_logarithms(centre, excess, outlier_threshold)


def _log_variances(s2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the variances above zero, and how many there are of each.

    Many are grouped into cells 0.2 % wide, and each cell is represented by its mean:
    the mean of the logarithms changes by less than 5e-7.
    """
    if len(s2) < sizes.grouped_variances:
        known = s2[s2 > 0]
        return np.log(known), np.ones(len(known))
    variance, count = group_positive(s2)
    return np.log(variance), count


def weighted_median(x: FloatArray, count: FloatArray) -> float:
    """Median of values with frequencies.

    >>> weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    order = np.argsort(x)
    until = np.cumsum(count[order])
    half = until[-1] / 2
    low = order[np.searchsorted(until, half, side="left")]
    high = order[min(np.searchsorted(until, half, side="right"), len(order) - 1)]
    return float((x[low] + x[high]) / 2)


def trigamma_inverse(x: float) -> float:
    """y with ``psi'(y) = x``, by Newton's method on ``1 / psi'``, as in limma.

    The function is convex and nearly linear, and the start lies above the root, so
    that the iteration descends to it.

    >>> round(trigamma_inverse(float(polygamma(1, 3.5))), 12)
    3.5
    """
    if x > 1e7:
        return float(x**-0.5)
    if x < 1e-6:
        return 1 / x
    y = 0.5 + 1 / x
    for _ in range(50):
        tri = float(polygamma(1, y))
        step = tri * (1 - tri / x) / float(polygamma(2, y))
        y += step
        if -step < 1e-12 * y:
            break
    return y


def moderated(moments: ClassMoments, without_outliers: bool = True) -> Variance:
    """Pooled variances, shrunken towards a common value.

    Empirical Bayes, as in limma (Smyth 2004): with few samples, a variance that is
    small by chance makes a large z where there is no difference. The other features
    say what is usual.

    Parameters
    ----------
    moments : ClassMoments
        Of all samples.
    without_outliers : bool
        False is limma to the digit: outliers among the variances count, and are
        shrunken, too.
    """
    plain, suspicious = _pooled(moments)
    df = plain.degrees_of_freedom
    known = plain.within
    if suspicious:
        # The rounding error of a constant is no variance (see ebda.moments.contrasts).
        tiny = ROUNDING * np.abs(moments.means).max(axis=0)
        known = np.where(known > tiny**2, known, 0.0)
    prior = variance_prior(known, df, without_outliers)
    within = prior.shrink(plain.within, df, out=plain.within)
    enough = plain.known
    if prior.degrees_of_freedom > 0:
        enough = None  # the prior says what is usual
    elif enough is not None:
        within[~enough] = 1.0
    return Variance(within, within[None, :], df + prior.degrees_of_freedom, enough)


@dataclass(frozen=True)
class VarianceEstimator(Entry):
    """An estimator of the variance, and what it needs.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`.
    estimate : callable
        From the moments to the variance.
    min_samples : int
        Samples that every class must have.
    is_common : bool
        Whether the classes have a common variance.
    """

    estimate: Callable[[ClassMoments], Variance]
    min_samples: int = 1
    is_common: bool = True


VARIANCES: Registry[VarianceEstimator] = Registry(
    "variance",
    VarianceEstimator(
        "moderated", "shrunken to what is usual among the features", moderated
    ),
    VarianceEstimator("pooled", "pooled over the classes", pooled),
    VarianceEstimator(
        "separate", "one for each class", separate, min_samples=2, is_common=False
    ),
)
