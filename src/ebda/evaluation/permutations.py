"""Whether a classifier does better than chance: its error beside that of chance.

Labels are permuted, so that they have nothing to do with X, and the classifier is
cross-validated again, with everything that it tunes. The errors that come out are what
the same samples give where there is nothing to find (Ojala and Garriga, *Permutation
Tests for Studying Classifier Performance*, 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.parallel import Parallel, delayed

from ebda.data import as_host, opener_of
from ebda.estimators.validation import check_groups
from ebda.evaluation.folds import cross_validate
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """The error of a classifier, and its errors with permuted labels.

    Parameters
    ----------
    error : float
        Fraction of held-out samples that are misclassified.
    permuted : ndarray of shape (n_permutations,)
        The same with permuted labels.
    """

    error: float
    permuted: FloatArray

    @property
    def p_value(self) -> float:
        """Probability of so small an error by chance.

        ``(1 + number of permuted errors <= error) / (1 + n_permutations)``: the labels
        as they are count as a permutation, so that the test keeps its level whatever
        the number of permutations.
        """
        as_small = np.count_nonzero(self.permuted <= self.error + 1e-12)
        return float((1 + as_small) / (1 + len(self.permuted)))


def permutation_test(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    n_permutations: int = 200,
    n_folds: int = 5,
    seed: int = 0,
    groups: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
) -> PermutationTest:
    """Cross-validate a classifier with the labels, and with permutations of them.

    Parameters
    ----------
    model : classifier
        An estimator with ``predict_proba``; it is cloned.
    X, y
        Data and labels, as for ``fit``.
    n_permutations : int
        Number of permutations; the p-value is at least one over one more.
    n_folds, seed
        As for :func:`~ebda.evaluation.cross_validate`; the seed also determines the
        permutations.
    groups : array-like of shape (n_samples,), optional
        What samples belong to that are not independent, such as the patient. Labels
        that are the same in each group are permuted between the groups, others within
        them; samples of a group are held out together.
    n_jobs : int, optional
        Permutations that are worked on at a time, as joblib counts; the result does not
        depend on it.

    Returns
    -------
    PermutationTest

    Examples
    --------
    >>> from ebda.baselines import IndependenceRule
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=100, effect=1.5, random_state=0)
    >>> permutation_test(IndependenceRule(), sim.data, sim.target, 19).p_value
    0.05
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}")
    labels = np.asarray(as_host(y))
    numbers = check_groups(groups, len(labels))
    rng = np.random.default_rng(seed)
    orders = [_permuted(labels, numbers, rng) for _ in range(n_permutations)]
    every = [np.arange(len(labels)), *orders]
    # What lies on a device, or on a cluster, cannot be sent to another process.
    shared = {} if opener_of(X) is None else {"require": "sharedmem"}
    errors = Parallel(n_jobs=n_jobs, **shared)(
        delayed(_error)(model, X, labels[order], n_folds, seed, groups)
        for order in every
    )
    return PermutationTest(errors[0], np.array(errors[1:]))


def _error(
    model: Any, X: Any, y: Any, n_folds: int, seed: int, groups: npt.ArrayLike | None
) -> float:
    return cross_validate(model, X, y, n_folds, seed, groups=groups).error


def _permuted(
    labels: npt.NDArray[Any], groups: IntArray | None, rng: np.random.Generator
) -> IntArray:
    """Which sample's label each sample gets."""
    n = len(labels)
    if groups is None:
        return rng.permutation(n)
    found, first = np.unique(groups, return_index=True)
    if (labels == labels[first][groups]).all():
        # Each group gets the label of one of them.
        return first[rng.permutation(len(found))][groups]
    order = np.arange(n)
    for group in found:
        member = np.flatnonzero(groups == group)
        order[member] = rng.permutation(member)
    return order
