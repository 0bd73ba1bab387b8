"""Samples with the probabilities that a rule gives them, the most honest there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.evaluation import Evaluation
from ebda.report.case import Case
from ebda.rule.linear_rule import log_odds
from ebda.typing import FloatArray, IntArray

# A sample is doubtful where its most probable class has less than this.
DOUBT = 0.8
# Probabilities below this are all the same in a drawing, and have a logarithm.
_LEAST = 1e-300

# Where the probabilities come from, in words.
FOLDS = "predicted by models that were fitted without them, in {folds} folds"
TEST = "samples that took no part in the fit"
SEEN = (
    "scored by the model itself. If it was fitted to them, new samples will lie closer "
    "to the boundary"
)
INNER = (
    "held out in the {folds} folds by which the rule was chosen inside the fit. The "
    "choice and the calibration rest on the same folds, so they are a little too good"
)


@dataclass(frozen=True, eq=False)
class Scored:
    """Probabilities of some samples, and their classes where they are known.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
    codes : ndarray of int of shape (n_samples,), optional
        True classes.
    names : list of str, optional
        None where the samples cannot be told apart.
    origin : str
        Where the probabilities come from, in words.
    held_out : bool
        Whether they are by a rule that had not seen the sample.
    """

    probabilities: FloatArray
    codes: IntArray | None
    names: list[str] | None
    origin: str
    held_out: bool

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def predicted(self) -> IntArray:
        """Most probable class of each sample."""
        best: IntArray = self.probabilities.argmax(axis=1)
        return best

    @property
    def lane(self) -> IntArray:
        """The class that a sample is shown with: the true one, or the predicted."""
        return self.predicted if self.codes is None else self.codes

    @property
    def own(self) -> FloatArray:
        """Probability of the class that a sample is shown with."""
        row: FloatArray = self.probabilities[np.arange(len(self)), self.lane]
        return row

    @property
    def score(self) -> FloatArray:
        """What the boundary divides: log-odds.

        Of the second class for two classes; of a sample's own class against the
        strongest other for more.

        >>> p = np.array([[0.2, 0.8], [0.6, 0.4]])
        >>> Scored(p, None, None, "", True).score.round(2)
        array([ 1.39, -0.41])
        """
        log_p = np.log(np.maximum(self.probabilities, _LEAST))
        if log_p.shape[1] == 2:
            odds: FloatArray = log_p[:, 1] - log_p[:, 0]
            return odds
        others = log_p.copy()
        others[np.arange(len(self)), self.lane] = -np.inf
        margin: FloatArray = np.log(np.maximum(self.own, _LEAST)) - others.max(axis=1)
        return margin

    @property
    def doubtful(self) -> IntArray:
        """Samples that are wrong or unsure, the worst first."""
        unsure = self.probabilities.max(axis=1) < DOUBT
        found = np.flatnonzero((self.predicted != self.lane) | unsure)
        worst_first: IntArray = found[np.argsort(self.own[found], kind="stable")]
        return worst_first


def scored(case: Case) -> Scored | None:
    """The evaluation's predictions, or the model's own of X, or those inside `fit`."""
    if case.evaluation is not None:
        e = case.evaluation
        origin = FOLDS.format(folds=e.n_folds) if e.n_folds else TEST
        return Scored(
            e.probabilities, e.codes, _names(case, len(e.codes)), origin, True
        )
    if case.on_data is not None:
        p = case.on_data
        if isinstance(p, Evaluation):
            p = p.probabilities
        return Scored(p, case.codes, _names(case, len(p)), SEEN, False)
    selection = case.model.selection_
    if selection.scores is None:
        return None
    score = selection.scores + log_odds(case.model.class_prior_)
    p = np.exp(case.model.calibration_.log_probabilities(score))
    origin = INNER.format(folds=selection.n_folds)
    return Scored(p, selection.codes, None, origin, True)


def _names(case: Case, n: int) -> list[str]:
    return [case.name_of(i, n) for i in range(n)]
