"""What is known of the samples besides their classes: groups and covariates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.covariance import Summary
from ebda.estimators.covariates import Columns, Covariates, Variables, regress
from ebda.estimators.training import Training
from ebda.estimators.validation import check_groups
from ebda.moments.design import Design, design_of, group_weights
from ebda.moments.groups import MOST, Grouping, intraclass_correlation
from ebda.typing import FloatArray, IntArray


def correlation_in(data: Summary, groups: IntArray) -> float:
    """The intraclass correlation, from the samples that are looked at again.

    A sample of weight 2 is two equal samples of its group. Where no two are in the same
    group, samples of a group count as one.

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
    found = intraclass_correlation(
        gram, samples.codes, own, data.covariates, data.overlap, samples.weight
    )
    return MOST if found is None else found


def arranged(training: Training, groups: Any, covariates: Any) -> Training:
    """Training data with groups and columns of covariates, checked."""
    n = len(training.codes)
    columns = None
    if covariates is not None:
        columns = Columns.of(Variables.of(covariates, n))
    number = check_groups(groups, n, training.weight)
    return replace(training, groups=number, columns=columns)


def adjust(
    training: Training, names: npt.NDArray[Any] | None
) -> tuple[Training, Covariates | None]:
    """Data less what covariates make of them within the classes."""
    columns = training.columns
    if columns is None:
        return training, None
    weight = weight_of(training)
    found, used, values = regress(
        columns, training.data, training.classes, training.codes, weight, names
    )
    centred = (columns.values - found.centre)[:, used]
    data = training.data.adjusted(centred, found.slopes[used])
    adjusted = replace(training, data=data, covariates=centred, values=values)
    return adjusted, found


def weigh(training: Training, icc: float) -> Training:
    """Samples that count what their groups leave them."""
    assert training.groups is not None
    weight = weight_of(training)
    return replace(
        training, weight=weight * group_weights(training.groups, weight, icc)
    )


def design_for(training: Training, icc: float) -> Design | None:
    """The design of groups and covariates, with the weights that were given."""
    covariates, groups = training.covariates, training.groups
    if covariates is None and groups is None:
        return None
    weight = weight_of(training)
    used = weight > 0
    design = design_of(
        training.codes[used],
        len(training.classes),
        weight[used],
        None if groups is None else np.unique(groups[used], return_inverse=True)[1],
        icc,
        None if covariates is None else covariates[used],
    )
    return replace(design, values=training.values)


def grouping(training: Training, icc: float) -> Grouping:
    """What the samples of the groups are worth, apart from covariates."""
    assert training.groups is not None
    design = design_for(replace(training, covariates=None, values=None), icc)
    assert design is not None
    weight = weight_of(training)
    n_groups = len(np.unique(training.groups[weight > 0]))
    worth = 1 / np.diag(design.mean_covariance)
    counts = np.bincount(training.codes, weight, len(training.classes)).astype(float)
    return Grouping(icc, n_groups, float(weight.sum()), worth, counts)


def weight_of(training: Training) -> FloatArray:
    """The frequency weights, 1 where none were given."""
    return np.ones(len(training.codes)) if training.weight is None else training.weight
