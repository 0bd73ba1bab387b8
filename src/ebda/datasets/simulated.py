"""Simulated data with a known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch, check_random_state


def make_two_class(
    n_per_class: int = 25,
    n_features: int = 10_000,
    n_signals: int | npt.ArrayLike = 100,
    effect: float | npt.ArrayLike = 1.0,
    background: float = 0.0,
    variance: float = 1.0,
    rho: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Two normal classes that differ in some of their features.

    Class "a" has mean zero; the mean of class "b" is `effect` in the first
    `n_signals` features and 0 or N(0, background**2) in the others. With variance
    12.5 these are studies 1 and 2 of the paper.

    Parameters
    ----------
    n_per_class : int
        Samples in each class.
    n_features : int
        Number of features.
    n_signals, effect : number or sequence
        How many features differ and by how much; sequences of one length make
        several groups of signals, one after the other.
    background : float
        Standard deviation of the means of all other features.
    variance : float
        Variance of each feature within the classes.
    rho : float
        Correlation of neighbouring features; that of features i and j is
        ``rho**abs(i - j)``.
    random_state : int, RandomState or None
        Draws means and samples.

    Returns
    -------
    Bunch
        data : float64 array of shape (2 * n_per_class, n_features); target : "a" or
        "b"; means : array of shape (2, n_features) with the true class means;
        variance and rho as given.

    Examples
    --------
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_per_class=5, n_features=100, n_signals=10, effect=2.0,
    ...                      random_state=0)
    >>> sim.data.shape, sim.means[1, 8:12].tolist()
    ((10, 100), [2.0, 2.0, 0.0, 0.0])
    """
    rng = check_random_state(random_state)
    sizes = np.atleast_1d(np.asarray(n_signals, dtype=np.intp))
    effects = np.atleast_1d(np.asarray(effect, dtype=np.float64))
    if sizes.shape != effects.shape:
        raise ValueError(
            f"n_signals has {sizes.size} groups but effect has {effects.size}"
        )
    if sizes.sum() > n_features:
        raise ValueError(f"{sizes.sum()} signals do not fit {n_features} features")
    if not -1 < rho < 1:
        raise ValueError(f"rho must lie between -1 and 1, got {rho!r}")
    means = np.zeros((2, n_features))
    means[1] = rng.normal(scale=background, size=n_features)
    means[1, : sizes.sum()] = np.repeat(effects, sizes)
    data = rng.normal(size=(2 * n_per_class, n_features))
    if rho:
        innovation = np.sqrt(1 - rho**2)
        for j in range(1, n_features):
            data[:, j] = rho * data[:, j - 1] + innovation * data[:, j]
    data *= np.sqrt(variance)
    data[n_per_class:] += means[1]
    return Bunch(
        data=data,
        target=np.repeat(["a", "b"], n_per_class),
        means=means,
        variance=variance,
        rho=rho,
    )
