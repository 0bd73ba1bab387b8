"""The choice of a small panel: how few features do nearly as well as many.

Features are ranked by the moderated t of limma, and the rule is fitted to the first 1,
2, 3, 5, ... of them. Both are done again without each fold, so that the held-out
samples have had no part in either. Ranking on all samples first would leave their
labels in the choice of the features, and the error far too small (Ambroise and
McLachlan 2002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array

from ebda.data import as_data
from ebda.data.structure import check_structure
from ebda.estimators.annotated import is_annotated, resolved
from ebda.estimators.validation import (
    check_feature_names,
    check_groups,
    check_labels_present,
    encode_labels,
    several_classes,
)
from ebda.evaluation.evidence import fold_orders, group_weight, strongest
from ebda.evaluation.folds import dealt_folds, stratified_folds, taken
from ebda.evaluation.panels import Panel, chosen
from ebda.moments import class_moments
from ebda.typing import FloatArray, IntArray

# Default sizes, besides all features.
_SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)


def panel(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    sizes: npt.ArrayLike | None = None,
    *,
    groups: npt.ArrayLike | None = None,
    n_folds: int = 10,
    n_repeats: int = 1,
    level: float = 0.95,
    seed: int = 0,
    n_jobs: int | None = None,
    after_fold: Callable[[], None] | None = None,
) -> Panel:
    """The error against the number of features, and the smallest panel that will do.

    In each fold the features are ranked, and `model` is fitted to the first of them, on
    the other samples alone. The panel is the smallest one whose error is within one
    standard error of the least.

    Parameters
    ----------
    model : classifier
        An estimator with ``predict_proba``; it is cloned.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Data in memory, also as AnnData. NaN is a missing value, if the model takes any.
    y : array-like of shape (n_samples,) or str
        Labels; of AnnData also the name of a column of its ``obs``, as may be `groups`.
        A class with a single sample is in every fit, and never held out.
    sizes : array-like of int, optional
        Numbers of features to compare; by default 1, 2, 3, 5, ... 1000 and all.
    groups : array-like of shape (n_samples,), optional
        What samples belong to that are not independent, such as the patient. They are
        held out together, count as one sample where features are ranked, and are given
        to `fit` where it takes groups.
    n_folds : int
        Number of folds. A class with fewer samples is in as many folds as it has
        samples; with groups there are no more folds than any class has groups.
    n_repeats : int
        How often the samples are dealt into folds anew. With more repetitions the
        choice depends less on the seed.
    level : float
        Of the intervals.
    seed : int
        Determines the folds.
    n_jobs : int, optional
        Folds that are fitted in parallel; the result does not depend on it.
    after_fold : callable, optional
        Called after each fold, to show progress.

    Returns
    -------
    Panel

    Examples
    --------
    >>> from ebda import panel
    >>> from ebda.baselines import IndependenceRule
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(
    ...     n_per_class=30, n_features=500, n_signals=5, effect=1.5, random_state=0
    ... )
    >>> found = panel(IndependenceRule(), sim.data, sim.target, [1, 2, 5, 10, 50])
    >>> found.size
    5
    >>> found.columns
    array([0, 1, 2, 3, 4])
    >>> found.model.coef_.shape
    (1, 5)
    """
    for name, value, least in (("n_folds", n_folds, 2), ("n_repeats", n_repeats, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    given = _Given.of(X, y, groups)
    numbers = checked_sizes(sizes, given.values.shape[1])
    n_classes, unit = len(given.classes), given.unit
    fold = np.stack([given.dealt(n_folds, seed + r) for r in range(n_repeats)])
    orders = [
        fold_orders(given.values, given.codes, n_classes, row, unit) for row in fold
    ]
    jobs = [(r, f) for r, of_repeat in enumerate(orders) for f in range(len(of_repeat))]
    parts = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_predicted)(
            model, given.part(fold[r] != f, fold[r] == f), orders[r][f], numbers
        )
        for r, f in jobs
    )
    held = fold[0] >= 0
    shape = (len(numbers), n_repeats, len(held), n_classes)
    probabilities = np.full(shape, np.nan)
    for (r, f), part in zip(jobs, parts, strict=True):
        probabilities[:, r, fold[r] == f] = part
        if after_fold is not None:
            after_fold()
    probabilities = probabilities[:, :, held]
    codes = given.codes[held]
    own = None if unit is None else np.unique(unit[held], return_inverse=True)[1]

    size = int(numbers[chosen(probabilities.argmax(axis=-1) != codes, own)])
    first = [order[:size] for of_repeat in orders for order in of_repeat]
    share = np.bincount(np.concatenate(first), minlength=len(orders[0][0])) / len(first)
    moments = class_moments(given.values, given.codes, n_classes, group_weight(unit))
    features = strongest(moments, size, given.classes, given.names, share, level)
    fitted = given.everything().fit(model, np.sort(features.columns))
    return Panel(
        numbers,
        given.classes,
        codes,
        probabilities,
        fold[:, held],
        own,
        level,
        features,
        fitted,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Training and test samples of a fold."""

    X: Any
    labels: npt.NDArray[Any]
    groups: npt.NDArray[Any] | None
    train: IntArray
    test: IntArray

    def fit(self, model: Any, columns: IntArray) -> Any:
        """A clone, fitted to some features of the training samples."""
        fitted = clone(model)
        known = {} if self.groups is None else {"groups": self.groups}
        X = self.taken(self.train, columns)
        return fitted.fit(
            X, self.labels[self.train], **taken(fitted, "fit", known, self.train)
        )

    def predict(self, fitted: Any, columns: IntArray) -> FloatArray:
        """Probabilities of the test samples."""
        return np.asarray(fitted.predict_proba(self.taken(self.test, columns)))

    def taken(self, rows: IntArray, columns: IntArray) -> Any:
        """Some features of some samples."""
        if is_annotated(self.X):
            return self.X[rows, columns].to_df()
        return _safe_indexing(_safe_indexing(self.X, columns, axis=1), rows)


