"""The choice of the rule: folds, separation, weights, calibration, and the whole."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_info

from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.data import RowSamples
from ebda.datasets import load_khan, make_factor_classes, make_two_class
from ebda.moments.classwise import class_moments
from ebda.priors import DirichletProcess, DiscretePrior
from ebda.rule.linear_rule import LinearRule
from ebda.selection.candidates import CANDIDATES, Candidate, Recipe
from ebda.selection.folds import (
    N_FOLDS,
    HeldOut,
    assign_folds,
    held_out_scores,
    moments_without,
)
from ebda.selection.weights import Selection, combine, select, separation, weights
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
    order = rng.permutation(len(codes))
    return HeldOut(scores[:, order], codes[order], weight[order].astype(float))


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
    kept = held.codes != 2
    d, sd, influence = separation(
        HeldOut(held.scores[:, kept], held.codes[kept], held.weight[kept])
    )
    assert np.isfinite(d).all()
    assert np.isfinite(influence).all()
    assert (sd > 0).all()


def test_separation_of_equal_scores_is_zero() -> None:
    d, sd, influence = separation(
        HeldOut(np.zeros((2, 8, 1)), np.repeat([0, 1], 4), np.ones(8))
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
        without = HeldOut(held.scores[:, rest], held.codes[rest], held.weight[rest])
        dropped[:, i] = d - separation(without)[0]
    for m in range(2):
        assert np.corrcoef(dropped[m], influence[m])[0, 1] > correlation
    found, direct = influence @ influence.T, dropped @ dropped.T
    np.testing.assert_allclose(found, direct, atol=0.05 * direct.max())


def test_weights_of_samples_are_frequencies() -> None:
    held = held_out((14, 9), weighted=True)
    times = held.weight.astype(int)
    repeated = HeldOut(
        np.repeat(held.scores, times, axis=1),
        np.repeat(held.codes, times),
        np.ones(times.sum()),
    )
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
        d, _, influence = separation(HeldOut(scores, codes, np.ones(100)))
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


def test_weights_are_probabilities_of_being_the_best() -> None:
    """Any other than the preferred has to be better by a standard error."""
    d, covariance = np.array([1.0, 1.1]), np.diag([0.01, 0.03])
    for preferred, handicap in ((0, 1.0), (1, -1.0)):
        w = weights(d, covariance, preferred)
        assert w.sum() == pytest.approx(1)
        assert w[1] == pytest.approx(norm.cdf(0.1 / 0.2 - handicap), abs=0.03)


def test_weights_know_that_candidates_are_correlated() -> None:
    covariance = 0.04 * np.array([[1.0, 0.999], [0.999, 1.0]])
    assert weights(np.array([1.0, 1.05]), covariance, preferred=0)[1] > 0.99


@pytest.mark.parametrize("preferred", [0, 2])
@pytest.mark.parametrize("seed", range(5))
def test_ties_go_to_the_first(seed: int, preferred: int) -> None:
    """Where no fold has factors the candidates of two covariances are the same."""
    rng = np.random.default_rng(seed)
    influence = np.tile(0.03 * rng.normal(size=(2, 40)), (2, 1))
    d = np.tile(rng.normal(1, 0.02, size=2), 2)
    w = weights(d, influence @ influence.T, preferred)
    assert w.sum() == pytest.approx(1)
    np.testing.assert_array_equal(w[2:], 0.0)


def test_the_same_rule_by_another_name_gets_no_weight() -> None:
    sim = make_two_class(25, 500, 20, 1.0, random_state=0)
    model = EBClassifier().fit(sim.data, sim.target)
    assert model.n_factors_ == 0
    assert weight_of(model.selection_, "diagonal") == pytest.approx(1)


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


TWO_RULES = Recipe.of(
    "pooled", "diagonal", "auto", 0.5, {"main": lambda start: DirichletProcess()}
)


def selected(
    score_sd: list[float], samples: RowSamples, key: np.ndarray
) -> tuple[Selection, np.ndarray]:
    """The comparison of two candidates, and what their rules are multiplied by."""
    return select(
        TWO_RULES, samples, key, np.array(score_sd), 2, least=1, seed=0, run=one_by_one
    )


def one_by_one(function: Any, jobs: Any) -> list[Any]:
    return [function(*job) for job in jobs]


@pytest.mark.slow
def test_rules_are_multiplied_in_units_of_their_standard_deviations() -> None:
    """Of their scores: that of the model, and that of held-out samples."""
    X, y = factor_data()
    key = np.random.default_rng(0).normal(size=len(y))
    found, share = selected([1.0, 1.0], samples_of(X, y), key)
    assert found.candidates == FOUR[:2]
    assert (found.weight > 0).all()
    _, other = selected([2.0, 0.25], samples_of(X, y), key)
    np.testing.assert_allclose(other, share / [2.0, 0.25])
    # Held-out scores of the combined rule have the slope that was found for them.
    folds = assign_folds(key, y, least=1, seed=0)
    held = held_out_scores(TWO_RULES, samples_of(X, y), folds, 2, one_by_one)
    _, sd, _ = separation(held)
    np.testing.assert_allclose(share, found.slope * found.weight / sd)
    np.testing.assert_allclose(found.scores, np.tensordot(share, held.scores, 1))


def test_a_selection_says_what_it_is() -> None:
    model = EBClassifier().fit(*factor_data())
    chosen = model.selection_
    assert chosen.n_folds == N_FOLDS
    assert chosen.weight.sum() == pytest.approx(1)
    assert chosen.best == chosen.candidates[int(np.argmax(chosen.weight))]
    # The same rule is compared once: there is no order, so no neighbours.
    assert ("diagonal", "mean") in chosen.candidates
    assert ("factor", "mean") in chosen.candidates
    assert weight_of(chosen, "neighbours") == 0
    assert weight_of(chosen, "diagonal") + weight_of(chosen, "factor") == pytest.approx(
        1
    )
    assert chosen.scores is not None
    assert chosen.codes is not None
    assert chosen.scores.shape == (40, 1)
    assert np.bincount(chosen.codes).tolist() == [22, 18]
    text = str(chosen)
    assert text.startswith(chosen.reason)
    assert len(text.splitlines()) == 1 + len(chosen.candidates)
    assert "separation" in text


def test_a_candidate_that_is_added_is_compared() -> None:
    """A line in the registry, and ``shrinkage="auto"`` tries it."""
    X, y = factor_data()
    lenient = Candidate("lenient", "half the evidence", "sparse", stricter=0.5)
    with CANDIDATES.added(lenient):
        chosen = EBClassifier(covariance="diagonal").fit(X, y).selection_
    assert [name for _, name in chosen.candidates] == ["mean", "sparse", "lenient"]
    assert np.isfinite(chosen.separation).all()
    chosen = EBClassifier(covariance="diagonal").fit(X, y).selection_
    assert [name for _, name in chosen.candidates] == ["mean", "sparse"]


def test_beside_factors_the_empirical_null_is_reported() -> None:
    """Whatever has the largest weight."""
    X, y = factor_data()
    model = EBClassifier().fit(X, y)
    assert model.n_factors_ == 2
    centred = EBClassifier(covariance="factor").fit(X, y)
    np.testing.assert_allclose(model.z_, centred.z_)
    assert np.abs(model.z_ - model.contrasts_.z).max() > 0.1
    # Without a choice of the null it is that of theory.
    plain = EBClassifier(covariance="factor", shrinkage="mean").fit(X, y)
    shift, scale = np.polyfit(plain.z_, model.z_, 1)[::-1]
    np.testing.assert_allclose(model.z_, shift + scale * plain.z_, atol=1e-9)


def test_factors_are_found_and_used() -> None:
    X, y = factor_data()
    model = EBClassifier().fit(X, y)
    assert model.n_factors_ == 2
    assert weight_of(model.selection_, "factor") > 0.9
    assert EBClassifier(covariance="diagonal").fit(X, y).n_factors_ == 0


def test_too_few_samples_take_the_stated_choice() -> None:
    X, y = factor_data((5, 4))
    model = EBClassifier().fit(X, y)
    assert model.selection_.n_folds == 0
    assert model.selection_.best == ("factor", "mean")
    assert np.isnan(model.selection_.separation).all()
    assert "separation" not in str(model.selection_).split("\n", 1)[1]
    direct = EBClassifier(covariance="factor", shrinkage="mean").fit(X, y)
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
    model = EBClassifier(prior=nothing, covariance="diagonal").fit(X, y)
    assert model.selection_.n_folds == N_FOLDS
    np.testing.assert_array_equal(model.selection_.separation, 0.0)
    assert model.selection_.best == ("diagonal", "mean")
    np.testing.assert_allclose(model.predict_proba(X), 1 / len(n))


def test_one_rule_is_not_compared() -> None:
    X, y = factor_data()
    model = EBClassifier(covariance="factor", shrinkage="mean").fit(X, y)
    assert model.selection_.candidates == [("factor", "mean")]
    assert model.selection_.weight.tolist() == [1.0]
    assert model.selection_.n_folds == 0


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
@override(kept_samples=40, kept_per_class=5)
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


@override(kept_samples=40)
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
        "uncalibrated": EBClassifier(covariance="diagonal", shrinkage="mean"),
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


# Moments without a fold


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "folds",
    [
        [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
        [-1, 1, 2, 0, 1, -1, 0, 1, 2, 0, -1, 2],
        [0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0],
        [-1, 3, 3, -1, 3, -1, 3, -1, -1, -1, -1, 3],
        [3, 1, 9, 9, 1, 3, 3, 1, 9, 9, 1, 3],
    ],
    ids=["all held out", "some never", "two folds", "one fold", "gaps"],
)
def test_moments_without_a_fold_are_those_of_the_others(
    folds: list[int], weighted: bool
) -> None:
    rng = np.random.default_rng(5)
    # A large mean: subtracting the fold from the total would lose these digits.
    X = rng.normal(1e6, 1e-2, size=(12, 7))
    codes = np.arange(12) % 3
    weight = rng.uniform(0.5, 3, 12) if weighted else np.ones(12)
    fold = np.array(folds)
    got = list(moments_without(samples_of(X, codes, weight), fold, 3))
    numbers = [f for f in np.unique(fold) if f >= 0]
    assert len(got) == len(numbers)
    for f, moments in zip(numbers, got, strict=True):
        rest = fold != f
        want = class_moments(X[rest], codes[rest], 3, weight[rest])
        np.testing.assert_allclose(moments.counts, want.counts, rtol=1e-14)
        np.testing.assert_allclose(moments.means, want.means, rtol=1e-13)
        np.testing.assert_allclose(
            moments.centred_squares, want.centred_squares, rtol=1e-6
        )


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
