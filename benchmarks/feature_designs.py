"""Drawings of which it is known which features differ, for false_discoveries.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebda.datasets import make_factor_classes, make_two_class

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Drawing:
    """Samples, their classes, and the truth.

    `differs` is about the class means, `beyond` about what is left of their difference
    without common factors.
    """

    X: Array
    y: Array
    differs: Array
    beyond: Array


Draw = Callable[[int], Drawing]
# (signals among 4500, effect in standard deviations), 30 samples per class.
INDEPENDENT = [(0, 0.0), (50, 1.5), (100, 1.0), (300, 0.7), (1000, 0.7), (2000, 0.4)]
# (samples per class, effect in standard deviations)
FEW = [(3, 4.0), (5, 2.5), (10, 1.6), (25, 1.0)]


def independent(seed: int, n_signals: int, effect: float) -> Drawing:
    """All differences have one sign."""
    sim = make_two_class(30, 4500, n_signals, effect, random_state=seed)
    real = sim.means[1] != sim.means[0]
    return Drawing(sim.data, sim.target, real, real)


def study3(seed: int) -> Drawing:
    """Weak common factors with skewed scores."""
    sim = make_factor_classes(n_test=2, random_state=seed)
    real = sim.means[1] != sim.means[0]
    return Drawing(sim.data, sim.target, real, real)


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Standard normal noise."""
    return rng.normal(size=shape)


def student(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Noise with heavy tails."""
    return rng.standard_t(3, size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Noise with one heavy tail."""
    return rng.exponential(size=shape)


def two_classes(
    seed: int,
    sizes: tuple[int, int],
    effect: float,
    p: int = 4500,
    n_signals: int = 100,
    noise: Callable[..., Array] = normal,
    shift: float = 0.0,
    second_sd: float = 1.0,
    varying: bool = False,
) -> Drawing:
    """Independent features, differences of both signs.

    `shift` moves all features of the second class by so many standard errors. With
    `varying` the variances are inverse chi-square with 4 degrees of freedom.
    """
    rng = np.random.default_rng(seed)
    X = noise(rng, (sum(sizes), p))
    second = np.arange(len(X)) >= sizes[0]
    X[second] *= second_sd
    difference = np.zeros(p)
    difference[:n_signals] = effect * rng.choice([-1, 1], n_signals)
    X[second] += difference + shift * np.sqrt(1 / sizes[0] + 1 / sizes[1])
    if varying:
        X *= np.sqrt(4 / rng.chisquare(4, p))
    real = difference != 0
    return Drawing(X, second.astype(int), real, real)


def strong_factors(seed: int, differ: float) -> Drawing:
    """Three factors in half of the features; their means differ between the classes."""
    rng = np.random.default_rng(seed)
    n, p, k = 25, 4500, 3
    y = np.repeat([0, 1], n)
    loadings = 0.6 * rng.normal(size=(p, k))
    loadings[p // 2 :] = 0.0
    scores = rng.normal(size=(2 * n, k)) + differ * y[:, None]
    own = np.zeros(p)
    own[rng.choice(p, 100, replace=False)] = 1.5 * rng.choice([-1, 1], 100)
    X = scores @ loadings.T + rng.normal(size=(2 * n, p)) + own * y[:, None]
    return Drawing(X, y, own + loadings.sum(axis=1) * differ != 0, own != 0)


def many_classes(
    seed: int, n: int = 30, p: int = 4000, n_signals: int = 100, effect: float = 1.2
) -> Drawing:
    """Eight classes; each difference is that of one of them."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(8), n)
    means = np.zeros((8, p))
    means[rng.integers(8, size=n_signals), np.arange(n_signals)] = effect
    X = rng.normal(size=(len(y), p)) + means[y]
    real = means.any(axis=0)
    return Drawing(X, y, real, real)


def designs() -> dict[str, Draw]:
    """All of them, by name."""
    found: dict[str, Draw] = {
        f"independent, {n} of 4500 at {effect:g}": partial(
            independent, n_signals=n, effect=effect
        )
        for n, effect in INDEPENDENT
    }
    found["factors (study 3), 2 % of 4500"] = study3
    for shift in (0.05, 0.1, 0.2):
        found[f"all shifted by {shift:g} standard errors"] = partial(
            two_classes, sizes=(30, 30), effect=1.0, shift=shift
        )
    found["20,000 samples, all shifted by 0.2"] = partial(
        two_classes, sizes=(10_000, 10_000), effect=0.06, p=500, n_signals=75, shift=0.2
    )
    for n, effect in FEW:
        found[f"variances that vary, {n} + {n}"] = partial(
            two_classes, sizes=(n, n), effect=effect, p=5000, varying=True
        )
    found["heavy tails (t3), 30 + 30"] = partial(
        two_classes, sizes=(30, 30), effect=1.5, noise=student
    )
    found["skewed (exponential), 30 + 10"] = partial(
        two_classes, sizes=(30, 10), effect=2.0, noise=skewed
    )
    found["second class twice as wide, 30 + 10"] = partial(
        two_classes, sizes=(30, 10), effect=3.0, second_sd=2.0
    )
    found["second class twice as wide, 20 + 20"] = partial(
        two_classes, sizes=(20, 20), effect=2.0, second_sd=2.0
    )
    found["strong factors that differ, 25 + 25"] = partial(strong_factors, differ=1.0)
    found["strong factors that do not, 25 + 25"] = partial(strong_factors, differ=0.0)
    found["8 classes of 30"] = many_classes
    found["8 classes of 2,500"] = partial(
        many_classes, n=2500, p=500, n_signals=50, effect=0.1
    )
    return found
