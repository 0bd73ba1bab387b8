"""Samples that are held out in folds, and the scores of rules that never saw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ebda.covariance import COVARIANCES, Summary
from ebda.rule.effects import Effects, is_balanced
from ebda.rule.linear_rule import midpoint_bias
from ebda.selection.candidates import Recipe
from ebda.selection.stack import FoldStack, StackedCovariance, StackedEffects
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

N_FOLDS = 10
# Keys this close, relative to the largest, are ties: rounding differs with the units.
_TIED = 1e-9


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of the candidates for samples that they were not fitted to.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_held_out, n_contrasts)
    codes : ndarray of shape (n_held_out,)
        Classes.
    weight : ndarray of shape (n_held_out,)
        Frequency weights.
    fold : ndarray of shape (n_held_out,)
        The fold of each sample, from 0 on.
    precision : ndarray of shape (n_held_out,), optional
        One over the squares of their scales, which scores are multiplied with; 1 if
        None.
    """

    scores: FloatArray
    codes: IntArray
    weight: FloatArray
    fold: IntArray
    precision: FloatArray | None = None


def assign_folds(
    key: FloatArray, codes: IntArray, least: int, seed: int, n_folds: int = N_FOLDS
) -> IntArray:
    """The fold that each sample is held out in; -1 for those that never are.

    Samples of a class are dealt out in turn, in an order that depends on `key` and
    the seed and not on the order of the samples; equal samples go together, so that a
    sample of weight 2 is two equal samples. A class stays out of it where fewer than
    `least` different samples would be left.

    >>> codes = np.array([0, 0, 0, 1, 1, 1, 1])
    >>> folds = assign_folds(np.arange(7.0), codes, least=1, seed=0, n_folds=3)
    >>> np.bincount(folds[codes == 0]).tolist(), np.bincount(folds[codes == 1]).sum()
    ([1, 1, 1], np.int64(4))
    """
    rng = np.random.RandomState(seed)
    fold = np.full(len(codes), -1)
    dealt = 0
    classes = []
    largest = float(np.abs(key).max(initial=0.0))
    for k in np.unique(codes):
        member = np.flatnonzero(codes == k)
        different, place = distinct(key[member], largest)
        classes.append((len(different), different, member, place))
    # The names of the classes do not matter either: their order is by content.
    for n, _, member, place in sorted(classes, key=lambda c: c[:2]):
        if n <= least:
            continue
        fold[member] = ((dealt + rng.permutation(n)) % n_folds)[place]
        dealt += n
    return fold


def distinct(key: FloatArray, largest: float) -> tuple[list[float], IntArray]:
    """Distinct keys, in units of the tolerance, and the place of each key among them.

    Keys that differ by no more than rounding are one.

    >>> distinct(np.array([0.3, 5.0, 0.1 + 0.2]), largest=5.0)[1]
    array([0, 1, 0])
    """
    tolerance = _TIED * largest
    order = np.argsort(key, kind="stable")
    starts = np.diff(key[order], prepend=-np.inf) > tolerance
    place = np.empty(len(key), dtype=np.intp)
    place[order] = np.cumsum(starts) - 1
    return np.rint(key[order][starts] / (2 * tolerance or 1.0)).tolist(), place


def held_out_scores(
    recipe: Recipe,
    data: Summary,
    effects: dict[str, Effects],
    folds: IntArray,
    run: Callable[..., list[FloatArray]],
) -> HeldOut:
    """Fit the candidates without each fold, and score the fold.

    Parameters
    ----------
    recipe : Recipe
        The candidates.
    data : Summary
        All samples.
    effects : dict
        Of all samples; the priors of the folds start at theirs.
    folds : ndarray of int of shape (n_samples,)
        The fold that each sample is held out in, or -1.
    run : callable
        Calls a function for each of a list of arguments, perhaps in parallel.
    """
    samples = data.samples
    assert samples is not None
    numbers = [f for f in np.unique(folds) if f >= 0]
    n_contrasts, p = data.contrasts.z.shape
    for name in recipe.names:
        if recipe.shrinkage(name).needs_prior:
            _ = effects[
                name[0]
            ].prior_estimator  # fitted once, before there are threads
    # Not by the number of jobs: sums differ in the last digit with their shapes.
    at_once = max(1, sizes.stacked_values // (n_contrasts * p))
    groups = [numbers[k : k + at_once] for k in range(0, len(numbers), at_once)]
    jobs = (
        (
            recipe,
            effects,
            FoldStack(
                data, [np.flatnonzero(folds != f) for f in group], recipe.expects
            ),
            [np.flatnonzero(folds == f) for f in group],
        )
        for group in groups
    )
    parts = run(_score_folds, jobs)
    place = np.concatenate([np.flatnonzero(folds == f) for f in numbers])
    _, fold = np.unique(folds[place], return_inverse=True)
    scores = np.concatenate(parts, axis=1)
    held_out = HeldOut(scores, samples.codes[place], samples.weight[place], fold)
    precision = samples.precision[place]
    if (precision == 1).all():
        return held_out
    return replace(held_out, scores=scores * precision[:, None], precision=precision)


def _score_folds(
    recipe: Recipe,
    effects: dict[str, Effects],
    stack: FoldStack,
    test: list[IntArray],
) -> FloatArray:
    """Scores of each candidate in units of the standard deviation it claims."""
    contrasts, counts = stack.contrasts, stack.counts
    n_contrasts = len(contrasts.z) // len(stack.train)
    counts_of_row = np.repeat(counts, n_contrasts, axis=0)
    if stack.gaps is None:
        bias = midpoint_bias(contrasts, counts_of_row)
        correct = recipe.unbiased and not is_balanced(contrasts, counts_of_row)
    else:
        bias = stack.gaps.midpoint_bias(contrasts)
        correct = recipe.unbiased
    held = np.repeat(np.arange(len(test)), [len(t) for t in test])
    scores = {}
    for covariance in recipe.covariances:
        whole, estimate = effects[covariance], COVARIANCES[covariance]
        stacked = StackedCovariance([estimate(fold) for fold in stack.folds])
        values = stacked.decorrelate(contrasts.z)
        e = StackedEffects(contrasts, stacked, values, whole.estimator, stacked.parts)
        for name in recipe.names:
            if name[0] != covariance:
                continue
            how = recipe.shrinkage(name)
            weights, variance = e.weights(how, recipe.kappa)
            add = np.zeros_like(bias)
            if correct:
                divergence = e.divergence(how, recipe.kappa)
                add = (divergence if bias.ndim == 2 else divergence.sum(axis=1)) * bias
            sd = np.sqrt(variance.reshape(len(test), -1).sum(axis=1))
            score = stack.scores(weights, add, test)
            scores[name] = score / np.where(sd > 0, sd, 1.0)[held, None]
    return np.stack([scores[name] for name in recipe.names])
