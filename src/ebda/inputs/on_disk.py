"""Files that are larger than memory: opened, and read block by block during the fit.

AnnData ``.h5ad``, Parquet (a file, or a folder of them), a Zarr array and NumPy's
``.npy``. Samples must be in rows, and values are used as they are: what needs all of
them at once (logarithms, medians, cross-validation) has to be done before.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ebda.inputs import zarr_store
from ebda.inputs.blocks import Names, shown
from ebda.inputs.extras import need
from ebda.inputs.labels import Labels, as_classes, labelled, load_labels
from ebda.inputs.table import Table

# A file is read in blocks where it is larger than this share of the free memory.
_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Opened:
    """A store, and what lies at its margins.

    Parameters
    ----------
    X : Any
        What ``EBClassifier.fit`` takes.
    samples, features : ndarray of str, optional
        Names; None where the store has none.
    column : callable
        The cells of a named column of labels.
    candidates : tuple of str
        Columns that may hold labels.
    """

    X: Any
    samples: Names | None
    features: Names | None
    column: Callable[[str], list[Any]]
    candidates: tuple[str, ...] = ()


class OnDisk(Table):
    """A table whose X is a store on disk."""

    def fingerprint(self) -> str:
        """A number for the file, which is too large to be read for that."""
        facts = [path.stat() for path in _files(Path(self.source))]
        told = [(fact.st_size, fact.st_mtime_ns) for fact in facts]
        return hashlib.sha256(repr((self.source, told)).encode()).hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(part for part in path.rglob("*") if part.is_file())
    return [path]


def is_large(path: Path) -> bool:
    """Whether a store can be read in blocks, and had better be."""
    if _kind(path) is None:
        return False
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return False
    return sum(part.stat().st_size for part in _files(path)) > _SHARE * free


def open_table(
    path: Path,
    target: str | None = None,
    labels: Path | None = None,
    layer: str | None = None,
    drop: Iterable[str] = (),
) -> Table:
    """Open a store, with the labels of its samples.

    Parameters
    ----------
    path : Path
        The file or folder.
    target : str, optional
        Column of the labels.
    labels : Path, optional
        A second file with the labels, matched by name, or by order where the store
        has no names.
    layer : str, optional
        Of AnnData, instead of X.
    drop : iterable of str
        Columns of Parquet files that are no features.
    """
    kind = _kind(path)
    if kind is None:
        raise ValueError(
            f"{path} cannot be read in blocks; what can is AnnData (.h5ad), Parquet, a "
            "Zarr array or NumPy's .npy"
        )
    name, opener = kind
    own = None if labels is not None else target
    opened = opener(path, own, layer, tuple(drop))
    n, p = opened.X.shape
    given = None if opened.samples is None else opened.samples.tolist()
    if labels is not None:
        found = load_labels(labels).labels_of(given, n, target)
    elif target is not None:
        found = Labels(opened.column(target), target, f"column {target!r}")
    else:
        known = shown(opened.candidates, 6)
        raise ValueError(
            f"{path}: say with --target which column has the labels, or with --labels "
            "which file" + (f"; there are {known}" if known else "")
        )
    has = labelled(found.cells)
    if not has.all():
        raise ValueError(
            f"{path}: {int((~has).sum())} of {n} samples have no label in "
            f"{found.words}; data that are read in blocks need one for each"
        )
    running = np.arange(1, max(n, p) + 1).astype(np.str_)
    return OnDisk(
        opened.X,
        as_classes(list(found.cells), str(path)),
        running[:n] if opened.samples is None else opened.samples,
        running[:p] if opened.features is None else opened.features,
        str(path),
        name,
        target=found.name,
        labels_from=found.words,
        evidence="as data are that are read in blocks",
        notes=("read in blocks, not into memory",),
        candidates=opened.candidates,
    )


def _no_column(path: Path) -> Callable[[str], list[Any]]:
    def column(name: str) -> list[Any]:
        raise ValueError(f"{path} is an array without columns; give --labels FILE")

    return column


def _open_h5ad(
    path: Path, target: str | None, layer: str | None, drop: tuple[str, ...]
) -> Opened:
    anndata = need("anndata", "anndata", "reading .h5ad files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = anndata.read_h5ad(path, backed="r")
    if layer is not None and layer not in adata.layers:
        raise ValueError(
            f"{path}: there is no layer {layer!r}; there are "
            f"{shown(list(adata.layers), 6) or 'none'}"
        )

    def column(name: str) -> list[Any]:
        if name not in adata.obs:
            raise ValueError(
                f"{path}: obs has no column {name!r}; there are "
                f"{shown(list(adata.obs), 6) or 'none'}"
            )
        cells: list[Any] = adata.obs[name].astype(object).tolist()
        return cells

    return Opened(
        adata.X if layer is None else adata.layers[layer],
        np.asarray(adata.obs_names).astype(np.str_),
        np.asarray(adata.var_names).astype(np.str_),
        column,
        tuple(map(str, adata.obs)),
    )


def _open_parquet(
    path: Path, target: str | None, layer: str | None, drop: tuple[str, ...]
) -> Opened:
    need("pyarrow", "parquet", "reading Parquet in blocks")
    from ebda.data.disk import open_parquet

    left_out = [*drop, *([] if target is None else [target])]
    table = open_parquet(path, left_out)

    def column(name: str) -> list[Any]:
        cells: list[Any] = table.column(name).tolist()
        return cells

    return Opened(table, None, table.names.astype(np.str_), column)


def _open_zarr(
    path: Path, target: str | None, layer: str | None, drop: tuple[str, ...]
) -> Opened:
    zarr = need("zarr", "zarr", "reading Zarr stores")
    store = zarr.open(str(path), mode="r")
    if not isinstance(store, zarr.Array):
        raise ValueError(
            f"{path} is a group of arrays; name the array in it, one of "
            f"{shown([f'{path}/{name}' for name in store.array_keys()], 6) or 'none'}"
        )
    return Opened(store, None, None, _no_column(path))


def _open_npy(
    path: Path, target: str | None, layer: str | None, drop: tuple[str, ...]
) -> Opened:
    X = np.load(path, mmap_mode="r", allow_pickle=False)
    return Opened(X, None, None, _no_column(path))


Opener = Callable[[Path, str | None, str | None, tuple[str, ...]], Opened]


def _kind(path: Path) -> tuple[str, Opener] | None:
    """Name of the format and how it is opened; None where it cannot be."""
    if zarr_store.is_store(path):
        return "Zarr", _open_zarr
    if path.is_dir():
        some = any(part.suffix == ".parquet" for part in path.iterdir())
        return ("Parquet files", _open_parquet) if some else None
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    with path.open("rb") as stream:
        head = stream.read(8)
    marks: dict[bytes, tuple[str, Opener]] = {
        b"\x89HDF\r\n\x1a\n": ("AnnData", _open_h5ad),
        b"PAR1": ("Parquet", _open_parquet),
        b"\x93NUMPY": ("NumPy array", _open_npy),
    }
    return next((kind for mark, kind in marks.items() if head.startswith(mark)), None)
