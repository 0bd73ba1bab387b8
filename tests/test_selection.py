"""The choice of the rule: folds, separation, weights, calibration, and the whole."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_info

from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.covariance import COVARIANCES, Covariance, CovarianceEstimator, Summary
from ebda.covariance.factor import Factors
from ebda.data import RowSamples
from ebda.datasets import load_khan, make_factor_classes, make_two_class
from ebda.moments.classwise import class_moments
from ebda.priors import DirichletProcess, DiscretePrior, FixedPrior
from ebda.rule.linear_rule import LinearRule
from ebda.selection.calibration import calibrate, log_evidence
from ebda.selection.candidates import Recipe, candidates, line
from ebda.selection.combined import combine
from ebda.selection.folds import N_FOLDS, HeldOut, assign_folds, held_out_scores
from ebda.selection.selection import Selection
from ebda.selection.separation import separation
from ebda.selection.weights import (
    CALIBRATED,
    COMPARED,
    TOO_FEW,
    crossed_weights,
    select,
    weights,
)
from ebda.sizes import override

MODEL = (
    "coef_",
    "intercept_",
    "z_",
    "posterior_mean_",
    "prob_zero_",
    "class_prior_",
    "n_factors_",
)


def factor_data(
    n: tuple[int, ...] = (22, 18), p: int = 300, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Classes with two strong common factors and a few differences."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(n)), n)
    X = rng.normal(size=(len(y), p))
    X += rng.normal(size=(len(y), 2)) @ rng.normal(scale=0.7, size=(2, p))
    for k in range(1, len(n)):
        X[y == k, 20 * k : 20 * k + 20] += 0.8
    # Rows in any order: folds and streams must not depend on it.
    order = rng.permutation(len(y))
    return X[order], y[order]


def samples_of(X: Any, codes: Any, weight: np.ndarray | None = None) -> RowSamples:
    return RowSamples.of(X, codes, weight)


def assert_same_model(a: EBClassifier, b: EBClassifier, rtol: float) -> None:
    np.testing.assert_array_equal(a.classes_, b.classes_)
    for name in MODEL:
        first, second = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        atol = rtol * np.abs(first).max()
        np.testing.assert_allclose(second, first, rtol=rtol, atol=atol, err_msg=name)
    for name in ("weight", "separation", "error", "slope"):
        np.testing.assert_allclose(
            getattr(b.selection_, name),
            getattr(a.selection_, name),
            rtol=rtol,
            atol=rtol,
            err_msg=name,
        )


def held_out(
    n: tuple[int, ...], n_rules: int = 2, seed: int = 0, weighted: bool = False
) -> HeldOut:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(n)), n)
    width = 1 if len(n) == 2 else len(n)
    scores = rng.normal(scale=2.0, size=(n_rules, len(codes), width))
    own = codes[:, None] == (np.arange(width) if width > 1 else 1)
    scores += np.linspace(1.5, 3.0, n_rules)[:, None, None] * own
    weight = rng.integers(1, 4, len(codes)) if weighted else np.ones(len(codes))
    order, fold = rng.permutation(len(codes)), np.arange(len(codes)) % 4
    return HeldOut(scores[:, order], codes[order], weight[order].astype(float), fold)


def some(held: HeldOut, rows: np.ndarray) -> HeldOut:
    """These samples alone, in this order."""
    return HeldOut(
        held.scores[:, rows], held.codes[rows], held.weight[rows], held.fold[rows]
    )


def one_by_weight(held: HeldOut) -> HeldOut:
    """Samples repeated instead of weighted."""
    again = some(held, np.repeat(np.arange(len(held.codes)), held.weight.astype(int)))
    return replace(again, weight=np.ones(len(again.codes)))


# Folds


def test_folds_are_stratified_and_even() -> None:
    codes = np.repeat([0, 1, 2], [23, 11, 6])
    key = np.random.default_rng(0).normal(size=40)
    folds = assign_folds(key, codes, least=1, seed=3, n_folds=5)
    assert np.bincount(folds).tolist() == [8] * 5
    for k in range(3):
        share = np.bincount(folds[codes == k], minlength=5)
        assert share.max() - share.min() <= 1


def test_folds_do_not_depend_on_the_order_of_the_samples() -> None:
    rng = np.random.default_rng(1)
    codes, key = np.repeat([0, 1], [13, 20]), rng.normal(size=33)
    folds = assign_folds(key, codes, 1, seed=0)
    for _ in range(5):
        order = rng.permutation(33)
        again = assign_folds(key[order], codes[order], 1, seed=0)
        np.testing.assert_array_equal(again, folds[order])
    assert (assign_folds(key, codes, 1, seed=1) != folds).any()


def test_equal_samples_share_a_fold() -> None:
    rng = np.random.default_rng(2)
    codes, key = np.repeat([0, 1], 10), rng.normal(size=20)
    folds = assign_folds(key, codes, 1, seed=0)
    times = rng.integers(1, 4, 20)
    repeated = assign_folds(np.repeat(key, times), np.repeat(codes, times), 1, seed=0)
    np.testing.assert_array_equal(repeated, np.repeat(folds, times))


def test_small_classes_are_never_held_out() -> None:
    codes = np.repeat([0, 1, 2], [12, 2, 3])
    key = np.arange(17.0)
    assert (assign_folds(key, codes, 2, seed=0) >= 0).tolist() == [True] * 12 + [
        False
    ] * 2 + [True] * 3
    # Equal samples count once.
    key[14:] = 14.0
    assert (assign_folds(key, codes, 2, seed=0)[14:] == -1).all()


# Separation


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [(14, 9), (10, 7, 8, 5)])
def test_separation_equals_a_direct_computation(
    n: tuple[int, ...], weighted: bool
) -> None:
    held = held_out(n, 3, weighted=weighted)
    S, codes, w = held.scores, held.codes, held.weight
    d, sd, _ = separation(held)
    for m in range(3):
        squares = 0.0
        for i in range(len(codes)):
            for c in range(S.shape[2]):
                same = codes == codes[i]
                mean = np.average(S[m, same, c], weights=w[same])
                squares += w[i] * (S[m, i, c] - mean) ** 2 / S.shape[2]
        direct = np.sqrt(squares / (w.sum() - len(n)))
        distance = 0.0
        for k in [1] if len(n) == 2 else range(len(n)):
            own, c = codes == k, 0 if len(n) == 2 else k
            gap = np.average(S[m, own, c], weights=w[own])
            gap -= np.average(S[m, ~own, c], weights=w[~own])
            distance += gap * (1.0 if len(n) == 2 else w[own].sum() / w.sum())
        assert sd[m] == pytest.approx(direct, rel=1e-12)
        assert d[m] == pytest.approx(distance / (2 * direct), rel=1e-12)


def test_classes_that_are_not_held_out_take_no_part() -> None:
    held = held_out((10, 7, 8, 5))
    d, sd, influence = separation(some(held, held.codes != 2))
    assert np.isfinite(d).all()
    assert np.isfinite(influence).all()
    assert (sd > 0).all()


def test_separation_of_equal_scores_is_zero() -> None:
    codes = np.repeat([0, 1], 4)
    d, sd, influence = separation(
        HeldOut(np.zeros((2, 8, 1)), codes, np.ones(8), np.zeros(8, dtype=np.intp))
    )
    assert (d == 0).all()
    assert (sd == 0).all()
    assert (influence == 0).all()


@pytest.mark.parametrize(
    ("n", "correlation"), [((200, 150), 0.9999), ((90,) * 4, 0.99)]
)
def test_influence_is_that_of_the_jackknife(
    n: tuple[int, ...], correlation: float
) -> None:
    held = held_out(n)
    d, _, influence = separation(held)
    dropped = np.empty_like(influence)
    for i in range(len(held.codes)):
        rest = np.arange(len(held.codes)) != i
        dropped[:, i] = d - separation(some(held, rest))[0]
    for m in range(2):
        assert np.corrcoef(dropped[m], influence[m])[0, 1] > correlation
    found, direct = influence @ influence.T, dropped @ dropped.T
    np.testing.assert_allclose(found, direct, atol=0.05 * direct.max())


def test_weights_of_samples_are_frequencies() -> None:
    held = held_out((14, 9), weighted=True)
    repeated = one_by_weight(held)
    d, sd, influence = separation(held)
    d2, sd2, influence2 = separation(repeated)
    np.testing.assert_allclose(d, d2)
    np.testing.assert_allclose(sd, sd2)
    np.testing.assert_allclose(influence @ influence.T, influence2 @ influence2.T)


def test_standard_error_is_that_of_repeated_samples() -> None:
    rng = np.random.default_rng(5)
    codes = np.repeat([0, 1], [40, 60])
    found, stated = [], []
    for _ in range(400):
        scores = rng.normal(size=(1, 100, 1)) + 1.4 * codes[None, :, None]
        fold = np.zeros(100, dtype=np.intp)
        d, _, influence = separation(HeldOut(scores, codes, np.ones(100), fold))
        found.append(d[0])
        stated.append(np.sqrt(influence[0] @ influence[0]))
    assert np.mean(stated) == pytest.approx(np.std(found), rel=0.1)
    assert np.mean(found) == pytest.approx(0.7, abs=0.02)


# Weights of the candidates

FOUR = [
    ("diagonal", "mean"),
    ("diagonal", "sparse"),
    ("factor", "mean"),
    ("factor", "sparse"),
]


def test_weights_are_the_root_of_the_evidence() -> None:
    """Against the formula, one by one, with numbers that fit into a double."""
    evidence, start = np.array([-3.0, -1.2, -5.0, -2.0]), np.array([1.0, 0.0, 1.0, 0.3])
    parts = [
        np.exp(h) * np.sqrt(np.exp(e)) for e, h in zip(evidence, start, strict=True)
    ]
    want = [part / sum(parts) for part in parts]
    np.testing.assert_allclose(weights(evidence, start), want, rtol=1e-12)


def test_two_units_of_the_evidence_are_odds_of_e() -> None:
    w = weights(np.array([-30.0, -32.0]), np.zeros(2))
    assert w[0] / w[1] == pytest.approx(np.e)


def test_what_the_samples_cannot_tell_apart_counts_the_same() -> None:
    w = weights(np.array([-30.0, -30.001]), np.zeros(2))
    np.testing.assert_allclose(w, 0.5, atol=1e-3)


def test_what_is_clearly_worse_counts_nothing() -> None:
    assert weights(np.array([-60.0, -30.0]), np.zeros(2)).tolist() == [0.0, 1.0]
    # Nor does a head start save it.
    assert weights(np.array([-60.0, -30.0]), np.array([1.0, 0.0]))[0] == 0.0


@pytest.mark.parametrize("evidence", [0.0, -5.0, -1e5])
def test_ties_share(evidence: float) -> None:
    shares = weights(np.full(4, evidence), np.zeros(4))
    np.testing.assert_allclose(shares, 0.25)


def test_equal_evidence_leaves_the_odds_of_the_start() -> None:
    w = weights(np.full(3, -20.0), np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(w, np.array([np.e, 1, 1]) / (np.e + 2))


def test_the_weights_know_differences_of_the_evidence_alone() -> None:
    evidence, start = np.array([-10.0, -12.0, -11.0]), np.array([0.0, 1.0, 0.0])
    want = weights(evidence, start)
    np.testing.assert_allclose(weights(evidence - 1e3, start), want)
    np.testing.assert_allclose(weights(evidence, start + 5.0), want)
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(weights(evidence[order], start[order]), want[order])


def test_one_candidate_has_all_the_weight() -> None:
    assert weights(np.array([-1e4]), np.array([1.0])).tolist() == [1.0]
    held = held_out((14, 9), n_rules=1)
    weight, crossed = crossed_weights(held, np.zeros(1), np.log([0.6, 0.4]))
    assert weight.tolist() == [1.0]
    np.testing.assert_array_equal(crossed, np.ones((1, 23)))


# Weights without the fold of a sample

SOME_START = np.array([1.0, 0.0, 0.0])


def similar(n: tuple[int, ...], weighted: bool = False) -> HeldOut:
    """Three rules that samples hardly tell apart."""
    held = held_out(n, 1, weighted=weighted)
    noise = np.random.default_rng(1).normal(scale=0.7, size=(3, *held.scores.shape[1:]))
    return replace(held, scores=held.scores + noise)


def log_shares(held: HeldOut) -> np.ndarray:
    counts = np.bincount(held.codes, weights=held.weight)
    return np.log(counts / counts.sum())


@pytest.mark.parametrize("n", [(30, 20), (20, 14, 16)])
def test_each_sample_has_the_weights_without_its_fold(n: tuple[int, ...]) -> None:
    held = similar(n, weighted=True)
    log_prior = log_shares(held)
    weight, crossed = crossed_weights(held, SOME_START, log_prior)
    known = (held.codes, held.weight, log_prior, held.fold)
    evidence = np.array([log_evidence(scores, *known) for scores in held.scores])
    np.testing.assert_allclose(weight, weights(evidence[:, 0], SOME_START))
    assert ((weight > 0.01) & (weight < 0.99)).any()
    for i, f in enumerate(held.fold):
        want = weights(evidence[:, 1 + f], SOME_START)
        np.testing.assert_allclose(crossed[:, i], want)
        assert np.abs(want - weight).max() > 1e-4


@pytest.mark.parametrize("n", [(30, 20), (20, 14, 16)])
def test_a_fold_has_no_say_in_its_own_weights(n: tuple[int, ...]) -> None:
    held = similar(n)
    log_prior = log_shares(held)
    _, want = crossed_weights(held, SOME_START, log_prior)
    rng = np.random.default_rng(4)
    for f in range(4):
        rows = np.flatnonzero(held.fold == f)
        # Its labels are others, and its scores are dealt out anew.
        codes, scores = held.codes.copy(), held.scores.copy()
        codes[rows] = (codes[rows] + 1) % len(n)
        for candidate in scores:
            candidate[rows] = candidate[rng.permutation(rows)]
        changed = replace(held, codes=codes, scores=scores)
        _, got = crossed_weights(changed, SOME_START, log_prior)
        np.testing.assert_allclose(got[:, rows], want[:, rows], rtol=1e-9)
        others = np.flatnonzero(held.fold != f)
        assert np.abs(got[:, others] - want[:, others]).max() > 1e-3


@pytest.mark.parametrize("n", [(30, 20), (20, 14, 16)])
def test_the_weights_have_no_unit_and_no_order(n: tuple[int, ...]) -> None:
    held = similar(n, weighted=True)
    log_prior = log_shares(held)
    weight, crossed = crossed_weights(held, SOME_START, log_prior)

    def same(other: HeldOut, place: np.ndarray, odds: np.ndarray = log_prior) -> None:
        got, got_crossed = crossed_weights(other, SOME_START, odds)
        np.testing.assert_allclose(got, weight, rtol=1e-7)
        np.testing.assert_allclose(got_crossed, crossed[:, place], rtol=1e-7)

    everywhere = np.arange(sum(n))
    # Each candidate in a unit of its own, and cut wherever it likes.
    unit = np.array([1e-6, 1.0, 1e5])[:, None, None]
    same(replace(held, scores=unit * (held.scores + 3.0)), everywhere)
    order = np.random.default_rng(0).permutation(sum(n))
    same(some(held, order), order)
    # Names of folds and of classes.
    renamed = np.array([2, 0, 3, 1])
    same(replace(held, fold=renamed[held.fold]), everywhere)
    last = len(n) - 1
    scores = -held.scores if len(n) == 2 else held.scores[:, :, ::-1]
    other = replace(held, scores=scores, codes=last - held.codes)
    same(other, everywhere, log_prior[::-1])
    # Two equal samples are one of weight two.
    rows = np.repeat(everywhere, held.weight.astype(int))
    same(one_by_weight(held), rows)


def test_constant_scores_are_worth_the_class_shares() -> None:
    """And what separates no better weighs as much, but for the start."""
    held = held_out((30, 20), 3)
    nothing = replace(held, scores=np.full_like(held.scores, 7.0))
    log_prior = log_shares(held)
    weight, crossed = crossed_weights(nothing, SOME_START, log_prior)
    np.testing.assert_allclose(weight, np.array([np.e, 1, 1]) / (np.e + 2))
    np.testing.assert_allclose(crossed, np.tile(weight[:, None], 50))
    # One that separates the classes leaves nothing for those that do not.
    scores = nothing.scores.copy()
    scores[2, :, 0] = 3.0 * held.codes + held.scores[2, :, 0]
    better, _ = crossed_weights(replace(held, scores=scores), SOME_START, log_prior)
    np.testing.assert_allclose(better, [0, 0, 1], atol=1e-2)


def test_the_same_rule_by_another_name_is_compared_once() -> None:
    """What finds no correlation is the diagonal, with its posterior means."""
    sim = make_two_class(25, 500, 20, 1.0, random_state=0)
    model = EBClassifier().fit(sim.data, sim.target)
    assert model.n_factors_ == 0
    assert model.selection_.candidates == [("diagonal", "mean")]
    plain = EBClassifier(covariance="diagonal", shrinkage="mean")
    np.testing.assert_array_equal(model.coef_, plain.fit(sim.data, sim.target).coef_)


def test_candidates_are_those_of_the_covariances() -> None:
    found = candidates("auto", "auto")
    assert len(set(found)) == len(found) > 1
    for name, entry in COVARIANCES.items():
        mine = tuple(how for covariance, how in found if covariance == name)
        if not entry.in_auto:
            assert mine == ()
        elif entry.beside_others is not None:
            assert mine == entry.beside_others
            assert set(mine) <= set(entry.compared)
        else:
            assert mine == entry.compared
        own = [(name, how) for how in entry.compared]
        assert candidates(name, "auto") == [*own, *entry.and_others]
        assert candidates(name, "sparse") == [(name, "sparse")]
    tried = [name for name, entry in COVARIANCES.items() if entry.in_auto]
    assert candidates("auto", "hard") == [(name, "hard") for name in tried]


def test_what_is_compared() -> None:
    compared: dict[str, list[str]] = {}
    for covariance, how in candidates("auto", "auto"):
        compared.setdefault(covariance, []).append(how)
    assert compared == {
        "diagonal": ["top10", "top100"],
        "shrunken": ["mean", "top10", "top100"],
        "factor": ["top1000"],
        "neighbours": ["mean"],
    }
    named = [how for _, how in candidates("diagonal", "auto")]
    assert named == ["mean", "top10", "top100"]


@pytest.mark.parametrize(
    ("p", "left"),
    [(10, set()), (11, {"top10"}), (100, {"top10"}), (101, {"top10", "top100"})],
)
def test_what_would_keep_all_features_is_not_compared(p: int, left: set[str]) -> None:
    X, y = factor_data(p=p)
    for covariance in ("auto", "diagonal"):
        chosen = EBClassifier(covariance=covariance).fit(X, y).selection_
        tops = {how for _, how in chosen.candidates if how.startswith("top")}
        assert tops == left
        assert len(chosen.candidates) > len(left)
    # Asked for by name, it keeps them all.
    model = EBClassifier(covariance="diagonal", shrinkage="top1000", calibrate=False)
    plain = EBClassifier(covariance="diagonal", shrinkage="none", calibrate=False)
    np.testing.assert_array_equal(model.fit(X, y).coef_, plain.fit(X, y).coef_)


def test_a_candidate_has_words() -> None:
    said = [line(name) for name in candidates("auto", "auto")]
    assert len(set(said)) == len(said)
    assert all(
        COVARIANCES[c].line in words
        for (c, _), words in zip(candidates("auto", "auto"), said, strict=True)
    )


# The combined rule


def weight_of(chosen: Selection, covariance: str) -> float:
    mine = [name == covariance for name, _ in chosen.candidates]
    return float(chosen.weight[mine].sum())


def random_rules(n: int, n_contrasts: int = 1) -> dict[Any, LinearRule]:
    rng = np.random.default_rng(n)
    return {
        name: LinearRule(
            rng.normal(size=(n_contrasts, 6)), rng.normal(size=n_contrasts)
        )
        for name in FOUR[:n]
    }


def test_one_candidate_alone_is_its_rule_in_other_units() -> None:
    rules = random_rules(2)
    rule, odds, share = rules[FOUR[1]], np.array([0.4]), 1.7 / (0.6 * 0.3)
    made = combine(rules.__getitem__, FOUR[:2], np.array([0.0, share]), odds)
    np.testing.assert_allclose(made.coef, share * rule.coef)
    np.testing.assert_allclose(made.intercept, share * rule.intercept + odds)


def test_candidates_are_added_up_with_their_shares() -> None:
    rules = random_rules(2, n_contrasts=3)
    zero = np.zeros(3)
    parts = [
        combine(rules.__getitem__, FOUR[:2], np.array(share), zero)
        for share in ([2.0, 0.0], [0.0, 0.5])
    ]
    both = combine(rules.__getitem__, FOUR[:2], np.array([0.6, 0.7]), zero)
    np.testing.assert_allclose(both.coef, 0.3 * parts[0].coef + 1.4 * parts[1].coef)
    np.testing.assert_allclose(
        both.intercept, 0.3 * parts[0].intercept + 1.4 * parts[1].intercept
    )
    for part, name, share in zip(parts, rules, (2.0, 0.5), strict=True):
        np.testing.assert_allclose(part.coef, share * rules[name].coef)


TWO_RULES = Recipe("pooled", FOUR[:2], 0.5, DirichletProcess)


def summary_of(X: Any, codes: Any, weight: np.ndarray | None = None) -> Summary:
    moments = class_moments(X, codes, int(np.max(codes)) + 1, weight)
    return Summary(moments, TWO_RULES.contrasts(moments), samples_of(X, codes, weight))


def one_by_one(function: Any, jobs: Any) -> list[Any]:
    return [function(*job) for job in jobs]


def selected(
    score_sd: list[float], data: Summary, make_prior: Any = DirichletProcess
) -> tuple[Selection, np.ndarray, np.ndarray]:
    """The comparison of two candidates, and what their rules are multiplied by."""
    recipe = replace(TWO_RULES, make_prior=make_prior)
    return select(
        recipe,
        data,
        recipe.effects(data),
        np.array(score_sd),
        np.array([0.3, 0.7]),
        least=1,
        seed=0,
        run=one_by_one,
    )


def test_rules_are_multiplied_in_units_of_their_standard_deviations() -> None:
    """Of their scores: that of the model, and that of held-out samples."""
    data = summary_of(*factor_data())
    found, share, midpoint = selected([1.0, 1.0], data)
    assert found.candidates == FOUR[:2]
    assert (found.weight > 0).all()
    _, other, _ = selected([2.0, 0.25], data)
    np.testing.assert_allclose(other, share / [2.0, 0.25])
    # Held-out scores of the combined rule have the slope that was found for them.
    samples = data.samples
    assert samples is not None
    key = samples.fingerprint(data.moments.means, np.sqrt(data.contrasts.variance))
    folds = assign_folds(key, samples.codes, least=1, seed=0)
    effects = TWO_RULES.effects(data)
    held = held_out_scores(TWO_RULES, data, effects, folds, one_by_one)
    d, sd, influence = separation(held)
    np.testing.assert_allclose(found.separation, d)
    np.testing.assert_allclose(found.error, np.sqrt((influence**2).sum(axis=1)))
    # A posterior mean starts ahead of a threshold.
    start, log_prior = np.array([1.0, 0.0]), np.log([22 / 40, 18 / 40])
    weight, crossed = crossed_weights(held, start, log_prior)
    np.testing.assert_allclose(found.weight, weight)
    np.testing.assert_allclose(share, found.slope * found.weight / sd)
    # Each sample has the weights that its fold had no say in.
    assert np.bincount(held.fold).tolist() == [4] * N_FOLDS
    combined = np.empty((40, 1))
    for i in range(40):
        combined[i] = (crossed[:, i] / sd) @ held.scores[:, i]
    slope, moved, _ = calibrate(combined, held.codes, held.weight, log_prior)
    assert found.slope == pytest.approx(slope)
    np.testing.assert_allclose(midpoint, moved)
    np.testing.assert_allclose(found.scores, found.slope * combined - midpoint)
    # And the separation of their sum is judged as that of each was.
    assert found.scores is not None
    d, _, influence = separation(replace(held, scores=found.scores[None]))
    assert found.combined == pytest.approx(d[0])
    assert found.combined_error == pytest.approx(np.linalg.norm(influence[0]))
    # Probabilities are those of the classes that were asked for.
    np.testing.assert_array_equal(found.calibration.prior, [0.3, 0.7])


def test_a_selection_says_what_it_is() -> None:
    model = EBClassifier().fit(*factor_data(p=1200))
    chosen = model.selection_
    assert chosen.n_folds == N_FOLDS
    assert chosen.weight.sum() == pytest.approx(1)
    assert chosen.best == chosen.candidates[int(np.argmax(chosen.weight))]
    assert chosen.reason == COMPARED
    assert chosen.used()
    assert set(chosen.used()) <= set(chosen.candidates)
    # There is no order, and nothing is compared because of that.
    assert ("factor", "top1000") in chosen.candidates
    covariances = {name for name, _ in chosen.candidates}
    assert covariances == {"diagonal", "shrunken", "factor"}
    assert ("diagonal", "mean") not in chosen.candidates
    assert chosen.combined > 2 * chosen.combined_error > 0
    assert chosen.doubt == ""
    assert chosen.words() == chosen.reason
    assert chosen.scores is not None
    assert chosen.codes is not None
    assert chosen.scores.shape == (40, 1)
    assert np.bincount(chosen.codes).tolist() == [22, 18]
    text = str(chosen)
    assert text.startswith(chosen.reason)
    assert len(text.splitlines()) == 1 + len(chosen.candidates)
    assert "separation" in text


def test_a_covariance_says_what_is_compared_with_it() -> None:
    """A line in its entry, and ``shrinkage="auto"`` tries it."""
    X, y = factor_data()
    entry = CovarianceEstimator(
        "again",
        "the same by another name",
        COVARIANCES["factor"].estimate,
        needs_samples=True,
        compared=("hard", "mean"),
        in_auto=False,
    )
    with COVARIANCES.added(entry):
        chosen = EBClassifier(covariance="again").fit(X, y).selection_
    assert chosen.candidates == [("again", "hard"), ("again", "mean")]
    assert np.isfinite(chosen.separation).all()


def test_a_shrinkage_that_was_asked_for_stays_where_there_is_no_correlation() -> None:
    sim = make_two_class(25, 500, 20, 1.0, random_state=0)
    for covariance in ("auto", "factor", "shrunken"):
        model = EBClassifier(covariance=covariance, shrinkage="sparse")
        chosen = model.fit(sim.data, sim.target).selection_
        assert chosen.candidates == [("diagonal", "sparse")]
    assert not model.selected_.all()


def test_values_free_of_factors_are_reported_where_there_are_any() -> None:
    """Whatever has the largest weight."""
    X, y = factor_data()
    model = EBClassifier().fit(X, y)
    assert model.n_factors_ == 2
    of_factors = EBClassifier(covariance="factor", shrinkage="mean").fit(X, y)
    np.testing.assert_allclose(model.z_, of_factors.z_)
    assert np.abs(model.z_ - model.contrasts_.z).max() > 0.1


def test_factors_are_found_and_used() -> None:
    X, y = factor_data(p=1200, seed=1)
    model = EBClassifier().fit(X, y)
    assert model.n_factors_ == 2
    assert weight_of(model.selection_, "factor") > 0.2
    assert EBClassifier(covariance="diagonal").fit(X, y).n_factors_ == 0


def found_by_chance(data: Summary) -> Covariance:
    """One factor in random directions, where there is none."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(scale=0.05, size=(data.p, 1))
    return Factors(loadings, 1 - loadings[:, 0] ** 2)


