"""Class probabilities as they are given on the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ebda.listing import quoted
from ebda.typing import FloatArray

NAMED = ("empirical", "uniform")
_TOLERANCE = 1e-6


def class_priors(text: str) -> str | dict[str, float]:
    """A name, or a probability for each class, for argparse.

    >>> class_priors("uniform"), class_priors("ill=0.2,well=0.8")
    ('uniform', {'ill': 0.2, 'well': 0.8})
    """
    if text in NAMED:
        return text
    found: dict[str, float] = {}
    for part in text.split(","):
        label, sign, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not sign or not 0 < value < 1 or label.strip() in found:
            raise argparse.ArgumentTypeError(
                f"{text!r} is neither {' nor '.join(NAMED)} nor a probability between "
                "0 and 1 for each class, such as ill=0.2,well=0.8"
            )
        found[label.strip()] = value
    if abs(sum(found.values()) - 1) > _TOLERANCE:
        raise argparse.ArgumentTypeError(
            f"the class probabilities {text!r} add up to {sum(found.values()):.4g}, "
            "and must add up to 1"
        )
    return found


def in_order(
    given: str | dict[str, float] | None, classes: Sequence[Any]
) -> str | FloatArray | None:
    """What the classifier takes: a name, or probabilities in the order of the classes.

    >>> in_order({"b": 0.8, "a": 0.2}, ["a", "b"])
    array([0.2, 0.8])
    """
    if given is None or isinstance(given, str):
        return given
    labels = [str(label) for label in classes]
    if set(labels) != set(given):
        raise ValueError(
            f"--priors has probabilities of {quoted(list(given), 12)}, and the classes "
            f"are {quoted(labels, 12)}; give one for each of them"
        )
    values = np.array([given[label] for label in labels])
    return np.asarray(values / values.sum())
