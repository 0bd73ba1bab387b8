"""Checks at the public door, with messages that name the place and the way out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from ebda.data import Data, NonFiniteError, as_host, opener_of
from ebda.data.finite import cells_that_are, refuse_masked, refused
from ebda.kernels.extremes import SMALLEST_SQUARE, squares_are_sound
from ebda.listing import counted, listed
from ebda.moments import ClassMoments
from ebda.typing import FloatArray

_SHOWN = 5
# Squares of smaller deviations lose digits.
_SMALLEST = 1e-145


def one_of(name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a parameter value that no registry knows."""
    names = list(known)
    if value not in names:
        raise ValueError(f"{name} must be one of {names}, got {value!r}")


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN differs from itself
    except TypeError:
        return True  # pandas' NA says neither yes nor no


def check_labels_present(y: Any) -> None:
    """Refuse missing labels with their row, before a conversion hides them."""
    refuse_masked(y=y)
    labels = np.asarray(y)
    if labels.dtype.kind in "iubSU":
        return
    missing = [i for i, label in enumerate(labels.ravel()) if _is_missing(label)]
    if missing:
        raise ValueError(
            f"y has {counted(len(missing), 'missing label')}, the first in row "
            f"{missing[0]}; "
            "remove these samples (y contains NaN)"
        )


