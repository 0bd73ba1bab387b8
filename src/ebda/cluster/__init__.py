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
    from ebda.cluster.arrays import DaskData

    names = getattr(X, "columns", None)
    if names is not None and hasattr(X, "to_dask_array"):
        return DaskData.of(X.to_dask_array(lengths=True), list(names))
    return DaskData.of(X) if hasattr(X, "to_delayed") and hasattr(X, "chunks") else None
