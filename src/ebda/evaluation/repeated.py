"""Cross-validation with several deals of the folds."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from ebda.evaluation.held_out import Evaluation
from ebda.evaluation.intervals import held_out_interval
from ebda.evaluation.measures import Measures, measures
from ebda.listing import counted
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
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
        """Confidence interval for the mean error.

        As that of :meth:`Evaluation.interval`: samples are the trials, however often
        each was predicted, and repetitions are no further ones.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        first = self.evaluations[0]
        return held_out_interval(self.sample_errors, first.groups, first.n_folds, level)

    def measures(self, level: float = 0.95) -> Measures:
        """Error, AUC, sensitivity and specificity, and the scores, with intervals.

        Each is the mean over the repetitions.

        Parameters
        ----------
        level : float
            Of the intervals (:mod:`ebda.evaluation.measures`).
        """
        first = self.evaluations[0]
        scores = {
            name: np.stack([e.scores[name] for e in self.evaluations])
            for name in first.scores
        }
        probabilities = np.stack([e.probabilities for e in self.evaluations])
        return measures(
            first.classes,
            first.codes,
            probabilities,
            first.groups,
            first.n_folds,
            scores,
            level,
        )

    def words(self) -> str:
        """What was repeated, in a sentence."""
        first = self.evaluations[0]
        of = f"{len(first.codes)} samples, held out in {first.n_folds} folds"
        times = counted(len(self.evaluations), "time")
        low, high = self.errors.min(), self.errors.max()
        return f"{of}, {times}: errors from {low:.1%} to {high:.1%}."

    def __repr__(self) -> str:
        return f"{self.words()}\n{self.measures()}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.words())}</p>{self.measures()._repr_html_()}"
