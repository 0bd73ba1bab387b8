"""NumPy archives: named arrays, or a matrix that ``scipy.sparse.save_npz`` wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from ebda.inputs.blocks import Block
from ebda.inputs.named_arrays import to_block

_SPARSE_KEYS = {"format", "shape", "data"}


def load(path: Path, orient: str = "auto") -> Block:
    """Read an ``.npz`` file; pickled objects in it are refused."""
    # The stream is ours to close: np.load forgets it where the archive is damaged.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        if set(archive.files) >= _SPARSE_KEYS:
            values = sparse.csr_array(sparse.load_npz(path))
            if orient == "columns":
                values = sparse.csr_array(values.T)
            evidence = "as arrays have them" if orient == "auto" else "as --orient says"
            where = "rows" if orient == "auto" else orient
            return Block(values, orientation=where, evidence=evidence)
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
    return to_block(arrays, str(path), orient)
