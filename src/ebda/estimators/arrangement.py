"""What is known of the samples besides their classes: groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ebda.covariance import Summary
from ebda.estimators.moment_classifier import Training
from ebda.moments.design import Design, design_of, group_weights
from ebda.moments.groups import MOST, Grouping, intraclass_correlation
from ebda.typing import IntArray


def correlation_in(data: Summary, groups: IntArray) -> float:
    """The intraclass correlation, from the samples that are looked at again.

    Where no two of these are in the same group, samples of a group count as one.

    Parameters
    ----------
    data : Summary
        Moments of all samples, each with the weight that it was given.
    groups : ndarray of int of shape (n_all_samples,)
        Group of each sample of the data.
    """
    samples = data.samples
    assert samples is not None
    gram = samples.gram(data.moments.means, data.scale)
    root = np.sqrt(samples.weight)
    gram /= np.outer(root, root)
    own = groups[samples.number]
    found = intraclass_correlation(gram, samples.codes, own, overlap=data.overlap)
    return MOST if found is None else found


def weigh(training: Training, icc: float) -> tuple[Training, Design, Grouping]:
    """Samples that count what their groups leave them, and what follows from it."""
    assert training.groups is not None
    n, k = len(training.codes), len(training.classes)
    weight = np.ones(n) if training.weight is None else training.weight
    used = weight > 0
    codes, groups, own = training.codes[used], training.groups[used], weight[used]
    share = np.ones(n)
    share[used] = group_weights(groups, own, icc)
    design = design_of(codes, k, own, groups, icc)
    worth = 1 / np.diag(design.mean_covariance)
    found = Grouping(icc, len(np.unique(groups)), float(own.sum()), worth)
    return replace(training, weight=weight * share), design, found
