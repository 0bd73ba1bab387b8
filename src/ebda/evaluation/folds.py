"""The honest error of a classifier: each sample is predicted by a fit without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import get_routing_for_object

from ebda.data import as_host
from ebda.data.structure import check_structure
from ebda.estimators.annotated import resolved
from ebda.estimators.covariates import Variables
from ebda.estimators.validation import check_groups
from ebda.evaluation.held_out import Evaluation, class_codes
from ebda.evaluation.repeated import RepeatedEvaluation
from ebda.typing import IntArray


@overload
def cross_validate(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    n_folds: int = ...,
    seed: int = ...,
    after_fold: Callable[[], None] | None = ...,
    groups: npt.ArrayLike | None = ...,
    covariates: Any = ...,
    *,
    n_repeats: None = ...,
    scoring: Any = ...,
) -> Evaluation: ...


@overload
def cross_validate(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    n_folds: int = ...,
    seed: int = ...,
    after_fold: Callable[[], None] | None = ...,
    groups: npt.ArrayLike | None = ...,
    covariates: Any = ...,
    *,
    n_repeats: int,
    scoring: Any = ...,
) -> RepeatedEvaluation: ...


def cross_validate(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    n_folds: int = 5,
    seed: int = 0,
    after_fold: Callable[[], None] | None = None,
    groups: npt.ArrayLike | None = None,
    covariates: Any = None,
    *,
    n_repeats: int | None = None,
    scoring: Any = None,
) -> Evaluation | RepeatedEvaluation:
    """Predict every sample with a model fitted to the other folds.

    Parameters
    ----------
    model : classifier
        An estimator with ``predict_proba``; it is cloned.
    X, y
        Data and labels, as for ``fit``; of AnnData also the name of a column of its
        ``obs``, as may be `groups` and a list of `covariates`.
    n_folds : int
        Number of folds, stratified by class. A class with fewer samples is in as many
        of them as it has; there are no more folds than the largest class has samples.
    seed : int
        Determines the folds.
    after_fold : callable, optional
        Called after each fold, to show progress.
    groups : array-like of shape (n_samples,), optional
        What samples belong to that are not independent, such as the patient. Samples
        of a group are predicted by a model that was fitted to none of them; `fit` is
        given the groups of its samples, where it takes any.
    covariates : array-like or data frame of shape (n_samples, n_covariates), optional
        Given to `fit` and `predict_proba`, which must take them.
    n_repeats : int, optional
        How often the samples are dealt into folds anew, with the seeds `seed`,
        ``seed + 1`` and so on. Without it they are dealt once.
    scoring : str, callable, list or dict, optional
        Further scores of each fold, as of scikit-learn: names of scorers, or callables
        that take a fitted model, samples and labels.

    Returns
    -------
    Evaluation or RepeatedEvaluation
        The second with `n_repeats`. ``print(found)`` shows error, AUC, sensitivity and
        specificity with their intervals, as does ``found.measures()``.

    Examples
    --------
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> result = cross_validate(EBClassifier(), golub.data[:, :500], golub.target)
    >>> result.confusion.sum()
    np.int64(72)
    >>> result.error < result.chance_error
    True
    >>> round(result.measures()["AUC"].value, 1)
    1.0
    """
    y, groups, covariates = resolved(X, y, groups, covariates)
    y = as_host(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    numbers = check_groups(groups, len(codes))
    scorers = scorers_of(scoring, model)
    if n_repeats is not None and n_repeats < 1:
        raise ValueError(f"n_repeats must be at least 1, got {n_repeats!r}")
    known: dict[str, Any] = {} if groups is None else {"groups": np.asarray(groups)}
    if covariates is not None:
        known["covariates"] = covariates
        # Here, and not within a fold, whose rows nobody knows.
        Variables.of(covariates, len(codes))
        if not taken(model, "fit", known, np.arange(0)).keys() >= {"covariates"}:
            raise ValueError(
                f"{type(model).__name__}.fit takes no covariates, and they would be "
                "ignored; in a pipeline, request them by metadata routing"
            )
    found = []
    for r in range(n_repeats or 1):
        fold = stratified_folds(classes, codes, numbers, n_folds, seed + r)
        one = predict_folds(model, X, y, fold, after_fold, known, scorers)
        found.append(replace(one, groups=numbers))
    return found[0] if n_repeats is None else RepeatedEvaluation(tuple(found))


def scorers_of(scoring: Any, model: Any) -> dict[str, Any]:
    """Scorers by name, from what scikit-learn takes as `scoring`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> list(scorers_of(["accuracy", "roc_auc"], LogisticRegression()))
    ['accuracy', 'roc_auc']
    """
    if scoring is None:
        return {}
    if isinstance(scoring, str) or callable(scoring):
        name = scoring if isinstance(scoring, str) else _name_of(scoring)
        return {name: check_scoring(model, scoring)}
    if not isinstance(scoring, Mapping):
        return {k: v for one in scoring for k, v in scorers_of(one, model).items()}
    return {str(name): check_scoring(model, one) for name, one in scoring.items()}


def _name_of(scorer: Any) -> str:
    function = getattr(scorer, "_score_func", scorer)
    return str(getattr(function, "__name__", type(function).__name__))


def stratified_folds(
    classes: npt.NDArray[Any],
    codes: IntArray,
    groups: IntArray | None,
    n_folds: int,
    seed: int,
) -> IntArray:
    """The fold of each sample, stratified by class; groups are not divided.

    Whatever is held out, samples of each class are left. A rare class is in as many
    folds as it has samples, and does not make all others be held out in so few. Only
    where groups would put all of a class into one fold are there fewer folds.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    groups : ndarray of int of shape (n_samples,), optional
        Groups.
    n_folds, seed : int
        As for `cross_validate`.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 0, 0, 1, 1])
    >>> fold = stratified_folds(np.array(["a", "b"]), codes, None, 5, seed=0)
    >>> fold.max() + 1, len(np.unique(fold[5:]))
    (np.int64(5), 2)
    """
    counts = np.bincount(codes)
    if groups is not None:
        pairs = np.unique(np.column_stack([codes, groups]), axis=0)
        counts = np.bincount(pairs[:, 0])
    if counts.min() < 2 or n_folds < 2:
        what = "samples" if groups is None else "groups"
        raise ValueError(
            f"cross-validation needs at least two {what} of each class, but class "
            f"{classes.tolist()[counts.argmin()]!r} has only one"
        )
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    fold = np.empty(len(codes), dtype=np.intp)
    for k in range(min(n_folds, int(counts.max())), 1, -1):
        split = kind(k, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class in y")
            for f, (_, test) in enumerate(split.split(codes, codes, groups)):
                fold[test] = f
        spread = [len(np.unique(fold[codes == c])) for c in range(len(classes))]
        if min(spread) > 1:
            # A fold that no group fell to is none.
            return np.asarray(np.unique(fold, return_inverse=True)[1])
    raise ValueError(
        "the groups cannot be divided into folds so that samples of each class are "
        "left when one is held out; a class needs samples in several groups"
    )


def predict_folds(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    fold: IntArray,
    after_fold: Callable[[], None] | None = None,
    known: Mapping[str, Any] | None = None,
    scorers: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Predict each fold with a model fitted to the others.

    Parameters
    ----------
    model, X, y, after_fold
        As for `cross_validate`.
    fold : ndarray of int of shape (n_samples,)
        The fold of each sample, from 0 on; -1 for samples that are in every fit and
        not predicted. The rest of each fold has samples of all classes.
    known : mapping, optional
        What else is known of the samples, one entry per sample: given to the methods of
        the model that take an argument of this name.
    scorers : mapping of str to callable, optional
        Each takes a fitted model, samples and labels.
    """
    # Rows are taken before a fit sees the matrix, which AnnData has as its X.
    y = resolved(X, y)[0]
    check_structure(getattr(X, "X", X))
    X, labels = indexable(X, np.asarray(as_host(y)))
    classes, codes = np.unique(labels, return_inverse=True)
    probabilities = np.empty((len(codes), len(classes)))
    held_out = fold >= 0
    folds = np.unique(fold[held_out])
    scores: dict[str, list[float]] = {name: [] for name in scorers or {}}
    for f in folds:
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        fitted = clone(model)
        given = taken(fitted, "fit", known or {}, train)
        fitted.fit(_safe_indexing(X, train), labels[train], **given)
        given = taken(fitted, "predict_proba", known or {}, test)
        of_fold = _safe_indexing(X, test)
        probabilities[test] = as_host(fitted.predict_proba(of_fold, **given))
        for name, scorer in (scorers or {}).items():
            scores[name].append(float(scorer(fitted, of_fold, labels[test])))
        if after_fold is not None:
            after_fold()
    return Evaluation(
        classes,
        codes[held_out],
        probabilities[held_out],
        len(folds),
        score_names=np.array(list(scores), dtype=object) if scores else None,
        fold_scores=np.array(list(scores.values())) if scores else None,
    )


