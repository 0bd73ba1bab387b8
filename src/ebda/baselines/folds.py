"""Folds for baselines that choose their penalty by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from ebda.typing import FloatArray, IntArray


def splits(
    data: FloatArray, codes: IntArray, cv: Any, random_state: Any
) -> list[tuple[IntArray, IntArray]]:
    """Samples to learn from and samples to test on, for each fold.

    Parameters
    ----------
    data : ndarray of shape (n_samples, n_features)
        Data.
    codes : ndarray of shape (n_samples,)
        Classes, numbered from 0.
    cv : int, cross-validation splitter or iterable
        Number of folds, which are then stratified and shuffled and no more than the
        smallest class has samples; or what makes the splits, or the splits.
    random_state : int, RandomState or None
        Determines the folds if `cv` is a number.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 1, 1])
    >>> found = splits(np.zeros((5, 1)), codes, cv=10, random_state=0)
    >>> sorted(len(test) for _, test in found)
    [2, 3]
    """
    if isinstance(cv, int | np.integer):
        folds = min(int(cv), int(np.bincount(codes).min()))
        if folds < 2:
            raise ValueError(
                "cross-validation needs at least two samples in every class, and cv "
                "at least 2"
            )
        cv = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    found = list(check_cv(cv, codes, classifier=True).split(data, codes))
    classes = np.arange(codes.max() + 1)
    for number, (train, _) in enumerate(found):
        if not np.isin(classes, codes[train]).all():
            raise ValueError(
                f"split {number} of cv has no sample of one of the classes to learn "
                "from: give stratified splits"
            )
    return found
