"""What a report is about: a model, its data, and the probabilities of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ebda.cached import cached_property
from ebda.estimators.covariates import Covariates, Variables
from ebda.evaluation.held_out import (
    Evaluation,
    class_codes,
    log_probability,
    margins,
)
from ebda.inputs.logarithms import find_logarithm
from ebda.listing import counted
from ebda.report.markup import plain
from ebda.report.words import count
from ebda.rule.linear_rule import log_odds
from ebda.rule.ranking import Ranking
from ebda.typing import FloatArray, IntArray

_SPARSE = ["csr", "csc"]
_NEEDED = ("selection_", "moments_", "prior_", "coef_")
# A sample is doubtful where its most probable class has less than this.
DOUBT = 0.8
# A q-value up to here counts as a difference.
LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model with its data and predictions.

    Parameters
    ----------
    model : EBClassifier
        Fitted, or loaded from a file.
    X : ndarray or sparse matrix, optional
        Samples, in the model's columns.
    probabilities : ndarray of shape (n_samples, n_classes), optional
        Predictions of the model itself for X.
    columns : ndarray of shape (n_samples, n_columns), optional
        Covariates of the samples of X, as columns of the model's design.
    codes : ndarray of int of shape (n_samples,), optional
        True classes of the samples of X, where they are known.
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
    probabilities: FloatArray | None
    codes: IntArray | None
    evaluation: Evaluation | None
    sample_names: list[str] | None
    data: dict[str, Any]
    command: str | None
    columns: FloatArray | None = None

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
        covariates: Any = None,
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
        if covariates is not None and X is None:
            raise ValueError("covariates were given without X; give both")
        if evaluation is not None and not np.array_equal(
            evaluation.classes, model.classes_
        ):
            raise ValueError(
                f"the evaluation is of the classes {evaluation.classes.tolist()}, the "
                f"model knows {model.classes_.tolist()}"
            )
        probabilities = codes = columns = None
        if X is not None:
            # The model checks names and missing values, and says where they are wrong.
            matrix = check_array(X, accept_sparse=_SPARSE, ensure_all_finite=False)
            if y is not None and np.size(y) != matrix.shape[0]:
                raise ValueError(f"X has {matrix.shape[0]} samples, y has {np.size(y)}")
            codes = None if y is None else class_codes(model.classes_, y)
            given = {} if covariates is None else {"covariates": covariates}
            probabilities = model.predict_proba(X, **given)
            if covariates is not None:
                columns = _columns(model, covariates, matrix.shape[0])
            X = matrix
        names = None if sample_names is None else [plain(s) for s in sample_names]
        held = [] if evaluation is None else [len(evaluation.codes)]
        held += [] if probabilities is None else [len(probabilities)]
        if names is not None and len(names) not in held:
            there = " or ".join(counted(n, "sample") for n in held) or "no samples"
            raise ValueError(
                f"{counted(len(names), 'sample name')} given for {there}; each sample "
                "needs one name"
            )
        known = dict(data or {})
        told = model, X, probabilities, codes, evaluation, names, known, command
        return cls(*told, columns)

    @cached_property
    def ranking(self) -> Ranking:
        """The model's ranking, computed once."""
        return cast(Ranking, self.model.ranking_)

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
        groups = self.model.groups_
        known = self.model.moments_ if groups is None else groups
        return np.asarray(known.counts)

    @property
    def worth(self) -> FloatArray:
        """Independent samples that those of each class are worth."""
        groups = self.model.groups_
        return self.counts if groups is None else np.asarray(groups.n_effective)

    @property
    def lacks_covariates(self) -> bool:
        """Whether the model was adjusted, and its samples are not."""
        known = self.model.covariates_ is not None
        return known and self.X is not None and self.columns is None

    @property
    def sizes(self) -> list[str]:
        """Number of fitted samples in each class, with its label."""
        pairs = zip(self.counts, self.classes, strict=True)
        return [f"{count(n)} {label}" for n, label in pairs]

    @property
    def n_found(self) -> int:
        """Number of features that differ between the classes."""
        return int(np.count_nonzero(self.ranking.marginal.selected(LEVEL)))

    @property
    def n_beyond(self) -> int:
        """Number of features that differ beyond the common factors."""
        return int(np.count_nonzero(self.ranking.conditional.selected(LEVEL)))

    @property
    def difference(self) -> FloatArray:
        """Differences of the means, in what `difference_is` says."""
        base = self._log_base
        unit = 1.0 if base is None else float(np.log2(base))
        return np.atleast_2d(self.ranking.difference) * unit

    @property
    def difference_is(self) -> str:
        """Name of the differences: fold changes where logarithms were taken."""
        return "difference" if self._log_base is None else "log2 fold change"

    @property
    def _log_base(self) -> float | None:
        known = self.data.get("log")
        log = find_logarithm(known if isinstance(known, bool | str) else None)
        return None if log is None else log.base

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.model.coef_.shape[1])

    def names_of(self, n_samples: int) -> list[str]:
        """Names of so many samples; numbers, from 1, where these have no names."""
        if self.sample_names is not None and len(self.sample_names) == n_samples:
            return self.sample_names
        return [f"sample {i}" for i in range(1, n_samples + 1)]

    def feature(self, column: int) -> str:
        """Name of a feature, or its column number from 0, as in scikit-learn."""
        names = self.ranking.names
        return f"x{column}" if names is None else plain(names[column])


def _columns(model: Any, covariates: Any, n: int) -> FloatArray:
    """Columns of the model's design; predictions have warned of new categories."""
    found: Covariates = model.covariates_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return found.columns_of(Variables.of(covariates, n))


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
        return np.asarray(self.probabilities.argmax(axis=1))

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
        return np.asarray(self.probabilities[np.arange(len(self)), self.lane])

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
        return np.asarray(found[np.argsort(self.own[found], kind="stable")])


def scored(case: Case) -> Scored | None:
    """Predictions of the evaluation, else of the model, else those inside `fit`."""
    if case.evaluation is not None:
        e = case.evaluation
        origin = "which took no part in the fit"
        if e.n_folds:
            how = "predicted by models that were fitted without them"
            origin = f"{how}, in {e.n_folds} folds"
        names = case.names_of(len(e.codes))
        return Scored(e.probabilities, e.codes, names, origin, True)
    if (p := case.probabilities) is not None:
        origin = (
            "predicted by the model itself. If it was fitted to them, new samples will "
            "lie closer to the boundary"
        )
        if case.lacks_covariates:
            origin = f"taken to have the mean of the covariates, and {origin}"
        return Scored(p, case.codes, case.names_of(len(p)), origin, False)
    selection = case.model.selection_
    if selection.scores is None:
        return None
    score = selection.scores + log_odds(case.model.class_prior_)
    p = np.exp(case.model.calibration_.log_probabilities(score))
    origin = (
        f"held out in the {selection.n_folds} folds that the fit compared its rules "
        "on. The choice and the calibration rest on the same folds, so the predictions "
        "are a little optimistic"
    )
    return Scored(p, selection.codes, None, origin, True)
