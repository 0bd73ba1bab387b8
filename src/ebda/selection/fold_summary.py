"""What a covariance is estimated from in a fold: its training samples."""

from __future__ import annotations

from ebda.cached import cached_property
from ebda.covariance import Residuals, Summary
from ebda.data import Samples
from ebda.moments import ClassMoments, Contrasts
from ebda.typing import IntArray


class FoldSummary(Summary):
    """What a covariance is estimated from in a fold.

    Parameters
    ----------
    all_samples : Samples
        Of all folds.
    used : ndarray of int
        Those to train with.
    contrasts : Contrasts
        Those of the fold.
    residuals : Residuals
        Those of the training samples.
    whole : Summary
        Of all samples.
    """

    def __init__(
        self,
        all_samples: Samples,
        used: IntArray,
        contrasts: Contrasts,
        residuals: Residuals,
        whole: Summary,
    ) -> None:
        self._all_samples, self._used = all_samples, used
        self._n_classes = len(whole.moments.counts)
        self.contrasts, self.residuals = contrasts, residuals
        self.sum_of_squared_variances = whole.sum_of_squared_variances
        self.share, self.scale, self.overlap = whole.share, whole.scale, whole.overlap
        self.n_covariates = whole.n_covariates

    # Most covariances need the residuals alone; these take longer.

    @cached_property
    def samples(self) -> Samples:
        """The training samples."""
        return self._all_samples.take(self._used)

    @cached_property
    def moments(self) -> ClassMoments:
        """Moments of the training samples."""
        return self.samples.moments(self._n_classes)