def _predicted(model: Any, part: _Part, order: IntArray, sizes: IntArray) -> FloatArray:
    """Probabilities of the held-out samples, of shape (n_sizes, n_test, n_classes)."""
    found = []
    for size in sizes:
        columns = np.sort(order[:size])
        found.append(part.predict(part.fit(model, columns), columns))
    return np.stack(found)


@dataclass(frozen=True, eq=False)
class _Given:
    """What was given, checked: `X` for folds, and `whole` for the fit to all."""

    X: Any
    whole: Any
    values: Any
    names: npt.NDArray[Any] | None
    labels: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    codes: IntArray
    groups: npt.NDArray[Any] | None
    unit: IntArray | None

    @classmethod
    def of(cls, X: Any, y: npt.ArrayLike, groups: npt.ArrayLike | None) -> _Given:
        """X as it is and as numbers, and classes and groups as codes."""
        y, groups, _ = resolved(X, y, groups)
        data, whole, columns = as_data(X), X, getattr(X, "columns", None)
        if data is not None and data.values is None:
            raise ValueError(
                "panel needs data in memory, as it takes samples and features from "
                "them many times; load them first, or fewer features of them"
            )
        if data is not None:
            X, columns = data.values, data.names
        check_feature_names(X)
        check_structure(X)
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        values = check_array(
            X, accept_sparse="csr", dtype="numeric", ensure_all_finite="allow-nan"
        )
        check_labels_present(y)
        labels = np.asarray(y)
        if labels.shape != values.shape[:1]:
            raise ValueError(
                f"y has shape {labels.shape}, but X has {values.shape[0]} samples: "
                "give one label for each"
            )
        classes, codes = encode_labels(labels)
        several_classes(classes)
        unit = check_groups(groups, len(codes))
        return cls(
            X := X if hasattr(X, "iloc") or sparse.issparse(X) else values,
            whole if is_annotated(whole) else X,
            values,
            None if columns is None else np.asarray(columns),
            labels,
            classes,
            codes,
            None if groups is None else np.asarray(groups),
            unit,
        )

    def dealt(self, n_folds: int, seed: int) -> IntArray:
        """The fold of each sample; -1 for samples that are in every fit."""
        if self.unit is not None:
            return stratified_folds(self.classes, self.codes, self.unit, n_folds, seed)
        fold = dealt_folds(self.codes, n_folds, seed)
        if len(np.unique(self.codes[fold >= 0])) < 2:
            raise ValueError(
                "a panel needs two classes with two or more samples each, so that one "
                "is left when others are held out"
            )
        return fold

    def part(self, train: npt.NDArray[np.bool_], test: npt.NDArray[np.bool_]) -> _Part:
        """Samples to train and to test with."""
        rows = np.flatnonzero(train), np.flatnonzero(test)
        return _Part(self.X, self.labels, self.groups, *rows)

    def everything(self) -> _Part:
        """All samples to train with."""
        n = len(self.codes)
        rows = np.arange(n), np.arange(0)
        return _Part(self.whole, self.labels, self.groups, *rows)


def checked_sizes(sizes: npt.ArrayLike | None, p: int) -> IntArray:
    """Numbers of features in ascending order, if there are so many.

    >>> checked_sizes(None, 12)
    array([ 1,  2,  3,  5,  7, 10, 12])
    """
    if sizes is None:
        return np.array([*(m for m in _SIZES if m < p), p])
    given = np.atleast_1d(np.asarray(sizes))
    if given.ndim > 1 or not given.size or given.dtype.kind not in "iu":
        raise ValueError(f"sizes must be numbers of features, got {sizes!r}")
    if given.min() < 1 or given.max() > p:
        raise ValueError(
            f"sizes must lie between 1 and {p}, the number of features; got "
            f"{given.min() if given.min() < 1 else given.max()}"
        )
    return np.unique(given)
