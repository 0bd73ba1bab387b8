"""The numbers of a sheet as they stand, apart from its rows and columns of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.inputs.base import POLARS, Annotation, Sheet
from ebda.inputs.cells import Cells, numbers
from ebda.listing import counted, listed
from ebda.typing import FloatArray


@dataclass(frozen=True)
class Known:
    """What is known about a table before it is read.

    Parameters
    ----------
    target : str, optional
        Name of the column or row of labels.
    features : frozenset of str, optional
        Names of the features that are wanted.
    samples : sequence of str
        Names of samples, from a file of labels.
    drop : collection of str
        Columns or rows to leave out.
    """

    target: str | None = None
    features: frozenset[str] | None = None
    samples: Sequence[str] = ()
    drop: Collection[str] = ()


@dataclass(frozen=True, eq=False)
class Grid:
    """The numbers of a sheet, as they stand, and the rows and columns of text.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Numbers.
    rows, columns : list of str
        Their names.
    kept_rows, kept_columns : ndarray of bool
        Which of those that were looked at hold numbers.
    text_rows, text_columns : dict
        The cells of the others, where they meet rows or columns of numbers.
    """

    values: FloatArray
    rows: list[str]
    columns: list[str]
    kept_rows: npt.NDArray[np.bool_]
    kept_columns: npt.NDArray[np.bool_]
    text_rows: dict[str, Annotation]
    text_columns: dict[str, Annotation]


def is_wanted(name: str, known: Known) -> bool:
    """Whether a row or column of this name is to be read."""
    return name not in known.drop and (
        known.features is None or _is_looked_for(name, known)
    )


def make_grid(
    sheet: Sheet,
    wanted: npt.NDArray[np.bool_],
    places: Sequence[int],
    ids: Sequence[str],
    known: Known,
    source: str,
) -> Grid:
    """Numbers of some rows and columns, without those that are text."""
    series = sheet.frame.get_columns()
    frame = POLARS.load().DataFrame([series[j] for j in places])
    if not wanted.all():
        frame = frame.filter(wanted)
    rows = [name for name, keep in zip(ids, wanted, strict=True) if keep]
    columns = [sheet.names[j] for j in places]
    if not places:
        # A polars table without columns has no rows either.
        cells = Cells(np.empty((len(rows), 0)), {})
    else:
        cells = numbers(frame, sheet.decimal_comma)
    bad = np.zeros(cells.values.shape, dtype=np.bool_)
    for j, at in cells.bad.items():
        bad[at, j] = True
    # Columns of text first: in the other columns, a row of text has no number at all.
    read = ~np.isnan(cells.values)
    text = bad.sum(axis=0) > read.sum(axis=0)
    text &= np.array([not _is_looked_for(name, known) for name in columns], np.bool_)
    lines = bad[:, ~text].any(axis=1) & ~read[:, ~text].any(axis=1)
    lines &= np.array([not _is_looked_for(name, known) for name in rows], np.bool_)
    rest = bad & ~text & ~lines[:, None]
    if rest.any():
        _refuse(rest, frame, rows, columns, source)
    return Grid(
        cells.values[np.ix_(~lines, ~text)] if cells.bad else cells.values,
        list(compress(rows, ~lines)),
        list(compress(columns, ~text)),
        ~lines,
        ~text,
        {
            rows[i]: list(compress(frame.row(i), ~text))
            for i in np.flatnonzero(lines).tolist()
        },
        {
            columns[j]: list(compress(frame.to_series(j).to_list(), ~lines))
            for j in np.flatnonzero(text).tolist()
        },
    )


def _is_looked_for(name: str, known: Known) -> bool:
    return known.features is not None and name in known.features


def _refuse(
    bad: npt.NDArray[np.bool_],
    frame: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    source: str,
) -> None:
    """Name the first cells that should be numbers."""
    where = np.argwhere(bad)

    def described(place: Any) -> str:
        i, j = place.tolist()
        return f"{frame.row(i)[j]!r} in row {rows[i]!r}, column {columns[j]!r}"

    raise ValueError(
        f"{source}: {counted(len(where), 'cell')} should be a number and "
        f"{'is' if len(where) == 1 else 'are'} not: "
        f"{listed(where, 3, described, '; ')}; correct them, or "
        "leave the row or column out with --drop NAME"
    )
