"""From moments to normalised contrasts: ``z``, the paper's y, and its scale.

A contrast compares two weighted means of the class means, ``P m`` and ``Q m``. Two
classes have one, the second class against the first; K classes have K, each class
against the centre (the mean of all samples). Both cases are the same formulas:

    d = (P - Q) m,    scale**2 = sum_k (P - Q)_k**2 s_k**2 / n_k,    z = d / scale.

With two classes of n samples and a pooled variance this is the paper's
``y = sqrt(n/2) D**(-1/2) d`` (Section 1); with K classes ``scale`` is
``s sqrt(1/n_k - 1/N)``, as in nearest shrunken centroids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda import compiled, loops
from ebda.arrays import FloatArray, IntArray, scattered
from ebda.moments import ClassMoments
from ebda.threads import over_blocks
from ebda.variance import ROUNDING, Variance, rounding_variance

# Bits of a sum of squares that a hash of it does without: 18 of the mantissa are left.
_DROPPED_BITS = 34


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Normalised contrasts between class means.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        Contrast over its standard error; 0 where `constant`.
    scale : ndarray of shape (n_contrasts, n_features)
        The standard error, so that the contrast is ``z * scale``.
    positive, negative : ndarray of shape (n_contrasts, n_classes)
        P and Q: the weights of the class means on either side.
    variance : ndarray of shape (n_features,)
        The diagonal of D for the linear rule; 1 where `constant`.
    constant : ndarray of bool of shape (n_features,)
        Features with the same value in all samples: they carry no weight and
        do not take part in the estimate of the prior.
    """

    z: FloatArray
    scale: FloatArray
    positive: FloatArray
    negative: FloatArray
    variance: FloatArray
    constant: npt.NDArray[np.bool_]


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


def class_contrasts(moments: ClassMoments, variance: Variance) -> Contrasts:
    """Contrasts of the class means, normalised by the estimated variances.

    A feature without any variance within the classes whose means nevertheless
    differ separates the classes perfectly; where its variance is not moderated, its z
    would be infinite. It is given the largest absolute z of the other features, or
    ``sqrt(N)`` if that is more, which is the z of the chi-square test of a perfect
    two-way table: in any unit of measurement, as strong as the strongest evidence at
    hand.
    """
    counts = moments.counts
    positive, negative = contrast_weights(counts)
    weights = positive - negative
    var_of_mean = weights**2 / counts
    pooled = variance.by_class.shape[0] == 1
    unit = var_of_mean.sum(axis=1)[:, None] if pooled else var_of_mean
    p = moments.means.shape[1]
    z, scale = np.empty((len(weights), p)), np.empty((len(weights), p))
    constant, flat = np.zeros(p, dtype=bool), np.zeros(p, dtype=bool)
    most = counts.max()
    fast = pooled and len(counts) == 2 and compiled.suit_vectors(p)

    def part(cols: slice) -> None:
        # A quick look at the block, and only where need be at its features.
        if fast:
            found = loop(
                moments.means,
                moments.centred_squares,
                variance.within,
                float(unit[0, 0]),
                cols.start,
                cols.stop,
                z[0],
                scale[0],
            )
            largest, least, smallest = np.array(found).view(np.float64)
            if min(least, smallest / most) > rounding_variance(largest):
                return
        means, d = moments.means[:, cols], z[:, cols]
        within = variance.within[cols]
        squares = moments.centred_squares[:, cols].max(axis=0)
        np.matmul(weights, means, out=d)
        if pooled:
            np.multiply(unit, variance.by_class[:, cols], out=scale[:, cols])
        else:
            np.matmul(unit, variance.by_class[:, cols], out=scale[:, cols])
        np.sqrt(scale[:, cols], out=scale[:, cols])
        largest = max(means.max(), -means.min())
        if min(within.min(), squares.min() / most) > rounding_variance(largest):
            d /= scale[:, cols]
            return
        tiny = np.abs(means).max(axis=0)
        tiny *= ROUNDING
        constant[cols] = np.sqrt(squares / most) <= tiny
        constant[cols] &= np.abs(d).max(axis=0) <= tiny
        flat[cols] = np.sqrt(within) <= tiny
        flat[cols] |= constant[cols]
        np.divide(d, scale[:, cols], out=d, where=~flat[cols])

    loop = compiled.loop(loops.two_classes) if fast else loops.two_classes
    over_blocks(part, p, long=fast)
    within = variance.within
    if flat.any():
        within = within.copy()
        within[constant] = 1.0
        z[:, constant] = scale[:, constant] = 0.0
        perfect = flat & ~constant
        largest = np.abs(z[:, ~flat]).max(initial=np.sqrt(counts.sum()))
        # The sd at which the strongest contrast of the feature has z = largest.
        root = np.sqrt(var_of_mean.sum(axis=1))[:, None]
        sd = (np.abs(z[:, perfect]) / root).max(axis=0) / largest
        within[perfect] = sd**2
        scale[:, perfect] = root * sd
        z[:, perfect] /= scale[:, perfect]
    return Contrasts(z, scale, positive, negative, within, constant)


def by_hash(moments: ClassMoments, size: int) -> IntArray:
    """So many features as if drawn at random, whatever their order.

    Those whose sums of squares have the smallest hash, all classes together. Their
    last digits depend on the order in which samples were added up, and are left out.
    (Moderated variances would not do: they may be the same for all features.)
    """
    squares = moments.centred_squares
    key = np.empty(squares.shape[1], dtype=np.uint64)

    def part(cols: slice) -> None:
        mixed = np.zeros(cols.stop - cols.start, dtype=np.uint64)
        for row in squares[:, cols]:
            leading = row.view(np.int64) >> _DROPPED_BITS
            mixed = scattered(mixed ^ leading.view(np.uint64))
        key[cols] = mixed

    over_blocks(part, len(key))
    last = np.partition(key, size - 1)[size - 1]
    # Features that are alike go together, as far as there is room.
    below = np.flatnonzero(key < last)
    tied = np.flatnonzero(key == last)[: size - len(below)]
    chosen: IntArray = np.sort(np.concatenate([below, tied]))
    return chosen
