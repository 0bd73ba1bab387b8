"""Hashes of whole numbers, of columns and of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.kernels import compiled, loops
from ebda.kernels.threads import over_blocks
from ebda.sizes import sizes
from ebda.typing import FloatArray

Hashes = npt.NDArray[np.uint64]

# The last bits of a number, which its hash ignores: 18 of the mantissa are left.
_DROPPED_BITS = 34


def hash_integers(number: npt.NDArray[np.integer]) -> Hashes:
    """The finaliser of splitmix64: hashes of close integers lie far apart."""
    h = number.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = h ^ (h >> np.uint64(31))
    return mixed


def hash_columns(rows: FloatArray) -> Hashes:
    """A hash of each column, which ignores the last digits of its numbers."""
    key = np.empty(rows.shape[1], dtype=np.uint64)

    def mix(cols: slice) -> None:
        mixed = np.zeros(cols.stop - cols.start, dtype=np.uint64)
        for row in rows[:, cols]:
            leading = row.view(np.int64) >> _DROPPED_BITS
            mixed = hash_integers(mixed ^ leading.view(np.uint64))
        key[cols] = mixed

    over_blocks(mix, len(key))
    return key


def column_keys(n_features: int) -> Hashes:
    """An odd number for each column, by which :func:`hash_rows` tells them apart."""
    return hash_integers(np.arange(n_features)) | np.uint64(1)


def hash_rows(X: Any, keys: Hashes) -> Hashes:
    """``sum_j f(x_ij) keys_j`` modulo 2**64, the same for equal rows wherever they are.

    f mixes the bits of a float64, and is zero at zero. So neither the dtype nor the
    sparsity matters, and hashes of parts of a row add up to that of the row.

    Parameters
    ----------
    X : ndarray of any real dtype and memory order, CSR or CSC matrix
        Rows.
    keys : ndarray of uint64 of shape (n_features,)
        Those of the columns of X (:func:`column_keys`).

    Examples
    --------
    >>> X = np.array([[1.5, -0.0], [1.5, 0.0], [0.0, 1.5]])
    >>> first, second, third = hash_rows(X, column_keys(2))
    >>> first == second, first == third
    (np.True_, np.False_)
    """
    if sparse.issparse(X):
        return _hash_sparse_rows(X, keys)
    total = np.zeros(X.shape[0], dtype=np.uint64)
    if compiled.suits_matrix(X):
        loop = compiled.compile_loop(loops.hash_rows)
        parts = over_blocks(
            lambda cols: loop(X, keys, cols.start, cols.stop), len(keys), None, True
        )
    else:
        width = max(1, sizes.tile_elements // max(len(X), 1))
        parts = over_blocks(
            lambda cols: _folded(X[:, cols]) @ keys[cols], len(keys), width, True
        )
    for part in parts:
        total += part
    return total


def _folded(values: npt.NDArray[Any]) -> Hashes:
    """Bits of the values, the upper half folded into the lower."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    bits ^= bits >> np.uint64(32)
    return bits


def _hash_sparse_rows(X: Any, keys: Hashes) -> Hashes:
    if not X.has_canonical_format:  # a value may be stored in parts
        X = X.copy()
        X.sum_duplicates()
    total = np.zeros(X.shape[0], dtype=np.uint64)
    length = X.shape[1] if X.format == "csc" else X.shape[0]
    count = 1 + X.nnz // sizes.sparse_elements
    for run in np.array_split(np.arange(length), min(count, max(length, 1))):
        if not len(run):
            continue
        some = slice(run[0], run[-1] + 1)
        if X.format == "csc":
            part, top, left = X[:, some].tocoo(), 0, some.start
        else:
            part, top, left = X[some].tocoo(), some.start, 0
        np.add.at(total, part.row + top, _folded(part.data) * keys[part.col + left])
    return total
