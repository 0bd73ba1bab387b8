"""Parquet tables."""

from __future__ import annotations

from pathlib import Path

from ebda.inputs.blocks import Sheet, shown
from ebda.inputs.extras import polars

# What pandas calls the index that it writes as a column.
_INDEX = "__index_level_0__"


def load(path: Path) -> Sheet:
    """Read a Parquet file, with the index of pandas as names of rows."""
    pl = polars()
    frame = pl.read_parquet(path)
    kinds = frame.schema.items()
    nested = [name for name, kind in kinds if kind.is_nested()]
    words = [
        name
        for name, kind in kinds
        if kind.is_temporal() or kind in (pl.Categorical, pl.Enum)
    ]
    frame = frame.drop(nested).with_columns(pl.col(words).cast(pl.String))
    notes = (f"left out columns of lists: {shown(nested)}",) if nested else ()
    names = list(frame.columns)
    if _INDEX in names:
        names.remove(_INDEX)
        names.insert(0, _INDEX)
        frame = frame.select(names)
        names[0] = ""
    frame.columns = [f"c{j}" for j in range(len(names))]
    return Sheet(names, frame, row_names=names[:1] == [""], notes=notes)
