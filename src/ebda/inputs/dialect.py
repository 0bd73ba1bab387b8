"""How a text file is written: encoding, separator, first line of data."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ebda.inputs.base import Reading
from ebda.listing import counted

SEPARATORS = {
    ",": "commas",
    "\t": "tabs",
    ";": "semicolons",
    "|": "bars",
    " ": "blanks",
}
# How much of a file is looked at: bytes, lines.
_SAMPLE = 1 << 18
_PART = 1 << 20
_LINES = 20
_POINT_NUMBER = re.compile(r"\s*[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """How the cells of a text are separated.

    Parameters
    ----------
    separator : str
        Between two cells.
    header : list of str
        Cells of the first line.
    start : int
        Byte at which the line after it begins.
    width : int
        Cells in that line; one more than in the header if R wrote row names.
    quotes : bool
        Whether quotes hold a cell together.
    """

    separator: str
    header: list[str]
    start: int
    width: int
    quotes: bool = True


def unpacked(path: Path, most: int) -> bytes:
    """So many first bytes of a file at most, unpacked where it is gzipped."""
    content = io.BytesIO()  # which gives its bytes away without a copy
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as stream:
            while most > 0 and (part := stream.read(min(most, _PART))):
                most -= content.write(part)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path}: the gzip file is damaged or cut off ({error}); copy it once more"
        ) from None
    return content.getvalue()


def read_text(path: Path, how: Reading) -> tuple[bytes, tuple[str, ...]]:
    """A text file as UTF-8 without a mark in front, and what was done to it."""
    data = unpacked(path, how.limit(path) + 1)
    how.refuse_large(len(data), path)
    notes: list[str] = []
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16").encode()
        notes.append("the text is UTF-16")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data = data.decode("cp1252", errors="replace").encode()
        notes.append("the text is not UTF-8 and was read as Windows-1252")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    return data, tuple(notes)


def find_dialect(data: bytes, path: Path) -> Dialect:
    r"""Separator and header, from the beginning of a text.

    Examples
    --------
    >>> found = find_dialect(b"gene;A;B\nx;1,5;2,0\n", Path("excel.csv"))
    >>> found.separator, found.header
    (';', ['gene', 'A', 'B'])

    R's ``write.table`` gives the header one cell less than the other lines:

    >>> find_dialect(b'"A" "B"\n"x" 1.5 2\n', Path("r.txt")).width
    3
    """
    start = _after_comments(data)
    # Whole lines only, but always two of them: lines of wide tables are long.
    end = start
    for _ in range(2):
        at = data.find(b"\n", end)
        end = len(data) if at < 0 else at + 1
    end = max(end, data.rfind(b"\n", start, start + _SAMPLE) + 1)
    text = data[start:end].decode("utf-8")
    if not text.strip():
        raise ValueError(f"{path}: the file is empty")
    separator = _separator(text, path)
    reader = cut(text, separator)
    header = [name.strip() for name in next(reader)]
    # A name in quotes may spread the header over several lines.
    n_lines = reader.line_num
    first: list[str] = next(reader, [])
    _refuse_no_header(header, first, path)
    if header[-1:] == [""] and len(first) < len(header):
        header.pop()
    if len(first) < len(header):
        raise ValueError(
            f"{path}: the header has {counted(len(header), 'cell')}, and the line "
            f"after it only {len(first)}; is the file cut off, or a name without "
            "quotes?"
        )
    lines = io.StringIO(text, newline="")
    above = sum(len(line.encode()) for line in islice(lines, n_lines))
    return Dialect(
        separator,
        header,
        start + above,
        len(first),
    )


def _after_comments(data: bytes) -> int:
    """Where the lines that begin with # end, unless the last of them is the header."""
    start = 0
    while data.startswith(b"#", start) and (end := data.find(b"\n", start) + 1):
        below = data[end : data.find(b"\n", end) + 1 or None]
        cells = [data[start:end].count(s) for s in b",\t;"]
        if any(cells) and cells == [below.count(s) for s in b",\t;"]:
            break
        start = end
    return start


def _separator(text: str, path: Path) -> str:
    """The separator that cuts the first lines into equally many cells, and the most."""
    best, most = "", 1.0
    for separator in SEPARATORS:
        widths = [len(row) for row in islice(cut(text, separator), _LINES) if row]
        least = min(widths[1:], default=widths[0])
        # A blank or a comma inside names cuts them too: the cut has to be steady.
        # Row names may make the header one cell shorter, but equal is better.
        steady = max(widths[1:], default=least) == least
        cells = least - 0.5 * (widths[0] != least)
        if steady and abs(widths[0] - least) <= 1 and cells > most:
            best, most = separator, cells
    if not best:
        best = max(SEPARATORS, key=text.split("\n", 1)[0].count)
        if best not in text:
            return ","  # one column
    if best == " " and re.search(r"[^\s]  +[^\s]", text):
        raise ValueError(
            f"{path}: the columns are aligned with several blanks; save the table with "
            "commas or tabs between the cells"
        )
    return best


def cut(text: str, separator: str, quotes: bool = True) -> Any:
    """A reader of the lines of a text, cut into cells."""
    csv.field_size_limit(1 << 30)
    stream = io.StringIO(text, newline="")
    if quotes:
        return csv.reader(stream, delimiter=separator)
    return csv.reader(stream, delimiter=separator, quoting=csv.QUOTE_NONE)


def _refuse_no_header(header: list[str], first: list[str], path: Path) -> None:
    """Refuse a header without data, and data without a header."""
    if not first:
        raise ValueError(f"{path}: there is a header, and no line of data after it")
    if all(_POINT_NUMBER.fullmatch(cell) or cell.isdigit() for cell in header) and any(
        not cell.isdigit() for cell in header
    ):
        raise ValueError(
            f"{path}: the first line is numbers ({', '.join(header[:3])}, ...); "
            "put a line with the names of the columns above it"
        )
