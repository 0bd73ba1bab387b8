"""LIBSVM text: a label and ``index:value`` pairs in each line."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from ebda.inputs.base import Block, Format, Reading
from ebda.inputs.dialect import read_text

TARGET = "label"
_LINE = re.compile(rb"\s*[-+]?\d[\d.eE+-]*(,[-+\d.]+)*\s+(qid:\d+\s+)?\d+:[-+]?[\d.]")


def load(path: Path, how: Reading) -> Block:
    """Read a LIBSVM file. Features are named by their index, as it is written."""
    data, notes = read_text(path)
    try:
        # Indices as they stand, so that training and test files have the same names.
        values, labels = load_svmlight_file(io.BytesIO(data), zero_based=True)
    except ValueError as error:
        raise ValueError(
            f"{path}: not LIBSVM text, which has a number as label and index:value "
            f"pairs in each line ({error})"
        ) from None
    first = 0 if np.any(values.indices == 0) else 1
    return Block(
        values[:, first:],
        None,
        np.arange(first, values.shape[1]).astype(np.str_),
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