def encode_labels(
    y: npt.NDArray[Any], classes: npt.NDArray[Any] | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Sorted classes, and the place of each label among them.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels of any sortable type.
    classes : ndarray, optional
        Known classes; a label outside is an error.
    """
    try:
        found, codes = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in y.tolist()})
        raise ValueError(
            f"y mixes labels that cannot be compared ({', '.join(kinds)}); "
            "convert them to one type"
        ) from None
    check_classification_targets(y)
    if classes is None:
        return found, codes
    unknown = found[~np.isin(found, classes)]
    if unknown.size:
        raise ValueError(
            f"y has labels that are not in classes: {unknown[:_SHOWN].tolist()}"
        )
    return classes, np.searchsorted(classes, found)[codes]


def too_few_samples(n_samples: float, n_classes: int) -> str:
    """The message for as many samples as classes, or fewer."""
    return (
        f"{n_samples:g} sample{'' if n_samples == 1 else 's'} of "
        f"{counted(n_classes, 'class')} {'is' if n_samples == 1 else 'are'} too few to "
        "estimate a variance; more samples than classes are needed"
    )


def several_classes(classes: npt.NDArray[Any]) -> None:
    """Refuse labels of one class."""
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}); a classifier needs two"
        )


def two_classes(classes: npt.NDArray[Any]) -> None:
    """Refuse more classes than two."""
    several_classes(classes)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported: y has {len(classes)} classes"
        )


def check_feature_names(X: Any) -> None:
    """Refuse a table with two columns of one name: features are found by name.

    And masked values, before a conversion hides them.
    """
    refuse_masked(X=X)
    # The `columns` of Arrow are their values.
    columns = getattr(X, "column_names", getattr(X, "columns", None))
    if columns is not None:
        _refuse_duplicates(columns)


def _refuse_duplicates(columns: Any) -> None:
    if len(set(columns)) == len(columns):
        return
    counts = Counter(columns)
    twice = [f"{str(name)!r} ({n} times)" for name, n in counts.items() if n > 1]
    raise ValueError(
        f"X has duplicated feature names: {listed(twice)}; "
        "rename them, or give the values alone (X.to_numpy())"
    )


def check_dispatch(X: Any) -> None:
    """Refuse arrays of a library such as PyTorch unless scikit-learn takes them."""
    opener = opener_of(X)
    if opener is None or not opener.is_dispatched or not hasattr(X, "ndim"):
        return
    if not get_config()["array_api_dispatch"]:
        raise ValueError(
            f"X is {opener.line}, and array API dispatch is off; call fit and predict "
            "inside of sklearn.config_context(array_api_dispatch=True), or give a "
            "NumPy array"
        )


def check_in_memory(X: Any, model: str) -> None:
    """Refuse such arrays where a rule needs more of X than moments."""
    opener = opener_of(X)
    if opener is not None and opener.is_dispatched and hasattr(X, "ndim"):
        raise ValueError(
            f"X is {opener.line}, and {model} computes with NumPy only; give a NumPy "
            "array"
        )


def check_places(here: str, there: str) -> None:
    """Refuse a batch that lies elsewhere than the samples kept of those before it."""
    if here != there:
        raise ValueError(
            f"the samples of this batch are on {here}, and those kept of the batches "
            f"before it on {there}; give all batches on one device"
        )


def check_header(estimator: Any, data: Data, reset: bool) -> None:
    """Number and names of the features of data that scikit-learn does not know.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_``, or has them to compare with.
    data : Data
        What was given as X.
    reset : bool
        Whether this is the first data.
    """
    n, p = data.shape
    if n < 1 or p < 1:
        raise ValueError(f"X has {counted(n, 'sample')} and {counted(p, 'feature')}")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"X has values of type {data.dtype}, which are no numbers")
    names = data.names
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None  # as scikit-learn has it for tables
    known = getattr(estimator, "feature_names_in_", None)
    if names is None or (known is None and not reset):
        # Nothing but a shape: counts features, and warns where names are missing.
        shape = np.broadcast_to(np.float64(0), (n, p))
        validate_data(estimator, shape, reset=reset, skip_check_array=True)
        return
    _refuse_duplicates(names)
    if reset or known is None:
        estimator.n_features_in_, estimator.feature_names_in_ = p, names
        return
    if not np.array_equal(names, known):
        here, there = set(names), set(known)
        strange = [*sorted(here - there), *sorted(there - here)][:_SHOWN]
        raise ValueError(
            "the features of X are not those of the fit: "
            + (f"{strange} are in one only" if strange else "their order differs")
            + "; select them by name"
        )


def check_labels_of(y: Any, n: int) -> npt.NDArray[Any]:
    """Labels for data that scikit-learn does not know: one for each sample."""
    labels = as_host(y.compute() if hasattr(y, "dask") else y)
    check_labels_present(labels)
    labels = column_or_1d(labels, warn=True)
    if len(labels) != n:
        raise ValueError(
            f"X has {counted(n, 'sample')} but y has {counted(len(labels), 'label')}; "
            "give one for each"
        )
    return np.asarray(labels)


def describe_columns(
    columns: npt.NDArray[np.intp], names: npt.NDArray[Any] | None
) -> str:
    """Columns by number, and by name where they have one."""

    def described(j: int) -> str:
        return f"{j}" if names is None else f"{j} ({str(names[j])!r})"

    noun = "column" if len(columns) == 1 else "columns"
    return f"{noun} {listed(columns, form=described)}"


def check_finite_moments(
    moments: ClassMoments,
    X: Any,
    names: npt.NDArray[Any] | None,
    allow_missing: bool = False,
) -> None:
    """Find NaN and infinity in X through its moments, without a pass of their own.

    X is None where its values were looked at block by block. With `allow_missing` NaN
    is no error.
    """
    if moments.observed is not None and X is not None and not allow_missing:
        gaps = (moments.observed != moments.counts[:, None]).any(axis=0)
        _raise_non_finite(X, np.flatnonzero(gaps), names)
    if squares_are_sound(moments.centred_squares):
        return
    bad = ~np.isfinite(moments.means).all(axis=0)
    if bad.any() and X is not None:
        _raise_non_finite(X, np.flatnonzero(bad), names, allow_missing)
    bad |= ~np.isfinite(moments.centred_squares).all(axis=0)
    if bad.any():
        where = describe_columns(np.flatnonzero(bad), names)
        raise ValueError(
            f"X has values too large for their squares in {where}; "
            "divide these features by a constant"
        )
    size, square = (
        np.abs(moments.means).max(axis=0),
        moments.centred_squares.max(axis=0),
    )
    bad = (size > 0) & (size < _SMALLEST) & (square < SMALLEST_SQUARE)
    bad |= (square > 0) & (square < SMALLEST_SQUARE)
    if bad.any():
        where = describe_columns(np.flatnonzero(bad), names)
        raise ValueError(
            f"X has values too small for their squares in {where}; "
            "multiply these features by a constant"
        )


def check_finite_scores(
    score: FloatArray,
    data: Data,
    names: npt.NDArray[Any] | None,
    allow_missing: bool = False,
) -> None:
    """Find NaN and infinity in X through the scores: a product keeps them.

    Data that is not in memory was looked at block by block. With `allow_missing` the
    scores are those of X without its NaN.
    """
    bad = np.flatnonzero(~np.isfinite(score).all(axis=1))
    if not bad.size:
        return
    if data.values is not None:
        broken = refused(allow_missing)
        _, at, _ = cells_that_are(broken, data.values[bad])
        if len(at):
            _raise_non_finite(data.values, np.unique(at), names, allow_missing)
    raise ValueError(f"the score of row {bad[0]} overflows; are its values in range?")


def _raise_non_finite(
    X: Any,
    columns: npt.NDArray[np.intp],
    names: npt.NDArray[Any] | None,
    allow_missing: bool = False,
) -> None:
    rows, _, found = cells_that_are(refused(allow_missing), X[:, [columns[0]]])
    if not rows.size:
        return  # their sum overflows
    first = rows.argmin()
    kind = "NaN" if np.isnan(found[first]) else "infinity"
    error = NonFiniteError(columns.tolist(), int(rows[first]), kind, allow_missing)
    raise ValueError(error.words(describe_columns(columns, names)))


@contextmanager
def naming(names: npt.NDArray[Any] | None) -> Iterator[None]:
    """Say the name of a column with NaN or infinity, where it was found in a block."""
    try:
        yield
    except NonFiniteError as error:
        where = describe_columns(np.array(error.columns), names)
        raise ValueError(error.words(where)) from None


def check_sample_weight(weight: npt.ArrayLike | None, n: int) -> FloatArray | None:
    """Frequency weights: one number for each sample, finite and not negative."""
    if weight is None:
        return None
    weight = as_host(weight)
    refuse_masked(sample_weight=weight)
    w = np.asarray(weight, dtype=np.float64)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {w.shape}, but X has {counted(n, 'sample')}: "
            "give one weight for each"
        )
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight must be finite and not negative; row {bad[0]} has "
            f"{w[bad[0]]}"
        )
    if not w.any():
        raise ValueError("sample_weight is zero for every sample")
    return w


def check_groups(
    groups: npt.ArrayLike | None, n: int, weight: FloatArray | None = None
) -> npt.NDArray[np.intp] | None:
    """The number of each sample's group; None where no two samples share one.

    Parameters
    ----------
    groups : array-like of shape (n,), optional
        Their names.
    n : int
        Number of samples.
    weight : ndarray of shape (n,), optional
        Frequency weights: a sample of weight 2 shares its group with its copy.

    >>> check_groups(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    if groups is None:
        return None
    groups = as_host(groups)
    refuse_masked(groups=groups)
    names = np.asarray(groups)
    if names.dtype.kind in "US" and not isinstance(groups, np.ndarray):
        names = np.asarray(groups, dtype=object)  # NumPy makes numbers text beside text
    if names.shape != (n,):
        raise ValueError(
            f"groups has shape {names.shape}, but X has {counted(n, 'sample')}: give "
            "the group of each sample, such as the patient it is from"
        )
    missing = [i for i, name in enumerate(names.tolist()) if _is_missing(name)]
    if missing:
        raise ValueError(
            f"groups has {counted(len(missing), 'missing value')}, the first in row "
            f"{missing[0]}; give samples that belong to no group one of their own"
        )
    if names.dtype.kind == "O":
        names = np.array(as_text(names.tolist(), "groups"), dtype=np.str_)
    found, number = np.unique(names, return_inverse=True)
    repeated = weight is not None and (weight > 1).any()
    return number if len(found) < n or repeated else None


def as_text(names: list[Any], what: str) -> list[str]:
    """Names of any types as text; an error where different ones read the same.

    Parameters
    ----------
    names : list
        Numbers, text or anything else; 1 and 1.0 are the same.
    what : str
        What they are, for the error.

    >>> as_text(["a", 1, 1.0], "groups")
    ['a', '1', '1']
    """
    text: dict[str, Any] = {}
    # The first of equal names stands for all of them.
    first = {name: name for name in reversed(names)}
    for name in first.values():
        other = text.setdefault(str(name), name)
        if other is not name:
            kinds = sorted({type(other).__name__, type(name).__name__})
            raise ValueError(
                f"{what} has {str(name)!r} as {' and as '.join(kinds)}, which may be "
                "one or two; give all values as one type"
            )
    return [str(first[name]) for name in names]


def class_prior(priors: Any, counts: FloatArray) -> FloatArray:
    """Class probabilities from the `priors` parameter.

    >>> class_prior("uniform", np.array([1.0, 3.0])).tolist()
    [0.5, 0.5]
    >>> class_prior(None, np.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    if priors is None or (isinstance(priors, str) and priors == "empirical"):
        empirical: FloatArray = counts / counts.sum()
        return empirical
    if isinstance(priors, str):
        one_of("priors", priors, ["empirical", "uniform"])
        return np.full(len(counts), 1 / len(counts))
    try:
        given = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "priors must be 'empirical', 'uniform' or a list of probabilities in the "
            f"order of the classes, got {priors!r}"
        ) from None
    if given.shape != counts.shape:
        raise ValueError(
            f"priors must have one probability for each of the {len(counts)} classes, "
            f"got {counted(given.size, 'number')}"
        )
    if not ((given > 0).all() and abs(given.sum() - 1) < 1e-6):
        raise ValueError(f"priors must be positive and sum to 1, got {given.tolist()}")
    share: FloatArray = given / given.sum()
    return share
