"""Scales of all samples, where more were given than are looked at again."""

from __future__ import annotations

import numpy as np

from ebda.covariance import Summary
from ebda.covariance.sample_scale import SampleScale
from ebda.data import Labels
from ebda.estimators.training import Training
from ebda.moments import ClassMoments
from ebda.selection.scaling import WeighAll
from ebda.typing import FloatArray


def weigh_all(training: Training, data: Summary) -> WeighAll | None:
    """Two more passes over the data of a fit; None in a stream, which is gone.

    Parameters
    ----------
    training : Training
        The samples of this call.
    data : Summary
        Moments of all samples, and those that are looked at again.
    """
    n = len(training.codes)
    weight = np.ones(n) if training.weight is None else training.weight
    if not np.isclose(weight.sum(), data.total):
        return None

    def moments(scale: SampleScale) -> tuple[ClassMoments, FloatArray]:
        found = training.data.lengths(scale.centre, scale.divisor, scale.rows)
        precision = scale.precision_of(np.asarray(found))
        precision *= weight.sum() / (weight @ precision)
        labels = Labels(training.codes, len(training.classes), weight * precision)
        assert data.samples is not None
        weighted, _ = training.data.summarise(labels, keep=False)
        return weighted, precision[data.samples.number]

    return moments
