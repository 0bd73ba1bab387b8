"""Samples that are held out in folds, and the scores of rules that never saw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ebda.data import Samples
from ebda.moments import ClassMoments, merge_all
from ebda.selection.candidates import Recipe, Summary
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
    """

    scores: FloatArray
    codes: IntArray
    weight: FloatArray


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
    samples: Samples,
    folds: IntArray,
    n_classes: int,
    run: Callable[..., list[FloatArray]],
) -> HeldOut:
    """Fit the candidates without each fold, and score the fold.

    `run` calls a function for each of a list of arguments, perhaps in parallel.
    """
    numbers = [f for f in np.unique(folds) if f >= 0]
    without = moments_without(samples, folds, n_classes)
    jobs = (
        (recipe, moments, samples.take(folds != f), samples.take(folds == f))
        for f, moments in zip(numbers, without, strict=True)
    )
    parts = run(_score_fold, jobs)
    place = np.concatenate([np.flatnonzero(folds == f) for f in numbers])
    return HeldOut(
        np.concatenate(parts, axis=1), samples.codes[place], samples.weight[place]
    )


def moments_without(
    samples: Samples, folds: IntArray, n_classes: int
) -> Iterator[ClassMoments]:
    """Moments of all samples but those of each fold in turn.

    The folds before it are added up as it goes along, those after it beforehand: two
    mergers a fold. (To subtract a fold from the total would lose digits.)
    """
    used, group = np.unique(folds, return_inverse=True)
    of_folds = samples.moments_by(group, len(used), n_classes)
    before = of_folds.pop(0) if (folds < 0).any() else None
    after = list(accumulate(reversed(of_folds[1:]), ClassMoments.merge))
    while of_folds:
        parts = [part for part in (before, after.pop() if after else None) if part]
        yield merge_all(parts)
        fold = of_folds.pop(0)  # what was used makes room
        before = fold if before is None else before.merge(fold)


def _score_fold(
    recipe: Recipe, moments: ClassMoments, train: Samples, test: Samples
) -> FloatArray:
    effects = recipe.effects(Summary(moments, recipe.contrasts(moments), train))
    rules = recipe.rules(effects, moments)
    # The same rule may be several candidates: score it once.
    different = list({id(rule): rule for rule in rules.values()}.values())
    coef = np.concatenate([rule.coef for rule in different])
    raw = np.split(test.scores(coef), len(different), axis=1)
    score = {
        id(rule): (s + rule.intercept) / rule.score_sd
        for rule, s in zip(different, raw, strict=True)
    }
    return np.stack([score[id(rules[name])] for name in recipe.names])
