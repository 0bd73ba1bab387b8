"""Which format a file has: its content says so, and its ending where content cannot.

`FORMATS` is the registry. To add a format, write a module with a
:class:`~ebda.inputs.base.Format`, and name it here.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ebda.inputs import (
    annotated,
    arrays,
    excel,
    genepattern,
    geo,
    libsvm,
    parquet,
    tenx,
    text,
    zarr_store,
)
from ebda.inputs.base import Block, Format, Reading, Sheet
from ebda.inputs.dialect import unpacked
from ebda.listing import alternatives
from ebda.registry import Registry

# In the order in which messages and the help list them.
FORMATS = Registry(
    "format",
    text.FORMAT,
    parquet.FORMAT,
    parquet.FOLDER,
    excel.FORMAT,
    annotated.FORMAT,
    genepattern.GCT,
    genepattern.CLS,
    geo.FORMAT,
    tenx.FORMAT,
    arrays.ARCHIVE,
    arrays.ARRAY,
    libsvm.FORMAT,
    zarr_store.FORMAT,
)
T = TypeVar("T")
_HEAD = 1 << 16
# What is often given, cannot be read, and what to do instead.
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save it as .xlsx",
    b"RDX": "an R workspace: write the table with write.csv",
    b"X\n\0": "an R object: write the table with write.csv",
    b"\x80\x04": "a Python pickle, which could run code: save it as CSV or Parquet",
    b"\x80\x05": "a Python pickle, which could run code: save it as CSV or Parquet",
    b"%PDF": "a PDF document",
    b"^DATABASE": "a SOFT file of GEO: take the series matrix of the series",
    b"BZh": "a bzip2 file: unpack it first",
    b"\xfd7zXZ": "an xz file: unpack it first",
}


def names_of(ability: str) -> str:
    """The formats that have an ability, in words.

    >>> names_of("is_table")
    'CSV or TSV (also gzipped), Parquet or Excel .xlsx'
    """
    return alternatives([f.line for f in FORMATS.values() if getattr(f, ability)])


def find_format(path: Path) -> Format:
    r"""The format of a file or folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.txt"
    ...     _ = path.write_text("+1 3:0.5 7:1\n-1 2:1\n")
    ...     find_format(path).name
    'LIBSVM'
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    head = b"" if path.is_dir() else unpacked(path, _HEAD)
    head = head.removeprefix(codecs.BOM_UTF8)
    unreadable = next((w for mark, w in _OTHERS.items() if head.startswith(mark)), None)
    for form in sorted(FORMATS.values(), key=lambda form: form.is_fallback):
        if form.is_fallback and unreadable is not None:
            raise ValueError(f"{path}: this is {unreadable}")
        if form.is_format_of(head, path):
            return form
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder, and no Zarr store, Parquet files or matrix of 10x"
        )
    raise ValueError(
        f"{path}: the content has none of the formats that can be read "
        f"({names_of('load')})"
    )


def load(path: Path, found: Format, how: Reading) -> Block | Sheet:
    """Read a file into memory."""
    if found.load is None:
        way_out = " in blocks only: --on-disk" if found.open else " for labels only"
        raise ValueError(f"{path}: {found.line} can be read{way_out}")
    for package in found.packages:
        package.load()
    return _guarded(found.load, path, found, how)


def open_blocks(path: Path, found: Format, how: Reading) -> Block:
    """Open a file to be read in blocks."""
    if found.open is None:
        raise ValueError(
            f"{path} cannot be read in blocks; what can is {names_of('open')}"
        )
    return _guarded(found.open, path, found, how)


def _guarded(
    reader: Callable[[Path, Reading], T], path: Path, found: Format, how: Reading
) -> T:
    """What a reader gives; the error names the file where it fails."""
    try:
        return reader(path, how)
    except ImportError:
        raise
    except MemoryError:
        raise ValueError(f"{path}: there is not enough memory to read it") from None
    except Exception as error:
        # Readers of other packages raise all kinds of errors on a damaged file.
        words = " ".join(str(error).strip().split("\n", 1)[0].split())
        if words.startswith(str(path)):
            raise ValueError(words) from None
        raise ValueError(
            f"{path} cannot be read as {found.name}: {words or type(error).__name__}"
        ) from error


def load_table(
    path: Path, found: Format, what: str, decimal: str | None = None
) -> Sheet:
    """Read a file of which columns are taken; the error says what takes them."""
    if not found.is_table:
        raise ValueError(f"{path}: {what}, not {found.name}: {names_of('is_table')}")
    sheet = load(path, found, Reading(decimal=decimal))
    assert isinstance(sheet, Sheet)
    return sheet
