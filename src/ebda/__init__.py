"""Empirical Bayes discriminant analysis for few samples and many features.

`EBClassifier` is the classifier, `NormalMeans` the same machinery for a vector of
estimates. Names are loaded when first used, so that ``import ebda`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebda.classifier import EBClassifier
    from ebda.normal_means import NormalMeans

__version__ = version("ebda")
__all__ = ["EBClassifier", "NormalMeans", "__version__"]

_HOMES = {"EBClassifier": "ebda.classifier", "NormalMeans": "ebda.normal_means"}
_MODULES = ("blocks", "datasets", "paper", "plotting", "priors", "theory")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"ebda.{name}")
    raise AttributeError(f"module 'ebda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