def taken(
    model: Any, method: str, known: Mapping[str, Any], rows: IntArray
) -> dict[str, Any]:
    """What a method of the model takes: by its arguments, or by metadata routing."""
    arguments = signature(getattr(model, method)).parameters
    names = {name for name in known if name in arguments}
    if known and get_config()["enable_metadata_routing"]:
        names |= get_routing_for_object(model).consumes(method, list(known))
    return {name: _rows_of(known[name], rows) for name in sorted(names)}


def _rows_of(values: Any, rows: IntArray) -> Any:
    if isinstance(values, Mapping):
        return {name: _safe_indexing(column, rows) for name, column in values.items()}
    return _safe_indexing(values, rows)


def dealt_folds(codes: IntArray, n_folds: int, seed: int, least: int = 1) -> IntArray:
    """The fold of each sample, with each class dealt out in turn.

    All folds are of about one size. A rare class is in as many folds as it has samples,
    as in `cross_validate`; and in none, -1, where fewer than `least` would be left for
    a fit.

    >>> dealt_folds(np.array([0, 0, 0, 0, 1, 1, 2]), n_folds=3, seed=0)
    array([ 0,  2,  0,  1,  1,  2, -1])
    """
    rng = np.random.RandomState(seed)
    fold = np.full(len(codes), -1)
    dealt = 0
    for k in np.unique(codes):
        member = rng.permutation(np.flatnonzero(codes == k))
        # The most of a class that are in one fold.
        if len(member) - -(-len(member) // n_folds) < least:
            continue
        fold[member] = (dealt + np.arange(len(member))) % n_folds
        dealt += len(member)
    used = fold >= 0
    fold[used] = np.unique(fold[used], return_inverse=True)[1]
    return fold


def evaluate(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    covariates: Any = None,
    groups: npt.ArrayLike | None = None,
) -> Evaluation:
    """Evaluate a fitted model on samples that it was not fitted to.

    Parameters
    ----------
    model : classifier
        A fitted estimator with ``predict_proba``.
    X, y
        Test data and labels.
    covariates : array-like or data frame of shape (n_samples, n_covariates), optional
        As for ``predict_proba``, which must take them.
    groups : array-like of shape (n_samples,), optional
        What samples belong to that are not independent: intervals are wider.

    Returns
    -------
    Evaluation
    """
    y, groups, covariates = resolved(X, y, groups, covariates)
    codes = class_codes(model.classes_, as_host(y))
    given = {} if covariates is None else {"covariates": covariates}
    probabilities = as_host(model.predict_proba(X, **given))
    numbers = check_groups(groups, len(codes))
    return Evaluation(model.classes_, codes, probabilities, 0, numbers)