def test_the_diagonal_has_posterior_means_beside_what_was_found_by_chance() -> None:
    """Without them a factor that is not there would have the only dense rule."""
    sim = make_two_class(25, 3000, 200, effect=2, variance=12.5, random_state=0)
    entry = CovarianceEstimator(
        "chance", "a factor", found_by_chance, compared=("mean",)
    )
    alone = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    with COVARIANCES.added(entry):
        model = EBClassifier().fit(sim.data, sim.target)
    chosen = dict(
        zip(model.selection_.candidates, model.selection_.weight, strict=True)
    )
    assert set(chosen) >= {("diagonal", "mean"), ("chance", "mean")}
    assert ("shrunken", "mean") not in chosen
    want = alone.fit(sim.data, sim.target).coef_[0]
    assert np.corrcoef(model.coef_[0], want)[0, 1] > 0.9


def test_too_few_samples_take_the_stated_choice() -> None:
    X, y = factor_data((5, 4))
    model = EBClassifier().fit(X, y)
    assert model.selection_.n_folds == 0
    assert model.selection_.reason == model.selection_.words() == TOO_FEW
    assert "not calibrated" in TOO_FEW
    usual = [name for name, entry in COVARIANCES.items() if entry.is_usual]
    assert model.selection_.best in [(usual[0], "mean"), ("diagonal", "mean")]
    assert np.isnan(model.selection_.separation).all()
    assert "separation" not in str(model.selection_).split("\n", 1)[1]
    assert np.isnan(model.selection_.combined)
    direct = EBClassifier(covariance=usual[0], shrinkage="mean").fit(X, y)
    np.testing.assert_array_equal(model.coef_, direct.coef_)
    np.testing.assert_array_equal(model.intercept_, direct.intercept_)
    # Copies of the same samples are no more samples.
    again = EBClassifier().fit(np.vstack([X, X]), np.append(y, y))
    assert again.selection_.n_folds == 0


