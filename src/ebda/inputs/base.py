"""What a format of files is, and what its readers return.

A *sheet* is a table as it stands in a text or Parquet file; which way round it is has
still to be found out. A *block* has samples in rows, in memory or on disk. One job
turns a sheet into a block (:mod:`ebda.inputs.orientation`); everything after it sees
blocks only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.registry import Entry
from ebda.sizes import sizes

Names = npt.NDArray[np.str_]
# A margin of a block: one entry per sample, None where there is none.
Annotation = Sequence[Any]


@dataclass(frozen=True)
class Package:
    """A package that comes with an extra, imported where it is used.

    Parameters
    ----------
    module : str
        What to import.
    extra : str
        The extra of ebda that installs it.
    purpose : str
        What it is needed for, as the subject of a sentence.

    Examples
    --------
    >>> Package("json", "cli", "reading JSON").load().__name__
    'json'
    >>> Package("no_such_package", "cli", "reading stars").load()
    Traceback (most recent call last):
    ImportError: reading stars needs no_such_package: pip install 'ebda[cli]'
    """

    module: str
    extra: str
    purpose: str

    def load(self) -> Any:
        """The module, or an ImportError that names the extra."""
        try:
            return import_module(self.module)
        except ImportError:
            raise ImportError(
                f"{self.purpose} needs {self.module}: pip install 'ebda[{self.extra}]'"
            ) from None


POLARS = Package("polars", "cli", "reading and writing tables")


@dataclass(frozen=True)
class Reading:
    """What is known about a file before it is read.

    Parameters
    ----------
    orient : {"auto", "rows", "columns"}
        Where the samples are.
    layer : str, optional
        Of AnnData, instead of X.
    target : str, optional
        Column or row of the labels.
    drop : collection of str
        Columns or rows to leave out.
    features : collection of str, optional
        Names of the features that are wanted.
    samples : collection of str
        Names of samples, from a file of labels.
    aside : collection of str
        Columns or rows that are known of the samples and are no features: groups and
        covariates.
    decimal : {"point", "comma"}, optional
        The decimal sign of text; None where the cells have to tell.
    max_memory : int, optional
        Bytes that the content may take up; by default `sizes.unpacked_bytes`, or
        `sizes.unpacked_ratio` times as much as the file has.
    """

    orient: str = "auto"
    layer: str | None = None
    target: str | None = None
    drop: Collection[str] = ()
    features: Collection[str] | None = None
    samples: Collection[str] = ()
    aside: Collection[str] = ()
    decimal: str | None = None
    max_memory: int | None = None

    def limit(self, path: Path) -> int:
        """Bytes that the content of a file may take up."""
        if self.max_memory is not None:
            return self.max_memory
        size = sum(part.stat().st_size for part in files_of(path))
        return max(sizes.unpacked_bytes, sizes.unpacked_ratio * size)

    def refuse_large(self, n_bytes: int, path: Path) -> None:
        """Refuse content that takes up far more memory than its file."""
        if n_bytes > self.limit(path):
            raise ValueError(
                f"{path} takes up more than {self.limit(path) / 1e9:.3g} GB of memory, "
                "far more than the file has; if that is right, allow for it with "
                "--max-memory GB"
            )


def files_of(path: Path) -> list[Path]:
    """The files of a folder, or the file itself."""
    if path.is_dir():
        return sorted(part for part in path.rglob("*") if part.is_file())
    return [path]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Cells with a header.

    Parameters
    ----------
    names : list of str
        Header, as it stands in the file: empty and repeated names are possible.
    frame : polars.DataFrame
        One column for each name; of text where the file is text.
    row_names : bool
        Whether the first column is known to hold names of rows.
    decimal : {"point", "comma"}, optional
        The decimal sign, where the other one may stand between thousands; None where
        there is no comma in a number.
    notes : tuple of str
        What is worth saying about the file.
    """

    names: list[str]
    frame: Any
    row_names: bool = False
    decimal: str | None = None
    notes: tuple[str, ...] = ()

    def column(self, place: int) -> list[str | None]:
        """Cells of a column as text."""
        return as_text(self.frame.to_series(place))


def as_text(series: Any) -> list[str | None]:
    """The cells of a column of polars as text."""
    cells: list[str | None] = series.cast(POLARS.load().String).to_list()
    return cells


@dataclass(frozen=True, eq=False)
class Block:
    """Numbers with samples in rows, and what stands at their margins.

    Parameters
    ----------
    values : ndarray, sparse array, or store of shape (n_samples, n_features)
        Numbers; NaN where one is missing.
    samples, features : ndarray of str, optional
        Names.
    annotations : mapping
        What could serve as labels, by name.
    default_target : str, optional
        The annotation that holds the labels if no other is named.
    orientation : {"rows", "columns"}
        Where the samples were in the file.
    evidence : str
        Why it was read this way round.
    n_ignored : int
        Number of features that were not asked for, and not read.
    absent_is_zero : bool
        Whether a feature that the file does not have is zero, as in LIBSVM.
    notes : tuple of str
        What is worth saying.
    """

    values: Any
    samples: Names | None = None
    features: Names | None = None
    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    default_target: str | None = None
    orientation: str = "rows"
    evidence: str = ""
    n_ignored: int = 0
    absent_is_zero: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format(Entry):
    """A format of files; what it cannot do is None.

    Parameters
    ----------
    fits : callable
        Whether a file or folder has it, from its first bytes (unpacked) and its path.
    endings : tuple of str
        Endings of names that tell the format where the content does not.
    is_fallback : bool
        Whether it has no mark of its own, and is tried after all others.
    is_table : bool
        Whether `load` gives a sheet, of which a column can be taken.
    packages : tuple of Package
        What `load` needs.
    load : callable, optional
        Reads a file into memory.
    open : callable, optional
        Opens a file to be read in blocks, whatever its size.
    labels : callable, optional
        Reads the labels of samples, in their order, of a format that holds no data.
    """

    fits: Callable[[bytes, Path], bool] = lambda head, path: False
    endings: tuple[str, ...] = ()
    is_fallback: bool = False
    is_table: bool = False
    packages: tuple[Package, ...] = ()
    load: Callable[[Path, Reading], Block | Sheet] | None = None
    open: Callable[[Path, Reading], Block] | None = None
    labels: Callable[[Path], list[str]] | None = None

    def is_format_of(self, head: bytes, path: Path) -> bool:
        """Whether a file has this format, by its first bytes or by its name."""
        name = path.name.lower().removesuffix(".gz")
        return self.fits(head, path) or name.endswith(self.endings)
