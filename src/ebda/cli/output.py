"""What commands put out: tables in the format of the file's ending, and JSON."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ebda import files
from ebda.cli.options import check_writable
from ebda.cli.terminal import put, refuse_closed, say
from ebda.inputs.base import POLARS, Package

EXCEL_WRITER = Package("xlsxwriter", "excel", "writing Excel workbooks")
# What a spreadsheet would take for a formula, or for a part of its own format. An
# apostrophe before it makes it text; names that have one already get one more, so that
# readers can take one away.
_FORMULA = r"^'*[=+@\t\r-](?s:.)"
_NUMBER = r"(?i)^[+-]([\d.,]+(e[+-]?\d+)?%?|inf(inity)?|nan)$"


def guarded(frame: Any) -> Any:
    """A table for spreadsheets: no name in it is run as a formula.

    Numbers stay as they are, in columns of text too. `ebda.inputs` undoes this.

    >>> import polars as pl
    >>> guarded(pl.DataFrame({"=a": ["-x", "-1.5", "x"]})).to_dict(as_series=False)
    {"'=a": ["'-x", '-1.5', 'x']}
    """
    pl = POLARS.load()

    def safe(cells: Any) -> Any:
        is_formula = cells.str.contains(_FORMULA) & ~cells.str.contains(_NUMBER)
        return pl.when(is_formula).then("'" + cells).otherwise(cells).name.keep()

    names = pl.DataFrame({"name": frame.columns}).select(safe(pl.col("name")))
    frame = frame.with_columns(safe(pl.col(pl.String)))
    frame.columns = names["name"].to_list()
    return frame


def _text(separator: str) -> Callable[[Any], bytes]:
    return lambda frame: guarded(frame).write_csv(separator=separator).encode()


def _packed(separator: str) -> Callable[[Any], bytes]:
    # Without a time stamp the same table gives the same bytes.
    return lambda frame: gzip.compress(_text(separator)(frame), mtime=0)


def _excel(frame: Any) -> bytes:
    EXCEL_WRITER.load()
    stream = io.BytesIO()
    # Text is written as text, and never as a formula.
    frame.write_excel(stream, autofit=False)
    return stream.getvalue()


def _parquet(frame: Any) -> bytes:
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()


WRITERS: dict[str, Callable[[Any], bytes]] = {
    ".csv": _text(","),
    ".tsv": _text("\t"),
    ".txt": _text("\t"),
    ".csv.gz": _packed(","),
    ".tsv.gz": _packed("\t"),
    ".xlsx": _excel,
    ".parquet": _parquet,
}


def writer_for(
    path: Path | None, option: str = "--out"
) -> Callable[[Mapping[str, Any]], None]:
    """A function that writes columns as a table, in the format of the file's ending.

    To standard output, as CSV, if there is no file. A file that cannot be written is
    refused at once.

    >>> writer_for(Path("out.pdf"))
    Traceback (most recent call last):
    ValueError: --out out.pdf: the ending is none of .csv, .tsv, .txt, .csv.gz,
    .tsv.gz, .xlsx, .parquet
    """
    check_writable(option, path)
    name = ".csv" if path is None or files.is_special(path) else path.name.lower()
    ending = next((ending for ending in WRITERS if name.endswith(ending)), None)
    if ending is None:
        raise ValueError(f"{option} {path}: the ending is none of {', '.join(WRITERS)}")
    if ending == ".xlsx":
        EXCEL_WRITER.load()
    if path is None:
        refuse_closed("give --out FILE")

    def put_table(columns: Mapping[str, Any]) -> None:
        content = WRITERS[ending](POLARS.load().DataFrame(dict(columns)))
        if path is None:
            put(content.decode())
        else:
            files.write(path, content)

    return put_table


def put_json(record: Mapping[str, Any]) -> None:
    """One JSON object on standard output, in ASCII."""
    say(json.dumps(plain(record), allow_nan=False))


def plain(value: Any) -> Any:
    """As JSON can hold it: without NumPy's types, and null for what is not finite.

    >>> plain({"a": np.float64(1.5), "b": np.array([1.0, np.nan]), 3: (np.int64(1),)})
    {'a': 1.5, 'b': [1.0, None], '3': [1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
