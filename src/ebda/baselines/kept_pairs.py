"""The pairs of features whose covariance exceeds a threshold, found once for many.

Forming all p x p products takes most of the time. A pair that is kept by a threshold is
kept by every lower one: what the lowest keeps is enough for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ebda.baselines.sparse_covariance import SparseCovariance, from_entries
from ebda.baselines.thresholded_covariance import Block, Threshold
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of features with a covariance beyond some threshold.

    Parameters
    ----------
    row, column : ndarray of int of shape (n_pairs,)
        The two features.
    covariance : ndarray of shape (n_pairs,)
        Covariances.
    unit : ndarray of shape (n_pairs,)
        w_ij.
    """

    row: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    covariance: FloatArray
    unit: FloatArray

    @classmethod
    def of(cls, block: Block, step: float) -> Pairs:
        """Those of some rows of the matrix."""
        exceeds = np.abs(block.covariance) > step * block.unit
        n_rows, n_columns = exceeds.shape
        # The first columns are the features of the rows.
        exceeds[:, :n_rows] &= ~np.tri(n_rows, dtype=bool)
        place = np.flatnonzero(exceeds)
        row, column = np.divmod(place, n_columns)
        is_common = block.unit.shape != exceeds.shape
        return cls(
            (row + block.start).astype(np.int32),
            (column + block.start).astype(np.int32),
            block.covariance.ravel()[place],
            np.ones(len(place)) if is_common else block.unit.ravel()[place],
        )

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """Those of several parts."""
        names = [field.name for field in fields(cls)]
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )

    def beyond(self, step: float) -> Pairs:
        """Those beyond a higher threshold."""
        kept = np.abs(self.covariance) > step * self.unit
        return Pairs(
            self.row[kept], self.column[kept], self.covariance[kept], self.unit[kept]
        )

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, eq=False)
class Thresholded:
    """What is needed for the covariances of all thresholds from some on.

    Parameters
    ----------
    sd : ndarray of shape (n_features,)
        Standard deviations.
    threshold : Threshold
        How covariances are thresholded.
    pairs : Pairs
        Those beyond the lowest threshold.
    """

    sd: FloatArray
    threshold: Threshold
    pairs: Pairs

    def covariance(self, step: float) -> SparseCovariance:
        """The covariance with the threshold ``step w_ij``, none below the lowest."""
        pairs = self.pairs.beyond(step)
        value = pairs.covariance
        if self.threshold.soft:
            value = value - np.sign(value) * step * pairs.unit
        return from_entries(self.sd, pairs.row, pairs.column, value)


def keep_pairs(
    A: FloatArray,
    df: float,
    threshold: Threshold,
    steps: FloatArray,
    most: float = np.inf,
) -> tuple[Thresholded, int]:
    """Covariances beyond the lowest threshold that keeps few enough of them.

    Parameters
    ----------
    A : ndarray of shape (n_samples, n_features)
        Residuals; every feature varies.
    df : float
        Degrees of freedom.
    threshold : Threshold
        How covariances are thresholded.
    steps : ndarray of shape (n_steps,)
        Thresholds in units of w_ij, ascending.
    most : int, optional
        Number of pairs that may be kept.

    Returns
    -------
    Thresholded
        For all thresholds from that one on.
    int
        Its place in `steps`.
    """
    lowest = 0
    parts: list[Pairs] = []
    for block in threshold.blocks(A, df):
        parts.append(Pairs.of(block, steps[lowest]))
        while sum(map(len, parts)) > most:
            if lowest == len(steps) - 1:
                raise ValueError(
                    "the largest constant keeps more pairs of features than fit into "
                    f"memory: {most} are the limit; allow a larger one"
                )
            lowest += 1
            parts = [part.beyond(steps[lowest]) for part in parts]
    sd = np.sqrt(np.einsum("ij,ij->j", A, A) / df)
    return Thresholded(sd, threshold, Pairs.joined(parts)), lowest
