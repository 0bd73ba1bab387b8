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
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    words = pl.selectors.temporal() | pl.selectors.categorical() | pl.selectors.enum()
    frame = frame.drop(nested).with_columns(words.cast(pl.String))
    notes = (f"left out columns of lists: {shown(nested)}",) if nested else ()
    names = list(frame.columns)
    if _INDEX in names:
        names.remove(_INDEX)
        names.insert(0, _INDEX)
        frame = frame.select(names)
        names[0] = ""
    frame.columns = [f"c{j}" for j in range(len(names))]
    return Sheet(names, frame, row_names=names[:1] == [""], notes=notes)
