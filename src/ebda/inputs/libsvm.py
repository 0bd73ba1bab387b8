"""LIBSVM text: a label and ``index:value`` pairs in each line."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from ebda.inputs.base import Block, Format, Reading
from ebda.inputs.dialect import read_text

TARGET = "label"
# Python reads 1_1 as 11. Comments may have what they like.
_UNDERSCORE = re.compile(rb"^[^#\n]*_", re.MULTILINE)
_LINE = re.compile(rb"\s*[-+]?\d[\d.eE+-]*(,[-+\d.]+)*\s+(qid:\d+\s+)?\d+:[-+]?[\d.]")


def load(path: Path, how: Reading) -> Block:
    """Read a LIBSVM file. Features are named by their index, as it is written.

    Indices that do not occur are no features, so that a large one costs nothing.
    """
    data, notes = read_text(path, how)
    try:
        if _UNDERSCORE.search(data):
            raise ValueError("a number with an underscore")
        # Indices as they stand, so that training and test files have the same names.
        values, labels = load_svmlight_file(io.BytesIO(data), zero_based=True)
    except ValueError as error:
        raise ValueError(
            f"{path}: not LIBSVM text, which has a number as label and index:value "
            f"pairs in each line ({error})"
        ) from None
    found, places = np.unique(values.indices, return_inverse=True)
    return Block(
        sparse.csr_array(
            (values.data, places, values.indptr), (len(labels), len(found))
        ),
        None,
        found.astype(np.str_),
        {TARGET: labels.tolist()},
        default_target=TARGET,
        evidence="as LIBSVM has them",
        absent_is_zero=True,
        notes=notes,
    )


FORMAT = Format(
    "LIBSVM",
    "LIBSVM text",
    lambda head, path: bool(_LINE.match(head)),
    endings=(".svm", ".libsvm", ".svmlight"),
    load=load,
)
