"""Checked samples with their labels, and whether there are enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ebda.data import Data
from ebda.estimators import validation
from ebda.moments import VARIANCES
from ebda.moments.values import ValueDesign
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Training:
    """Checked samples with their labels.

    Parameters
    ----------
    data : Data
        X.
    classes : ndarray of shape (n_classes,)
        The labels.
    codes : ndarray of int of shape (n_samples,)
        Place of each sample's label among them.
    weight : ndarray of shape (n_samples,), optional
        Frequency weights.
    groups : ndarray of int of shape (n_samples,), optional
        Group of each sample.
    columns : Columns, optional
        Columns of the covariates (:mod:`ebda.estimators.covariates`).
    covariates : ndarray of shape (n_samples, n_columns), optional
        Those that `data` is adjusted for, less their mean.
    values : ValueDesign, optional
        What missing values change in the design of these.
    counts : ndarray of shape (n_classes,), optional
        Samples of each class as they were given, where groups make them count less.
    """

    data: Data
    classes: npt.NDArray[Any]
    codes: IntArray
    weight: FloatArray | None
    groups: IntArray | None = None
    columns: Any = None
    covariates: FloatArray | None = None
    values: ValueDesign | None = None
    counts: FloatArray | None = None


class TooFewSamplesError(ValueError):
    """There is no rule yet; more samples may give one."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"cannot fit: {reason}")
        self.reason = reason


def check_enough(classes: npt.NDArray[Any], counts: FloatArray, variance: str) -> None:
    """Refuse too few samples of a class, or too few of all.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    counts : ndarray of shape (n_classes,)
        Samples of each class.
    variance : str
        Which variance is to be estimated.
    """
    least = VARIANCES[variance].min_samples
    few = classes[counts < least] if least > 1 else classes[counts <= 0]
    if few.size:
        names = ", ".join(map(repr, few.tolist()))
        raise TooFewSamplesError(
            f"no sample of class {names}"
            if least == 1
            else f"variance={variance!r} needs {least} samples in every "
            f"class, and class {names} has fewer"
        )
    if counts.sum() <= len(counts):
        reason = validation.too_few_samples(counts.sum(), len(counts))
        raise TooFewSamplesError(f"{reason} (weights are counts)")
