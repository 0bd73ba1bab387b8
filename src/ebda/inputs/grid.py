"""The numbers of a sheet as they stand, apart from its rows and columns of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.inputs.base import Annotation, Reading, Sheet, as_text
from ebda.inputs.cells import Cells, numbers
from ebda.listing import counted, listed
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Grid:
    """The numbers of a sheet, as they stand, and the rows and columns of text.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Numbers.
    rows, columns : list of str
        Their names.
    text_rows, text_columns : dict
        The cells of the others, where they meet rows or columns of numbers.
    """

    values: FloatArray
    rows: list[str]
    columns: list[str]
    text_rows: dict[str, Annotation]
    text_columns: dict[str, Annotation]


def among(
    names: Sequence[str], known: Collection[str | None] | None
) -> npt.NDArray[np.bool_]:
    """Which of the names are known.

    >>> among(["a", "b"], {"b", "c"}), among(["a"], None)
    (array([False,  True]), array([False]))
    """
    return np.array([name in (known or ()) for name in names], dtype=np.bool_)


def make_grid(
    sheet: Sheet,
    ids: Sequence[str],
    rows_wanted: npt.NDArray[np.bool_],
    columns_wanted: npt.NDArray[np.bool_],
    how: Reading,
    in_rows: bool,
    source: str,
) -> Grid:
    """Numbers of some rows and columns, without those that are text or the labels."""
    rows = list(compress(ids, rows_wanted))
    columns = list(compress(sheet.names, columns_wanted))
    frame = sheet.frame[:, np.flatnonzero(columns_wanted).tolist()]
    if columns:
        if not rows_wanted.all():
            frame = frame.filter(rows_wanted)
        cells = numbers(frame, sheet.decimal)
    else:
        # A polars table without columns has no rows either.
        cells = Cells(np.empty((len(rows), 0)), {})
    bad = np.zeros(cells.values.shape, dtype=np.bool_)
    for j, at in cells.bad.items():
        bad[at, j] = True
    read = ~np.isnan(cells.values)
    known = {how.target, *how.aside}
    label_rows = among(rows, () if in_rows else known)
    label_columns = among(columns, known if in_rows else ())
    # Labels tell nothing about the cells beside them.
    bad[label_rows] = read[label_rows] = False
    # Columns of text first: in the other columns, a row of text has no number at all.
    text = (bad.sum(axis=0) > read.sum(axis=0)) & ~among(columns, how.features)
    text |= label_columns
    lines = bad[:, ~text].any(axis=1) & ~read[:, ~text].any(axis=1)
    lines &= ~among(rows, how.features)
    lines |= label_rows
    rest = bad & ~text & ~lines[:, None]
    if rest.any():
        _refuse(rest, frame, rows, columns, source)
    any_text = lines.any() or text.any()
    return Grid(
        cells.values[np.ix_(~lines, ~text)] if any_text else cells.values,
        list(compress(rows, ~lines)),
        list(compress(columns, ~text)),
        {
            rows[i]: list(compress(frame.row(i), ~text)) if columns else []
            for i in np.flatnonzero(lines).tolist()
        },
        {
            columns[j]: list(compress(as_text(frame.to_series(j)), ~lines))
            for j in np.flatnonzero(text).tolist()
        },
    )


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
