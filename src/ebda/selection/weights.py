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

For people each candidate, and the combined rule, has its separation
(:mod:`ebda.selection.separation`). The held-out scores of the combined rule also say
how far its scores can be believed (:mod:`ebda.selection.calibration`); for these each
sample has the weights without its own fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from ebda.covariance import Summary
from ebda.data import Samples
from ebda.rule.effects import Effects
from ebda.rule.shrinkage import SHRINKAGES
from ebda.selection.calibration import calibrate, log_evidence
from ebda.selection.candidates import Name, Recipe
from ebda.selection.copies import GramRows, near_copies
from ebda.selection.folds import (
    N_FOLDS,
    HeldOut,
    assign_folds,
    distinct,
    enough_folds,
    held_out_scores,
    unit_keys,
)
from ebda.selection.selection import Selection
from ebda.selection.separation import separation
from ebda.typing import FloatArray, IntArray

# Fewer held-out samples than this tell too little to choose by.
_LEAST_HELD_OUT = 10
# The part of the log-evidence that counts.
_TEMPER = 0.5
# Weights below this are zero: such a rule would change nothing.
_NEGLIGIBLE = 1e-3


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
    groups: IntArray | None = None,
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
    groups : ndarray of int of shape (n_samples,), optional
        Group of each sample; samples of a group are held out together.
    """
    names = recipe.names
    folds = folds_of(data, least, seed, groups)
    if folds is None:
        return without_folds(names, recipe.usual, TOO_FEW)
    held_out = held_out_scores(recipe, data, effects, folds, run)
    n_folds = int(held_out.fold.max()) + 1
    d, sd, influence = separation(held_out)
    error: npt.NDArray[np.float64] = np.sqrt((influence**2).sum(axis=1))
    log_prior = _log_shares(held_out, data.moments.counts)
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
        n_folds,
        _in_folds(COMPARED if len(names) > 1 else CALIBRATED, n_folds),
        slope,
        replace(calibration, prior=class_prior),
        slope * combined - at[:, None] * midpoint,
        held_out.codes,
        float(own[0]),
        own_error,
        evidence,
        _copies(data, groups),
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


def _in_folds(reason: str, n_folds: int) -> str:
    """The reason, with fewer folds where these hold out enough samples."""
    if n_folds == N_FOLDS:
        return reason
    return reason.replace(f"{N_FOLDS} folds", f"{n_folds} of {N_FOLDS} folds")


def without_folds(
    names: list[Name], chosen: Name, reason: str
) -> tuple[Selection, FloatArray, FloatArray]:
    """One candidate taken without a comparison; what `select` returns."""
    selection = Selection.without_folds(names, chosen, reason)
    return selection, selection.weight, np.zeros(1)


def folds_of(
    data: Summary, least: int, seed: int, groups: IntArray | None
) -> IntArray | None:
    """The fold of each sample, -1 where it is never held out; None if too few are.

    Parameters
    ----------
    data, least, seed, groups
        As in `select`.
    """
    samples, key = data.samples, data.key
    assert samples is not None
    folds = assign_folds(key, samples.codes, least, seed, groups=groups)
    folds = enough_folds(folds, samples.codes, samples.weight)
    held = folds >= 0
    largest = np.abs(key).max()
    if groups is not None:
        key, _ = unit_keys(key, samples.codes, groups)
    if (
        len(distinct(key[held], largest)[0]) < _LEAST_HELD_OUT
        or len(np.unique(samples.codes[held])) < 2
        or not _trainable(samples, folds, len(data.moments.counts), least)
    ):
        return None
    return folds


def _log_shares(held_out: HeldOut, counts: FloatArray) -> FloatArray:
    """Logarithms of the shares of the classes among the held-out samples.

    A class too rare to be held out has its share of all samples: the shift of the
    scores by the class probabilities goes by these, and has to stay finite.
    """
    held = np.bincount(held_out.codes, held_out.weight, len(counts))
    share = np.where(held > 0, held / held.sum(), counts / counts.sum())
    log_share: FloatArray = np.log(np.maximum(share, 1e-300) / share.sum())
    return log_share


def _copies(data: Summary, groups: IntArray | None) -> IntArray | None:
    """Rows of X that may be copies; None without any."""
    assert data.samples is not None
    pairs = near_copies(GramRows(data.rows) if data.is_tall else data.gram, groups)
    copies: IntArray = data.samples.number[pairs]
    return copies if len(copies) else None


def _trainable(samples: Samples, folds: IntArray, n_classes: int, least: int) -> bool:
    """Whether each training part has enough samples of every class for a variance."""
    for f in np.unique(folds):
        train = folds != f
        counts = np.bincount(samples.codes[train], samples.weight[train], n_classes)
        if f >= 0 and (counts.min() < least or counts.sum() - n_classes < 1):
            return False
    return True
