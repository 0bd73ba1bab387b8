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
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ebda.kernels import compiled, loops
from ebda.kernels.hashing import hash_integers
from ebda.kernels.threads import over_blocks
from ebda.moments.classwise import ClassMoments
from ebda.moments.variance import ROUNDING, Variance, rounding_variance
from ebda.typing import FloatArray, IntArray

# Bits of a sum of squares that a hash of it does without: 18 of the mantissa are left.
_DROPPED_BITS = 34


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Normalised contrasts between class means.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        Contrast over its standard error; 0 where `constant`.
    unit : ndarray of shape (n_contrasts, 1) or (n_contrasts, n_features)
        Variance of the contrast, over `variance`; one for all features where the
        classes have one variance.
    positive, negative : ndarray of shape (n_contrasts, n_classes)
        P and Q: the weights of the class means on either side.
    variance : ndarray of shape (n_features,)
        The diagonal of D for the linear rule; 1 where `constant`.
    constant : ndarray of bool of shape (n_features,)
        Features with the same value in all samples: they carry no weight and
        do not take part in the estimate of the prior.
    """

    z: FloatArray
    unit: FloatArray
    positive: FloatArray
    negative: FloatArray
    variance: FloatArray
    constant: npt.NDArray[np.bool_]

    @cached_property
    def any_constant(self) -> bool:
        """Whether there is any constant feature."""
        return bool(self.constant.any())

    @property
    def scale(self) -> FloatArray:
        """The standard error, so that the contrast is ``z * scale``.

        It is not kept: to take the root again costs no more than to read it.
        """
        return self.scale_at(slice(None))

    def scale_at(self, cols: slice) -> FloatArray:
        """The standard errors of some of the features; 0 where `constant`."""
        unit = self.unit if self.unit.shape[1] == 1 else self.unit[:, cols]
        scale: FloatArray = np.sqrt(unit * self.variance[cols])
        if self.any_constant:
            scale[:, self.constant[cols]] = 0.0
        return scale


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
    root = np.sqrt(var_of_mean.sum(axis=1))[:, None]
    pooled = variance.by_class.shape[0] == 1
    p = moments.means.shape[1]
    z = np.empty((len(weights), p))
    unit = root**2 if pooled else np.empty_like(z)
    constant = np.zeros(p, dtype=bool)
    most = counts.max()
    fast = pooled and len(counts) == 2 and compiled.suit_vectors(p)

    def part(cols: slice) -> IntArray | None:
        """Write z; the features that have no variance, if there are any."""
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
            )
            largest, least, smallest = np.array(found).view(np.float64)
            if min(least, smallest / most) > rounding_variance(largest):
                return None
        means, d = moments.means[:, cols], z[:, cols]
        within = variance.within[cols]
        squares = moments.centred_squares[:, cols].max(axis=0)
        np.matmul(weights, means, out=d)
        if pooled:
            scale = unit * within
        else:
            scale = var_of_mean @ variance.by_class[:, cols]
            np.divide(scale, within, out=unit[:, cols], where=within > 0)
        np.sqrt(scale, out=scale)
        largest = max(means.max(), -means.min())
        if min(within.min(), squares.min() / most) > rounding_variance(largest):
            d /= scale
            return None
        tiny = ROUNDING * np.abs(means).max(axis=0)
        constant[cols] = squares / most <= tiny**2
        constant[cols] &= np.abs(d).max(axis=0) <= tiny
        flat = within <= tiny**2
        flat |= constant[cols]
        np.divide(d, scale, out=d, where=~flat)
        places: IntArray = np.flatnonzero(flat) + cols.start
        return places

    loop = compiled.loop(loops.two_classes) if fast else loops.two_classes
    found = [flat for flat in over_blocks(part, p, long=fast) if flat is not None]
    flat, within = np.concatenate([np.empty(0, np.intp), *found]), variance.within
    if flat.size:
        within = within.copy()
        within[constant] = 1.0
        z[:, constant] = 0.0
        perfect = flat[~constant[flat]]
        others = np.delete(np.arange(p), flat)
        largest = np.abs(z[:, others]).max(initial=np.sqrt(counts.sum()))
        # The sd at which the strongest contrast of the feature has z = largest.
        sd = (np.abs(z[:, perfect]) / root).max(axis=0) / largest
        within[perfect] = sd**2
        z[:, perfect] /= root * sd
        if not pooled:
            unit[:, flat] = root**2
    contrasts = Contrasts(z, unit, positive, negative, within, constant)
    if not flat.size:
        vars(contrasts)["any_constant"] = False  # so that nobody has to look
    return contrasts


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
            mixed = hash_integers(mixed ^ leading.view(np.uint64))
        key[cols] = mixed

    over_blocks(part, len(key))
    last = np.partition(key, size - 1)[size - 1]
    # Features that are alike go together, as far as there is room.
    below = np.flatnonzero(key < last)
    tied = np.flatnonzero(key == last)[: size - len(below)]
    chosen: IntArray = np.sort(np.concatenate([below, tied]))
    return chosen
