"""Empirical Bayes discriminant analysis for few samples and many features.

`EBClassifier` is the classifier, `NormalMeans` the same machinery for a vector of
estimates. Names are loaded when first used, so that ``import ebda`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebda.data.distortion import LogarithmWarning
    from ebda.estimators.classifier import EBClassifier
    from ebda.estimators.normal_means import NormalMeans
    from ebda.estimators.onnx import to_onnx
    from ebda.evaluation import panel
    from ebda.modelfile import ModelFileError, load, load_record, save

__version__ = version("ebda")
__all__ = [
    "EBClassifier",
    "LogarithmWarning",
    "ModelFileError",
    "NormalMeans",
    "__version__",
    "load",
    "load_record",
    "panel",
    "save",
    "to_onnx",
]

_HOMES = {
    "EBClassifier": "ebda.estimators.classifier",
    "LogarithmWarning": "ebda.data.distortion",
    "ModelFileError": "ebda.modelfile",
    "NormalMeans": "ebda.estimators.normal_means",
    "load": "ebda.modelfile",
    "load_record": "ebda.modelfile",
    "panel": "ebda.evaluation",
    "save": "ebda.modelfile",
    "to_onnx": "ebda.estimators.onnx",
}
_MODULES = (
    "baselines",
    "data",
    "datasets",
    "evaluation",
    "inputs",
    "modelfile",
    "paper",
    "plotting",
    "priors",
    "report",
    "scanpy",
    "theory",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"ebda.{name}")
    raise AttributeError(f"module 'ebda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
