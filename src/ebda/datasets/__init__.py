"""Real data that come with the package, and simulated data."""

from ebda.datasets.embedded import load_golub, load_khan
from ebda.datasets.normal_means import make_normal_means
from ebda.datasets.simulated import make_factor_classes, make_two_class

__all__ = [
    "load_golub",
    "load_khan",
    "make_factor_classes",
    "make_normal_means",
    "make_two_class",
]
