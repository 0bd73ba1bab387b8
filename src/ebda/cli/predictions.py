"""Predictions as a table: of new samples, and of those that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebda.evaluation import Evaluation
from ebda.typing import FloatArray


def probability_columns(
    classes: Sequence[Any], probabilities: FloatArray
) -> dict[str, Any]:
    """One column per class.

    >>> list(probability_columns(["a", "b"], np.eye(2)))
    ['probability_a', 'probability_b']
    """
    pairs = zip(classes, probabilities.T, strict=True)
    return {f"probability_{label}": column for label, column in pairs}


def held_out_columns(
    evaluations: Sequence[Evaluation], sample_names: Sequence[str]
) -> dict[str, Any]:
    """Samples with their class, and what was predicted without them.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        One, or one per repetition of a cross-validation. Probabilities and the
        predicted class are those of the first; a last column has the share of
        repetitions in which the sample was wrong.
    sample_names : sequence of str
        Names, in the order of the evaluations.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> one = Evaluation(np.array(["a", "b"]), np.array([0, 0]), p, 2)
    >>> columns = held_out_columns([one], ["s1", "s2"])
    >>> columns["predicted"], columns["correct"]
    (['a', 'b'], [True, False])
    """
    first = evaluations[0]
    classes = [str(label) for label in first.classes.tolist()]
    columns: dict[str, Any] = {
        "sample": list(sample_names),
        "class": [classes[k] for k in first.codes],
        "predicted": [classes[k] for k in first.predicted],
        "correct": (first.predicted == first.codes).tolist(),
        **probability_columns(classes, first.probabilities),
    }
    if len(evaluations) > 1:
        wrong = [e.predicted != e.codes for e in evaluations]
        columns["share_wrong"] = np.mean(wrong, axis=0)
    return columns
