"""From moments to normalised contrasts: ``z``, the paper's y, and its scale.

A contrast compares two weighted means of the class means, ``P m`` and ``Q m``. Two
classes have one contrast, the second class against the first. K classes have K
contrasts, each class against the centre (the mean of all samples). In both cases

    d = (P - Q) m,    scale**2 = sum_k (P - Q)_k**2 s_k**2 / n_k,    z = d / scale.

Where values are missing, n_k is the number of values of the feature in class k. A
feature without a value in some class has no contrast.

With two classes of n samples and a pooled variance this is the paper's
``y = sqrt(n/2) D**(-1/2) d`` (Section 1); with K classes ``scale`` is
``s sqrt(1/n_k - 1/N)``, as in nearest shrunken centroids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from ebda.cached import cached_property
from ebda.kernels.contrasts import contrast_z
from ebda.kernels.hashing import hash_columns
from ebda.moments.classwise import ClassMoments
from ebda.moments.variance import Variance, degrees_of_freedom
from ebda.storage.fields import NOT_NEGATIVE, POSITIVE, Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray

# Runs of neighbours that stand for all features that have an order.
_RUNS = 16
# Standard deviation of standard errors, over their mean, that makes no difference.
_ALIKE = 0.15
# Degrees of freedom with which t is normal.
_AS_NORMAL = 1e9


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Normalised contrasts between class means.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        Contrast over its standard error; 0 where `constant`.
    variance_factor : ndarray of shape (n_contrasts, 1) or (n_contrasts, n_features)
        Variance of the contrast over `variance`; the same for all features where the
        classes have a common variance and no value is missing.
    positive, negative : ndarray of shape (n_contrasts, n_classes)
        P and Q: the weights of the class means on either side.
    variance : ndarray of shape (n_features,)
        The diagonal of D for the linear rule; 1 where `constant`.
    constant : ndarray of bool of shape (n_features,)
        Features with the same value in all samples, or with too few values for a
        contrast: they have no weight, and the prior is not fitted to them.
    noise : ndarray of shape (n_contrasts, n_features), optional
        Standard error over the one that the feature would have with all its values;
        None where it is about the same for all features, as where none is missing.
    """

    z: FloatArray
    variance_factor: FloatArray
    positive: FloatArray
    negative: FloatArray
    variance: FloatArray
    constant: npt.NDArray[np.bool_]
    noise: FloatArray | None = None

    @cached_property
    def any_constant(self) -> bool:
        """Whether there is any constant feature."""
        return bool(self.constant.any())

    @property
    def scale(self) -> FloatArray:
        """The standard error, so that the contrast is ``z * scale``.

        It is computed when it is asked for: that takes no longer than to read it.
        """
        scale: FloatArray = np.sqrt(self.variance_factor * self.variance)
        scale[:, self.constant] = 0.0
        return scale


def _from_fields(fields: dict[str, Any]) -> Contrasts:
    """Contrasts from a file; the first files had other names and standard errors."""
    scale, factor = fields.pop("scale", None), fields.pop("unit", None)
    fields.setdefault("noise", None)
    if scale is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            factor = scale**2 / fields["variance"]
    factor = fields.setdefault("variance_factor", factor)
    if factor is None:
        raise ValueError("the variance factor of the contrasts is missing")
    if not np.isfinite(factor).all():
        raise ValueError("standard errors and variances do not go together")
    if factor.shape[1] not in (1, len(fields["variance"])):
        raise ValueError("the variance factor has another number of features")
    return Contrasts(**fields)


_WEIGHTS = ("zero or more", "a distribution in each row")
register(
    Schema(
        Contrasts,
        {
            "z": Array(("c", "p")),
            "variance_factor": Array(("c", "u"), NOT_NEGATIVE),
            "positive": Array(("c", "k"), _WEIGHTS),
            "negative": Array(("c", "k"), _WEIGHTS),
            "variance": Array(("p",), POSITIVE),
            "constant": Array(("p",), (), np.bool_),
            "noise": Array(("c", "p"), POSITIVE),
        },
        optional=frozenset({"variance_factor", "noise"}),
        former={
            "scale": Array(("c", "p"), NOT_NEGATIVE),
            "unit": Array(("c", "u"), NOT_NEGATIVE),
        },
        build=_from_fields,
    )
)


