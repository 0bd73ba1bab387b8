"""Files that are larger than memory: opened, and read block by block during the fit.

Samples must be in rows, and values are used as they are: logarithms and medians have to
be taken before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ebda.inputs.base import Reading, files_of
from ebda.inputs.formats import find_format, open_blocks
from ebda.inputs.labels import (
    labelled,
    labels_of,
    load_labels,
    with_aside,
    with_labels,
)
from ebda.inputs.table import Table
from ebda.listing import counted, quoted
from ebda.sizes import sizes


class OnDisk(Table):
    """A table whose X stays on disk."""

    def fingerprint(self) -> str:
        """A hash of size and time of the file, which is too large to be read for it."""
        facts = [path.stat() for path in files_of(Path(self.source))]
        told = [(fact.st_size, fact.st_mtime_ns) for fact in facts]
        return hashlib.sha256(repr((self.source, told)).encode()).hexdigest()


def is_large(path: Path) -> bool:
    """Whether a file can be read in blocks, and is too large for the memory."""
    if not path.exists() or find_format(path).open is None:
        return False
    free = free_bytes()
    if free is None:
        return False
    size = sum(part.stat().st_size for part in files_of(path))
    return 100 * size > sizes.on_disk_percent * free


def free_bytes() -> int | None:
    """Memory that is free; None where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def open_table(
    path: Path,
    target: str | None = None,
    labels: Path | None = None,
    layer: str | None = None,
    drop: Iterable[str] = (),
    aside: Sequence[str] = (),
) -> Table:
    """Open a file to be read in blocks, with the labels of its samples.

    Parameters
    ----------
    path : Path
        The file or folder.
    target : str, optional
        Column of the labels.
    labels : Path, optional
        A second file with the labels, matched by name, or by order if the data have
        no names.
    layer : str, optional
        Of AnnData, instead of X.
    drop : iterable of str
        Columns of Parquet files that are not features.
    aside : sequence of str
        Columns of groups and covariates.
    """
    found = find_format(path)
    second = None if labels is None else load_labels(labels)
    own = target if second is None else None
    own_aside = [name for name in aside if second is None or name not in second.names]
    how = Reading(layer=layer, target=own, drop=tuple(drop), aside=own_aside)
    block = open_blocks(path, found, how)
    table: Table = OnDisk.of(block, str(path), found.name)
    table = with_aside(table, block, second, aside)
    taken = labels_of(block, second, target, str(path))
    if taken is None:
        known = quoted(table.candidates, 6)
        raise ValueError(
            f"{path}: say with --target which column has the labels, or with --labels "
            "which file" + (f"; there are {known}" if known else "")
        )
    has = labelled(taken.cells)
    if not has.all():
        raise ValueError(
            f"{path}: {int((~has).sum())} of {counted(table.n_samples, 'sample')} "
            f"without a label in {taken.words}; data that are read in blocks need one "
            "for each"
        )
    return replace(
        with_labels(table, taken),
        evidence="as all data that are read in blocks",
        notes=("read in blocks, not into memory",),
    )
