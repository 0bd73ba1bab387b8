"""Dask arrays: sums are taken where the data is, and only sums travel.

``EBClassifier().fit(X, y)`` takes a ``dask.array.Array`` in chunks along samples and
features, or a Dask data frame. Any scheduler of Dask does: the one that
``dask.compute`` would use is used, a ``distributed.Client`` where there is one. X is
never brought together. Predictions for a Dask array are a lazy Dask array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebda.cluster.arrays import DaskData

__all__ = ["open_dask"]


def open_dask(X: Any) -> DaskData | None:
    """A Dask array or data frame as data, or None where X is neither."""
    from dask.array import Array

    from ebda.cluster.arrays import DaskData

    if isinstance(X, Array):
        return DaskData.of(X)
    # Of the type: a Delayed object has every attribute.
    if hasattr(type(X), "to_dask_array") and hasattr(type(X), "columns"):
        return DaskData.of(X.to_dask_array(lengths=True), list(X.columns))
    return None
