"""Simulated data with known parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch, check_random_state

from ebda.covariance.autoregressive import unwhiten


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
        Number of features that differ, and by how much. Sequences of equal length
        make several groups of signals, one after the other.
    background : float
        Standard deviation of the means of the other features.
    variance : float
        Variance of each feature within the classes.
    rho : float
        Correlation of neighbouring features; that of features i and j is
        ``rho**abs(i - j)``.
    random_state : int, RandomState or None
        Determines the random numbers.

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
        raise ValueError(f"{sizes.sum()} signals do not fit into {n_features} features")
    if not -1 < rho < 1:
        raise ValueError(f"rho must lie between -1 and 1, got {rho!r}")
    means = np.zeros((2, n_features))
    means[1] = rng.normal(scale=background, size=n_features)
    means[1, : sizes.sum()] = np.repeat(effects, sizes)
    noise = rng.normal(size=(2 * n_per_class, n_features))
    data = (unwhiten(noise, rho) if rho else noise) * np.sqrt(variance)
    data[n_per_class:] += means[1]
    return Bunch(
        data=data,
        target=np.repeat(["a", "b"], n_per_class),
        means=means,
        variance=variance,
        rho=rho,
    )


def make_factor_classes(
    n_per_class: int = 30,
    n_test: int = 400,
    n_features: int = 4500,
    share: float = 0.02,
    random_state: Any = None,
) -> Bunch:
    """Two classes with common factors and chi-square scores: the paper's study 3.

    The features form three groups. Each group has a factor of its own with loadings
    from U(0, 0.4), and all groups share a factor with loadings from U(0, 0.2). Factor
    scores are ``(chi2_6 - 6) / sqrt(12)``, and features are scaled to unit variance.
    Class "a" has mean zero. So has class "b", except for a share of the features whose
    means are drawn from a Laplace distribution with density ``exp(-2 |x|)`` (Fan and
    Fan 2008).

    Parameters
    ----------
    n_per_class : int
        Training samples in each class.
    n_test : int
        Test samples in total, half of them from each class.
    n_features : int
        Number of features.
    share : float
        Probability that a feature differs between the classes.
    random_state : int, RandomState or None
        Determines the random numbers.

    Returns
    -------
    Bunch
        data, target : training samples; test_data, test_target : test samples; means :
        array of shape (2, n_features); loadings : array of shape (n_features, 4) and
        specific : array of shape (n_features,), so that the covariance within the
        classes is ``loadings @ loadings.T + diag(specific)``.

    Examples
    --------
    >>> from ebda.datasets import make_factor_classes
    >>> sim = make_factor_classes(n_features=90, n_test=10, random_state=0)
    >>> sim.data.shape, sim.test_data.shape, sim.loadings.shape
    ((60, 90), (10, 90), (90, 4))
    """
    rng = check_random_state(random_state)
    own = rng.uniform(0, 0.4, n_features)
    group = np.minimum(np.arange(n_features) * 3 // n_features, 2)
    loadings = np.zeros((n_features, 4))
    loadings[np.arange(n_features), group] = own
    loadings[:, 3] = rng.uniform(0, 0.2, n_features)
    size = np.sqrt(1 + np.sum(loadings**2, axis=1))
    means = np.zeros((2, n_features))
    differs = rng.uniform(size=n_features) < share
    means[1, differs] = rng.laplace(scale=0.5, size=differs.sum())

    def draw(n: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        scores = (rng.chisquare(6, size=(2 * n, 4)) - 6) / np.sqrt(12)
        noise = rng.normal(size=(2 * n, n_features))
        data = (noise + scores @ loadings.T) / size
        data[n:] += means[1]
        return data, np.repeat(["a", "b"], n)

    data, target = draw(n_per_class)
    test_data, test_target = draw(n_test // 2)
    return Bunch(
        data=data,
        target=target,
        test_data=test_data,
        test_target=test_target,
        means=means,
        loadings=loadings / size[:, None],
        specific=size**-2.0,
    )