def test_too_few_samples_of_one_covariance_take_the_mean() -> None:
    X, y = factor_data((5, 4))
    model = EBClassifier(covariance="diagonal").fit(X, y)
    assert model.selection_.best == ("diagonal", "mean")


@pytest.mark.parametrize("n", [(12, 12), (12, 12, 12)])
def test_a_rule_without_weights_separates_nothing(n: tuple[int, ...]) -> None:
    X, y = factor_data(n, p=50)
    nothing = DiscretePrior([0.0], [1.0])
    for shrinkage in ("mean", "sparse"):
        model = EBClassifier(nothing, shrinkage, covariance="diagonal").fit(X, y)
        assert model.selection_.n_folds == N_FOLDS
        np.testing.assert_array_equal(model.selection_.separation, 0.0)
        assert model.selection_.best == ("diagonal", shrinkage)
        np.testing.assert_allclose(model.predict_proba(X), 1 / len(n))


def test_rules_that_say_nothing_share_as_they_start() -> None:
    X, y = factor_data((14, 12), p=50)
    nothing = FixedPrior(DiscretePrior([0.0], [1.0]))
    data = summary_of(X, y)
    chosen, _, midpoint = selected([1.0, 1.0], data, lambda: nothing)
    np.testing.assert_allclose(chosen.weight, np.array([np.e, 1]) / (np.e + 1))
    np.testing.assert_array_equal(chosen.scores, 0.0)
    # Whatever the shares of the classes are.
    np.testing.assert_array_equal(midpoint, 0.0)


