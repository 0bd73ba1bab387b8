"""Which format a file has: its content says so, and its ending where content cannot.

`FORMATS` is the registry. To add a format, write a module with a function that makes a
block or a sheet of a file, and name it here with what it is known by.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ebda.inputs import annotated, gct, libsvm, npz, parquet, text, zarr_store
from ebda.inputs.blocks import Block, Sheet

_HEAD = 1 << 16
_SVM_LINE = re.compile(
    rb"\s*[-+]?\d[\d.eE+-]*(,[-+\d.]+)*\s+(qid:\d+\s+)?\d+:[-+]?[\d.]"
)
# What is often given, cannot be read, and what to do instead.
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an Excel workbook: save the sheet as CSV",
    b"RDX": "an R workspace: write the table with write.csv",
    b"X\n\0": "an R object: write the table with write.csv",
    b"\x80\x04": "a Python pickle, which could run code: save it as CSV or Parquet",
    b"\x80\x05": "a Python pickle, which could run code: save it as CSV or Parquet",
    b"%PDF": "a PDF document",
    b"BZh": "a bzip2 file: unpack it first",
    b"\xfd7zXZ": "an xz file: unpack it first",
}


@dataclass(frozen=True)
class Reading:
    """What readers may need to know beside the path."""

    orient: str = "auto"
    layer: str | None = None


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    name : str
        For people.
    fits : callable
        Whether a file has it, from its first bytes (unpacked) and its path.
    load : callable
        Reads it.
    """

    name: str
    fits: Callable[[bytes, Path], bool]
    load: Callable[[Path, Reading], Block | Sheet]


def _is_archive(head: bytes, path: Path) -> bool:
    return head.startswith(b"PK\x03\x04") and b".npy" in head[:512]


# The first that fits is taken; text has no mark of its own, and comes last.
FORMATS = (
    Format(
        "Zarr",
        lambda head, path: zarr_store.is_store(path),
        lambda path, how: zarr_store.load(path, how.orient, how.layer),
    ),
    Format(
        "Parquet",
        lambda head, path: head.startswith(b"PAR1"),
        lambda path, how: parquet.load(path),
    ),
    Format(
        "AnnData",
        lambda head, path: head.startswith(b"\x89HDF\r\n\x1a\n"),
        lambda path, how: annotated.load_h5ad(path, how.layer),
    ),
    Format("NumPy archive", _is_archive, lambda path, how: npz.load(path, how.orient)),
    Format(
        "GCT",
        lambda head, path: head.startswith((b"#1.2", b"#1.3")) or _ends(path, ".gct"),
        lambda path, how: gct.load(path),
    ),
    Format(
        "LIBSVM",
        lambda head, path: (
            bool(_SVM_LINE.match(head)) or _ends(path, ".svm", ".libsvm", ".svmlight")
        ),
        lambda path, how: libsvm.load(path),
    ),
    Format(
        "text",
        lambda head, path: path.is_file() and _is_text(head),
        lambda path, how: text.load(path),
    ),
)


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
    head = b"" if path.is_dir() else _head(path)
    for form in FORMATS:
        if form.fits(head, path):
            return form
    if path.is_dir():
        raise ValueError(f"{path} is a folder, and no Zarr store")
    raise ValueError(f"{path}: {_unreadable(head)}")


def _head(path: Path) -> bytes:
    """The first bytes, without a mark of UTF-8 and unpacked where gzipped."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error as error:
            raise ValueError(
                f"{path}: the gzip file is damaged ({error}); copy it once more"
            ) from None
    return head.removeprefix(codecs.BOM_UTF8)


def _ends(path: Path, *endings: str) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(endings)


def _is_text(head: bytes) -> bool:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return b"\0" not in head and not head.startswith(tuple(_OTHERS))


def _unreadable(head: bytes) -> str:
    if head.startswith(b"PK\x03\x04") and b"[Content_Types]" in head:
        return "this is an Excel workbook: save the sheet as CSV"
    for mark, words in _OTHERS.items():
        if head.startswith(mark):
            return f"this is {words}"
    known = ", ".join(form.name for form in FORMATS)
    return f"the content has none of the formats that can be read ({known})"
