"""Weights of classes, as scikit-learn has them: what an error of each class costs.

A class of weight w counts as w times as probable as it is: with ``w_k`` for class k,
its probability ``pi_k`` becomes ``w_k pi_k / sum_j w_j pi_j``. The rule with these
probabilities has the least expected cost where an error of class k costs ``w_k``. A
logistic regression with class weights comes to the same with many samples: only its
intercept moves.

Means, variances and effects are those without weights. A class is not known any better
because its errors cost more, which weights of its samples would pretend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.listing import quoted
from ebda.typing import FloatArray


def class_weights(
    class_weight: Any, classes: npt.NDArray[Any], counts: FloatArray
) -> FloatArray:
    """The weight of each class.

    Parameters
    ----------
    class_weight : None, "balanced" or mapping
        None is 1 for each; "balanced" is ``n / (K n_k)``, which makes classes equally
        probable; a mapping has the weights by label, 1 where a label is absent.
    classes : ndarray of shape (n_classes,)
        Labels.
    counts : ndarray of shape (n_classes,)
        Number of samples of each class.

    Examples
    --------
    >>> classes, counts = np.array(["ill", "well"]), np.array([10.0, 30.0])
    >>> class_weights("balanced", classes, counts).round(3).tolist()
    [2.0, 0.667]
    >>> class_weights({"ill": 5}, classes, counts).tolist()
    [5.0, 1.0]
    """
    K = len(counts)
    if class_weight is None:
        return np.ones(K)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(counts.sum() / (K * np.maximum(counts, 1e-300)))
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dict with a weight for each "
            f"label, got {class_weight!r}"
        )
    known = classes.tolist()
    strange = [label for label in class_weight if label not in known]
    if strange:
        raise ValueError(
            f"class_weight has labels that are not among the classes: {strange[:5]}; "
            f"the classes are {quoted(known, 8)}"
        )
    weights = np.array([class_weight.get(label, 1.0) for label in known], dtype=float)
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(
            f"class_weight must be finite and above zero, got {dict(class_weight)!r}"
        )
    return weights


def reweighted(prior: FloatArray, weights: FloatArray) -> FloatArray:
    """Class probabilities with the weights of the classes.

    >>> reweighted(np.array([0.25, 0.75]), np.array([3.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    weighted = prior * (weights / weights.max())
    return np.asarray(weighted / weighted.sum())
