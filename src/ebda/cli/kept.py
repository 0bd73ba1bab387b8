"""Samples of data on disk in memory: for the error estimate and the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.data.disk import Block, BlockedData, Source
from ebda.data.disk.watched import RememberedData, WatchedSource
from ebda.data.opening import as_data
from ebda.data.protocols import Labels
from ebda.inputs import Table
from ebda.inputs.on_disk import free_bytes
from ebda.typing import IntArray

# A cross-validation has the samples, those of a fold, and what it computes from them.
_COPIES = 6


class Watched:
    """Data of a table that is read in blocks: how much was read, and what was kept.

    Parameters
    ----------
    table : Table
        With labels.
    source : Source
        Its X, which stays on disk.
    """

    def __init__(self, table: Table, source: Source) -> None:
        self.table = table
        self.n_values = 0
        self.data = RememberedData(WatchedSource(source, self._count))

    @classmethod
    def of(cls, table: Table) -> Watched | None:
        """The data of a table, or None where they are in memory."""
        found = as_data(table.X)
        return cls(table, found.source) if isinstance(found, BlockedData) else None

    def _count(self, block: Block) -> None:
        rows, columns = block.rows, block.cols
        self.n_values += (rows.stop - rows.start) * (columns.stop - columns.start)

    def words(self) -> str:
        """How far the reading has come; later steps read some of it again."""
        n, p = self.data.shape
        return f"fit to all samples, {self.n_values / (n * p):.0%} of the data read"

    def kept(self) -> Table | None:
        """The samples that the fit kept, as a table in memory; None if too few fit."""
        samples = self._samples()
        p, n = self.table.n_features, len(samples)
        free = free_bytes()
        most = n if free is None else int(free // (8 * _COPIES * p))
        if most < n:
            samples = samples.take(_some(samples.codes, most))
        if np.bincount(samples.codes, minlength=len(self._labels()[0])).min() < 2:
            return None
        X = samples.residual_rows(np.zeros((len(self._labels()[0]), p)), np.ones(p))
        return part_of(self.table, samples.number, X)

    def _labels(self) -> tuple[Any, IntArray]:
        classes, codes = np.unique(np.asarray(self.table.y), return_inverse=True)
        return classes, codes

    def _samples(self) -> Any:
        if not self.data.kept:  # the fit has kept adjusted ones only, or none
            classes, codes = self._labels()
            labels = Labels(codes, len(classes), allow_missing=True)
            self.data.summarise(labels, keep=True)
        return self.data.kept[-1]


def part_of(table: Table, rows: IntArray, X: Any) -> Table:
    """Some samples of a table, with their values.

    Parameters
    ----------
    table : Table
        Of all samples, with labels.
    rows : ndarray of int
        Which.
    X : ndarray of shape (n_rows, n_features)
        Their values.
    """
    assert table.y is not None
    return Table(
        X=X,
        y=table.y[rows],
        sample_names=table.sample_names[rows],
        feature_names=table.feature_names,
        source=table.source,
        format=table.format,
        orientation=table.orientation,
        target=table.target,
        labels_from=table.labels_from,
        aside={name: [cells[i] for i in rows] for name, cells in table.aside.items()},
    )


def _some(codes: IntArray, size: int) -> IntArray:
    """So many samples, each class by its share; always the same ones.

    >>> _some(np.array([0, 0, 0, 0, 1, 1]), 3).tolist()
    [0, 2, 4]
    """
    order = np.argsort(codes, kind="stable")
    places = np.linspace(0, len(codes), size, endpoint=False).astype(np.intp)
    return np.asarray(np.sort(order[places]))
