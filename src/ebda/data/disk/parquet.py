"""Parquet: one file or many, one column per feature.

Files are read by row groups, and of each row group the columns of a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.data.disk.source import Block, Source
from ebda.listing import listed
from ebda.sizes import sizes

_SHOWN = 5


class ParquetTable(Source):
    """Numeric columns of a Parquet dataset, as the X of ``fit`` and ``predict``.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        A dataset of Parquet files.
    exclude : iterable of str
        Columns that are not features.
    """

    def __init__(self, dataset: Any, exclude: Iterable[str] = ()) -> None:
        self.dataset = dataset
        left_out = set(exclude)
        unknown = sorted(left_out - set(dataset.schema.names))
        if unknown:
            raise ValueError(
                f"exclude names columns that the Parquet files do not have: {unknown}"
            )
        fields = [f for f in dataset.schema if f.name not in left_out]
        _check_numeric(fields)
        self.columns = [field.name for field in fields]
        self._types = [field.type.to_pandas_dtype() for field in fields]

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type that all values fit in."""
        return np.result_type(*(self._types or [np.float64]))

    @property
    def names(self) -> npt.NDArray[Any]:
        """Names of the features."""
        return np.array(self.columns, dtype=object)

    @cached_property
    def _groups(self) -> list[tuple[Any, int, int]]:
        """Fragment, number of its row group, and number of rows."""
        return [
            (fragment, group.id, group.num_rows)
            for fragment in self.dataset.get_fragments()
            for group in fragment.row_groups
            if group.num_rows
        ]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((rows for *_, rows in self._groups), initial=0))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of features."""
        return self._starts[-1], len(self.columns)

    def plan(self) -> list[Block]:
        """Whole row groups, several if they are small, and some of the columns."""
        p, cuts = len(self.columns), [0]
        for left, right in pairwise(self._starts):
            if left - cuts[-1] and right - cuts[-1] > sizes.block_rows:
                cuts.append(left)
        cuts = [*cuts, self._starts[-1]]
        rows = max((b - a for a, b in pairwise(cuts)), default=1)
        width = max(1, sizes.block_bytes // (max(rows, 1) * self.dtype.itemsize))
        return [
            Block(slice(a, b), slice(left, min(left + width, p)))
            for a, b in pairwise(cuts)
            for left in range(0, p, width)
        ]

    def read(self, block: Block) -> npt.NDArray[Any]:
        """Values of a block; a null becomes NaN."""
        columns = self.columns[block.cols]
        first = self._starts.index(block.rows.start)
        last = self._starts.index(block.rows.stop)
        parts = []
        for fragment, group, rows in self._groups[first:last]:
            table = fragment.subset(row_group_ids=[group]).to_table(
                columns=columns, schema=self.dataset.schema
            )
            values = np.empty((rows, len(columns)), self._type_of(table), order="F")
            for j, column in enumerate(table.columns):
                values[:, j] = column.to_numpy()
            parts.append(values)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _type_of(self, table: Any) -> np.dtype[Any]:
        """The type of the values: NaN needs a floating-point type."""
        gaps = any(column.null_count for column in table.columns)
        return np.result_type(self.dtype, np.float32) if gaps else self.dtype

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column, such as the labels, as an array in memory."""
        if name not in self.dataset.schema.names:
            raise ValueError(
                f"there is no column {name!r} in the Parquet files; they have "
                f"{self.dataset.schema.names[:_SHOWN]} ..."
            )
        values: npt.NDArray[Any] = (
            self.dataset.to_table(columns=[name]).column(0).to_numpy()
        )
        return values


def open_parquet(
    paths: str | Path | Iterable[str | Path], exclude: Iterable[str] = ()
) -> ParquetTable:
    """Parquet files as data for ``fit`` and ``predict``, without reading them.

    Parameters
    ----------
    paths : path, or list of paths
        Files, in the order of their rows, or a folder of files.
    exclude : iterable of str
        Columns that are not features, such as the labels.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> from ebda import EBClassifier
    >>> from ebda.data.disk import open_parquet
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=300, effect=1.0, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> columns = {f"gene{j}": sim.data[:, j] for j in range(300)}
    >>> table = pa.table({**columns, "y": sim.target})
    >>> pq.write_table(table, f"{folder.name}/a.parquet")
    >>> X = open_parquet(folder.name, exclude=["y"])
    >>> X.shape
    (50, 300)
    >>> model = EBClassifier().fit(X, X.column("y"))
    >>> str(model.feature_names_in_[0])
    'gene0'
    >>> folder.cleanup()
    """
    try:
        from pyarrow.dataset import dataset
    except ImportError as error:
        raise ImportError(
            "reading Parquet needs pyarrow: pip install 'ebda[parquet]'"
        ) from error
    if isinstance(paths, str | Path):
        files = dataset(str(paths), format="parquet")
    else:
        files = dataset([str(path) for path in paths], format="parquet")
    return ParquetTable(files, exclude)


def _check_numeric(fields: list[Any]) -> None:
    from pyarrow import types

    def numeric(kind: Any) -> bool:
        return bool(
            types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        )

    wrong = [f"{f.name!r} ({f.type})" for f in fields if not numeric(f.type)]
    if wrong:
        raise ValueError(
            f"Parquet columns that are not numeric: {listed(wrong)}; "
            "leave them out with open_parquet(paths, exclude=[...])"
        )
