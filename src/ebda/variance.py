"""Within-class variance of each feature, from the moments.

An estimator of the variance is a function of :class:`~ebda.moments.ClassMoments`
that returns a :class:`Variance`; `VARIANCES` is the registry that the `variance`
parameter of the classifier names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.arrays import FloatArray
from ebda.moments import ClassMoments


@dataclass(frozen=True, eq=False)
class Variance:
    """Estimated variances of the features within the classes.

    Parameters
    ----------
    within : ndarray of shape (n_features,)
        The diagonal of D in the linear rule, common to all classes.
    by_class : ndarray of shape (1, n_features) or (n_classes, n_features)
        Variance of a sample of each class; one row where they are pooled.
    degrees_of_freedom : float
        Degrees of freedom of `within`.
    """

    within: FloatArray
    by_class: FloatArray
    degrees_of_freedom: float


def pooled(moments: ClassMoments) -> Variance:
    """One variance for all classes: the sums of squares over ``N - K``.

    Classes with one sample take part through their mean alone.

    >>> import numpy as np
    >>> from ebda.moments import class_moments
    >>> X = np.array([[0.0], [2.0], [10.0]])
    >>> pooled(class_moments(X, np.array([0, 0, 1]), 2)).within
    array([2.])
    """
    df = float(moments.counts.sum() - np.count_nonzero(moments.counts))
    if df <= 0:
        raise ValueError(
            "cannot estimate a pooled variance: every class has a single sample; "
            "at least one class needs two"
        )
    within = moments.centred_squares.sum(axis=0)
    within /= df
    return Variance(within, within[None, :], df)


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
    by_class = moments.centred_squares / (counts - 1)[:, None]
    within = (1 / counts) @ by_class / np.sum(1 / counts)
    return Variance(within, by_class, float(counts.sum() - len(counts)))


# Samples that an estimator needs in every class.
MIN_SAMPLES = {"pooled": 1, "separate": 2}
VARIANCES: dict[str, Callable[[ClassMoments], Variance]] = {
    "pooled": pooled,
    "separate": separate,
}
