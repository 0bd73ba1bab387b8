"""Which rule, from the training data alone: cross-validation and one combined rule.

No single covariance and shrinkage is right everywhere. Each candidate is fitted to the
training part of ten folds and scores the part held out. The held-out scores are
evidence: the probability L_m of the labels given the scores of candidate m, averaged
over how steeply probabilities rise with scores and over the share of odd samples
(:func:`~ebda.selection.calibration.log_evidence`). The candidates are then added up to
one linear rule, each in units of its own held-out standard deviation, with the weights

    w_m = h_m L_m^(1/2) / sum_l h_l L_l^(1/2),

so that what the samples cannot tell apart counts about the same, and what is clearly
worse nothing. That is steadier than taking the best alone, and better: their errors are
not the same ones. The root is there because the evidence is not of independent samples:
each was held out from rules that the others were fitted to. h is e for posterior means,
which are the best if the prior holds, and 1 for all others.

For people each candidate, and the combined rule, has its separation: half the distance
of the class means of the held-out scores in units of the standard deviation within the
classes,

    d = (mean score of the class - mean score of the others) / (2 sd).

It says whether the rule separates the classes at all. The held-out scores of the
combined rule also say how far its scores can be believed
(:mod:`ebda.selection.calibration`); for these each sample has the weights without its
own fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from ebda.covariance import Summary
from ebda.data import Samples
from ebda.kernels.rows import add_scaled
from ebda.rule.effects import Effects
from ebda.rule.linear_rule import LinearRule
from ebda.rule.shrinkage import SHRINKAGES
from ebda.selection.calibration import Calibration, calibrate, log_evidence
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
# The part of the log-evidence that counts.
_TEMPER = 0.5
# Weights below this are zero: such a rule would change nothing.
_NEGLIGIBLE = 1e-3
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

    def words(self) -> str:
        """Why there are these weights, and what is doubtful."""
        return " ".join(filter(None, [self.reason, self.doubt]))

    def __str__(self) -> str:
        return f"{self.words()}\n{self.table()}"

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
        },
        optional=frozenset(
            {"scores", "codes", "combined", "combined_error", "evidence"}
        ),
        build=_from_fields,
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


def weights(log_evidence: FloatArray, head_start: FloatArray) -> FloatArray:
    """Share of each candidate, by its evidence and the odds with which it starts.

    >>> weights(np.array([-20.0, -20.0, -60.0]), np.zeros(3))
    array([0.5, 0.5, 0. ])
    """
    weight = softmax(_TEMPER * log_evidence + head_start)
    weight[weight < _NEGLIGIBLE] = 0.0
    shares: FloatArray = weight / weight.sum()
    return shares


def crossed_weights(
    held_out: HeldOut, head_start: FloatArray, log_prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The candidates' weights, and for each sample those without its own fold.

    A sample that had a say in the weights would overstate what the sum of the
    candidates is worth.

    Parameters
    ----------
    held_out : HeldOut
        Held-out scores of the candidates.
    head_start : ndarray of shape (n_candidates,)
        Logarithms of the odds with which they start.
    log_prior : ndarray of shape (n_classes,)
        Log class probabilities.

    Returns
    -------
    weight : ndarray of shape (n_candidates,)
    crossed : ndarray of shape (n_candidates, n_held_out)
    """
    samples = held_out.codes, held_out.weight
    known = *samples, log_prior, held_out.fold, held_out.precision
    evidence = np.array([log_evidence(scores, *known) for scores in held_out.scores])
    all_samples, *without = (weights(column, head_start) for column in evidence.T)
    return all_samples, np.array(without).T[:, held_out.fold]


def select(
    recipe: Recipe,
    data: Summary,
    effects: dict[str, Effects],
    score_sd: FloatArray,
    class_prior: FloatArray,
    least: int,
    seed: int,
    run: Callable[..., list[FloatArray]],
    is_judged: bool = False,
) -> tuple[Selection, FloatArray, FloatArray]:
    """Compare the candidates, and calibrate the rule that they add up to.

    Returns the selection, what each candidate's rule is multiplied by when they are
    added up, and the midpoint of the sum, which is subtracted from it.

    Parameters
    ----------
    recipe : Recipe
        The candidates.
    data : Summary
        The training data.
    effects : dict
        Effects under each covariance.
    score_sd : ndarray
        Standard deviation of each candidate's scores, as its own model has it.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities of new samples.
    least : int
        Samples that must be left in each class.
    seed : int
        Deals out the folds.
    run : callable
        Calls a function for each of a list of arguments.
    is_judged : bool
        Whether to compute the evidence of the combined rule.
    """
    samples, names = data.samples, recipe.names
    assert samples is not None
    n_classes = len(data.moments.counts)
    key = data.key
    folds = assign_folds(key, samples.codes, least, seed)
    held = folds >= 0
    if (
        len(distinct(key[held], np.abs(key).max())[0]) < _LEAST_HELD_OUT
        or len(np.unique(samples.codes[held])) < 2
        or not _trainable(samples, folds, n_classes, least)
    ):
        return without_folds(names, recipe.usual, TOO_FEW)
    held_out = held_out_scores(recipe, data, effects, folds, run)
    d, sd, influence = separation(held_out)
    error: npt.NDArray[np.float64] = np.sqrt((influence**2).sum(axis=1))
    counts = np.bincount(held_out.codes, weights=held_out.weight, minlength=n_classes)
    log_prior = np.log(np.maximum(counts, 1e-300) / counts.sum())
    head_start = np.array([SHRINKAGES[how].head_start for _, how in names])
    weight, crossed = crossed_weights(held_out, head_start, log_prior)
    sd = np.where(sd > 0, sd, 1.0)
    combined = np.einsum("mn,mnc->nc", crossed / sd[:, None], held_out.scores)
    known = combined, held_out.codes, held_out.weight, log_prior
    slope, midpoint, calibration = calibrate(*known, held_out.precision)
    evidence = None
    if is_judged:
        parts = log_evidence(*known, held_out.fold, held_out.precision)
        evidence = float(parts[0])
    at = np.ones(1) if held_out.precision is None else held_out.precision
    own, _, own_influence = separation(replace(held_out, scores=combined[None]))
    own_error = float(np.sqrt((own_influence**2).sum()))
    selection = Selection(
        names,
        weight,
        d,
        error,
        N_FOLDS,
        COMPARED if len(names) > 1 else CALIBRATED,
        slope,
        replace(calibration, prior=class_prior),
        slope * combined - at[:, None] * midpoint,
        held_out.codes,
        float(own[0]),
        own_error,
        evidence,
    )
    return selection, slope * weight / (sd * score_sd), midpoint


COMPARED = f"Weighted by how well they tell held-out samples apart, in {N_FOLDS} folds."
CALIBRATED = (
    f"One rule; its probabilities are calibrated on held-out samples in {N_FOLDS} "
    "folds."
)
TOO_FEW = (
    "Too few samples to hold some of them out: the usual rule, and its probabilities "
    "are not calibrated."
)


def without_folds(
    names: list[Name], chosen: Name, reason: str
) -> tuple[Selection, FloatArray, FloatArray]:
    """One candidate taken without a comparison; what `select` returns."""
    selection = Selection.without_folds(names, chosen, reason)
    return selection, selection.weight, np.zeros(1)


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
    offset: FloatArray,
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
    offset : ndarray of shape (n_contrasts,)
        What is added to the scores: the log-odds of the class probabilities, less the
        midpoint.
    """
    coef: FloatArray | None = None
    correction: FloatArray | None = None
    intercept = offset.copy()
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
