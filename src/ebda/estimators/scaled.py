"""Classifiers for which samples may have scales of their own, and wild values.

The scores stay linear in a sample. Labels and probabilities also depend on its
precision, which is measured when it is classified
(:mod:`ebda.covariance.sample_scale`).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ebda.covariance import Summary
from ebda.covariance.sample_scale import SAMPLE_SCALES, SampleScale, Scaling
from ebda.covariance.wild import WILD_VALUES, WildValues, without_wild_values
from ebda.estimators.adjusting import AdjustingClassifier
from ebda.estimators.linear_classifier import of_scores, with_column
from ebda.estimators.training import Training
from ebda.moments import ClassMoments
from ebda.selection.calibration import Calibration, ScaledCalibration


class ScaledClassifier(AdjustingClassifier):
    """A classifier that keeps the scales of the samples, where these have any."""

    sample_scale: str
    sample_scale_: SampleScale | None
    wild_values: str
    wild_values_: WildValues | None
    calibration_: Calibration

    def _scaling(self, training: Training) -> Scaling:
        """Whether samples may have scales: not beside groups and covariates."""
        scaling = SAMPLE_SCALES[self.sample_scale]
        if training.groups is None and training.covariates is None:
            return scaling
        if scaling.is_needed:
            raise ValueError(
                f"sample_scale={self.sample_scale!r} cannot be used with groups or "
                "covariates; use sample_scale='common' or 'auto'"
            )
        return SAMPLE_SCALES["common"]

    def _tamed(self, training: Training, data: Summary) -> Summary:
        """The data without single wild values, where these are not kept."""
        self.wild_values_ = None
        if not WILD_VALUES[self.wild_values].is_done:
            return data
        found = without_wild_values(data)
        if found is None:
            return data
        self.wild_values_, samples = found
        moments, plain = self.wild_values_.moments, self.moments_
        tame = Summary(moments, self._contrasts(training, moments), samples)
        self.moments_ = plain  # which more samples can be added to
        return tame

    def _rule_moments(self) -> ClassMoments:
        known = self.sample_scale_ or self.wild_values_
        return super()._rule_moments() if known is None else known.moments

    def _judged(self, X: Any) -> Any:
        """Scores, and a last column with the precision of each sample."""
        score, scale = self._scores(X), self.sample_scale_
        if scale is None:
            return score
        found = self._as_data(X).lengths(scale.centre, scale.divisor, scale.rows)
        precision = of_scores(scale.precision_of, found, None, np.float64)
        return with_column(score, precision)

    def _calibration(self) -> Calibration | ScaledCalibration:
        scaled = self.sample_scale_ is not None
        return ScaledCalibration(self.calibration_) if scaled else self.calibration_

    def without(self, absent: npt.ArrayLike) -> Self:
        model = super().without(absent)
        if self.sample_scale_ is not None:
            gone = np.flatnonzero(np.asarray(absent, dtype=bool))
            model.sample_scale_ = self.sample_scale_.without(gone)
        return model
