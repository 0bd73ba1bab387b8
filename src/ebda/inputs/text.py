"""Delimited text: CSV and TSV by whoever wrote them, also gzipped."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Any

from ebda.inputs.base import POLARS, Format, Reading, Sheet
from ebda.inputs.cells import find_decimal
from ebda.inputs.dialect import SEPARATORS, Dialect, cut, find_dialect, read_text
from ebda.listing import counted

# Commands put an apostrophe before names that a spreadsheet would take for a formula
# (`ebda.cli.output.guarded`).
_GUARDED = re.compile(r"^'('*[=+@\t\r-](?s:.))")


def load(path: Path, how: Reading) -> Sheet:
    """Read a delimited text file as cells of text."""
    data, notes = read_text(path, how)
    dialect = find_dialect(data, path)
    frame = parse(data, dialect, path)
    extra = frame.width - len(dialect.header)
    if extra > 1:
        raise ValueError(
            f"{path}: the header has {counted(len(dialect.header), 'cell')}, and the "
            f"line after it {frame.width}; are names with a separator in them without "
            "quotes?"
        )
    decimal = how.decimal
    if decimal is None and dialect.separator != "," and b"," in data[dialect.start :]:
        decimal = find_decimal(frame, path)
    words = SEPARATORS[dialect.separator] + " between the cells"
    if decimal is not None:
        words += f", decimal {decimal}s"
    header = [""] * extra + dialect.header
    if dialect.header[0].startswith("#"):
        header[extra] = header[extra].lstrip("# ")
    header, frame = without_empty_margins(header, frame)
    if b"'" in data:
        header = [_GUARDED.sub(r"\1", name) for name in header]
        cells = POLARS.load().selectors.string()
        frame = frame.with_columns(cells.str.replace(_GUARDED.pattern, "${1}"))
    return Sheet(header, frame, extra == 1, decimal, (words, *notes))


def without_empty_margins(header: list[str], frame: Any) -> tuple[list[str], Any]:
    """Without the empty columns and lines that spreadsheets write at the end."""
    while header and not header[-1] and frame.to_series(-1).is_null().all():
        header, frame = header[:-1], frame[:, :-1]
    while frame.height and all(cell is None for cell in frame.row(-1)):
        frame = frame[:-1]
    return header, frame


def parse(data: bytes, dialect: Dialect, path: Path) -> Any:
    """The cells below the header as a polars table of text."""
    pl = POLARS.load()
    schema = {f"c{j}": pl.String for j in range(dialect.width)}
    try:
        return pl.read_csv(
            memoryview(data)[dialect.start :].tobytes(),
            has_header=False,
            separator=dialect.separator,
            quote_char='"' if dialect.quotes else None,
            schema=schema,
        )
    except pl.exceptions.PolarsError as error:
        line = _first_long_line(data, dialect)
        reason = str(error).split("\n", 1)[0]
        raise ValueError(
            f"{path}: {line or reason}; every line needs {dialect.width} cells, as the "
            "first ones have"
        ) from None


def _first_long_line(data: bytes, dialect: Dialect) -> str | None:
    """In words, the first line that has too many cells."""
    above = data[: dialect.start].count(b"\n")
    text = data[dialect.start :].decode("utf-8")
    rows = cut(text, dialect.separator, dialect.quotes)
    for cells in rows:
        if len(cells) > dialect.width:
            return f"line {above + rows.line_num} has {len(cells)} cells"
    return None


def _is_text(head: bytes, path: Path) -> bool:
    if not path.is_file():
        return False
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (
        b"\0" not in head
    )


FORMAT = Format(
    "text",
    "CSV or TSV (also gzipped)",
    _is_text,
    is_fallback=True,
    is_table=True,
    packages=(POLARS,),
    load=load,
)
