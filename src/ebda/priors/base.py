"""The contract of a prior family: a scikit-learn style estimator of G from z.

A family is a class with ``fit(z, scale=1.0)`` that sets ``prior_``, an object with
``posterior`` and ``logpdf`` (see :class:`ebda.priors.posterior.Prior`).
:func:`ebda.priors.check_prior` checks everything else. A family of this package
declares a :class:`PriorFamily` in its own file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from ebda.kernels.extremes import minmax
from ebda.priors.posterior import (
    Prior,
    all_equal,
    as_values,
    broadcast_scale,
    finite_values,
)
from ebda.registry import Entry
from ebda.storage.fields import Kind
from ebda.storage.objects import Nested, Schema
from ebda.typing import FloatArray

# Values up to this many standard errors from zero can be squared.
_FARTHEST = 1e100


class PriorEstimator(Protocol):
    """Estimates the prior of eta from values ``z ~ N(eta, scale**2)``."""

    prior_: Prior

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> PriorEstimator:
        """Estimate the prior; sets ``prior_``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn's clone needs them."""


class BasePriorEstimator(BaseEstimator):
    """Base class of the estimators: scikit-learn's parameters, and its tag for vectors.

    Subclasses define ``fit(z, scale=1.0)``, which returns the estimator and sets
    ``prior_``.
    """

    def for_similar_values(self) -> BasePriorEstimator:
        """An unfitted copy, which may start its search at this estimate."""
        return clone(self)  # type: ignore[no-any-return]

    def _check_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive, got {value!r}")

    def _check_whole(self, **least: int) -> None:
        for name, smallest in least.items():
            value = getattr(self, name)
            if value != int(value) or value < smallest:
                raise ValueError(
                    f"{name} must be a whole number >= {smallest}, got {value!r}"
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def refit(
    estimator: PriorEstimator, z: FloatArray, scale: FloatArray | float = 1.0
) -> PriorEstimator:
    """The same estimator, fitted to values similar to those that it was fitted to."""
    copy = getattr(estimator, "for_similar_values", partial(clone, estimator))
    again: PriorEstimator = copy()
    return again.fit(z, scale)


@dataclass(frozen=True)
class PriorFamily(Entry):
    """A family of priors: what the parameter `prior` of the estimators can name.

    Parameters
    ----------
    name : str
        The value of that parameter.
    line : str
        What it is, in a few words for people.
    estimator : type
        Class of the estimator.
    is_estimated : bool
        Whether the name alone is enough: the prior follows from the values.
    classifier_settings : mapping, optional
        Parameters for a classifier that is given the prior by name.
    is_reported : bool
        Whether signs and intervals of its own posterior can be reported: it is smooth,
        and has no atoms that could hold the bulk of the values beside zero.
    is_one_sided : bool
        Whether its effects can only be positive.
    fitted : mapping of str to Kind, optional
        Fitted attributes that a model file holds besides ``prior_``.
    """

    estimator: type[BasePriorEstimator]
    is_estimated: bool = True
    classifier_settings: Mapping[str, Any] = field(default_factory=dict)
    is_reported: bool = False
    is_one_sided: bool = False
    fitted: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def parameters(self) -> list[str]:
        """Names of the estimator's parameters."""
        return list(self.estimator().get_params(deep=False))

    def make(self, settings: Mapping[str, Any]) -> PriorEstimator:
        """The estimator, with those of the settings that it has a parameter for."""
        known = self.parameters
        return self.estimator(**{k: v for k, v in settings.items() if k in known})

    @property
    def schema(self) -> Schema:
        """How the estimator is stored."""
        fields = {"prior_": Nested("prior"), **self.fitted}
        return Schema(
            self.estimator,
            fields,
            optional=frozenset(fields),
            finish=_check_fitted,
            is_parameter=True,
            role="family",
        )


def _check_fitted(estimator: Any) -> None:
    if not hasattr(estimator, "prior_"):
        raise ValueError("there is no fitted prior")


def check_values(
    z: npt.ArrayLike, scale: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Flat float64 values, and the noise scale of each: validates the input of `fit`.

    Parameters
    ----------
    z : array-like
        Values: at least one, and all finite.
    scale : float or array-like
        Noise scale, one for all values or one for each.
    """
    values = as_values(z)
    low, high = minmax(values.ravel()) if values.size else (0.0, 0.0)
    if not np.isfinite([low, high]).all():
        finite_values(values)  # the error says where
    scales = broadcast_scale(values, scale)
    values = values.ravel()
    if values.size == 0:
        raise ValueError("cannot estimate a prior from no values")
    if not any(scales.strides):  # one scale for all: no need for a vector
        scales = np.broadcast_to(scales.flat[0], values.shape)
        if max(-low, high) / float(scales[0]) <= _FARTHEST:
            return values, scales
    scales = scales.ravel()
    with np.errstate(over="ignore"):
        far = np.flatnonzero(np.abs(values) / scales > _FARTHEST)
        too_different = scales.max() / scales.min() > _FARTHEST
    if far.size:
        raise ValueError(
            f"the value at position {far[0]} lies more than {_FARTHEST:g} standard "
            "errors from zero; check the units of values and scale"
        )
    if too_different:
        raise ValueError(f"scales differ by more than a factor of {_FARTHEST:g}")
    return values, scales


def sorted_values(
    z: npt.ArrayLike, scale: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Checked values and scales, whose order does not change a bit of any result."""
    values, scales = check_values(z, scale)
    order = np.lexsort((scales, values))
    return values[order], scales[order]


def divide_by_median_scale(
    values: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Values and scales in units of the median scale, and that unit."""
    if all_equal(scales):
        unit = float(scales[0])
        ones = np.broadcast_to(1.0, values.shape)
        return values if unit == 1 else values / unit, ones, unit
    unit = float(np.median(scales))
    return values / unit, scales / unit, unit
