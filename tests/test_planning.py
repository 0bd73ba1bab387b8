"""The learning curve, and plans that start from held-out predictions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, betabinom, norm
from sklearn.linear_model import LogisticRegression

from ebda import EBClassifier, theory
from ebda.datasets import load_golub, make_two_class
from ebda.evaluation import Evaluation, evaluate, plan, plan_from_evaluation
from ebda.evaluation.folds import dealt_folds
from ebda.evaluation.planning import held_out_separation
from ebda.theory.learning_curve import error_of_separation, gain, grown_error


def held_out(
    errors: int, per_class: int = 20, n_classes: int = 2, n_folds: int = 10
) -> Evaluation:
    """Clear predictions, of which the first ones of each class in turn are wrong."""
    codes = np.tile(np.arange(n_classes), per_class)
    said = codes.copy()
    said[:errors] = (codes[:errors] + 1) % n_classes
    p = np.full((len(codes), n_classes), 0.1 / (n_classes - 1))
    p[np.arange(len(codes)), said] = 0.9
    # No two samples are alike.
    p[:, 0] *= np.linspace(1, 1.2, len(codes))
    p /= p.sum(axis=1, keepdims=True)
    return Evaluation(np.arange(n_classes), codes, p, n_folds)


def test_the_error_of_two_classes_is_the_normal_tail() -> None:
    d = np.linspace(0, 10, 41)
    np.testing.assert_allclose(error_of_separation(d), norm.cdf(-d), rtol=1e-11)


def test_the_error_of_many_classes_is_that_of_their_best_rule() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 5))
    for d in (0.3, 1.0, 2.0):
        # The class that is right is the first one.
        wrong = X[:, 0] + np.sqrt(2) * d < X[:, 1:].max(axis=1)
        error = error_of_separation(d, n_classes=5)
        assert abs(wrong.mean() - error) < 4 * np.sqrt(error / len(X))
    assert error_of_separation(0.0, 5) == pytest.approx(0.8)


def test_the_curve_is_that_of_plain_differences() -> None:
    p, n = 4000, np.array([10, 20, 50, 200])
    exact = theory.expected_error(
        n, [0.3], 0.9, n_features=p, rule="none", fixed_counts=True
    )
    square = 0.1 * p * 0.3**2
    start = norm.cdf(-np.sqrt(square / 4 * 10 / (10 + 2 * p / square)))
    curve = grown_error(start, gain(n, 10, 2 * p / square))
    np.testing.assert_allclose(curve, exact, rtol=0.025)


@pytest.mark.parametrize("n_classes", [2, 6])
def test_growth_in_two_steps_is_growth_in_one(n_classes: int) -> None:
    e = np.array([0.02, 0.2, 0.45, 0.9])
    once = grown_error(e, 3.0, n_classes)
    twice = grown_error(grown_error(e, 1.5, n_classes), 2.0, n_classes)
    np.testing.assert_allclose(once, twice, rtol=2e-3)
    np.testing.assert_allclose(grown_error(e, 1.0, n_classes), e, rtol=1e-3)
    assert once[-1] == pytest.approx(0.9)  # worse than guessing
    steps = gain(30, 10, 7.0), gain(20, 10, 7.0) * gain(30, 20, 7.0)
    assert steps[0] == pytest.approx(steps[1])


def test_at_its_own_size_a_plan_is_what_was_held_out() -> None:
    errors, N = 6, 40
    found = plan_from_evaluation(held_out(errors), 18.0, level=0.9)
    assert found.fitted_to == pytest.approx(18)
    posterior = beta(errors + 1, N - errors + 1)
    assert found.error[0] == pytest.approx(posterior.mean(), rel=2e-3)
    ends = [found.low[0], found.high[0]]
    np.testing.assert_allclose(ends, posterior.ppf([0.05, 0.95]), rtol=5e-3)


@pytest.mark.parametrize("m", [1, 15, 80])
def test_the_interval_of_a_test_is_beta_binomial(m: int) -> None:
    found = plan_from_evaluation(held_out(6), 18.0, n_test=m)
    errors = betabinom(m, 7, 35)
    low, high = np.round(m * np.array([found.low[0], found.high[0]]))
    assert errors.cdf(low - 1) <= 0.1 < errors.cdf(low) or low == 0
    assert errors.cdf(high - 1) < 0.9 <= errors.cdf(high)


def test_a_large_test_has_the_interval_of_the_rate() -> None:
    rate = plan_from_evaluation(held_out(8), [10, 30])
    test = plan_from_evaluation(held_out(8), [10, 30], n_test=200_000)
    np.testing.assert_allclose(test.low, rate.low, atol=2e-3)
    np.testing.assert_allclose(test.high, rate.high, atol=2e-3)
    few = plan_from_evaluation(held_out(8), [10, 30], n_test=20)
    assert (few.low < rate.low).all()
    assert (few.high > rate.high).all()


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_more_samples_are_better_and_less_certain(n_classes: int) -> None:
    found = plan_from_evaluation(held_out(8, 20, n_classes), [5, 10, 18, 40, 160])
    assert found.separated
    assert (np.diff(found.error) < 0).all()
    assert (found.low <= found.error).all()
    assert (found.error <= found.high).all()
    # In units of the error, the curve is known best where it was seen.
    spread = (found.high - found.low) / found.error
    assert spread[2] < spread[3] < spread[4]


@pytest.mark.parametrize("errors", [0, 1])
def test_no_error_is_promised_that_the_samples_cannot_show(errors: int) -> None:
    found = plan_from_evaluation(held_out(errors), [18, 100, 10_000])
    assert (found.error >= 1 / 42).all()
    assert found.error[-1] == pytest.approx(1 / 42)
    assert (found.low == 0).all()
    assert (found.high >= found.error).all()
    assert "No error below 2.4%" in found.words()


def test_the_separation_is_that_of_the_log_odds() -> None:
    evaluation = held_out(5)
    p = evaluation.probabilities
    score = np.log(p[:, 1] / p[:, 0])
    a, b = (score[evaluation.codes == k] for k in (0, 1))
    pooled = np.sqrt((19 * a.var(ddof=1) + 19 * b.var(ddof=1)) / 38)
    d, error = held_out_separation(evaluation)
    assert d == pytest.approx((b.mean() - a.mean()) / (2 * pooled))
    assert 0 < error < d


def test_certain_predictions_have_a_finite_separation() -> None:
    p = np.array([[1.0, 0.0], [0.0, 1.0]] * 8 + [[1.0, 0.0]])
    codes = np.array([0, 1] * 8 + [1])
    d, error = held_out_separation(Evaluation(np.array([0, 1]), codes, p, 5))
    assert np.isfinite([d, error]).all()


def test_without_separation_no_gain_is_promised() -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.3, 0.7, 60)
    codes = np.arange(60) % 2
    nothing = Evaluation(np.array(["a", "b"]), codes, np.c_[p, 1 - p], 10)
    found = plan_from_evaluation(nothing, [10, 27, 100])
    assert not found.separated
    assert "No gain from more samples is promised" in found.words()
    assert found.error[2] == pytest.approx(found.error[1], rel=1e-3)
    assert found.error[2] <= found.chance_error == 0.5
    assert found.high[2] == pytest.approx(found.high[1], rel=1e-3)
    # What is not promised is still possible.
    assert found.low[2] < found.low[1]


def test_bad_luck_is_not_expected_to_last() -> None:
    # Four of five are wrong: more than by any rule that finds nothing.
    codes = np.tile([0, 0, 1, 1, 1], 6)
    p = np.where(np.arange(30) % 5 == 0, 0.6, 0.4) + 0.01 * np.sin(np.arange(30))
    right = np.c_[np.where(codes == 0, p, 1 - p), np.where(codes == 0, 1 - p, p)]
    found = plan_from_evaluation(Evaluation(np.arange(2), codes, right, 10), 60)
    assert found.n_errors == 24
    assert not found.separated
    assert found.error[0] == pytest.approx(found.chance_error, rel=1e-3)
    assert found.high[0] > 0.8


def test_noise_is_seldom_promised_a_gain() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    promised = [
        plan(LogisticRegression(), rng.normal(size=(40, 60)), y, 40, seed=i).separated
        for i in range(30)
    ]
    assert sum(promised) <= 3


def test_a_plan_says_what_it_is() -> None:
    found = plan_from_evaluation(held_out(8), [20, 40], n_test=25)
    words, *table = str(found).splitlines()
    assert words.startswith("8 of 40 samples were wrong when they were held out in 10")
    assert "18 samples per class" in words
    assert "among 25 new samples" in words
    assert "80% interval" in table[0]
    assert len(table) == 3
    assert table[1].split()[0] == "20"


def test_sizes_are_chosen_around_those_at_hand() -> None:
    found = plan_from_evaluation(held_out(8))
    assert found.current == 20
    assert found.n[0] == 10
    assert found.n[-1] == 80
    assert 20 in found.n


def test_rare_classes_are_in_every_fit() -> None:
    codes = np.repeat([0, 1, 2], [30, 11, 3])
    fold = dealt_folds(codes, 10, seed=1)
    assert np.bincount(fold).min() >= 4
    assert np.bincount(fold).max() <= 5
    for f in range(10):
        assert len(np.unique(codes[fold != f])) == 3
        assert np.count_nonzero(codes[fold != f] == 2) >= 2
    few = dealt_folds(np.array([0, 0, 0, 1, 1, 1, 2, 2]), 10, seed=0, least=2)
    np.testing.assert_array_equal(np.sort(few[:6]), np.arange(6))
    assert (few[6:] == -1).all()


def test_a_plan_costs_a_fit_per_fold() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], [20, 9, 2])
    X = rng.normal(size=(31, 4)) + 2 * (y == "a")[:, None]
    folds: list[int] = []
    found = plan(
        LogisticRegression(), X, y, [30], n_folds=6, after_fold=lambda: folds.append(1)
    )
    assert len(folds) == found.n_folds == 6
    # The two of class c are in every fit.
    assert found.n_samples == 29
    assert found.current == pytest.approx(31 / 3)
    assert found.fitted_to == pytest.approx((31 - 29 / 6) / 3)
    assert found.chance_error == pytest.approx(9 / 29)


def test_what_cannot_be_planned() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 3))
    model = LogisticRegression()
    with pytest.raises(ValueError, match="there are 10 of 'a', 2 of 'b'"):
        plan(model, X, ["a"] * 10 + ["b"] * 2)
    with pytest.raises(ValueError, match="two classes with three or more samples"):
        plan(model, X, ["a"] * 12)
    y = ["a", "b"] * 6
    with pytest.raises(ValueError, match="n_folds must be at least 2, got 1"):
        plan(model, X, y, n_folds=1)
    with pytest.raises(ValueError, match="each at least 1"):
        plan(model, X, y, [10, 0])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 1"):
        plan(model, X, y, level=1)
    with pytest.raises(ValueError, match="n_test must be at least 1 sample, got 0"):
        plan(model, X, y, n_test=0)
    with pytest.raises(ValueError, match="predictions of independent samples"):
        plan_from_evaluation(evaluate(model.fit(X, y), X, y))
    one = Evaluation(np.array([0, 1]), np.zeros(4, np.int64), np.full((4, 2), 0.5), 2)
    with pytest.raises(ValueError, match="two or more classes"):
        plan_from_evaluation(one)


@pytest.mark.slow
def test_true_errors_lie_in_the_intervals() -> None:
    model = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    inside = 0
    draws = 20
    for draw in range(draws):
        # From next to no separation to a good one.
        effect = 0.25 + 0.03 * draw
        sim = make_two_class(
            n_per_class=660,
            n_features=400,
            n_signals=80,
            effect=effect,
            random_state=draw,
        )
        X, y = sim.data, sim.target
        rows = np.concatenate([np.flatnonzero(y == k) for k in np.unique(y)])
        rows = rows.reshape(2, -1)
        few, more, test = rows[:, :15].ravel(), rows[:, :60].ravel(), rows[:, 60:]
        found = plan(model, X[few], y[few], [60], seed=draw)
        fitted = model.fit(X[more], y[more])
        truth = 1 - fitted.score(X[test.ravel()], y[test.ravel()])
        inside += found.low[0] <= truth <= found.high[0]
    assert inside >= 2 * draws / 3


@pytest.mark.slow
def test_half_of_golub_plans_for_the_rest() -> None:
    golub = load_golub()
    X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    block = dealt_folds(np.unique(golub.target, return_inverse=True)[1], 10, 0)
    here, test = block < 5, block > 7
    found = plan(EBClassifier(), X[here], golub.target[here], [29], n_test=test.sum())
    assert found.separated
    model = EBClassifier().fit(X[~test], golub.target[~test])
    seen = evaluate(model, X[test], golub.target[test])
    assert found.low[0] <= seen.error <= found.high[0]
    # The 0.0002 % of a model that believed itself is no more.
    assert found.error[0] >= 1 / (here.sum() + 2)


RECORD = Path(__file__).parents[1] / "docs" / "benchmarks" / "planning.jsonl"


@pytest.mark.parametrize("share", ["half", "quarter"])
def test_real_studies_keep_within_their_plans(share: str) -> None:
    # What was held out, and what 80 % of the samples made of the others
    # (benchmarks/planning.py): the plans are made here.
    inside, singly = [], []
    for r in map(json.loads, RECORD.read_text().splitlines()):
        if r["share"] != share or "tests" not in r:
            continue
        p, tests = np.array(r["probabilities"]), np.array(r["tests"])
        evaluation = Evaluation(
            np.arange(p.shape[1]), np.array(r["codes"]), p, r["folds"]
        )
        later = (r["samples"] - tests[:, 1].mean()) / r["at_hand"]
        n = later * len(p) / p.shape[1]
        rate = plan_from_evaluation(evaluation, n)
        seen = tests[:, 0].sum() / tests[:, 1].sum()
        inside.append(rate.low[0] <= seen <= rate.high[0])
        for wrong, m in tests:
            one = plan_from_evaluation(evaluation, n, n_test=int(m))
            singly.append(one.low[0] - 1e-9 <= wrong / m <= one.high[0] + 1e-9)
    assert len(inside) >= 30
    assert 2 / 3 <= np.mean(inside) < 0.95
    assert 2 / 3 <= np.mean(singly) < 0.95
