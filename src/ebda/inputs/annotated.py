"""AnnData: ``.h5ad`` files, and annotated matrices in Zarr stores."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ebda.inputs.base import Block, Format, Package, Reading
from ebda.listing import quoted

ANNDATA = Package("anndata", "anndata", "reading AnnData files")
H5PY = Package("h5py", "anndata", "reading AnnData files")


def load(path: Path, how: Reading) -> Block:
    """Read an ``.h5ad`` file: X or a layer, with the columns of obs at its margin."""
    h5py = H5PY.load()
    parts: list[Any] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, part: parts.append(getattr(part, "nbytes", 0)))
    how.refuse_large(sum(parts), path)
    return _to_block(_read("read_h5ad", path), path, how.layer)


def load_store(path: Path, how: Reading) -> Block:
    """Read a Zarr store that AnnData wrote."""
    return _to_block(_read("read_zarr", path), path, how.layer)


def open_h5ad(path: Path, how: Reading) -> Block:
    """Open an ``.h5ad`` file: X or a layer, with the columns of obs at its margin."""
    return _to_block(_read("read_h5ad", path, backed="r"), path, how.layer)


def _read(reader: str, path: Path, **options: Any) -> Any:
    anndata = ANNDATA.load()
    with warnings.catch_warnings():
        # Repeated names are refused later, with a message of our own.
        warnings.simplefilter("ignore")
        return getattr(anndata, reader)(path, **options)


def _values(adata: Any, path: Path, layer: str | None) -> Any:
    """X, or a layer in its place."""
    layers = quoted(list(adata.layers), 6) or "none"
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"{path}: there is no layer {layer!r}; there are {layers}")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError(
            f"{path}: there is no X; name a layer with --layer, there are {layers}"
        )
    return values


def _to_block(adata: Any, path: Path, layer: str | None) -> Block:
    values = _values(adata, path, layer)
    wanted = len(adata.obs_names), len(adata.var_names)
    if tuple(values.shape) != wanted:
        raise ValueError(
            f"{path}: the values have the shape {tuple(values.shape)}, and obs and var "
            f"{wanted}; the file is damaged"
        )
    return Block(
        values,
        np.asarray(adata.obs_names).astype(np.str_),
        np.asarray(adata.var_names).astype(np.str_),
        {str(name): adata.obs[name].astype(object).tolist() for name in adata.obs},
        evidence="as AnnData has them",
        notes=() if layer is None else (f"values of the layer {layer!r}",),
    )


FORMAT = Format(
    "AnnData",
    "AnnData .h5ad",
    lambda head, path: head.startswith(b"\x89HDF\r\n\x1a\n"),
    packages=(ANNDATA,),
    load=load,
    open=open_h5ad,
)
