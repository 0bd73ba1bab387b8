"""Standardised residuals of some samples and features, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ebda.typing import FloatArray, IntArray


def fill_missing(tile: FloatArray) -> None:
    """Put zero where a value is NaN, in place: a missing residual counts nothing."""
    tile[np.isnan(tile)] = 0.0


def standardise(
    tile: FloatArray, codes: IntArray, means: FloatArray, scale: FloatArray
) -> None:
    """``tile = (tile - means[codes]) / scale``, in place.

    Parameters
    ----------
    tile : ndarray of shape (n_samples, n_features)
        Values, overwritten.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    means : ndarray of shape (n_classes, n_features)
        What is subtracted.
    scale : ndarray of shape (n_features,)
        What is divided by.
    """
    tile -= means[codes]
    tile /= scale


def signed_squares(residuals: FloatArray) -> FloatArray:
    """``sum_j r_ij |r_ij|`` for each sample."""
    total: FloatArray = np.einsum("ij,ij->i", residuals, np.abs(residuals))
    return total


@dataclass(frozen=True, eq=False)
class NeighbourSums:
    """Sums over features in an order, which can be joined with those that follow.

    Parameters
    ----------
    near : float
        Sum over samples and neighbouring features of the products of residuals.
    ends : ndarray of shape (n_samples, 2), optional
        Residuals of the first and the last feature; None if there are no features.
    thirds : ndarray of shape (n_samples, 3)
        Sums of the residuals over each third of the features.
    """

    near: float
    ends: FloatArray | None
    thirds: FloatArray

    @classmethod
    def empty(cls, n_samples: int) -> NeighbourSums:
        """Sums over no features."""
        return cls(0.0, None, np.zeros((n_samples, 3)))

    def join(self, right: NeighbourSums) -> NeighbourSums:
        """Sums over these features and those that follow them."""
        near, thirds = self.near + right.near, self.thirds + right.thirds
        if self.ends is None or right.ends is None:
            ends = right.ends if self.ends is None else self.ends
            return NeighbourSums(near, ends, thirds)
        near += float(self.ends[:, 1] @ right.ends[:, 0])
        ends = np.column_stack([self.ends[:, 0], right.ends[:, 1]])
        return NeighbourSums(near, ends, thirds)


def neighbour_sums(residuals: FloatArray, third: IntArray) -> NeighbourSums:
    """Products of neighbouring features, and sums over each third of the features.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_features)
        Standardised residuals.
    third : ndarray of int of shape (n_features,)
        The third that a feature belongs to, never decreasing; -1 to skip it.
    """
    used = third >= 0
    if not used.all():
        residuals, third = residuals[:, used], third[used]
    if not residuals.shape[1]:
        return NeighbourSums.empty(len(residuals))
    bounds = np.searchsorted(third, np.arange(4))
    sums = [residuals[:, a:b].sum(axis=1) for a, b in pairwise(bounds)]
    near = float(np.einsum("ij,ij->", residuals[:, 1:], residuals[:, :-1]))
    return NeighbourSums(near, residuals[:, [0, -1]], np.column_stack(sums))
