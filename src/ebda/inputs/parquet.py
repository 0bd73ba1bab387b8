"""Parquet tables: a file, or to be read in blocks a folder of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ebda.inputs.base import POLARS, Block, Format, Reading, Sheet
from ebda.listing import quoted

# What pandas calls the index that it writes as a column.
_INDEX = "__index_level_0__"


def load(path: Path, how: Reading) -> Sheet:
    """Read a Parquet file, with the index of pandas as names of rows."""
    pl = POLARS.load()
    scan = pl.scan_parquet(path)
    n_rows = scan.select(pl.len()).collect().item()
    how.refuse_large(8 * n_rows * len(scan.collect_schema()), path)
    frame = pl.read_parquet(path)
    kinds = frame.schema.items()
    nested = [name for name, kind in kinds if kind.is_nested()]
    words = [
        name
        for name, kind in kinds
        if kind.is_temporal() or kind in (pl.Categorical, pl.Enum)
    ]
    frame = frame.drop(nested).with_columns(pl.col(words).cast(pl.String))
    notes = (f"left out columns of lists: {quoted(nested)}",) if nested else ()
    names = list(frame.columns)
    if _INDEX in names:
        names.remove(_INDEX)
        names.insert(0, _INDEX)
        frame = frame.select(names)
        names[0] = ""
    frame.columns = [f"c{j}" for j in range(len(names))]
    return Sheet(names, frame, row_names=names[:1] == [""], notes=notes)


def open_files(path: Path, how: Reading) -> Block:
    """Open a Parquet file, or a folder of them, without the columns to leave out."""
    from ebda.data.disk import open_parquet

    known = [*([] if how.target is None else [how.target]), *how.aside]
    table = open_parquet(path, [*how.drop, *known])
    labels = {name: table.column(name).tolist() for name in known}
    return Block(table, None, table.names.astype(np.str_), labels)


FORMAT = Format(
    "Parquet",
    "Parquet",
    lambda head, path: head.startswith(b"PAR1"),
    is_table=True,
    packages=(POLARS,),
    load=load,
    open=open_files,
)
FOLDER = Format(
    "Parquet files",
    "a folder of Parquet files",
    lambda head, path: (
        path.is_dir() and any(part.suffix == ".parquet" for part in path.iterdir())
    ),
    open=open_files,
)
