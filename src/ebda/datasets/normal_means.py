"""Simulated normal means problems: effects, their noise and the values seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ebda.typing import FloatArray

Draw = Callable[[np.random.Generator, int], FloatArray]


def _asymmetric(rng: np.random.Generator, p: int) -> FloatArray:
    u = rng.random(p)
    right, left = rng.normal(2.5, 0.5, p), rng.normal(-4, 1, p)
    return np.where(u < 0.85, 0.0, np.where(u < 0.95, right, left))


# The effects of each design.
DESIGNS: dict[str, Draw] = {
    "points": lambda rng, p: np.where(rng.random(p) < 0.1, 3.0, 0.0),
    "sparse_normal": lambda rng, p: np.where(
        rng.random(p) < 0.1, rng.normal(0, 3, p), 0.0
    ),
    "dense_normal": lambda rng, p: rng.normal(0, 1.5, p),
    "laplace": lambda rng, p: np.where(rng.random(p) < 0.2, rng.laplace(0, 2, p), 0.0),
    "t2": lambda rng, p: rng.standard_t(2, p),
    "asym": _asymmetric,
    "null": lambda rng, p: np.zeros(p),
    "hetero": lambda rng, p: np.where(rng.random(p) < 0.2, rng.normal(0, 2, p), 0.0),
}


def make_normal_means(
    design: str = "sparse_normal", n_values: int = 2000, random_state: Any = None
) -> Bunch:
    """Values ``x ~ N(eta, scale**2)`` with known effects.

    Parameters
    ----------
    design : str
        "points": a tenth of the effects are 3. "sparse_normal": a tenth are N(0, 9).
        "dense_normal": all are N(0, 1.5**2). "laplace": a fifth have a Laplace
        distribution with scale 2. "t2": all have a t distribution with two degrees of
        freedom. "asym": a tenth are N(2.5, 0.25), a twentieth N(-4, 1). "null": none.
        "hetero": a fifth are N(0, 4), and the noise is log-normal. All others are zero,
        and the noise of the other designs is one.
    n_values : int
        Number of values.
    random_state : int, numpy Generator or None
        Determines the random numbers; a generator goes on where it is.

    Returns
    -------
    Bunch
        x, scale, eta : float64 arrays of shape (n_values,).

    Examples
    --------
    >>> from ebda.datasets import make_normal_means
    >>> sim = make_normal_means("points", n_values=1000, random_state=0)
    >>> int((sim.eta == 3).sum())
    89
    """
    if design not in DESIGNS:
        raise ValueError(f"design must be one of {sorted(DESIGNS)}, got {design!r}")
    rng = np.random.default_rng(random_state)
    eta = DESIGNS[design](rng, n_values)
    scale = np.ones(n_values)
    if design == "hetero":
        scale = np.exp(rng.normal(0, 0.6, n_values))
    return Bunch(x=eta + scale * rng.normal(size=n_values), scale=scale, eta=eta)
