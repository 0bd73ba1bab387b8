"""AnnData: ``.h5ad`` files and Zarr stores of annotated matrices."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ebda.inputs.blocks import Block, shown
from ebda.inputs.extras import need


def load_h5ad(path: Path, layer: str | None = None) -> Block:
    """Read an ``.h5ad`` file: X or a layer, with the columns of obs at its margin."""
    anndata = need("anndata", "anndata", "reading .h5ad files")
    with warnings.catch_warnings():
        # Repeated names are refused later, with a message of our own.
        warnings.simplefilter("ignore")
        return to_block(anndata.read_h5ad(path), path, layer)


def load_store(path: Path, layer: str | None = None) -> Block:
    """Read a Zarr store that AnnData wrote."""
    anndata = need("anndata", "anndata", "reading AnnData stores")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_block(anndata.read_zarr(path), path, layer)


def to_block(adata: Any, path: Path, layer: str | None) -> Block:
    """A block from an AnnData object."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(
            f"{path}: there is no layer {layer!r}; there are "
            f"{shown(list(adata.layers), 6) or 'none'}"
        )
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError(
            f"{path}: there is no X; name a layer with --layer, there are "
            f"{shown(list(adata.layers), 6) or 'none'}"
        )
    return Block(
        sparse.csr_array(values) if sparse.issparse(values) else np.asarray(values),
        np.asarray(adata.obs_names).astype(np.str_),
        np.asarray(adata.var_names).astype(np.str_),
        {str(name): adata.obs[name].astype(object).tolist() for name in adata.obs},
        evidence="as AnnData has them",
        notes=() if layer is None else (f"values of the layer {layer!r}",),
    )
