"""What a comparison of candidates found, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ebda.listing import listed
from ebda.selection.calibration import Calibration
from ebda.selection.candidates import Name
from ebda.storage.fields import COUNT, DISTRIBUTION, Array, Scalar
from ebda.storage.objects import Nested, Pairs, Schema, register
from ebda.tables import html_table
from ebda.typing import FloatArray, IntArray

# Standard errors that the separation must be above zero to be believed.
_SIGNIFICANT = 2.0


@dataclass(frozen=True, eq=False)
class Selection:
    """What was compared, and with what weight it went into the rule.

    Parameters
    ----------
    candidates : list of (covariance, shrinkage)
        What was compared.
    weight : ndarray
        Share of each in the combined rule; they add up to 1.
    separation, error : ndarray
        Held-out separation of each and its standard error; NaN without folds.
    n_folds : int
        Number of folds that were asked for; 0 where the choice was made without.
    reason : str
        In words, why there are these weights.
    slope : float
        Turns the combined scores, in units of their held-out standard deviations,
        into log-odds.
    calibration : Calibration
        From these log-odds to probabilities.
    scores : ndarray of shape (n_held_out, n_contrasts), optional
        Held-out scores of the combined rule, as log-odds before class probabilities.
    codes : ndarray of shape (n_held_out,), optional
        Their classes.
    combined, combined_error : float
        Held-out separation of the combined rule and its standard error; NaN without
        folds.
    copies : ndarray of int of shape (n_pairs, 2), optional
        Rows of X that are far more alike than others, and not of one group; None where
        there are none (:mod:`ebda.selection.copies`).
    evidence : float, optional
        Log-probability of the held-out labels given the scores of the combined rule;
        None unless it was asked for.
    """

    candidates: list[Name]
    weight: FloatArray
    separation: FloatArray
    error: FloatArray
    n_folds: int
    reason: str
    slope: float = 1.0
    calibration: Calibration = field(default_factory=Calibration.none)
    scores: FloatArray | None = None
    codes: IntArray | None = None
    combined: float = np.nan
    combined_error: float = np.nan
    evidence: float | None = None
    copies: IntArray | None = None

    @classmethod
    def without_folds(
        cls, candidates: list[Name], chosen: Name, reason: str
    ) -> Selection:
        """One candidate, taken without a comparison."""
        nothing = np.full(len(candidates), np.nan)
        weight = np.array([float(name == chosen) for name in candidates])
        return cls(candidates, weight, nothing, nothing, 0, reason)

    @property
    def best(self) -> Name:
        """The candidate with the largest weight."""
        return self.candidates[int(np.argmax(self.weight))]

    def used(self) -> list[Name]:
        """Candidates that have any weight."""
        return [
            name for name, w in zip(self.candidates, self.weight, strict=True) if w > 0
        ]

    @property
    def doubt(self) -> str:
        """What the held-out samples do not show, in words; empty if they do."""
        if not self.combined <= _SIGNIFICANT * self.combined_error:
            return ""
        return (
            "The held-out samples do not show that the rule separates the classes: "
            f"separation {self.combined:.2f}, standard error "
            f"{self.combined_error:.2f}. Then little more is known about a new sample "
            "than the shares of the classes."
        )

    def copy_words(self, names: Sequence[str] | None = None) -> str:
        """Which samples may be copies, and what to do; empty without any.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the rows of X.
        """
        if self.copies is None:
            return ""

        def pair(rows: IntArray) -> str:
            a, b = (str(row) if names is None else names[row] for row in rows.tolist())
            return f"{a} and {b}"

        what = "Rows (from 0)" if names is None else "Samples"
        return (
            f"{what} {listed(self.copies, form=pair, separator='; ')} are far more "
            "alike than others: copies, or samples of one patient? Then probabilities "
            "and held-out errors are too good. Leave copies out, and declare samples "
            "that belong together: fit(X, y, groups=...), --groups COLUMN."
        )

    def words(self, names: Sequence[str] | None = None) -> str:
        """Why there are these weights, and what is doubtful.

        Parameters
        ----------
        names : sequence of str, optional
            As in `copy_words`.
        """
        return " ".join(filter(None, [self.reason, self.doubt, self.copy_words(names)]))

    def __repr__(self) -> str:
        return f"{self.words()}\n{self.table()}"

    def _repr_html_(self) -> str:
        head = ["covariance", "shrinkage", "weight", "separation", "standard error"]
        rows = zip(
            *zip(*self.candidates, strict=True),
            self.weight,
            self.separation,
            self.error,
            strict=True,
        )
        return html_table(self.words(), head, rows)

    def table(self) -> str:
        """One line per candidate."""
        lines = []
        for (covariance, shrinkage), w, d, se in zip(
            self.candidates, self.weight, self.separation, self.error, strict=True
        ):
            judged = "" if np.isnan(d) else f"  separation {d:5.2f} (se {se:.2f})"
            lines.append(f"  {covariance:<11}{shrinkage:<8}weight {w:4.2f}{judged}")
        return "\n".join(lines)


def _from_fields(fields: dict[str, Any]) -> Selection:
    return Selection(**{name: v for name, v in fields.items() if v is not None})


register(
    Schema(
        Selection,
        {
            "candidates": Pairs("m"),
            "weight": Array(("m",), DISTRIBUTION),
            "separation": Array(("m",), ()),
            "error": Array(("m",), ("free of negative numbers",)),
            "n_folds": COUNT,
            "reason": Scalar((str,)),
            "slope": Scalar((float,), least=0.0),
            "calibration": Nested(("Calibration",)),
            "scores": Array(("h", "c")),
            "codes": Array(("h",), (), np.int64, below="k"),
            "combined": Scalar((float,), finite=False),
            "combined_error": Scalar((float,), finite=False),
            "evidence": Scalar((float,)),
            "copies": Array(("i", "j"), ("zero or more",), np.int64),
        },
        optional=frozenset(
            {"scores", "codes", "combined", "combined_error", "evidence", "copies"}
        ),
        build=_from_fields,
    )
)