def test_one_rule_is_calibrated() -> None:
    X, y = factor_data()
    model = EBClassifier(covariance="factor", shrinkage="mean").fit(X, y)
    chosen = model.selection_
    assert chosen.candidates == [("factor", "mean")]
    assert chosen.weight.tolist() == [1.0]
    assert chosen.n_folds == N_FOLDS
    assert chosen.reason == CALIBRATED
    assert len(model.calibration_.slope) > 1
    # The same rule in other units: the slope is of held-out samples.
    plain = EBClassifier(covariance="factor", shrinkage="mean", calibrate=False)
    plain.fit(X, y)
    slope = model.coef_ @ plain.coef_[0] / (plain.coef_[0] @ plain.coef_[0])
    assert abs(slope[0] - 1) > 0.1
    np.testing.assert_allclose(model.coef_, slope * plain.coef_, rtol=1e-9)
    # The larger class is preferred at most as far as its share has it.
    odds = np.log(18 / 22)
    midpoint = model.intercept_ - odds - slope * (plain.intercept_ - odds)
    assert 0 < midpoint[0] < -odds


def test_one_rule_may_stay_as_it_is() -> None:
    X, y = factor_data()
    model = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    model.fit(X, y)
    assert model.selection_.n_folds == 0
    assert model.selection_.words() == "One rule, not calibrated: calibrate=False."
    log_p = model.predict_log_proba(X)
    np.testing.assert_allclose(log_p[:, 1] - log_p[:, 0], model.decision_function(X))
    # Several rules are compared all the same, and then they are calibrated.
    several = EBClassifier(covariance="factor", calibrate=False).fit(X, y)
    assert several.selection_.n_folds == N_FOLDS


