"""Estimates with standard errors, as users give them: checked, with gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.data.finite import refuse_masked
from ebda.priors.base import check_values
from ebda.priors.posterior import as_values, broadcast_scale
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Estimates:
    """Checked estimates, standard errors, degrees of freedom, and which are there.

    Parameters
    ----------
    x, scale : ndarray of shape (n,)
        As given, with NaN where there is no estimate; 1 where there is no scale.
    df : ndarray of shape (n,), optional
        Degrees of freedom of the standard errors.
    there : ndarray of bool of shape (n,)
        Rows in which nothing is missing.
    """

    x: FloatArray
    scale: FloatArray
    df: FloatArray | None
    there: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, x: npt.ArrayLike, scale: npt.ArrayLike | None, df: npt.ArrayLike | None
    ) -> Estimates:
        """Estimates from what a user gives, or an error that says what is wrong."""
        values = as_values(x)
        if values.ndim != 1:
            raise ValueError(
                f"x must be a vector of estimates, got shape {values.shape}; "
                "use ravel() if they belong to one population"
            )
        refuse_masked(scale=scale)
        errors = as_values(1.0 if scale is None else scale)
        missing = np.isnan(values)
        if errors.ndim:
            missing = missing | np.isnan(broadcast_like(errors, values, "scale"))
        # A scale of 1 stands where there is none, to check all others.
        filled = np.where(np.isnan(errors) & (errors.ndim > 0), 1.0, errors)
        errors = broadcast_scale(values, filled)
        degrees = None
        if df is not None:
            degrees = broadcast_like(as_values(df), values, "df")
            missing = missing | np.isnan(degrees)
            bad = np.flatnonzero(degrees <= 0)
            if bad.size:
                raise ValueError(
                    f"df must be positive; at position {bad[0]} it is {degrees[bad[0]]}"
                )
        there = ~missing
        if values.size and not there.any():
            raise ValueError("x has no estimate: there is NaN in every row")
        if there.all():
            check_values(values, errors)
        else:
            # Zeros stand where there is no estimate, so that positions are those of x.
            check_values(np.where(there, values, 0.0), np.where(there, errors, 1.0))
        return cls(values, errors, degrees, there)


def broadcast_like(given: FloatArray, values: FloatArray, name: str) -> FloatArray:
    """One number for each value, or an error that says which shapes there are."""
    try:
        return np.broadcast_to(given, values.shape)
    except ValueError:
        raise ValueError(
            f"{name} has shape {given.shape}, which does not fit values of shape "
            f"{values.shape}: give one number, or one for each value"
        ) from None
