"""The contract of a prior family: a scikit-learn style estimator of G from z.

A family is a class with ``fit(z, scale=1.0)`` that sets ``prior_``, an object with
``posterior`` and ``logpdf`` (see :class:`ebda.posterior.Prior`). Everything else is
checked by one conformance test, ``tests/test_prior_contract.py``, which runs for
every name of the registry in :mod:`ebda.priors`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebda.posterior import FloatArray, Prior, broadcast_scale


class PriorEstimator(Protocol):
    """Estimates the prior of eta from values ``z ~ N(eta, scale**2)``."""

    prior_: Prior

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> PriorEstimator:
        """Estimate the prior; sets ``prior_``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn's clone needs them."""


def check_values(
    z: npt.ArrayLike, scale: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Flat float64 values with a scale each; the door of every prior family."""
    values = np.asarray(z, dtype=np.float64)
    scales = broadcast_scale(values, scale).ravel()
    values = values.ravel()
    if values.size == 0:
        raise ValueError("cannot estimate a prior from no values")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        kind = "NaN" if np.isnan(values[bad[0]]) else "infinity"
        raise ValueError(
            f"values must be finite: {kind} at position {bad[0]}"
            + (f" and {bad.size - 1} more" if bad.size > 1 else "")
        )
    return values, scales
