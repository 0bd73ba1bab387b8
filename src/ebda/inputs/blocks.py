"""What readers return: a sheet of cells, or a block of numbers with its margins.

A *sheet* is a table as it stands in a text or Parquet file; which way round it is has
still to be found out. A *block* has samples in rows. One job turns the first into the
second (:mod:`ebda.inputs.orientation`); everything after it sees blocks only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.inputs.extras import polars

Names = npt.NDArray[np.str_]
# A margin of the block: one entry a sample, None where there is none.
Annotation = Sequence[Any]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Cells with a header.

    Parameters
    ----------
    names : list of str
        Header, as it stands in the file: empty and repeated names are possible.
    frame : polars.DataFrame
        A column for each name; of text where the file is text.
    row_names : bool
        Whether the first column is known to hold names of rows.
    decimal_comma : bool
        Whether 1,5 is a number.
    notes : tuple of str
        What is worth saying about the file.
    """

    names: list[str]
    frame: Any
    row_names: bool = False
    decimal_comma: bool = False
    notes: tuple[str, ...] = ()

    def column(self, place: int) -> list[str | None]:
        """Cells of a column as text."""
        pl = polars()
        series = self.frame.to_series(place)
        if series.dtype != pl.String:
            series = series.cast(pl.String)
        cells: list[str | None] = series.to_list()
        return cells


@dataclass(frozen=True, eq=False)
class Block:
    """Numbers with samples in rows, and what stands at their margins.

    Parameters
    ----------
    values : ndarray or CSR array of shape (n_samples, n_features)
        Numbers; NaN where one is missing.
    samples, features : ndarray of str, optional
        Names.
    annotations : dict
        What could serve as labels, by name.
    default_target : str, optional
        The annotation that holds labels where nobody says which.
    orientation : {"rows", "columns"}
        Where the samples were in the file.
    evidence : str
        Why it was read this way round.
    n_ignored : int
        Features that nobody asked for, and that were not read.
    absent_is_zero : bool
        Whether a feature that the file does not have is zero, as in LIBSVM.
    notes : tuple of str
        What is worth saying.
    """

    values: Any
    samples: Names | None = None
    features: Names | None = None
    annotations: dict[str, Annotation] = field(default_factory=dict)
    default_target: str | None = None
    orientation: str = "rows"
    evidence: str = ""
    n_ignored: int = 0
    absent_is_zero: bool = False
    notes: tuple[str, ...] = ()


def shown(names: Sequence[Any], most: int = 3) -> str:
    """The first names in quotes, and how many more there are.

    >>> shown(["a", "b", "c", "d"], most=2)
    "'a', 'b' and 2 more"
    """
    first = ", ".join(repr(str(name)) for name in names[:most])
    more = len(names) - most
    return f"{first} and {more} more" if more > 0 else first


def counted(n: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "sample"), counted(2, "sample"), counted(3, "class")
    ('1 sample', '2 samples', '3 classes')
    """
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n} {noun if n == 1 else plural}"
