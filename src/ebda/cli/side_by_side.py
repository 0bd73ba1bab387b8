"""The paper's rules, its competitors and `EBClassifier()` on the same samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda import paper
from ebda.baselines import FAIR, IndependenceRule, LassoLogistic, ShrinkageDA
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import Evaluation, cross_validate, evaluate
from ebda.typing import FloatArray

# The paper's two with the settings of its leukemia study; the shrinkage LDA of R's sda.
RULES: dict[str, Callable[[], Any]] = {
    "DP": lambda: paper.classifier("DP", "leukemia", random_state=0),
    "Sparse DP": lambda: paper.classifier("Sparse DP", "leukemia", random_state=0),
    "independence rule": IndependenceRule,
    "FAIR": FAIR,
    # The gap of celer's own default: a third of the time of ours, and the same errors
    # on these data but for one sample.
    "lasso": lambda: LassoLogistic(tol=1e-4, random_state=0),
    "shrinkage LDA": ShrinkageDA,
    "EBClassifier()": EBClassifier,
}
FOLDS = 5
_RULE = max(map(len, RULES))
# Widths of the two numbers of a scale.
_WRONG, _CROSSED = 8, 19


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of a rule on one scale of the data.

    Parameters
    ----------
    tested : Evaluation
        Of the test samples, by a fit to the training samples.
    crossed : list of Evaluation
        Of all samples, one for each repetition of the cross-validation.
    """

    tested: Evaluation
    crossed: list[Evaluation]

    @property
    def repeated(self) -> FloatArray:
        """The cross-validated error of each repetition."""
        return np.array([crossed.error for crossed in self.crossed])


def errors_of(
    make: Callable[[], Any],
    X: FloatArray,
    y: npt.NDArray[Any],
    train: npt.NDArray[np.bool_],
    repeats: int,
) -> Errors:
    """Fit to the training samples and test; cross-validate all samples.

    Parameters
    ----------
    make : callable
        Returns an unfitted classifier.
    X, y : ndarray
        All samples, and their classes.
    train : ndarray of bool of shape (n_samples,)
        Which samples are for training.
    repeats : int
        Number of cross-validations, each with folds of its own. All rules have the
        same folds.
    """
    tested = evaluate(make().fit(X[train], y[train]), X[~train], y[~train])
    crossed = [cross_validate(make(), X, y, FOLDS, seed) for seed in range(repeats)]
    return Errors(tested, crossed)


def heading(scales: Mapping[str, Any], repeats: int) -> str:
    """The first two lines of the table.

    >>> print(heading({"raw": None}, repeats=2))
                                        raw
    rule                   test    cross-validated
    """
    wide = _WRONG + (_CROSSED if repeats else 0)
    above = "".join(f"{name:>{wide}}" for name in scales)
    columns = f"{'test':>{_WRONG}}"
    if repeats:
        columns += f"{'cross-validated':>{_CROSSED}}"
    return f"{'':{_RULE}}{above}\n{'rule':{_RULE}}{columns * len(scales)}"


def row(rule: str, found: list[Errors]) -> str:
    """A line of the table: wrong test samples, and mean and range of the other error.

    >>> p = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> one = Evaluation(np.array(["a", "b"]), np.array([0, 0]), p, 2)
    >>> print(row("FAIR", [Errors(one, [one, one])]))
    FAIR                            1   50.0% (50 to 50%)
    """
    cells = ""
    for errors in found:
        cells += f"{errors.tested.n_errors:>{_WRONG}}"
        if errors.crossed:
            e = 100 * errors.repeated
            spread = f"({e.min():.0f} to {e.max():.0f}%)"
            cells += f"{f'{e.mean():.1f}% {spread}':>{_CROSSED}}"
    return f"{rule:{_RULE}}{cells}"
