"""Excel workbooks: one sheet, with the names in its first row."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from ebda.inputs.base import POLARS, Format, Package, Reading, Sheet
from ebda.inputs.text import without_empty_margins
from ebda.listing import counted, quoted

EXCEL = Package("fastexcel", "excel", "reading Excel workbooks")
_BOOK = "xl/workbook.xml"
# What the reader makes of a date.
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}( 00:00:00)?$"


def is_workbook(head: bytes, path: Path) -> bool:
    """Whether a file is a workbook; what comes first in it differs by the program."""
    if not head.startswith(b"PK\x03\x04") or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as packed:
            return _BOOK in packed.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def load(path: Path, how: Reading) -> Sheet:
    """Read a sheet: the one that ``--layer`` names, else the first."""
    with zipfile.ZipFile(path) as packed:
        how.refuse_large(sum(member.file_size for member in packed.infolist()), path)
    book = EXCEL.load().read_excel(str(path))
    sheets = book.sheet_names
    name = sheets[0] if how.layer is None else how.layer
    if name not in sheets:
        raise ValueError(
            f"{path}: there is no sheet {name!r}; there are {quoted(sheets, 6)}"
        )
    cells = _cells(book, name)
    if cells is None:
        raise ValueError(f"{path}: the sheet {name!r} is empty")
    header = [(cell or "").strip() for cell in cells.row(0)]
    frame = cells[1:]
    frame.columns = [f"c{j}" for j in range(frame.width)]
    header, frame = without_empty_margins(header, frame)
    notes = [f"the sheet {name!r}"]
    if len(sheets) > 1:
        others = [sheet for sheet in sheets if sheet != name]
        notes[0] += f"; others are {quoted(others)}, which --layer NAME takes"
    return Sheet(header, frame, notes=(*notes, *_dates(header, frame)))


def _cells(book: Any, name: str) -> Any:
    """All cells as text, numbers with all of their digits; None where there are none.

    The reader rounds numbers that it turns into text, so that they are read as numbers,
    too, and written out again where they differ.
    """
    pl = POLARS.load()
    sheets = [
        book.load_sheet(name, header_row=None, dtypes=kind)
        for kind in ("string", "float")
    ]
    if not all(sheet.width and sheet.height for sheet in sheets):
        return None
    text, numbers = (sheet.to_polars() for sheet in sheets)
    columns = []
    for words, values in zip(text, numbers, strict=True):
        rounded = words.cast(pl.Float64, strict=False)
        is_rounded = (rounded != values).fill_null(False)
        columns.append(values.cast(pl.String).zip_with(is_rounded, words))
    return pl.DataFrame(columns)


def _dates(header: list[str], frame: Any) -> list[str]:
    """A note on names that Excel has turned into dates, as it does with genes."""
    if not frame.width:
        return []
    first = frame.to_series(0)
    below = first.filter(first.str.contains(_DATE).fill_null(False)).to_list()
    pl = POLARS.load()
    across = pl.Series(header, dtype=pl.String)
    above = across.filter(across.str.contains(_DATE)).to_list()
    found = [*below, *above]
    if not found:
        return []
    return [
        f"{counted(len(found), 'name', 'look')} like dates, such as "
        f"{found[0][:10]!r}: Excel makes dates of names such as SEPT2; correct them"
    ]


FORMAT = Format(
    "Excel",
    "Excel .xlsx",
    is_workbook,
    is_table=True,
    packages=(POLARS, EXCEL),
    load=load,
)
