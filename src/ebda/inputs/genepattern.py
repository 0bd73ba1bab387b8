"""GenePattern's files: expression tables in GCT, and labels by order in CLS."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ebda.inputs.base import POLARS, Block, Format, Reading
from ebda.inputs.cells import numbers
from ebda.inputs.dialect import Dialect, read_text
from ebda.inputs.text import parse
from ebda.listing import counted

# How many numbers there are in line 2.
_VERSIONS = {"#1.2": 2, "#1.3": 4}


def load(path: Path, how: Reading) -> Block:
    """Read a GCT file: features in rows, samples in columns.

    After the version and the size comes a header with ``Name``, the annotations of
    features and the samples; in version 1.3 then a row for each annotation of samples,
    which may serve as labels.
    """
    data, notes = read_text(path, how)
    lines = data.split(b"\n", 3)
    version = lines[0].strip().decode()
    if version not in _VERSIONS or len(lines) < 4:
        raise ValueError(
            f"{path}: a GCT file begins with {' or '.join(_VERSIONS)}, the size, and a "
            f"header; this one with {version!r}"
        )
    n_features, n_samples, before, above = _size(lines[1], version, path)
    header = [name.strip() for name in lines[2].decode().rstrip("\r").split("\t")]
    if len(header) != 1 + before + n_samples:
        raise ValueError(
            f"{path}: line 2 promises {counted(n_samples, 'sample')}, and the header "
            f"in line 3 has {len(header) - 1 - before}; is the file cut off or edited?"
        )
    start = sum(len(line) + 1 for line in lines[:3])
    # A quote in a description is a quote: GCT has no other use for them.
    frame = parse(data, Dialect("\t", header, start, len(header), False), path)
    if frame.height != above + n_features:
        raise ValueError(
            f"{path}: line 2 promises {counted(n_features, 'feature')}, and there are "
            f"{frame.height - above}; is the file cut off or edited?"
        )
    names = frame.to_series(0).to_list()
    cells = numbers(frame[above:, 1 + before :], how.decimal)
    for j, rows in cells.bad.items():
        i = int(rows[0])
        raise ValueError(
            f"{path}: {frame[above + i, 1 + before + j]!r} in row "
            f"{names[above + i]!r}, column {header[1 + before + j]!r} is not a "
            "number; correct it"
        )
    return Block(
        np.ascontiguousarray(cells.values.T),
        np.array(header[1 + before :], dtype=np.str_),
        np.array([name or "" for name in names[above:]], dtype=np.str_),
        {str(names[i]): list(frame.row(i))[1 + before :] for i in range(above)},
        orientation="columns",
        evidence="as GCT has them",
        notes=notes,
    )


def _size(line: bytes, version: str, path: Path) -> tuple[int, int, int, int]:
    """Features, samples, annotations of features and of samples, from line 2."""
    cells = line.decode().split()
    wanted = _VERSIONS[version]
    if len(cells) < wanted or not all(cell.isdigit() for cell in cells[:wanted]):
        raise ValueError(
            f"{path}: line 2 should have {wanted} numbers (features, samples"
            f"{'' if wanted == 2 else ', annotations of both'}), and is "
            f"{line.decode().strip()[:40]!r}"
        )
    n_features, n_samples, *annotations = map(int, cells[:wanted])
    before, above = annotations or (1, 0)
    return n_features, n_samples, before, above


def read_labels(path: Path) -> list[str]:
    """Labels of the samples in a CLS file, in order.

    Three lines: counts; ``#`` and the names of the classes; a class for each sample.
    By the format's definition, the first class to occur in the third line is the first
    name in the second, whatever its number is. Where the numbers contradict that, the
    file is refused, because either may have been meant.
    """
    text = read_text(path, Reading())[0].decode()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 3 or not lines[1].startswith("#"):
        raise ValueError(
            f"{path}: a .cls file has three lines: counts, # and the names of the "
            "classes, and a class for each sample"
        )
    names, cells = lines[1][1:].split(), lines[2].split()
    promised = lines[0].split()[0]
    if promised != str(len(cells)):
        raise ValueError(
            f"{path}: line 1 promises {promised} samples, and line 3 has {len(cells)}"
        )
    found = list(dict.fromkeys(cells))
    if len(found) != len(names):
        raise ValueError(
            f"{path}: line 2 names {counted(len(names), 'class')}, and line 3 has "
            f"{len(found)}"
        )
    by_number = {str(k): name for k, name in enumerate(names)}
    by_place = dict(zip(found, names, strict=True))
    if set(found) == set(by_number) and by_place != by_number:
        raise ValueError(
            f"{path}: the first sample has class {found[0]}, which is "
            f"{by_place[found[0]]!r} by the order of classes and "
            f"{by_number[found[0]]!r} by their numbers; write names in line 3"
        )
    if set(found) == set(names):
        return cells
    return [by_place[cell] for cell in cells]


GCT = Format(
    "GCT",
    "GCT",
    lambda head, path: head.startswith(tuple(map(str.encode, _VERSIONS))),
    endings=(".gct",),
    packages=(POLARS,),
    load=load,
)
CLS = Format(
    "CLS", "GenePattern's .cls (by order)", endings=(".cls",), labels=read_labels
)
