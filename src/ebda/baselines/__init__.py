"""The classifiers that EBClassifier is compared with, as scikit-learn estimators.

Each is a linear classifier with ``coef_`` and ``intercept_`` in the units of X; where
the rule of one is not linear (:class:`RegularizedDA`, :class:`DickerZhao`), it has
neither.
"""

from ebda.baselines.dicker_zhao import DickerZhao
from ebda.baselines.fair import FAIR
from ebda.baselines.greenshtein_park import GreenshteinPark
from ebda.baselines.independence import IndependenceRule
from ebda.baselines.lasso import LassoLogistic
from ebda.baselines.linear_programming_da import LinearProgrammingDA
from ebda.baselines.mean_variance_adaptive import MeanVarianceAdaptive
from ebda.baselines.pseudo_inverse import PseudoInverseLDA
from ebda.baselines.regularized_da import RegularizedDA
from ebda.baselines.shrinkage_da import ShrinkageDA
from ebda.baselines.shrunken_centroids import ShrunkenCentroids
from ebda.baselines.sparse_lda import SparseLDA
from ebda.baselines.thresholded_lda import ThresholdedLDA

__all__ = [
    "FAIR",
    "DickerZhao",
    "GreenshteinPark",
    "IndependenceRule",
    "LassoLogistic",
    "LinearProgrammingDA",
    "MeanVarianceAdaptive",
    "PseudoInverseLDA",
    "RegularizedDA",
    "ShrinkageDA",
    "ShrunkenCentroids",
    "SparseLDA",
    "ThresholdedLDA",
]