@pytest.mark.slow
@pytest.mark.parametrize("random_state", [None, 7])
def test_the_same_data_give_the_same_bits(random_state: int | None) -> None:
    X, y = factor_data()
    first = EBClassifier(random_state=random_state).fit(X, y)
    second = EBClassifier(random_state=random_state).fit(X, y)
    for name in MODEL:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_the_number_of_jobs_does_not_change_a_bit() -> None:
    X, y = factor_data()
    first = EBClassifier(n_jobs=1).fit(X, y)
    second = EBClassifier(n_jobs=2).fit(X, y)
    for name in MODEL:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first.selection_.weight, second.selection_.weight)


@pytest.mark.slow
@pytest.mark.parametrize("n", [(22, 18), (14, 13, 12)])
def test_order_of_samples_and_features_does_not_matter(n: tuple[int, ...]) -> None:
    X, y = factor_data(n)
    rng = np.random.default_rng(9)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    reference = EBClassifier().fit(X, y)
    assert_same_model(reference, EBClassifier().fit(X[rows], y[rows]), 1e-6)
    shuffled = EBClassifier().fit(X[:, columns], y)
    size = np.abs(reference.coef_).max()
    np.testing.assert_allclose(
        shuffled.coef_, reference.coef_[:, columns], rtol=1e-6, atol=1e-6 * size
    )
    np.testing.assert_allclose(shuffled.intercept_, reference.intercept_, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [(22, 18), (14, 13, 12)])
