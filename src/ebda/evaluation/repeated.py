"""Cross-validation with several deals of the folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ebda.evaluation.held_out import Evaluation
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

        ``(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n)`` for the mean error
        p of n samples. Samples are the trials, however often each was predicted; the
        variation between training sets is not included.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        n, p = len(self.evaluations[0].codes), self.error
        z = float(ndtri((1 + level) / 2))
        half = z * np.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
        middle, scale = p + z**2 / (2 * n), 1 + z**2 / n
        low, high = (middle - half) / scale, (middle + half) / scale
        return max(0.0, float(low)), min(1.0, float(high))
