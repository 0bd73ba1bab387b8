"""The contract of a prior family: a scikit-learn style estimator of G from z.

A family is a class with ``fit(z, scale=1.0)`` that sets ``prior_``, an object with
``posterior`` and ``logpdf`` (see :class:`ebda.priors.posterior.Prior`). Everything else is
checked by one conformance test, ``tests/test_prior_contract.py``, which runs for
every name of the registry in :mod:`ebda.priors`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ebda.kernels.tabulated import ends
from ebda.priors.posterior import Prior, broadcast_scale, finite_values
from ebda.typing import FloatArray

# Squares of values this far out are still numbers.
_FARTHEST = 1e100


class PriorEstimator(Protocol):
    """Estimates the prior of eta from values ``z ~ N(eta, scale**2)``."""

    prior_: Prior

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> PriorEstimator:
        """Estimate the prior; sets ``prior_``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn's clone needs them."""


class PriorFamily(BaseEstimator):
    """Base of the families: scikit-learn's parameters, and its tag for vectors."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def check_values(
    z: npt.ArrayLike, scale: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Flat float64 values with a scale each; the door of every prior family."""
    values = np.asarray(z, dtype=np.float64)
    low, high = ends(values.ravel()) if values.size else (0.0, 0.0)
    if not np.isfinite([low, high]).all():
        finite_values(values)  # says where
    scales = broadcast_scale(values, scale)
    values = values.ravel()
    if values.size == 0:
        raise ValueError("cannot estimate a prior from no values")
    if not any(scales.strides):  # one for all: no vector of its own
        scales = np.broadcast_to(scales.flat[0], values.shape)
        if max(-low, high) / float(scales[0]) <= _FARTHEST:
            return values, scales
    scales = scales.ravel()
    with np.errstate(over="ignore"):
        far = np.flatnonzero(np.abs(values) / scales > _FARTHEST)
        apart = scales.max() / scales.min() > _FARTHEST
    if far.size:
        raise ValueError(
            f"the value at position {far[0]} lies more than {_FARTHEST:g} standard "
            "errors from zero; check the units of values and scale"
        )
    if apart:
        raise ValueError(f"scales differ by more than a factor of {_FARTHEST:g}")
    return values, scales