def test_a_weight_of_two_is_two_samples(n: tuple[int, ...]) -> None:
    X, y = factor_data(n)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    twice = np.repeat(np.arange(len(y)), weight)
    weighted = EBClassifier().fit(X, y, sample_weight=weight)
    assert weighted.selection_.n_folds == N_FOLDS
    assert_same_model(EBClassifier().fit(X[twice], y[twice]), weighted, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "container"),
    [
        ((22, 18), np.asarray),
        ((22, 18), sparse.csr_matrix),
        ((14, 13, 12), np.asarray),
    ],
)
def test_batches_give_the_model_of_one_fit(n: tuple[int, ...], container: Any) -> None:
    X, y = factor_data(n)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    whole = EBClassifier().fit(container(X), y)
    stream = EBClassifier()
    for part in np.split(np.arange(len(y)), [3, 4, 21]):
        stream.partial_fit(container(X[part]), y[part], classes=np.unique(y))
    assert_same_model(whole, stream, 1e-8)


@pytest.mark.slow
def test_a_stream_does_not_hold_on_to_the_batches() -> None:
    X, y = factor_data()
    stream = EBClassifier()
    for part in np.array_split(np.arange(len(y)), 3):
        batch = X[part].copy()
        stream.partial_fit(batch, y[part], classes=[0, 1])
        batch[:] = np.nan
    assert_same_model(EBClassifier().fit(X, y), stream, 1e-8)


