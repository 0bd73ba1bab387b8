"""What the steps of a fit ask of X, wherever it is.

:class:`Data` is all of X, read once; :class:`Samples` are some of its rows, which the
common factors and the folds look at again. Memory, disk, Dask and devices implement
the two protocols, and ``tests/conformance.py`` proves it for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from ebda.data.finite import refuse_in_block
from ebda.kernels.residuals import NeighbourSums
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.typing import FloatArray, IntArray


class Samples(Protocol):
    """Samples that are kept, and the sums over them that later steps need.

    No sum makes a copy of full size, and none depends on how the features are cut into
    blocks. The residuals of a sample are ``(x - means[code]) / scale``, and zero where
    a value is missing.
    """

    @property
    def codes(self) -> IntArray:
        """Class of each sample."""

    @property
    def weight(self) -> FloatArray:
        """Frequency weight of each sample, above zero."""

    @property
    def precision(self) -> FloatArray:
        """One over the square of each sample's own scale; 1 unless it was measured."""

    @property
    def information(self) -> FloatArray:
        """What each sample counts in a mean: its weight times its precision."""

    @property
    def number(self) -> IntArray:
        """Position of each sample in the stream of all samples, increasing."""

    @property
    def place(self) -> str:
        """Where the values are; samples of two places cannot be joined."""

    def __len__(self) -> int: ...

    def take(self, chosen: npt.NDArray[Any]) -> Self:
        """Some of these samples.

        Parameters
        ----------
        chosen : ndarray
            A mask, or increasing positions.
        """

    def with_precision(self, precision: FloatArray) -> Self:
        """The same samples with scales of their own.

        Parameters
        ----------
        precision : ndarray of shape (n_samples,)
            One over the squares of the scales.
        """

    def features(self, chosen: IntArray) -> Self:
        """The same samples with some of the features only, as a copy.

        Parameters
        ----------
        chosen : ndarray of int
            Columns, in increasing order.
        """

    def copy(self) -> Self:
        """The same samples, independent of X.

        Raises ValueError where X is too large to be copied.
        """

    def append(self, other: Self) -> Self:
        """These samples and those of a later batch, as a copy, thinned again.

        Raises ValueError where X is too large to be copied.
        """

    def fingerprint(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        """A number for each sample, the same to the bit for equal samples.

        It is the sum of the signed squares of the residuals: the residuals themselves
        may add up to zero in every sample.
        """

    def gram(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        """``R R'``, R the residuals times the square roots of the information."""

    def loadings(
        self, means: FloatArray, scale: FloatArray, combine: FloatArray
    ) -> FloatArray:
        """``R' combine``, of shape (n_features, n_factors), R the residuals.

        Parameters
        ----------
        means : ndarray of shape (n_classes, n_features)
            Class means.
        scale : ndarray of shape (n_features,)
            Standard deviations.
        combine : ndarray of shape (n_samples, n_factors)
            Weights of the samples.
        """

    def projections(
        self, means: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        """``R rows'``, of shape (n_samples, n_rows), R the residuals.

        Parameters
        ----------
        means : ndarray of shape (n_classes, n_features)
            Class means.
        scale : ndarray of shape (n_features,)
            Standard deviations.
        rows : ndarray of shape (n_rows, n_features)
            What is multiplied with the residuals.
        """

    def residual_rows(self, means: FloatArray, scale: FloatArray) -> FloatArray:
        """R itself, in memory, NaN where a value is missing: for data that are few."""

    def neighbour_sums(
        self, means: FloatArray, scale: FloatArray, third: IntArray
    ) -> NeighbourSums:
        """Products of neighbouring features, and sums over each third of the features.

        Residuals are multiplied with the square roots of the information.

        Parameters
        ----------
        means : ndarray of shape (n_classes, n_features)
            Class means.
        scale : ndarray of shape (n_features,)
            Standard deviations.
        third : ndarray of int of shape (n_features,)
            The third that a feature belongs to, never decreasing; -1 to skip it.
        """

    def moments(self, n_classes: int) -> ClassMoments:
        """Moments of these samples alone, each with its information as its weight."""

    def moments_by(
        self, group: IntArray, n_groups: int, n_classes: int
    ) -> list[ClassMoments]:
        """Moments of each group of these samples, in one pass.

        Parameters
        ----------
        group : ndarray of int of shape (n_samples,)
            In ``range(n_groups)``.
        n_groups, n_classes : int
            Numbers of groups and of classes.
        """

    def scores(self, coef: FloatArray) -> FloatArray:
        """``X @ coef.T``, one row per sample, with zero for missing values."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes of all samples, and how often each sample counts.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each sample.
    n_classes : int
        Number of classes.
    weight : ndarray of shape (n_samples,), optional
        Frequency weights.
    first : int
        Position of the first sample in the stream of all samples.
    allow_missing : bool
        Whether a value that is NaN is missing, and no error.
    """

    codes: IntArray
    n_classes: int
    weight: FloatArray | None = None
    first: int = 0
    allow_missing: bool = False

    def part(self, rows: slice) -> Labels:
        """Those of a run of samples."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(
            self, codes=self.codes[rows], weight=weight, first=self.first + rows.start
        )

    def moments_of(self, X: Any) -> ClassMoments:
        """Class moments of these samples, or of some of their features."""
        return class_moments(X, self.codes, self.n_classes, self.weight)

    def checked_moments_of(self, block: Any, top: int, left: int) -> ClassMoments:
        """The same for a block that is read once: what must not be in it is an error.

        Parameters
        ----------
        block : ndarray or sparse matrix
            Values of these samples.
        top, left : int
            First row and column of the block.
        """
        moments = self.moments_of(block)
        refused = moments.observed is not None and not self.allow_missing
        if refused or not np.isfinite(moments.means).all():
            refuse_in_block(block, top, left, self.allow_missing)
        return moments


class GapRule(Protocol):
    """How samples with missing values are scored, from sums over their features."""

    @property
    def values(self) -> FloatArray:
        """What the values that are there are multiplied with."""

    @property
    def gaps(self) -> FloatArray:
        """What is added up over the features that are missing."""

    @property
    def finish(self) -> Callable[[FloatArray], FloatArray]:
        """From :func:`ebda.kernels.scores.gap_sums` over all features to scores."""


class Data(Protocol):
    """All samples, in rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def names(self) -> npt.NDArray[Any] | None:
        """Names of the features, where they have any."""

    @property
    def values(self) -> Any:
        """The matrix itself where it is in memory; None where blocks of it are read.

        Blocks are looked at for NaN and infinity when they are read.
        """

    def summarise(
        self, labels: Labels, keep: bool
    ) -> tuple[ClassMoments, Samples | None]:
        """Class moments; and samples for a second look, if any are to be kept.

        Parameters
        ----------
        labels : Labels
            Classes and weights of the samples.
        keep : bool
            Whether samples are needed: those of
            :func:`~ebda.data.samples.choose`.
        """

    def scores(
        self, coef: FloatArray, intercept: FloatArray, rule: GapRule | None = None
    ) -> Any:
        """``X @ coef.T + intercept``: an ndarray, or a lazy array of Dask.

        Parameters
        ----------
        coef : ndarray of shape (n_contrasts, n_features)
            Coefficients.
        intercept : ndarray of shape (n_contrasts,)
            Intercepts.
        rule : GapRule, optional
            For samples with missing values, which are refused without it.
        """

    def products(self, rows: FloatArray) -> FloatArray:
        """``rows X``, of shape (n_rows, n_features), in one pass.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_samples)
            What X is multiplied with.
        """

    def value_products(self, rows: FloatArray, masks: FloatArray) -> FloatArray:
        """``rows X`` without missing values, above ``masks M``, in one pass.

        M tells which values are there. Of shape (n_rows + n_masks, n_features).

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_samples)
            What X is multiplied with, zero in place of NaN.
        masks : ndarray of shape (n_masks, n_samples)
            What M is multiplied with.
        """

    def adjusted(self, covariates: FloatArray, slopes: FloatArray) -> Data:
        """``X - covariates slopes``, computed when it is read.

        Parameters
        ----------
        covariates : ndarray of shape (n_samples, n_columns)
            Of each sample.
        slopes : ndarray of shape (n_columns, n_features)
            Of each feature.
        """

    def lengths(self, centre: FloatArray, scale: FloatArray, rows: FloatArray) -> Any:
        """Squared length of each ``r = (x - centre) / scale``, and its products.

        Between them is the number of values that it has; missing ones count as zero.
        The array has the shape (n_samples, 2 + n_rows), and is lazy where scores are.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
            What is subtracted.
        scale : ndarray of shape (n_features,)
            What is divided by; infinite for features to leave out.
        rows : ndarray of shape (n_rows, n_features)
            What r is multiplied with.
        """

    def job_context(self) -> AbstractContextManager[Any]:
        """Inside this block, jobs (:mod:`ebda.jobs`) run where the data are."""
