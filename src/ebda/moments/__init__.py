"""Per-class moments of every feature, their variances, and normalised contrasts."""

from ebda.moments.classwise import ClassMoments, class_moments, merge_all
from ebda.moments.contrasts import Contrasts, class_contrasts
from ebda.moments.variance import VARIANCES, Variance

__all__ = [
    "VARIANCES",
    "ClassMoments",
    "Contrasts",
    "Variance",
    "class_contrasts",
    "class_moments",
    "merge_all",
]