def contrast_weights(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P and Q for classes with these counts.

    >>> import numpy as np
    >>> contrast_weights(np.array([3.0, 5.0]))
    (array([[0., 1.]]), array([[1., 0.]]))
    >>> contrast_weights(np.array([1.0, 1.0, 2.0]))[1][0]
    array([0.25, 0.25, 0.5 ])
    """
    k = len(counts)
    if k == 2:
        return np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    return np.eye(k), np.tile(counts / counts.sum(), (k, 1))


def error_factor(squares: FloatArray, n_values: FloatArray) -> FloatArray:
    """``sum_k squares_ck / n_kj``: the variance of weighted means of unit variance.

    Parameters
    ----------
    squares : ndarray of shape (n_contrasts, n_classes)
        Squares of the weights, or differences of squares.
    n_values : ndarray of shape (n_classes, 1) or (n_classes, n_features)
        Values of each class.

    Returns
    -------
    ndarray of shape (n_contrasts, 1) or (n_contrasts, n_features)
        A class without values counts as if it had one.

    >>> error_factor(np.array([[1.0, 1.0]]), np.array([[2.0, 4.0], [2.0, 4.0]]))
    array([[1. , 0.5]])
    """
    n = np.where(n_values > 0, n_values, 1.0)
    factor: FloatArray
    if n.shape[1] == 1:
        factor = (squares / n[:, 0]).sum(axis=1)[:, None]
    else:
        factor = squares @ (1 / n)
    return factor


def variance_of(
    left: FloatArray, right: FloatArray, moments: ClassMoments
) -> FloatArray:
    """Covariance of ``left m`` and ``right m``, m the class means, of unit variance.

    Parameters
    ----------
    left, right : ndarray of shape (n_contrasts, n_classes)
        Weights of the class means.
    moments : ClassMoments
        Their samples.

    Returns
    -------
    ndarray of shape (n_contrasts, 1) or (n_contrasts, n_features)
        As of `error_factor`, which it is where samples are independent.
    """
    products = left * right
    if moments.design is None:
        return error_factor(products, moments.n_values)
    factor: FloatArray = np.einsum(
        "ck,kl,cl->c", left, moments.design.mean_covariance, right
    )[:, None]
    if moments.observed is None:
        return factor
    # Missing values take from it what they take from independent samples.
    values = moments.design.values
    if values is not None:
        own = error_factor(products, moments.observed) + values.leverage(left, right)
        complete = np.einsum("ck,kl,cl->c", left, values.complete, right)
        return np.asarray(factor + (own - complete[:, None]))
    plain = error_factor(left**2, moments.counts[:, None])
    return factor * error_factor(left**2, moments.observed) / plain


def class_contrasts(moments: ClassMoments, variance: Variance) -> Contrasts:
    """Contrasts of the class means, normalised by the estimated variances.

    A feature that does not vary within the classes, but whose class means differ,
    separates the classes perfectly. Unless its variance is moderated, its z would be
    infinite. It is given the largest absolute z of the other features, or ``sqrt(N)``
    if that is larger, the z of the chi-square test of a perfect two-way table. So it is
    as strong as the strongest evidence at hand, in any unit of measurement.
    """
    counts, means = moments.counts, moments.means
    positive, negative = contrast_weights(counts)
    weights = positive - negative
    pooled = len(variance.by_class) == 1
    # (n_contrasts, 1); one column per feature where the classes have variances of
    # their own, or values are missing.
    root = np.sqrt(variance_of(weights, weights, moments))
    if pooled:
        factor = root**2
    else:
        factor = _unequal_factor(weights**2, moments, variance.by_class)
        factor /= np.where(variance.within > 0, variance.within, 1.0)
        if moments.design is not None:
            factor *= root**2 / error_factor(weights**2, moments.n_values)
    z, flat, constant = contrast_z(
        means, moments.centred_squares, variance.within, weights, factor, counts.max()
    )
    within = variance.within
    is_constant = np.zeros(len(within), dtype=bool)
    if moments.observed is not None:
        few = moments.without_values
        if variance.known is not None:
            few |= ~variance.known
        constant = np.union1d(constant, np.flatnonzero(few))
        flat = np.union1d(flat, constant)
    if flat.size:
        is_constant[constant] = True
        within = within.copy()
        within[constant] = 1.0
        z[:, constant] = 0.0
        perfect = np.setdiff1d(flat, constant)
        others = np.delete(np.arange(z.shape[1]), flat)
        largest = np.abs(z[:, others]).max(initial=np.sqrt(counts.sum()))
        # The standard deviation at which the feature's strongest contrast has z equal
        # to `largest`.
        at = root if root.shape[1] == 1 else root[:, perfect]
        sd = (np.abs(z[:, perfect]) / at).max(axis=0) / largest
        within[perfect] = sd**2
        z[:, perfect] /= at * sd
        if not pooled:
            factor[:, flat] = (root if root.shape[1] == 1 else root[:, flat]) ** 2
    noise = None
    if moments.observed is not None:
        wider = _heavier_tails(z, moments, variance)
        z, factor = z / wider, factor * wider**2
        noise = wider * root / np.sqrt(error_factor(weights**2, counts[:, None]))
        if _are_alike(noise[:, ~is_constant]):
            noise = None
    return Contrasts(z, factor, positive, negative, within, is_constant, noise)


def _are_alike(noise: FloatArray) -> bool:
    """Whether standard errors differ so little that a prior need not know of it."""
    if not noise.shape[1]:
        return True
    return bool((noise.std(axis=1) <= _ALIKE * noise.mean(axis=1)).all())


def _heavier_tails(
    z: FloatArray, moments: ClassMoments, variance: Variance
) -> FloatArray:
    """How much wider the standard error must be for few values.

    z is a t with as many degrees of freedom as its variance has. Over this it has the
    same p-value as the t of a feature without missing values.
    """
    own = np.asarray(variance.degrees_of_freedom)
    most = complete_df(moments, own)
    df, t = np.broadcast_to(own, z.shape), np.abs(z)
    p = stdtr(df, -t)
    same = -(ndtri(p) if np.isinf(most) else stdtrit(most, p))
    usable = (p > 0) & (t > 1e-3) & np.isfinite(same) & (df < most)
    return np.where(usable, np.maximum(t / np.where(usable, same, 1.0), 1.0), 1.0)


def complete_df(moments: ClassMoments, df: float | FloatArray) -> float:
    """Degrees of freedom of the t of a feature with all its values.

    Parameters
    ----------
    moments : ClassMoments
        Of all samples.
    df : float or ndarray of shape (n_features,)
        Those of the variances, whatever their values and a prior have told.
    """
    # What a prior of the variances adds is the same for all.
    added = np.asarray(df) - degrees_of_freedom(moments)
    complete = degrees_of_freedom(replace(moments, observed=None))
    return float(complete) + float(np.max(added, initial=0.0))


def matched_t(
    t: FloatArray, df: FloatArray | float, other: FloatArray | float
) -> FloatArray:
    """Values with about the same tail probabilities under another t distribution.

    By Wallace's (1959) normal scores of t with f degrees of freedom,
    ``(8 f + 1) / (8 f + 3) sqrt(f log(1 + t^2 / f))``, in a few passes over the array.

    Parameters
    ----------
    t : ndarray
        Values.
    df, other : ndarray or float, to broadcast against `t`
        Degrees of freedom of their distribution, and of the other one; above zero.

    >>> matched_t(np.array([-2.571, 4.032]), np.array(5.0), np.inf).round(2)
    array([-1.96,  2.56])
    """
    df, other = np.asarray(df, np.float64), np.asarray(other, np.float64)
    # As many are as good as normal.
    df, other = np.minimum(df, _AS_NORMAL), np.minimum(other, _AS_NORMAL)
    ratio = (8 * df + 1) / (8 * df + 3) * ((8 * other + 3) / (8 * other + 1))
    score = ratio**2 * (df * np.log1p(t**2 / df))
    found: FloatArray = np.sqrt(other * np.expm1(score / other))
    return np.copysign(found, t)


def _unequal_factor(
    squares: FloatArray, moments: ClassMoments, by_class: FloatArray
) -> FloatArray:
    """``sum_k squares_ck s_k^2 / n_k`` of every feature."""
    if moments.observed is None:
        return (squares / moments.counts) @ by_class
    n = np.where(moments.observed > 0, moments.observed, 1.0)
    factor: FloatArray = squares @ (by_class / n)
    return factor


def choose_features(moments: ClassMoments, size: int) -> IntArray:
    """Choose features as if at random, but independently of their order.

    Those whose sums of squares have the smallest hash, over all classes. The last
    digits of a sum depend on the order in which samples were added up, and do not
    count. (Moderated variances would not do: they may be equal for all features.)
    """
    key = hash_columns(moments.centred_squares)
    last = np.partition(key, size - 1)[size - 1]
    # Equal features are chosen together, as far as there is room.
    below = np.flatnonzero(key < last)
    tied = np.flatnonzero(key == last)[: size - len(below)]
    chosen: IntArray = np.sort(np.concatenate([below, tied]))
    return chosen


def choose_runs(n_features: int, size: int) -> IntArray:
    """Choose runs of neighbours, spread evenly over the features.

    >>> choose_runs(100, 32)[:6]
    array([ 0,  1,  6,  7, 13, 14])
    """
    n = min(_RUNS, size)
    length = size // n
    starts = np.linspace(0, n_features - length, n).astype(np.intp)
    chosen: IntArray = (starts[:, None] + np.arange(length)).ravel()
    return chosen
