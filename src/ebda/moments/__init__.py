"""Per-class moments of every feature, their variances, and normalised contrasts."""

from ebda.moments.classwise import ClassMoments, class_moments, merge_all
from ebda.moments.contrasts import Contrasts, choose_features, class_contrasts
from ebda.moments.variance import VARIANCES, Variance, VarianceEstimator

__all__ = [
    "VARIANCES",
    "ClassMoments",
    "Contrasts",
    "Variance",
    "VarianceEstimator",
    "choose_features",
    "class_contrasts",
    "class_moments",
    "merge_all",
]