@pytest.mark.slow
@override(kept_samples=40, most_kept=40, kept_per_class=5)
def test_of_many_samples_a_stream_keeps_those_of_one_fit() -> None:
    X, y = factor_data((70, 50))
    weight = np.where(np.arange(120) % 7 == 0, 0.0, 1.0)
    for w in (None, weight):
        kept = samples_of(X, y, w).kept()
        assert len(kept) == 40
        stream = EBClassifier()
        for part in np.split(np.arange(120), [5, 60, 61]):
            stream.partial_fit(
                X[part],
                y[part],
                classes=[0, 1],
                sample_weight=None if w is None else w[part],
            )
        assert stream.samples_ is not None
        np.testing.assert_array_equal(stream.samples_.number, kept.number)
        np.testing.assert_array_equal(stream.samples_.codes, kept.codes)
        np.testing.assert_array_equal(stream.samples_.X, X[kept.rows])
        whole = EBClassifier().fit(X, y, sample_weight=w)
        assert whole.moments_.counts.sum() == (120 if w is None else w.sum())
        assert_same_model(whole, stream, 1e-8)


@override(kept_samples=40, most_kept=40)
@pytest.mark.parametrize("variance", ["moderated", "separate"])
def test_a_rare_class_is_kept_whole(variance: str) -> None:
    X, y = factor_data((200, 190, 13))
    kept = np.bincount(samples_of(X, y).codes, minlength=3)
    assert kept[2] == 13
    model = EBClassifier(variance=variance).fit(X, y)
    assert model.selection_.n_folds > 0
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("weight", [0.105, 0.1001])
def test_weights_too_small_for_folds(weight: float) -> None:
    X, y = factor_data((11, 10))
    model = EBClassifier().fit(X, y, sample_weight=np.full(len(y), weight))
    assert model.selection_.n_folds == 0
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_names_of_the_classes_do_not_matter() -> None:
    X, y = factor_data((14, 13))
    one, other = EBClassifier().fit(X, y), EBClassifier().fit(X, 1 - y)
    np.testing.assert_allclose(one.coef_, -other.coef_, rtol=1e-6, atol=1e-9)


