"""Choice of amounts by the errors of held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.baselines.folds import splits
from ebda.baselines.regularized_covariance import varies_within
from ebda.typing import FloatArray, IntArray


def amounts(
    name: str, given: Any, grid: tuple[float, ...], most: float = np.inf
) -> FloatArray:
    """The amounts to choose from, in ascending order.

    Parameters
    ----------
    name : str
        Name of the parameter, for the error.
    given : None, float or array-like
        What the user gave.
    grid : tuple of float
        What None stands for.
    most : float
        The largest that is allowed.

    Examples
    --------
    >>> amounts("shrinkage", [0.5, 0.1], (), most=1)
    array([0.1, 0.5])
    """
    try:
        values = np.unique(np.asarray(grid if given is None else given, dtype=float))
    except (TypeError, ValueError):
        values = np.array([])
    if not (values.size and (values >= 0).all() and (values <= most).all()):
        between = f"between 0 and {most:g}" if np.isfinite(most) else "zero or more"
        raise ValueError(
            f"{name} must be None, a number or a list of numbers {between}, got "
            f"{given!r}"
        )
    return values


def sum_over_folds(
    X: npt.NDArray[Any],
    codes: IntArray,
    cv: Any,
    random_state: Any,
    errors: Callable[[IntArray, IntArray], FloatArray],
) -> FloatArray:
    """Errors of held-out samples, summed over folds.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    cv, random_state
        As in :func:`ebda.baselines.folds.splits`.
    errors : callable
        From the indices of the training and of the held-out samples to an array of
        counts.
    """
    total: FloatArray = np.zeros(())
    for train, test in splits(X, codes, cv, random_state):
        if not varies_within(X[train], codes[train]).any():
            raise ValueError(
                "without the samples of a fold no feature varies within the classes; "
                "give each amount as one number"
            )
        total = total + errors(train, test)
    return total


def fewest(errors: FloatArray) -> tuple[int, int]:
    """Row and column of the fewest errors: the last such row, its last such column.

    >>> fewest(np.array([[3.0, 1.0, 1.0], [2.0, 1.0, 4.0]]))
    (1, 1)
    """
    last = errors.size - 1 - int(errors[::-1, ::-1].argmin())
    return last // errors.shape[1], last % errors.shape[1]
