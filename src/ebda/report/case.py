"""What a report is about, checked once at the door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ebda.evaluation import Evaluation, evaluate
from ebda.report.markup import plain
from ebda.rule.ranking import Ranking
from ebda.typing import FloatArray, IntArray

_SPARSE = ["csr", "csc"]
_NEEDED = ("selection_", "moments_", "prior_", "coef_")


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model with the data and the predictions that are known of it.

    Parameters
    ----------
    model : EBClassifier
        Fitted, or loaded from a file.
    X : ndarray or sparse matrix, optional
        Samples, in the model's columns.
    on_data : Evaluation or ndarray, optional
        What the model itself says of X: with the classes where y was given, else the
        probabilities alone.
    evaluation : Evaluation, optional
        Held-out predictions.
    sample_names : list of str, optional
        Of the samples of `evaluation` or X, whichever are so many.
    data : dict
        What is known of the data, for the reader.
    command : str, optional
        What made the page.
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
        """Refuse what does not belong together, and say why."""
        if not hasattr(type(model), "ranking_"):
            raise TypeError(
                "a report is of a fitted EBClassifier, got "
                f"{type(model).__name__}; for a pipeline give its last step"
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
            # The model looks at names and finiteness, and says where they are wrong.
            matrix = check_array(X, accept_sparse=_SPARSE, ensure_all_finite=False)
            if y is not None and np.size(y) != matrix.shape[0]:
                raise ValueError(f"X has {matrix.shape[0]} samples, y has {np.size(y)}")
            on_data = model.predict_proba(X) if y is None else evaluate(model, X, y)
            X = matrix
        names = None if sample_names is None else [plain(s) for s in sample_names]
        sizes = [len(evaluation.codes)] if evaluation is not None else []
        sizes += [X.shape[0]] if X is not None else []
        if names is not None and len(names) not in sizes:
            there = " and ".join(f"{n} samples" for n in sizes) or "no samples"
            raise ValueError(f"{len(names)} sample names were given for {there}")
        return cls(model, X, on_data, evaluation, names, dict(data or {}), command)

    @cached_property
    def ranking(self) -> Ranking:
        """The model's ranking, made once."""
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
        """Samples of each class that the model was fitted to."""
        counts: FloatArray = np.asarray(self.model.moments_.counts)
        return counts

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.model.coef_.shape[1])

    @property
    def codes(self) -> IntArray | None:
        """Classes of the samples of X, where they are known."""
        return self.on_data.codes if isinstance(self.on_data, Evaluation) else None

    def name_of(self, sample: int, n_samples: int) -> str:
        """A sample by name, or by number from 1 where names are of others."""
        if self.sample_names is not None and len(self.sample_names) == n_samples:
            return self.sample_names[sample]
        return f"sample {sample + 1}"

    def feature(self, column: int) -> str:
        """A feature by name, or by its number from 0 as scikit-learn has it."""
        names = self.ranking.names
        return f"x{column}" if names is None else plain(names[column])
