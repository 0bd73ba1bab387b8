"""Residuals and differences in units of the standard deviations, or as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.baselines.regularized_covariance import varies_within
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.moments.contrasts import contrast_weights
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ScaledSamples:
    """What rules of covariance and differences are made of.

    Parameters
    ----------
    residual : ndarray of shape (n_samples, n_used)
        Samples less the mean of their class, over `unit`.
    differences : ndarray of shape (n_contrasts, n_used)
        Contrasts of the class means, over `unit`.
    unit : ndarray of shape (n_used,)
        Standard deviations, or ones.
    used : ndarray of bool of shape (n_features,)
        Features that are not constant within every class.
    df : int
        Degrees of freedom.
    moments : ClassMoments
        Of all features.
    """

    residual: FloatArray
    differences: FloatArray
    unit: FloatArray
    used: npt.NDArray[np.bool_]
    df: int
    moments: ClassMoments

    @classmethod
    def of(
        cls,
        X: npt.NDArray[Any],
        codes: IntArray,
        scaled: bool,
        moments: ClassMoments | None = None,
    ) -> ScaledSamples:
        """From samples of all classes; moments are computed if they are not given."""
        if moments is None:
            moments = class_moments(X, codes, int(codes.max()) + 1)
        used = varies_within(X, codes)
        means = moments.means[:, used]
        df = len(codes) - len(means)
        residual = X[:, used].astype(np.float64) - means[codes]
        unit = np.ones(residual.shape[1])
        if scaled:
            unit = np.sqrt(np.einsum("ij,ij->j", residual, residual) / df)
            residual /= unit
        positive, negative = contrast_weights(moments.counts)
        differences = (positive - negative) @ means / unit
        return cls(residual, differences, unit, used, df, moments)

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Coefficients in the units of X from weights of the features in use."""
        coef = np.zeros((len(weights), len(self.used)))
        coef[:, self.used] = weights / self.unit
        return coef
