"""The series matrix files of the Gene Expression Omnibus (GEO), also gzipped.

Lines about the series and its samples come first; each begins with ``!`` and has one
cell per sample, in quotes. What GEO calls characteristics are cells such as ``"tissue:
blood"``; the same line may hold different keys for different samples, so that they are
put together by key. The values stand between two marks, features in rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ebda.inputs.base import POLARS, Annotation, Block, Format, Reading
from ebda.inputs.cells import numbers
from ebda.inputs.dialect import Dialect, cut, read_text
from ebda.inputs.text import parse
from ebda.listing import counted

_BEGIN, _END = b"!series_matrix_table_begin", b"!series_matrix_table_end"
_CHARACTERISTICS = "characteristics_ch"
# Lines about samples that may say what class they are of.
_TOLD = ("title", "source_name_ch1", "description", "platform_id", "organism_ch1")


def load(path: Path, how: Reading) -> Block:
    """Read a series matrix: the values, and what is said of the samples."""
    data, notes = read_text(path, how)
    above, rest = _parts(data, path)
    line, _, below = rest.partition(b"\n")
    names: list[str] = next(cut(line.decode(), "\t"), [])
    while names and not names[-1]:
        names.pop()
    samples = [name.strip() for name in names[1:]]
    if not below.strip():
        raise ValueError(
            f"{path}: the series matrix has {counted(len(samples), 'sample')} and no "
            "values; those of sequencing studies are in supplementary files of the "
            "series"
        )
    width = below.split(b"\n", 1)[0].rstrip(b"\r").count(b"\t") + 1
    header = names + [""] * (width - len(names))
    frame = parse(below, Dialect("\t", header, 0, max(width, len(header))), path)
    features = [(name or "").strip() for name in frame.to_series(0).to_list()]
    cells = numbers(frame[:, 1 : len(names)], how.decimal)
    for j, rows in cells.bad.items():
        raise ValueError(
            f"{path}: {frame[int(rows[0]), 1 + j]!r} in row {features[rows[0]]!r}, "
            f"column {samples[j]!r} is not a number; correct it"
        )
    return Block(
        np.ascontiguousarray(cells.values.T),
        np.array(samples, dtype=np.str_),
        np.array(features, dtype=np.str_),
        _annotations(above.decode(), len(samples), path),
        orientation="columns",
        evidence="as GEO has them",
        notes=notes,
    )


def _parts(data: bytes, path: Path) -> tuple[bytes, bytes]:
    """What stands above the table, and the table."""
    start, end = data.find(_BEGIN), data.rfind(_END)
    if start < 0:
        raise ValueError(
            f"{path}: there is no line {_BEGIN.decode()!r}; is it a series matrix?"
        )
    if end < 0:
        raise ValueError(
            f"{path}: the line {_END.decode()!r} is missing; is the file cut off? Copy "
            "it again"
        )
    table = data.find(b"\n", start) + 1
    return data[:start], data[table:end]


def _annotations(text: str, n: int, path: Path) -> dict[str, Annotation]:
    """What is said of the samples, by name: first what differs between them."""
    found: dict[str, list[str | None]] = {}
    for name, cells in _lines(text):
        if len(cells) != n:
            raise ValueError(
                f"{path}: the line '!Sample_{name}' has {counted(len(cells), 'cell')}, "
                f"and there are {counted(n, 'sample')}; is the file edited?"
            )
        for i, cell in enumerate(cells):
            key, value = name, cell.strip()
            if name.startswith(_CHARACTERISTICS):
                before, colon, after = value.partition(":")
                key, value = (before.strip(), after.strip()) if colon else (name, value)
            elif name not in _TOLD:
                continue
            column = found.setdefault(key, [None] * n)
            if value and column[i] is None:
                column[i] = value
            elif value and column[i] != value:
                column[i] = f"{column[i]}; {value}"

    def rank(name: str) -> tuple[bool, bool, bool]:
        """Classes, before what is different for each sample or the same for all."""
        different = len(set(found[name]))
        return different < 2, 2 * different > n, name in _TOLD

    return {name: found[name] for name in sorted(found, key=rank)}


def _lines(text: str) -> Iterator[tuple[str, list[str]]]:
    """Lines about samples: their name, and their cells."""
    for line in text.splitlines():
        if line.startswith("!Sample_"):
            name, *cells = next(cut(line, "\t"))
            yield name.removeprefix("!Sample_"), cells


FORMAT = Format(
    "GEO series matrix",
    "GEO series matrix",
    lambda head, path: head.lstrip().startswith((b"!Series_", b"!Sample_")),
    packages=(POLARS,),
    load=load,
)
