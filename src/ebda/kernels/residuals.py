"""Standardised residuals of some samples and features, and sums over them."""

from __future__ import annotations

from collections.abc import Iterable
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


# Distances along the order at which products of residuals are summed.
LAGS = 1, 4, 16, 64


@dataclass(frozen=True, eq=False)
class NeighbourSums:
    """Sums over features in an order, which can be joined with those that follow.

    Parameters
    ----------
    near : ndarray of shape (n_lags,)
        Sums over samples, and over features that are `LAGS` apart, of the products of
        residuals.
    first, last : ndarray of shape (n_samples, at most the largest lag)
        Residuals of the first and of the last features.
    thirds : ndarray of shape (n_samples, 3)
        Sums of the residuals over each third of the features.
    """

    near: FloatArray
    first: FloatArray
    last: FloatArray
    thirds: FloatArray

    @classmethod
    def empty(cls, n_samples: int) -> NeighbourSums:
        """Sums over no features."""
        none = np.empty((n_samples, 0))
        return cls(np.zeros(len(LAGS)), none, none, np.zeros((n_samples, 3)))

    def join(self, right: NeighbourSums) -> NeighbourSums:
        """Sums over these features and those that follow them."""
        both, seam = np.hstack([self.last, right.first]), self.last.shape[1]
        windows = (both[:, max(0, seam - lag) : seam + lag] for lag in LAGS)
        near = self.near + right.near + _products(windows)
        first = np.hstack([self.first, right.first])[:, : LAGS[-1]]
        last = np.hstack([self.last, right.last])[:, -LAGS[-1] :]
        return NeighbourSums(near, first, last, self.thirds + right.thirds)


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
    bounds = np.searchsorted(third, np.arange(4))
    return NeighbourSums(
        _products([residuals] * len(LAGS)),
        residuals[:, : LAGS[-1]].copy(),
        residuals[:, -LAGS[-1] :].copy(),
        np.column_stack([residuals[:, a:b].sum(axis=1) for a, b in pairwise(bounds)]),
    )


def _products(residuals: Iterable[FloatArray]) -> FloatArray:
    """Sums of the products of columns that are so far apart, for each lag its own."""
    pairs = ((rows[:, lag:], rows) for rows, lag in zip(residuals, LAGS, strict=True))
    return np.array(
        [np.einsum("ij,ij->", far, rows[:, : far.shape[1]]) for far, rows in pairs]
    )