def test_fit_leaves_the_threads_of_blas_alone() -> None:
    X, y = factor_data((14, 13))
    before = [(lib["filepath"], lib["num_threads"]) for lib in threadpool_info()]
    EBClassifier(n_jobs=2).fit(X, y)
    after = [(lib["filepath"], lib["num_threads"]) for lib in threadpool_info()]
    assert before == after


@pytest.mark.filterwarnings("ignore:fit keeps no samples:UserWarning")
def test_a_batch_after_fit_may_lack_a_class() -> None:
    X, y = factor_data((14, 13, 12))
    model = EBClassifier().fit(X, y)
    model.partial_fit(X[y < 2], y[y < 2])
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "convert"),
    [((22, 18), sparse.csr_matrix), ((14, 13, 12), sparse.csc_array)],
)
def test_sparse_data_give_the_model_of_dense_data(
    n: tuple[int, ...], convert: Any
) -> None:
    X, y = factor_data(n)
    X = np.where(np.abs(X) < 1.0, 0.0, X)
    dense, other = EBClassifier().fit(X, y), EBClassifier().fit(convert(X), y)
    assert_same_model(dense, other, 1e-7)
    np.testing.assert_allclose(
        other.predict_proba(convert(X)), dense.predict_proba(X), rtol=1e-6
    )


@pytest.mark.slow
def test_class_probabilities_move_the_intercept_alone() -> None:
    X, y = factor_data()
    base = EBClassifier(priors="uniform").fit(X, y)
    other = EBClassifier(priors=[0.1, 0.9]).fit(X, y)
    np.testing.assert_array_equal(other.coef_, base.coef_)
    np.testing.assert_allclose(other.intercept_ - base.intercept_, np.log(9))


@pytest.mark.slow
def test_four_kinds_of_tumour() -> None:
    khan = load_khan()
    train = khan.split == "train"
    model = EBClassifier().fit(khan.data[train], khan.target[train])
    assert model.selection_.n_folds == N_FOLDS
    assert model.score(khan.data[~train], khan.target[~train]) >= 0.95


# Probabilities


Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def two_class(seed: int, rho: float = 0.0) -> Split:
    sim = make_two_class(230, 2000, 60, 0.6, rho=rho, random_state=seed)
    train = np.arange(460) % 230 < 30
    X, y = sim.data, sim.target
    return X[train], y[train], X[~train], y[~train]


def neighbours(seed: int) -> Split:
    return two_class(seed, rho=0.5)


def factors(seed: int) -> Split:
    sim = make_factor_classes(n_features=2000, random_state=seed)
    return sim.data, sim.target, sim.test_data, sim.test_target


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "at_most"),
    # Of independent features the posterior mean knows the log-odds; to estimate the
    # calibration costs a little. Beside correlation it does not know them.
    [(two_class, 1.15), (neighbours, 0.9), (factors, 0.3)],
)
def test_probabilities_are_calibrated(draw: Any, at_most: float) -> None:
    models = {
        "default": EBClassifier(),
        "uncalibrated": EBClassifier(
            covariance="diagonal", shrinkage="mean", calibrate=False
        ),
        "unshrunken": IndependenceRule(),
    }
    loss: dict[str, list[float]] = {name: [] for name in models}
    gap = []
    for seed in range(3):
        X, y, fresh, labels = draw(seed)
        for name, model in models.items():
            proba = clone(model).fit(X, y).predict_proba(fresh)
            loss[name].append(log_loss(labels, proba))
            if name == "default":
                right = (proba[:, 1] > 0.5) == (labels == "b")
                gap.append(proba.max(axis=1).mean() - right.mean())
    assert abs(np.mean(gap)) < 0.1
    mean = {name: np.mean(values) for name, values in loss.items()}
    assert mean["default"] < at_most * mean["uncalibrated"]
    assert mean["default"] < 0.5 * mean["unshrunken"]


def test_candidates_are_asked_for_one_at_a_time() -> None:
    """With very many features one rule is in memory, beside their sum."""
    asked: list[Any] = []
    alive: list[Any] = []

    def rule_of(name: Any) -> LinearRule:
        assert all(ref() is None for ref in alive)
        asked.append(name)
        rule = LinearRule(np.full((1, 6), float(len(asked))), np.zeros(1))
        alive.append(weakref.ref(rule))
        return rule

    made = combine(rule_of, FOUR, np.array([0.5, 0.0, 0.25, 0.25]), np.zeros(1))
    assert asked == [FOUR[0], FOUR[2], FOUR[3]]
    np.testing.assert_allclose(made.coef, 0.5 * 1 + 0.25 * 2 + 0.25 * 3)


@pytest.mark.parametrize("covariance", ["diagonal", "shrunken", "auto"])
def test_a_class_of_one_sample_does_not_take_over(covariance: str) -> None:
    """It is never held out, and nothing is known of where it should be cut."""
    rng = np.random.default_rng(21)
    y = np.append(np.repeat(np.arange(4), 9), 4)
    means = 0.8 * rng.normal(size=(5, 400))
    X = rng.normal(size=(37, 400)) + means[y]
    model = EBClassifier(covariance=covariance).fit(X, y)
    assert np.ptp(model.intercept_) < 30
    assert np.mean(model.predict(X) == y) > 0.9
    new = rng.normal(size=(36, 400)) + means[y[:36]]
    assert np.mean(model.predict(new) == 4) < 0.1
