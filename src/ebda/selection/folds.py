"""Samples that are held out in folds, and the scores of rules that never saw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ebda.covariance import COVARIANCES, Summary
from ebda.rule.effects import Effects, is_balanced
from ebda.rule.linear_rule import midpoint_bias
from ebda.selection.candidates import Recipe
from ebda.selection.fold_effects import StackedCovariance, StackedEffects
from ebda.selection.stack import FoldStack
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
    key: FloatArray,
    codes: IntArray,
    least: int,
    seed: int,
    n_folds: int = N_FOLDS,
    groups: IntArray | None = None,
) -> IntArray:
    """The fold that each sample is held out in; -1 for those that never are.

    Samples of a class are dealt out in turn, in an order that depends on `key` and
    the seed and not on the order of the samples; equal samples go together, so that a
    sample of weight 2 is two equal samples. A class stays out of it where fewer than
    `least` different samples would be left.

    The samples of a group, of whatever class, go together: what is dealt out are
    groups. One with samples of several classes is dealt with the first of them, and
    stays out of it where one of them does.

    >>> codes = np.array([0, 0, 0, 1, 1, 1, 1])
    >>> folds = assign_folds(np.arange(7.0), codes, least=1, seed=0, n_folds=3)
    >>> np.bincount(folds[codes == 0]).tolist(), np.bincount(folds[codes == 1]).sum()
    ([1, 1, 1], np.int64(4))
    >>> groups = np.array([0, 0, 1, 2, 2, 2, 1])
    >>> folds = assign_folds(np.arange(7.0), codes, 1, 0, n_folds=3, groups=groups)
    >>> folds[0] == folds[1], folds[2] == folds[6], len(set(folds[3:6]))
    (np.True_, np.True_, 1)
    """
    rng = np.random.RandomState(seed)
    fold = np.full(len(codes), -1)
    dealt = 0
    classes = []
    largest = float(np.abs(key).max(initial=0.0))
    unit: IntArray = np.arange(len(codes))
    if groups is not None:
        key, unit = unit_keys(key, codes, groups)
    stays = np.zeros(len(codes), dtype=bool)
    for k in np.unique(codes):
        member = np.flatnonzero(codes == k)
        different, place = distinct(key[member], largest)
        classes.append((len(different), different, member, place))
    # The names of the classes do not matter either: their order is by content.
    for n, _, member, place in sorted(classes, key=lambda c: c[:2]):
        if n <= least:
            stays[member] = True
            continue
        own = ((dealt + rng.permutation(n)) % n_folds)[place]
        fold[member] = np.where(fold[member] < 0, own, fold[member])
        # With samples of other classes in the same groups.
        of_unit = np.full(len(codes), -1)
        of_unit[unit[member]] = fold[member]
        fold = np.where(fold < 0, of_unit[unit], fold)
        dealt += n
    fold[np.isin(unit, unit[stays])] = -1
    return fold


def enough_folds(fold: IntArray, codes: IntArray, weight: FloatArray) -> IntArray:
    """The first folds that hold out enough samples; -1 for those of the others.

    There are `sizes.held_out` in all then, and `sizes.held_out_per_class` of each
    class, or half of those of a rare one. A sample of weight 2 is two samples.

    >>> from ebda.sizes import override
    >>> fold, codes = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    >>> with override(held_out=3, held_out_per_class=1):
    ...     enough_folds(fold, codes, np.ones(6))
    array([ 0,  1, -1,  0,  1, -1])
    """
    n_folds, own = int(fold.max()) + 1, fold >= 0
    if n_folds <= 0:
        return fold
    held = np.zeros((int(codes.max()) + 1, n_folds))
    np.add.at(held, (codes[own], fold[own]), weight[own])
    so_far = held.cumsum(axis=1)
    least = np.minimum(so_far[:, -1:] / 2, sizes.held_out_per_class)
    is_enough = (so_far >= least).all(axis=0) & (so_far.sum(axis=0) >= sizes.held_out)
    if not is_enough.any():
        return fold
    # Weights of the candidates without a sample's own fold need another one.
    last = max(int(np.argmax(is_enough)), 1)
    return np.where(fold <= last, fold, -1)


def unit_keys(
    key: FloatArray, codes: IntArray, groups: IntArray
) -> tuple[FloatArray, IntArray]:
    """What is held out together: a key for each sample, and the number of its unit.

    Samples of a group are a unit, and equal samples of a class are, and what is joined
    by these. The key is the smallest in the unit.

    >>> codes, groups = np.zeros(5, int), np.array([0, 0, 1, 2, 3])
    >>> unit_keys(np.array([4.0, 2.0, 2.0, 1.0, 3.0]), codes, groups)[0]
    array([2., 2., 2., 1., 3.])
    """
    n = len(key)
    equal, largest = np.empty(n, dtype=np.intp), float(np.abs(key).max(initial=0.0))
    before = 0
    for k in np.unique(codes):
        member = np.flatnonzero(codes == k)
        place = distinct(key[member], largest)[1]
        equal[member] = before + place
        before += int(place.max()) + 1
    name = np.unique(groups, return_inverse=True)[1]
    graph = coo_array((np.ones(n), (name, equal + n)), shape=(2 * n, 2 * n))
    unit = connected_components(graph, directed=False)[1][name]
    smallest = np.full(2 * n, np.inf)
    np.minimum.at(smallest, unit, key)
    return smallest[unit], np.unique(unit, return_inverse=True)[1]


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
    variance_df: float | FloatArray = np.inf
    # With covariates the variances of the folds stay those of all samples.
    if data.moments.observed is not None and data.covariates is None:
        variance_df = recipe.variance_of(data.moments).degrees_of_freedom
    groups = [numbers[k : k + at_once] for k in range(0, len(numbers), at_once)]
    jobs = (
        (
            recipe,
            effects,
            FoldStack(
                data,
                [np.flatnonzero(folds != f) for f in group],
                recipe.expects,
                variance_df,
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
    adjusted = stack.data.covariates is not None and recipe.unbiased
    held = np.repeat(np.arange(len(test)), [len(t) for t in test])
    scores = {}
    for covariance in recipe.covariances:
        whole, estimate = effects[covariance], COVARIANCES[covariance]
        stacked = StackedCovariance([estimate(fold) for fold in stack.folds])
        values = stacked.decorrelate(contrasts.z)
        known = contrasts, stacked, values, whole.estimator, stacked.parts
        e = StackedEffects(*known, has_missing=stack.gaps is not None)
        for name in recipe.names:
            if name[0] != covariance:
                continue
            how = recipe.shrinkage(name)
            weights, variance = e.weights(how, recipe.kappa)
            add = np.zeros_like(bias)
            divergence = None
            if correct or adjusted:
                divergence = e.divergence(how, recipe.kappa)
                each = divergence if bias.ndim == 2 else divergence.sum(axis=1)
                add = each * bias
            sd = np.sqrt(variance.reshape(len(test), -1).sum(axis=1))
            score = stack.scores(weights, add, test, divergence)
            scores[name] = score / np.where(sd > 0, sd, 1.0)[held, None]
    return np.stack([scores[name] for name in recipe.names])
