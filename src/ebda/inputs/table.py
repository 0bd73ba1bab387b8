"""A table as the classifier takes it, with how the file was understood."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ebda.inputs.base import Block, Names
from ebda.listing import counted, escaped, listed, quoted


@dataclass(frozen=True, eq=False)
class Table:
    """Samples in rows, features in columns, and their labels.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        Values, after `transformation`.
    y : ndarray of shape (n_samples,), optional
        Labels: int64 if all are whole numbers, else text.
    sample_names, feature_names : ndarray of str
        Names; running numbers where the file has none.
    source : str
        The file.
    format : str
        How it was written.
    orientation : {"rows", "columns"}
        Where the samples were in the file.
    target : str, optional
        Name of the labels.
    labels_from : str
        Where the labels are from, in words.
    transformation : str
        What was done to the values; "none" if nothing was.
    evidence : str
        Why the orientation is what it is.
    notes : tuple of str
        What else was found, left out, or looks suspicious.
    candidates : tuple of str
        What could have served as labels.
    n_ignored : int
        Number of features that were not asked for, and not read.
    absent_is_zero : bool
        Whether a feature that the file does not have is zero.
    aside : mapping of str to list
        What else is known of the samples: groups and covariates, by name.
    """

    X: Any
    y: npt.NDArray[Any] | None
    sample_names: Names
    feature_names: Names
    source: str
    format: str
    orientation: str = "rows"
    target: str | None = None
    labels_from: str = ""
    transformation: str = "none"
    evidence: str = ""
    notes: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    n_ignored: int = 0
    absent_is_zero: bool = False
    aside: Mapping[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, block: Block, source: str, form: str) -> Self:
        """A table without labels; running numbers stand in for names."""
        n, p = block.values.shape
        running = np.arange(1, max(n, p) + 1).astype(np.str_)
        return cls(
            block.values,
            None,
            running[:n] if block.samples is None else block.samples,
            running[:p] if block.features is None else block.features,
            source,
            form,
            block.orientation,
            evidence=block.evidence,
            notes=block.notes,
            candidates=tuple(block.annotations),
            n_ignored=block.n_ignored,
            absent_is_zero=block.absent_is_zero,
        )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def class_counts(self) -> dict[Any, int]:
        """Samples of each class."""
        if self.y is None:
            return {}
        classes, counts = np.unique(self.y, return_counts=True)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))

    def preview(self) -> str:
        """How the file was understood, in words."""
        kind = "sparse, " if sparse.issparse(self.X) else ""
        lines = [
            f"{self.source} ({kind}{self.format})",
            f"  samples         {self.n_samples}, in {self.orientation}: "
            f"{self.evidence}",
            f"  features        {self.n_features}: "
            f"{quoted(self.feature_names.tolist())}",
        ]
        if self.y is not None:
            words = f"{_classes(self.class_counts)} (from {self.labels_from})"
            lines.append(f"  classes         {words}")
        lines += [
            f"  {escaped(name):<15} {_values(cells)}"
            for name, cells in self.aside.items()
        ]
        lines.append(f"  transformation  {self.transformation}")
        lines += [f"  note            {note}" for note in self.notes]
        return "\n".join(lines)

    def fingerprint(self) -> str:
        """A hash of the features and the values."""
        digest = hashlib.sha256("\0".join(self.feature_names.tolist()).encode())
        parts: tuple[Any, ...] = (self.X,)
        if sparse.issparse(self.X):
            parts = (self.X.indptr, self.X.indices, self.X.data)
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def _values(cells: list[Any]) -> str:
    there = [str(cell) for cell in cells if cell is not None and str(cell).strip()]
    different = list(dict.fromkeys(there))
    words = counted(len(different), "value")
    if len(there) < len(cells):
        words += f", {len(cells) - len(there)} missing"
    return f"{words}: {quoted(different)}" if different else words


def _classes(counts: dict[Any, int]) -> str:
    each = [f"{escaped(str(label))} {n}" for label, n in counts.items()]
    return f"{counted(len(counts), 'class')}: {listed(each, 12)}"
