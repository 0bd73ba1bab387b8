"""Cross-validation with several deals of the folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.evaluation.held_out import Evaluation
from ebda.evaluation.intervals import wilson
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class RepeatedEvaluation:
    """Held-out predictions of the same samples, once for each deal of the folds.

    More repetitions take away what the deal adds to the error. They are no further
    samples, and the interval is hardly shorter than that of one.

    Parameters
    ----------
    evaluations : tuple of Evaluation
        One per repetition, of the same samples in the same order.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> one = Evaluation(np.array(["a", "b"]), np.array([0, 1]), p, 2)
    >>> two = Evaluation(one.classes, one.codes, p[::-1], 2)
    >>> both = RepeatedEvaluation((one, two))
    >>> both.errors.tolist(), both.error, both.sample_errors.tolist()
    ([0.0, 1.0], 0.5, [0.5, 0.5])
    """

    evaluations: tuple[Evaluation, ...]

    def __post_init__(self) -> None:
        if not self.evaluations:
            raise ValueError("no evaluation was given; at least one is needed")
        first = self.evaluations[0]
        if not all(np.array_equal(e.codes, first.codes) for e in self.evaluations):
            raise ValueError("the evaluations are not of the same samples")

    @property
    def errors(self) -> FloatArray:
        """Fraction of misclassified samples in each repetition."""
        return np.array([e.error for e in self.evaluations])

    @property
    def error(self) -> float:
        """Mean of them."""
        return float(self.errors.mean())

    @property
    def sample_errors(self) -> FloatArray:
        """For each sample, the share of repetitions in which it was misclassified."""
        wrong = [e.predicted != e.codes for e in self.evaluations]
        return np.asarray(np.mean(wrong, axis=0))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Wilson's confidence interval for the mean error.

        Samples are the trials, however often each was predicted
        (:mod:`ebda.evaluation.intervals`); the variation between training sets is not
        included.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        return wilson(self.error, len(self.evaluations[0].codes), level)
