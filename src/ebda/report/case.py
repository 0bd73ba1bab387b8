"""What a report is about: a model, its data, and the probabilities of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ebda.evaluation import Evaluation, evaluate, log_probability, margins
from ebda.report.markup import plain
from ebda.report.words import NBSP, count
from ebda.rule.linear_rule import log_odds
from ebda.rule.ranking import Ranking
from ebda.typing import FloatArray, IntArray

_SPARSE = ["csr", "csc"]
_NEEDED = ("selection_", "moments_", "prior_", "coef_")
# A sample is doubtful where its most probable class has less than this.
DOUBT = 0.8
# A q-value up to here counts as a difference.
LEVEL = 0.05
# Where the probabilities come from, in words.
FOLDS = "predicted by models that were fitted without them, in {folds} folds"
TEST = "which took no part in the fit"
SEEN = (
    "predicted by the model itself. If it was fitted to them, new samples will lie "
    "closer to the boundary"
)
INNER = (
    "held out in the {folds} folds that the fit compared its rules on. The choice and "
    "the calibration rest on the same folds, so the predictions are a little optimistic"
)


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model with its data and predictions.

    Parameters
    ----------
    model : EBClassifier
        Fitted, or loaded from a file.
    X : ndarray or sparse matrix, optional
        Samples, in the model's columns.
    on_data : Evaluation or ndarray, optional
        Predictions of the model itself for X: with the true classes where y was given,
        else the probabilities alone.
    evaluation : Evaluation, optional
        Held-out predictions.
    sample_names : list of str, optional
        One for each sample of `evaluation` or of X, whichever has as many.
    data : dict
        What is known about the data, for the reader.
    command : str, optional
        The command that makes the page.
    """

    model: Any
    X: Any
    on_data: Evaluation | FloatArray | None
    evaluation: Evaluation | None
    sample_names: list[str] | None
    data: dict[str, Any]
    command: str | None

    @classmethod
    def checked(
        cls,
        model: Any,
        X: Any = None,
        y: npt.ArrayLike | None = None,
        evaluation: Evaluation | None = None,
        sample_names: Iterable[Any] | None = None,
        data: Mapping[str, Any] | None = None,
        command: str | None = None,
    ) -> Case:
        """Check that everything belongs together, or raise an error that says why."""
        if not hasattr(type(model), "ranking_"):
            raise TypeError(
                "a report is of a fitted EBClassifier, got "
                f"{type(model).__name__}; of a pipeline, give the last step"
            )
        check_is_fitted(model, _NEEDED)
        if y is not None and X is None:
            raise ValueError("y was given without X; give both, or an evaluation")
        if evaluation is not None and not np.array_equal(
            evaluation.classes, model.classes_
        ):
            raise ValueError(
                f"the evaluation is of the classes {evaluation.classes.tolist()}, the "
                f"model knows {model.classes_.tolist()}"
            )
        on_data: Evaluation | FloatArray | None = None
        if X is not None:
            # The model checks names and missing values, and says where they are wrong.
            matrix = check_array(X, accept_sparse=_SPARSE, ensure_all_finite=False)
            if y is not None and np.size(y) != matrix.shape[0]:
                raise ValueError(f"X has {matrix.shape[0]} samples, y has {np.size(y)}")
            on_data = model.predict_proba(X) if y is None else evaluate(model, X, y)
            X = matrix
        names = None if sample_names is None else [plain(s) for s in sample_names]
        sizes = [len(evaluation.codes)] if evaluation is not None else []
        sizes += [X.shape[0]] if X is not None else []
        if names is not None and len(names) not in sizes:
            there = " or ".join(count(n, "sample") for n in sizes) or "no samples"
            given = count(len(names), "sample name")
            message = f"{given} given for {there}; each sample needs one name"
            raise ValueError(message.replace(NBSP, " "))
        return cls(model, X, on_data, evaluation, names, dict(data or {}), command)

    @cached_property
    def ranking(self) -> Ranking:
        """The model's ranking, computed once."""
        ranking: Ranking = self.model.ranking_
        return ranking

    @cached_property
    def classes(self) -> list[str]:
        """Labels as text."""
        return [plain(label) for label in self.model.classes_.tolist()]

    @cached_property
    def contrasts(self) -> list[str]:
        """What each contrast compares, in words."""
        if len(self.classes) == 2:
            return [f"{self.classes[1]} against {self.classes[0]}"]
        return [f"{label} against all" for label in self.classes]

    @property
    def counts(self) -> FloatArray:
        """Number of fitted samples in each class."""
        counts: FloatArray = np.asarray(self.model.moments_.counts)
        return counts

    @property
    def sizes(self) -> list[str]:
        """Number of fitted samples in each class, with its label."""
        pairs = zip(self.counts, self.classes, strict=True)
        return [f"{count(n)} {label}" for n, label in pairs]

    @property
    def n_found(self) -> int:
        """Number of features with a small q-value in any contrast."""
        found = np.atleast_2d(self.ranking.selected(LEVEL)).any(axis=0)
        return int(np.count_nonzero(found))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.model.coef_.shape[1])

    @property
    def codes(self) -> IntArray | None:
        """Classes of the samples of X, where they are known."""
        return self.on_data.codes if isinstance(self.on_data, Evaluation) else None

    def name_of(self, sample: int, n_samples: int) -> str:
        """Name of a sample; its number, from 1, where these samples have no names."""
        if self.sample_names is not None and len(self.sample_names) == n_samples:
            return self.sample_names[sample]
        return f"sample {sample + 1}"

    def feature(self, column: int) -> str:
        """Name of a feature, or its column number from 0, as in scikit-learn."""
        names = self.ranking.names
        return f"x{column}" if names is None else plain(names[column])


@dataclass(frozen=True, eq=False)
class Scored:
    """Predicted probabilities of some samples, and their classes where known.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
    codes : ndarray of int of shape (n_samples,), optional
        True classes.
    names : list of str, optional
        None where it is not known which samples they are.
    origin : str
        Where the probabilities come from, in words.
    held_out : bool
        Whether they come from a rule that had not seen the sample.
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
        """The class that a sample is shown with: the true or else the predicted one."""
        return self.predicted if self.codes is None else self.codes

    @property
    def lane_is(self) -> str:
        """Which class that is."""
        return "predicted" if self.codes is None else "true"

    @property
    def own(self) -> FloatArray:
        """Probability of the class that a sample is shown with."""
        row: FloatArray = self.probabilities[np.arange(len(self)), self.lane]
        return row

    @property
    def score(self) -> FloatArray:
        """Log-odds, which are zero at the boundary.

        Of the second class for two classes; for more, of the class that a sample is
        shown with against the most probable other class.

        >>> p = np.array([[0.2, 0.8], [0.6, 0.4]])
        >>> Scored(p, None, None, "", True).score.round(2)
        array([ 1.39, -0.41])
        """
        two = self.probabilities.shape[1] == 2
        own = np.ones(len(self), dtype=np.intp) if two else self.lane
        return margins(log_probability(self.probabilities), own)

    @property
    def doubtful(self) -> IntArray:
        """Samples that are misclassified or uncertain, the worst first."""
        uncertain = self.probabilities.max(axis=1) < DOUBT
        found = np.flatnonzero((self.predicted != self.lane) | uncertain)
        worst_first: IntArray = found[np.argsort(self.own[found], kind="stable")]
        return worst_first


def scored(case: Case) -> Scored | None:
    """Predictions of the evaluation, else of the model, else those inside `fit`."""
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
