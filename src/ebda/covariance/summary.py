"""What a covariance is estimated from: moments, contrasts, and residuals of samples.

The rows of residuals, their Gram matrix and its eigenvalues are computed once, and
shared by all estimates (:mod:`ebda.covariance.residuals`,
:mod:`ebda.covariance.spectrum`).

Where values are missing, their residuals are zero. Those of feature j are then divided
by the root of the share of its values that are there, so that its variance is 1. The
correlation of two features is too small by

    overlap = share with both values / sqrt(share of one * share of the other),

which is the share itself where values are missing at random, and 1 where they are
missing together. Its mean over all pairs puts factors and neighbours right. The noise
of the contrasts has the smaller correlation: means of different samples have less in
common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.covariance.cross_products import CrossResiduals
from ebda.covariance.residuals import Residuals, RowResiduals, SampleResiduals
from ebda.covariance.spectrum import Spectrum, spectrum_of
from ebda.data import Samples
from ebda.kernels.residuals import fill_missing
from ebda.kernels.threads import no_fork
from ebda.moments import ClassMoments, Contrasts, choose_features
from ebda.moments.variance import degrees_of_freedom
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Correlations are never magnified by more than the inverse of this.
_LEAST_OVERLAP = 0.1


def mean_overlap(
    present: npt.NDArray[np.bool_], weight: FloatArray, varying: npt.NDArray[np.bool_]
) -> float:
    """Mean over all pairs of features of ``share_jl / sqrt(share_j share_l)``.

    Parameters
    ----------
    present : ndarray of bool of shape (n_samples, n_features)
        Which values are there.
    weight : ndarray of shape (n_samples,)
        Frequency weights.
    varying : ndarray of bool of shape (n_features,)
        Features that count.

    >>> there = np.array([[True, True], [True, True], [False, False], [False, False]])
    >>> round(mean_overlap(there, np.ones(4), np.ones(2, bool)), 12)
    1.0
    """
    there = present.astype(np.float64)
    share = weight @ there / weight.sum()
    used = varying & (share > 0)
    p = np.count_nonzero(used)
    if p < 2:
        return 1.0
    unit = np.where(used, 1 / np.sqrt(np.where(used, share, 1.0)), 0.0)
    # All pairs at once, less those of a feature with itself, for which it is 1.
    pairs = weight @ (there @ unit) ** 2 / weight.sum() - p
    return float(np.clip(pairs / (p * (p - 1)), _LEAST_OVERLAP, 1.0))


class Summary:
    """What rules are made from: moments, contrasts, and samples if they were kept.

    Parameters
    ----------
    moments : ClassMoments
        Of all samples.
    contrasts : Contrasts
        Normalised contrasts of the class means.
    samples : Samples or None
        Rows that are looked at again.
    covariates : ndarray of shape (n_all_samples, n_columns), optional
        Covariates of all samples that the data were adjusted for, less their mean.
    key : ndarray of shape (n_samples,), optional
        A number for each sample, equal for equal ones, in place of its own.
    """

    n_covariates = 0

    def __init__(
        self,
        moments: ClassMoments,
        contrasts: Contrasts,
        samples: Samples | None,
        key: FloatArray | None = None,
        covariates: FloatArray | None = None,
    ) -> None:
        self.moments, self.contrasts, self.samples = moments, contrasts, samples
        self.given_key, self.all_covariates = key, covariates
        if covariates is not None:
            self.n_covariates = covariates.shape[1]

    @cached_property
    def covariates(self) -> FloatArray | None:
        """Those of the samples that are looked at again."""
        if self.all_covariates is None:
            return None
        assert self.samples is not None
        rows: FloatArray = self.all_covariates[self.samples.number]
        return rows

    @cached_property
    def key(self) -> FloatArray:
        """A number for each sample, equal for equal ones: it decides the folds."""
        if self.given_key is not None:
            return self.given_key
        assert self.samples is not None
        return self.samples.fingerprint(self.moments.means, self.scale)

    def with_key(self, key: FloatArray) -> Summary:
        """The same with other numbers for the samples."""
        known = self.moments, self.contrasts, self.samples, key, self.all_covariates
        return Summary(*known)

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.contrasts.z.shape[1])

    @property
    def total(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.moments.counts.sum())

    @property
    def n_varying(self) -> int:
        """Number of features that are not constant."""
        return int(np.count_nonzero(~self.contrasts.constant))

    @cached_property
    def sum_of_squared_variances(self) -> float:
        """Unbiased estimate over the features, in units of the variances in use."""
        moments, varying = self.moments, ~self.contrasts.constant
        df = moments.residual_df
        within = moments.centred_squares.sum(axis=0)[varying]
        if moments.observed is not None:
            own = self.share[varying] * df
            own_expected = self.share[varying] * moments.expected_squares
            ratio = within / (own_expected * self.contrasts.variance[varying])
            return float((ratio * own / (own + 2)) @ ratio)
        expected = moments.expected_squares
        ratio = within / (expected * self.contrasts.variance[varying])
        return float(ratio @ ratio) * df / (df + 2)

    @property
    def has_missing(self) -> bool:
        """Whether features may have fewer values than there are samples."""
        return len(self.share) > 1

    @cached_property
    def share(self) -> FloatArray:
        """Degrees of freedom of each feature over those that it has with all values.

        Of shape (n_features,) where values are missing, else (1,); 1 where constant.
        """
        if self.moments.observed is None:
            return np.ones(1)
        most = self.moments.residual_df
        share = np.asarray(degrees_of_freedom(self.moments)) / most
        share[(share <= 0) | self.contrasts.constant] = 1.0
        return share

    @cached_property
    def scale(self) -> FloatArray:
        """What residuals are divided by: standard deviations times roots of shares."""
        scale: FloatArray = np.sqrt(self.contrasts.variance)
        if self.moments.observed is not None:
            scale = scale * np.sqrt(self.share)
            scale[self.contrasts.constant] = np.inf
        return scale

    @cached_property
    def _rows_and_present(self) -> tuple[FloatArray, npt.NDArray[np.bool_] | None]:
        assert self.samples is not None
        rows = self.samples.residual_rows(self.moments.means, self.scale)
        rows *= np.sqrt(self.samples.information)[:, None]
        if self.moments.observed is None:
            return rows, None
        present = ~np.isnan(rows)
        fill_missing(rows)
        return rows, present

    @property
    def present(self) -> npt.NDArray[np.bool_] | None:
        """Which values of the samples are there; None if none is missing."""
        return self._rows_and_present[1]

    @property
    def rows(self) -> FloatArray:
        """Residuals of the samples about the class means, times root information.

        Zero where a value is missing.
        """
        return self._rows_and_present[0]

    @cached_property
    def overlap(self) -> float:
        """How much smaller correlations come out for missing values; 1 without any."""
        if self.moments.observed is None:
            return 1.0
        assert self.samples is not None
        moments, weight = self.moments, self.samples.weight
        varying = ~self.contrasts.constant
        most = max(sizes.residual_elements // max(len(weight), 1), 1)
        if self.p <= most:
            assert self.present is not None
            return mean_overlap(self.present, weight, varying)
        # Some of the features tell the mean over all pairs well enough.
        some = choose_features(moments, most)
        rows = self.samples.features(some).residual_rows(
            moments.means[:, some], self.scale[some]
        )
        return mean_overlap(~np.isnan(rows), weight, varying[some])

    @cached_property
    @no_fork()
    def gram(self) -> FloatArray:
        """``rows rows'``."""
        gram: FloatArray = self.rows @ self.rows.T
        return gram

    @property
    def is_tall(self) -> bool:
        """Whether there are more samples than features, by their weights."""
        assert self.samples is not None
        # A sample of weight 2 counts as two, here as everywhere.
        return bool(min(self.samples.weight.sum(), sizes.kept(self.p)) > self.p)

    @cached_property
    @no_fork()
    def cross(self) -> FloatArray:
        """``rows' rows``, where there are more samples than features."""
        cross: FloatArray = self.rows.T @ self.rows
        return cross

    @cached_property
    def residuals(self) -> Residuals:
        """Residuals of the samples: in memory if they are few."""
        samples = self.samples
        assert samples is not None
        if len(samples) * self.p <= sizes.residual_elements:
            return self.residuals_of(np.arange(len(samples)))
        return SampleResiduals(samples, self.moments.means, self.scale)

    def residuals_of(self, used: IntArray, unit: FloatArray | None = None) -> Residuals:
        """Residuals of some of the samples, about their own class means.

        Parameters
        ----------
        used : ndarray of int
            Which samples.
        unit : ndarray of shape (n_features,), optional
            Their standard deviations over those of all samples.
        """
        samples = self.samples
        assert samples is not None
        if self.is_tall:
            return CrossResiduals.of(self.rows, self.cross, samples, used, unit)
        return RowResiduals(self.rows, self.gram, samples, used, unit)

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """Eigenvalues of the sample correlation, computed once for all estimates."""
        return spectrum_of(self.residuals, self.n_covariates)
