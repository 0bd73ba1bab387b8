"""The one linear rule that the rules of several candidates add up to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ebda.kernels.rows import add_scaled
from ebda.rule.linear_rule import LinearRule
from ebda.selection.candidates import Name
from ebda.typing import FloatArray


def combine(
    rule_of: Callable[[Name], LinearRule],
    candidates: list[Name],
    share: FloatArray,
    offset: FloatArray,
) -> LinearRule:
    """One rule from the candidates' rules with equal class probabilities.

    Parameters
    ----------
    rule_of : callable
        The rule of a candidate; asked once for each that has a share, so that one of
        them is in memory at a time.
    candidates : list
        Their names.
    share : ndarray
        What each rule is multiplied by.
    offset : ndarray of shape (n_contrasts,)
        What is added to the scores: the log-odds of the class probabilities, less the
        midpoint.
    """
    coef: FloatArray | None = None
    correction: FloatArray | None = None
    divergence: FloatArray | None = None
    intercept = offset.copy()
    for name, factor in zip(candidates, share, strict=True):
        if factor == 0:
            continue
        rule = rule_of(name)
        if coef is None:
            # The rule of a candidate is not changed; a single one is used as it is.
            alone = factor == 1 and np.count_nonzero(share) == 1
            coef = rule.coef if alone else factor * rule.coef
        else:
            add_scaled(coef, factor, rule.coef)
        intercept += factor * rule.intercept
        if rule.correction is not None:
            part = factor * rule.correction
            correction = part if correction is None else correction + part
        if rule.divergence is not None:
            part = factor * rule.divergence
            divergence = part if divergence is None else divergence + part
        del rule  # before the next is made
    assert coef is not None
    return LinearRule(coef, intercept, correction=correction, divergence=divergence)
