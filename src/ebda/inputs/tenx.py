"""What Cell Ranger of 10x Genomics writes: a folder with a matrix and two lists.

``matrix.mtx`` has features in rows and cells in columns, in the Matrix Market format;
``features.tsv`` (``genes.tsv`` of older versions) has an identifier, a name and a type
of each feature, and ``barcodes.tsv`` the names of the cells. All may be gzipped, and
have something before their names, as files from GEO do.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from scipy import io, sparse

from ebda.inputs.base import Block, Format, Reading
from ebda.inputs.dialect import read_text, unpacked
from ebda.listing import counted, quoted

_MATRIX, _FEATURES = "matrix.mtx", ("features.tsv", "genes.tsv")
_BARCODES = "barcodes.tsv"
_BANNER = b"%%MatrixMarket"
_EXPRESSION = "Gene Expression"
_HEAD = 1 << 16
# A stored value takes up a number and the place of its column.
_STORED_BYTES = 12


def load(path: Path, how: Reading) -> Block:
    """Read a folder, or the matrix in it with the lists beside it."""
    place = matrix_of(path)
    assert place is not None
    folder, prefix = place.parent, place.name.partition(_MATRIX)[0]
    rows, columns, stored = _size(place)
    how.refuse_large(_STORED_BYTES * stored, path)
    counts = sparse.csc_array(io.mmread(str(place)))
    features = _lines(_beside(folder, prefix, _FEATURES), how)
    cells = _lines(_beside(folder, prefix, (_BARCODES,)), how)
    for what, found, size in (
        ("features", features, rows),
        ("barcodes", cells, columns),
    ):
        if len(found) != size:
            raise ValueError(
                f"{path}: the matrix has {size} {what}, and the list of them "
                f"{len(found)}; are the files of one run?"
            )
    kinds = np.array([row[2] if len(row) > 2 else _EXPRESSION for row in features])
    keep = np.ones(rows, dtype=bool)
    notes: tuple[str, ...] = ()
    if _EXPRESSION in kinds and (kinds != _EXPRESSION).any():
        keep = kinds == _EXPRESSION
        others = quoted(sorted(set(kinds[~keep].tolist())))
        left = counted(int((~keep).sum()), "feature")
        notes = (f"left out {left} of other types: {others}",)
    return Block(
        sparse.csr_array(counts.T)[:, np.flatnonzero(keep)],
        np.array([row[0] for row in cells], dtype=np.str_),
        np.array(_names(features), dtype=np.str_)[keep],
        orientation="columns",
        evidence="as 10x has cells",
        notes=notes,
    )


def matrix_of(path: Path) -> Path | None:
    """The matrix in a folder, or the file itself; None where there is not just one."""
    if path.is_file():
        return path if path.name.removesuffix(".gz").endswith(_MATRIX) else None
    found = [p for end in ("", ".gz") for p in path.glob(f"*{_MATRIX}{end}")]
    return found[0] if len(found) == 1 else None


def _size(matrix: Path) -> tuple[int, int, int]:
    """Rows, columns and stored values, which the first line without % says."""
    head = unpacked(matrix, _HEAD)
    lines = [line for line in head.splitlines() if line and not line.startswith(b"%")]
    cells = lines[0].split() if head.startswith(_BANNER) and lines else []
    if len(cells) != 3 or not all(cell.isdigit() for cell in cells):
        raise ValueError(f"{matrix}: this is no sparse matrix in Matrix Market format")
    rows, columns, stored = map(int, cells)
    return rows, columns, stored


def _beside(folder: Path, prefix: str, names: tuple[str, ...]) -> Path:
    """The list that belongs to the matrix."""
    wanted = [f"{prefix}{name}{end}" for name in names for end in ("", ".gz")]
    for name in wanted:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(
        f"{folder}: there is {prefix}{_MATRIX}, and no {prefix}{names[0]} beside it"
    )


def _lines(path: Path, how: Reading) -> list[list[str]]:
    """Cells of the lines of a list."""
    text = read_text(path, how)[0].decode()
    return [line.split("\t") for line in text.splitlines() if line.strip()]


def _names(features: list[list[str]]) -> list[str]:
    """Names of the features; where several have one name, with their identifiers.

    >>> _names([["E1", "TP53"], ["E2", "MATR3"], ["E3", "MATR3"], ["E4"]])
    ['TP53', 'MATR3 (E2)', 'MATR3 (E3)', 'E4']
    """
    names = [row[1] if len(row) > 1 and row[1] else row[0] for row in features]
    twice = {name for name, n in Counter(names).items() if n > 1}
    pairs = zip(names, features, strict=True)
    return [f"{name} ({row[0]})" if name in twice else name for name, row in pairs]


FORMAT = Format(
    "10x",
    "a 10x folder",
    lambda head, path: matrix_of(path) is not None,
    load=load,
)
