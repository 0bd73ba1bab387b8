"""Arrays with names, and single ones: NumPy's ``.npz`` and ``.npy``."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ebda.inputs.base import Block, Format, Names, Reading
from ebda.listing import quoted

VALUES = ("X", "x", "data", "values")
LABELS = ("y", "Y", "target", "labels", "label", "classes")
SAMPLES = ("sample_names", "sample_name", "sample_ids", "sample_id", "samples", "ids")
FEATURES = ("feature_names", "features", "feature_ids", "genes", "var_names", "columns")
# What scipy.sparse.save_npz writes.
_SPARSE_KEYS = {"format", "shape", "data"}


def to_block(arrays: Mapping[str, Any], source: str, orient: str) -> Block:
    """Samples, features and labels from arrays by their names and shapes.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        What the file has.
    source : str
        The file, for messages.
    orient : {"auto", "rows", "columns"}
        Where the samples are; "auto" stands for rows, unless only columns agree with
        the number of labels.

    Examples
    --------
    >>> arrays = {"X": np.eye(3)[:2], "y": np.array(["a", "b"])}
    >>> block = to_block(arrays, "data.npz", "auto")
    >>> block.values.shape, block.default_target
    ((2, 3), 'y')
    """
    key = _first(arrays, VALUES)
    tables = [name for name, array in arrays.items() if np.ndim(array) == 2]
    if key is None and len(tables) == 1:
        key = tables[0]
    if key is None or np.ndim(arrays[key]) != 2:
        raise ValueError(
            f"{source}: there is no table of values named {' or '.join(VALUES)} with "
            f"two dimensions; it has {quoted(list(arrays), 6)}"
        )
    values = arrays[key]
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{source}: {key!r} holds {values.dtype}, not numbers")
    target = _first(arrays, LABELS)
    orient, evidence = _orient(values.shape, arrays, target, orient)
    if orient == "columns":
        values = values.T
    n, p = values.shape
    margins = {
        name: np.asarray(array).tolist()
        for name, array in arrays.items()
        if np.shape(array) == (n,) and name != key
    }
    if target not in margins:
        target = None
    return Block(
        values,
        _names(arrays, SAMPLES, n),
        _names(arrays, FEATURES, p),
        margins,
        default_target=target,
        orientation=orient,
        evidence=evidence,
    )


def _first(arrays: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in arrays), None)


def _orient(
    shape: tuple[int, ...], arrays: Mapping[str, Any], target: str | None, orient: str
) -> tuple[str, str]:
    if orient != "auto":
        return orient, "as --orient says"
    n = None if target is None else np.size(arrays[target])
    if n == shape[1] != shape[0]:
        return "columns", f"there are as many columns as labels in {target!r}"
    return "rows", "as arrays have them"


def _names(arrays: Mapping[str, Any], known: tuple[str, ...], n: int) -> Names | None:
    fitting = [name for name in known if np.shape(arrays.get(name, 0)) == (n,)]
    return np.asarray(arrays[fitting[0]]).astype(np.str_) if fitting else None


def load_archive(path: Path, how: Reading) -> Block:
    """Read an ``.npz`` file, of named arrays or a sparse matrix.

    Pickled objects in it are refused.
    """
    # The stream is ours to close: np.load forgets it where the archive is damaged.
    with zipfile.ZipFile(path) as packed:
        how.refuse_large(sum(member.file_size for member in packed.infolist()), path)
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        if set(archive.files) >= _SPARSE_KEYS:
            return to_block({"X": sparse.load_npz(path)}, str(path), how.orient)
        arrays = {}
        for key in archive.files:
            try:
                arrays[key] = archive[key]
            except ValueError:
                raise ValueError(
                    f"{path}: the array {key!r} holds Python objects, which are not "
                    "read because that could run code; save text as "
                    "array.astype(str)"
                ) from None
    return to_block(arrays, str(path), how.orient)


def load_array(path: Path, how: Reading) -> Block:
    """Read an ``.npy`` file, samples in rows unless `how` says otherwise."""
    size = path.stat().st_size
    how.refuse_large(size, path)
    values = np.load(path, allow_pickle=False)
    if values.ndim != 2:
        raise ValueError(
            f"{path}: an array of shape {values.shape} is no table; give one with two "
            "dimensions, samples in rows"
        )
    return to_block({"X": values}, str(path), how.orient)


def read_labels(path: Path) -> list[str]:
    """Labels of the samples in an ``.npy`` file, in order."""
    values = np.load(path, allow_pickle=False)
    if values.ndim != 1:
        raise ValueError(
            f"{path}: an array of shape {values.shape} holds no labels; give one label "
            "for each sample"
        )
    return [str(label) for label in values.tolist()]


def open_array(path: Path, how: Reading) -> Block:
    """Open an ``.npy`` file."""
    return Block(np.load(path, mmap_mode="r", allow_pickle=False))


ARCHIVE = Format(
    "NumPy archive",
    "NumPy .npz",
    lambda head, path: head.startswith(b"PK\x03\x04") and b".npy" in head[:512],
    load=load_archive,
)
ARRAY = Format(
    "NumPy array",
    "NumPy .npy",
    lambda head, path: head.startswith(b"\x93NUMPY"),
    load=load_array,
    open=open_array,
    labels=read_labels,
)
