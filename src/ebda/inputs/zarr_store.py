"""Zarr: an array, a group of named arrays, or a store that AnnData wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ebda.inputs import annotated, named_arrays
from ebda.inputs.blocks import Block
from ebda.inputs.extras import need

MARKS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")


def is_store(path: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return path.is_dir() and any((path / mark).exists() for mark in MARKS)


def load(path: Path, orient: str = "auto", layer: str | None = None) -> Block:
    """Read a Zarr store."""
    zarr = need("zarr", "zarr", "reading Zarr stores")
    store = zarr.open(str(path), mode="r")
    if isinstance(store, zarr.Array):
        return named_arrays.to_block({"X": np.asarray(store[...])}, str(path), orient)
    if store.attrs.get("encoding-type") == "anndata" or {"obs", "var"} <= set(store):
        return annotated.load_store(path, layer)
    arrays: dict[str, Any] = {
        str(name): np.asarray(array[...]) for name, array in store.arrays()
    }
    return named_arrays.to_block(arrays, str(path), orient)
