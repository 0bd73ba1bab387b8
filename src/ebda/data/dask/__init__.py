"""Dask arrays: sums are computed where the data are, and only sums are sent.

``EBClassifier().fit(X, y)`` takes a ``dask.array.Array`` with chunks along samples and
features, or a Dask data frame. It uses the scheduler that ``dask.compute`` would use,
such as a ``distributed.Client``. X is never loaded as a whole. Predictions for a Dask
array are a lazy Dask array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ebda.listing import listed

if TYPE_CHECKING:
    from ebda.data.dask.arrays import DaskData

__all__ = ["open_dask"]


def open_dask(X: Any) -> DaskData | None:
    """A Dask array or data frame as data; None if X is neither."""
    from dask.array import Array

    from ebda.data.dask.arrays import DaskData

    if isinstance(X, Array):
        return DaskData.of(X)
    # The type is asked because a Delayed object has every attribute.
    if hasattr(type(X), "to_dask_array") and hasattr(type(X), "columns"):
        frame = _numeric(X)
        # Older versions of Dask fail on the length of a single partition.
        lengths = np.ravel(frame.map_partitions(len).compute()).tolist()
        values = frame.to_dask_array(lengths=lengths)
        return DaskData.of(values, list(X.columns))
    return None


def _numeric(frame: Any) -> Any:
    """The frame with NumPy's types, or an error if any column is not numeric."""
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
    # pandas' own types, which may contain NA, and Arrow's would become objects.
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return frame if plain else frame.astype("float64")
