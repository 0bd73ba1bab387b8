"""Zarr: an array, a group of named arrays, or a store that AnnData wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ebda.inputs import annotated, arrays
from ebda.inputs.base import Block, Format, Package, Reading
from ebda.listing import quoted

ZARR = Package("zarr", "zarr", "reading Zarr stores")
MARKS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")


def is_store(path: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return path.is_dir() and any((path / mark).exists() for mark in MARKS)


def load(path: Path, how: Reading) -> Block:
    """Read a Zarr store."""
    zarr = ZARR.load()
    store = zarr.open(str(path), mode="r")
    single = isinstance(store, zarr.Array)
    members = [store] if single else dict(store.members(max_depth=None)).values()
    # A chunk costs a kilobyte at least, for it is looked for even if it is not there.
    sizes = [max(m.nbytes, m.nchunks << 10) for m in members if hasattr(m, "nchunks")]
    how.refuse_large(sum(sizes), path)
    if single:
        return arrays.to_block({"X": np.asarray(store[...])}, str(path), how.orient)
    if store.attrs.get("encoding-type") == "anndata" or {"obs", "var"} <= set(store):
        return annotated.load_store(path, how)
    named = {str(name): np.asarray(array[...]) for name, array in store.arrays()}
    return arrays.to_block(named, str(path), how.orient)


def open_store(path: Path, how: Reading) -> Block:
    """Open a Zarr array."""
    zarr = ZARR.load()
    store = zarr.open(str(path), mode="r")
    if not isinstance(store, zarr.Array):
        raise ValueError(
            f"{path} is a group of arrays; name the array in it, one of "
            f"{quoted([f'{path}/{name}' for name in store.array_keys()], 6) or 'none'}"
        )
    return Block(store)


FORMAT = Format(
    "Zarr",
    "a Zarr store",
    lambda head, path: is_store(path),
    packages=(ZARR,),
    load=load,
    open=open_store,
)
