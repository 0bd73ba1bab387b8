"""The correlation within the classes: components that the rule is solved with.

`COVARIANCES` is the registry that the `covariance` parameter of the classifier names.
To add one, write a file with a component and its entry, and name the entry here.
"""

from ebda.covariance.base import Covariance, CovarianceEstimator, Decorrelated
from ebda.covariance.diagonal import DIAGONAL, Diagonal
from ebda.covariance.factor import FACTOR
from ebda.covariance.neighbours import NEIGHBOURS
from ebda.covariance.residuals import Residuals
from ebda.covariance.shrunken import SHRUNKEN
from ebda.covariance.sparse import SPARSE
from ebda.covariance.summary import Summary
from ebda.registry import Registry

COVARIANCES: Registry[CovarianceEstimator] = Registry(
    "covariance", DIAGONAL, SHRUNKEN, FACTOR, NEIGHBOURS, SPARSE
)

__all__ = [
    "COVARIANCES",
    "Covariance",
    "CovarianceEstimator",
    "Decorrelated",
    "Diagonal",
    "Residuals",
    "Summary",
]
