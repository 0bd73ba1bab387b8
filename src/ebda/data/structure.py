"""Sparse matrices whose indices lead out of them are refused.

Compiled loops trust the indices, and would read and write wherever they point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def check_pointers(indptr: Any, n: int, stored: tuple[int, int]) -> None:
    """Refuse pointers that do not cut what is stored into `n` rows or columns.

    Parameters
    ----------
    indptr : array-like
        Where the rows, or columns, begin.
    n : int
        How many there should be.
    stored : tuple of int
        How many indices there are, and how many values.
    """
    if len(indptr) != n + 1:
        _refuse(f"it has {len(indptr)} pointers, not {n + 1}")
    if stored[0] != stored[1]:
        _refuse(f"it has {stored[0]} indices and {stored[1]} values")
    pointers = np.asarray(indptr)
    if pointers.dtype.kind not in "iu":
        _refuse(f"its pointers are {pointers.dtype}")
    if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        _refuse("its pointers do not ascend from 0")
    if pointers[-1] > stored[0]:
        _refuse(f"its pointers end at {pointers[-1]}, beyond {stored[0]} values")


def check_structure(X: Any) -> None:
    """Refuse a sparse matrix that is damaged; others are not looked at.

    Examples
    --------
    >>> X = sparse.csr_array(np.eye(2))
    >>> check_structure(X)
    >>> X.indices[1] = 7
    >>> check_structure(X)
    Traceback (most recent call last):
    ValueError: the sparse matrix is damaged: it has an index 7, and 2 places
    """
    if not sparse.issparse(X):
        return
    places: list[tuple[Any, int]] = []
    if X.format in ("csr", "csc", "bsr"):
        n, p = X.shape
        if X.format == "bsr":
            n, p = n // X.blocksize[0], p // X.blocksize[1]
        if X.format == "csc":
            n, p = p, n
        check_pointers(X.indptr, n, (len(X.indices), len(X.data)))
        places = [(X.indices[: X.indptr[-1]], p)]
    elif X.format == "coo":
        places = [(X.row, X.shape[0]), (X.col, X.shape[1])]
    for indices, most in places:
        if indices.dtype.kind not in "iu":
            _refuse(f"its indices are {indices.dtype}")
        ends = (indices.min(), indices.max()) if len(indices) else ()
        for index in ends:
            if not 0 <= index < most:
                _refuse(f"it has an index {index}, and {most} places")


def _refuse(what: str) -> None:
    raise ValueError(f"the sparse matrix is damaged: {what}")
