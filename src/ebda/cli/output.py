"""What commands put out: tables in the format of the file's ending, and JSON."""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ebda import files
from ebda.inputs.base import POLARS


def _text(separator: str) -> Callable[[Any], bytes]:
    return lambda frame: frame.write_csv(separator=separator).encode()


def _packed(separator: str) -> Callable[[Any], bytes]:
    # Without a time stamp the same table gives the same bytes.
    return lambda frame: gzip.compress(_text(separator)(frame), mtime=0)


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
    ".parquet": _parquet,
}


def writer_for(path: Path | None) -> Callable[[Any], bytes]:
    """The writer for the ending of a file; CSV if there is no file.

    >>> writer_for(Path("out.xlsx"))
    Traceback (most recent call last):
    ValueError: --out out.xlsx: the ending is none of .csv, .tsv, .txt, .csv.gz,
    .tsv.gz, .parquet
    """
    if path is None:
        return WRITERS[".csv"]
    for ending, write in WRITERS.items():
        if path.name.lower().endswith(ending):
            return write
    if files.is_special(path):
        return WRITERS[".csv"]
    raise ValueError(f"--out {path}: the ending is none of {', '.join(WRITERS)}")


def put_table(
    columns: Mapping[str, Sequence[Any] | Any],
    out: Path | None,
    write: Callable[[Any], bytes],
) -> None:
    """Write a table to a file, or to standard output."""
    content = write(POLARS.load().DataFrame(dict(columns)))
    if out is None:
        sys.stdout.write(content.decode())
    else:
        files.write(out, content)


def put_json(record: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(plain(record), ensure_ascii=False, allow_nan=False))


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
