"""Which rule, from the training data alone: cross-validation and one combined rule.

No single covariance and shrinkage is right everywhere. Each candidate is fitted to the
training part of ten folds and scores the part held out. It is judged by the
separation of the held-out scores, half the distance of the class means in units of the
standard deviation within the classes:

    d = (mean score of the class - mean score of the others) / (2 sd).

The candidates are then added up to one linear rule, each in units of its own held-out
standard deviation, with the probability of being the best as its weight: d is normal
about its estimate, with the covariance that the samples' influence on it shows. That
is steadier than taking the best alone (Efron 2014), and needs no constant. One
candidate, the usual one, is preferred, and any other has to be better by a standard
error: the posterior mean under the theoretical null, with factors where there are any.
It is the best estimate where the model holds.

The held-out scores of the combined rule also say how far its scores can be believed
(:mod:`ebda.selection.calibration`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ebda.data import Samples
from ebda.kernels.rows import add_scaled
from ebda.rule.linear_rule import LinearRule
from ebda.selection.calibration import Calibration, calibrate
from ebda.selection.candidates import Name, Recipe
from ebda.selection.folds import (
    N_FOLDS,
    HeldOut,
    assign_folds,
    distinct,
    held_out_scores,
)
from ebda.storage.fields import COUNT, DISTRIBUTION, Array, Scalar
from ebda.storage.objects import Nested, Pairs, Schema, register
from ebda.typing import FloatArray, IntArray

# Fewer held-out samples than this tell too little to choose by.
_LEAST_HELD_OUT = 10
# Draws of the separations that the weights are counted from.
_DRAWS = 4096


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

    def used(self, besides: Name) -> list[Name]:
        """Candidates that have any weight, and one more."""
        return [
            name
            for name, w in zip(self.candidates, self.weight, strict=True)
            if w > 0 or name == besides
        ]

    def __str__(self) -> str:
        return f"{self.reason}\n{self.table()}"

    def table(self) -> str:
        """One line per candidate."""
        lines = []
        for (covariance, shrinkage), w, d, se in zip(
            self.candidates, self.weight, self.separation, self.error, strict=True
        ):
            judged = "" if np.isnan(d) else f"  separation {d:5.2f} (se {se:.2f})"
            lines.append(f"  {covariance:<11}{shrinkage:<8}weight {w:4.2f}{judged}")
        return "\n".join(lines)


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
        },
        optional=frozenset({"scores", "codes"}),
    )
)


def separation(held_out: HeldOut) -> tuple[FloatArray, FloatArray, FloatArray]:
    """d and the standard deviation of each candidate, and the samples' influence on d.

    Returns
    -------
    d, sd : ndarray of shape (n_candidates,)
    influence : ndarray of shape (n_candidates, n_held_out)
        The covariance of d is about ``influence @ influence.T``.
    """
    S, codes, w = held_out.scores, held_out.codes, held_out.weight
    n_contrasts = S.shape[2]
    total = w.sum()
    classes = np.unique(codes)
    # The class that a contrast is for: the second of two, else each.
    own = classes[1:] if n_contrasts == 1 else classes
    columns = np.zeros(1, dtype=np.intp) if n_contrasts == 1 else own
    distance = np.zeros(len(S))
    influence = np.zeros(S.shape[:2])
    shares = np.array([w[codes == k].sum() for k in own])
    for k, column, share in zip(own, columns, shares / shares.sum(), strict=True):
        for member, sign in ((codes == k, 1.0), (codes != k, -1.0)):
            weight = np.where(member, w, 0.0)
            score = S[:, :, column]
            mean = score @ weight / weight.sum()
            distance += share * sign * mean
            influence += share * sign * weight / weight.sum() * (score - mean[:, None])
    residual = S.copy()
    for k in classes:
        member = codes == k
        mean = np.einsum("mnc,n->mc", S[:, member], w[member]) / w[member].sum()
        residual[:, member] -= mean[:, None, :]
    square = (residual**2).mean(axis=2)
    variance = square @ w / max(total - len(classes), 1.0)
    sd = np.sqrt(variance)
    unit = np.where(sd > 0, sd, 1.0)
    d = distance / (2 * unit)
    influence /= 2 * unit[:, None]
    influence -= d[:, None] / 2 * w / total * (square / unit[:, None] ** 2 - 1)
    return d, sd, influence / np.sqrt(np.maximum(w, 1e-300))


def weights(d: FloatArray, covariance: FloatArray, preferred: int) -> FloatArray:
    """Probability that each candidate separates best, by draws from the normal.

    The others are handicapped by one standard error of their distance to the
    `preferred` one.

    >>> weights(np.array([1.0, 0.0]), np.diag([0.01, 0.01]), preferred=1)
    array([1., 0.])
    """
    own = np.diag(covariance)
    apart = own + own[preferred] - 2 * covariance[preferred]
    judged = d - np.sqrt(np.maximum(apart, 0.0))
    judged[preferred] = d[preferred]
    value, vector = np.linalg.eigh(covariance)
    root = vector * np.sqrt(np.maximum(value, 0.0))
    normal = np.random.RandomState(0).standard_normal((_DRAWS, len(d)))
    draws = judged + normal @ root.T
    # Equal candidates (no factors found) tie up to rounding: the first has it.
    best = draws >= draws.max(axis=1, keepdims=True) - 1e-6
    return np.bincount(best.argmax(axis=1), minlength=len(d)) / _DRAWS


def select(
    recipe: Recipe,
    samples: Samples,
    key: FloatArray,
    score_sd: FloatArray,
    n_classes: int,
    least: int,
    seed: int,
    run: Callable[..., list[FloatArray]],
) -> tuple[Selection, FloatArray]:
    """Compare the candidates.

    Returns the selection, and what each candidate's rule is multiplied by when they are
    added up.

    Parameters
    ----------
    recipe : Recipe
        The candidates, as they are to be fitted in the folds.
    samples : Samples
        The training data.
    key : ndarray
        A number for each sample, equal for equal samples.
    score_sd : ndarray
        Standard deviation of each candidate's scores, as its own model has it.
    n_classes : int
        Number of classes.
    least : int
        Samples that must be left in each class.
    seed : int
        Deals out the folds.
    run : callable
        Calls a function for each of a list of arguments.
    """
    names = recipe.names
    folds = assign_folds(key, samples.codes, least, seed)
    held = folds >= 0
    if (
        len(distinct(key[held], np.abs(key).max())[0]) < _LEAST_HELD_OUT
        or len(np.unique(samples.codes[held])) < 2
        or not _trainable(samples, folds, n_classes, least)
    ):
        reason = "Too few samples to compare rules on parts of them; the usual choice."
        selection = Selection.without_folds(names, recipe.usual, reason)
        return selection, selection.weight
    held_out = held_out_scores(recipe, samples, folds, n_classes, run)
    d, sd, influence = separation(held_out)
    covariance = influence @ influence.T
    weight = weights(d, covariance, names.index(recipe.usual))
    sd = np.where(sd > 0, sd, 1.0)
    combined = np.tensordot(weight / sd, held_out.scores, 1)
    counts = np.bincount(held_out.codes, weights=held_out.weight, minlength=n_classes)
    log_prior = np.log(np.maximum(counts, 1e-300) / counts.sum())
    slope, calibration = calibrate(combined, held_out.codes, held_out.weight, log_prior)
    error: npt.NDArray[np.float64] = np.sqrt(np.diag(covariance))
    reason = f"Compared by the separation of held-out samples in {N_FOLDS} folds."
    selection = Selection(
        names,
        weight,
        d,
        error,
        N_FOLDS,
        reason,
        slope,
        calibration,
        slope * combined,
        held_out.codes,
    )
    return selection, slope * weight / (sd * score_sd)


def _trainable(samples: Samples, folds: IntArray, n_classes: int, least: int) -> bool:
    """Whether each training part has enough samples of every class for a variance."""
    for f in np.unique(folds):
        train = folds != f
        counts = np.bincount(samples.codes[train], samples.weight[train], n_classes)
        if f >= 0 and (counts.min() < least or counts.sum() - n_classes < 1):
            return False
    return True


def combine(
    rule_of: Callable[[Name], LinearRule],
    candidates: list[Name],
    share: FloatArray,
    log_odds: FloatArray,
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
    log_odds : ndarray
        What the class probabilities add to the scores.
    """
    coef: FloatArray | None = None
    correction: FloatArray | None = None
    intercept = log_odds.copy()
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
        del rule  # before the next is made
    assert coef is not None
    return LinearRule(coef, intercept, correction=correction)
