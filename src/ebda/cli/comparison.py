"""New samples beside those of the fit: what is said, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.inputs import DataShift, TrainingValues, compare_with_training
from ebda.inputs.shift import MOST, rule_shares
from ebda.listing import counted

_UNKNOWN = (
    "The model file has no ranges of the training data, so that these samples were not "
    "compared with them; fit the model again with this version of ebda to have them."
)


def compared(
    model: Any,
    X: Any,
    training: TrainingValues | None,
    missing: list[str],
    source: Any,
    strict: bool = False,
    log: bool | str = False,
) -> tuple[DataShift | None, list[str]]:
    """How new samples differ from those of the fit, and what to say about it.

    Parameters
    ----------
    model : classifier
        Fitted.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        New samples in the columns of the model, NaN where a value is missing.
    training : TrainingValues, optional
        Of the model file, which an older one lacks.
    missing : list of str
        Features of the model that the new data do not have.
    source : path
        The file, for messages.
    strict : bool
        Whether everything that would be warned of is an error.
    log : bool or str
        The logarithm that was taken of X, if any.

    Raises
    ------
    ValueError
        If most of the rule's weight is missing; with `strict`, for any warning.
    """
    share = _missing_share(model, X, training)
    if share > MOST:
        raise ValueError(
            f"{source}: {counted(len(missing), 'feature')} of the model with "
            f"{share:.0%} of the rule's weight are missing, and the rest is not the "
            "rule that was fitted; give the features, or fit a model to those that "
            "are there"
        )
    if training is None:
        if strict:
            raise ValueError(f"{source}: {_UNKNOWN} (--strict)")
        return None, [_UNKNOWN]
    shift = compare_with_training(model, X, training, log_taken=bool(log))
    found = shift.warnings()
    if strict and found:
        raise ValueError(f"{source}: {' '.join(found)} (--strict)")
    return shift, [f"Warning: {words}" for words in found]


def _missing_share(model: Any, X: Any, training: TrainingValues | None) -> float:
    """Share of the rule's weight on features that no sample has."""
    if not isinstance(X, np.ndarray) or not hasattr(model, "coef_"):
        return 0.0
    absent = np.isnan(X).all(axis=0)
    if not absent.any():
        return 0.0
    sd = np.ones(X.shape[1])
    if training is not None:
        sd = training.sd
    elif hasattr(model, "contrasts_"):
        sd = np.sqrt(model.contrasts_.variance)
    return float(rule_shares(model, sd)[absent].sum())


def shift_record(shift: DataShift | None) -> dict[str, Any] | None:
    """The numbers for JSON."""
    if shift is None:
        return None
    names = ("outside", "expected_outside", "shift", "expected_shift", "spread")
    return {name: getattr(shift, name) for name in names} | {
        "missing_weight": shift.missing_weight,
        "is_far": shift.is_far,
        "warnings": shift.warnings(),
    }
