"""Dask arrays: sums are taken where the data is, and only sums travel.

``EBClassifier().fit(X, y)`` takes a ``dask.array.Array`` in chunks along samples and
features, or a Dask data frame. Any scheduler of Dask does: the one that
``dask.compute`` would use is used, a ``distributed.Client`` where there is one. X is
never brought together. Predictions for a Dask array are a lazy Dask array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ebda.listing import listed

if TYPE_CHECKING:
    from ebda.data.dask.arrays import DaskData

__all__ = ["open_dask"]


def open_dask(X: Any) -> DaskData | None:
    """A Dask array or data frame as data, or None where X is neither."""
    from dask.array import Array

    from ebda.data.dask.arrays import DaskData

    if isinstance(X, Array):
        return DaskData.of(X)
    # Of the type: a Delayed object has every attribute.
    if hasattr(type(X), "to_dask_array") and hasattr(type(X), "columns"):
        values = _numeric(X).to_dask_array(lengths=True)
        return DaskData.of(values, list(X.columns))
    return None


def _numeric(frame: Any) -> Any:
    """The frame with types that NumPy has, where all columns are numbers."""
    wrong = [
        f"{name!r} ({kind})"
        for name, kind in zip(frame.columns, frame.dtypes, strict=True)
        if kind.kind not in "biuf"
    ]
    if wrong:
        raise ValueError(
            "columns of the Dask data frame that are not numeric: "
            f"{listed(wrong)}; leave them out with X.drop(columns=[...])"
        )
    # pandas' own types, which may hold NA, and Arrow's would become objects.
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return frame if plain else frame.astype("float64")
