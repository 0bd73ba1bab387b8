"""Error, AUC, sensitivity and specificity with intervals, repeated or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, recall_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import cross_validate as sklearn_cross_validate

import ebda
from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.evaluation import (
    Evaluation,
    RepeatedEvaluation,
    cross_validate,
    evaluate,
)
from ebda.evaluation.intervals import folds_factor
from ebda.evaluation.measures import area, corrected_t, inflation, newcombe


def data(n: int = 60, p: int = 20, k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, k, n)
    X = rng.normal(size=(n, p))
    X[:, :k] += 1.2 * np.eye(k)[codes]
    return X, np.array(["ill", "well", "young"])[codes]


def predictions(k: int, n_folds: int = 0, n: int = 80) -> Evaluation:
    rng = np.random.default_rng(k)
    codes = rng.integers(0, k, n)
    p = rng.dirichlet(np.ones(k), n) + 0.6 * np.eye(k)[codes]
    p = (p / p.sum(axis=1, keepdims=True)).round(2)  # with ties
    return Evaluation(np.array(["a", "b", "c"])[:k], codes, p, n_folds)


@pytest.mark.parametrize("k", [2, 3])
def test_the_measures_are_those_of_scikit_learn(k: int) -> None:
    e = predictions(k)
    found = e.measures()
    assert found["error"].value == e.error
    recall = recall_score(e.codes, e.predicted, average=None)
    for c, name in enumerate(e.classes):
        if k == 2 and c == 0:
            assert found["specificity"].value == pytest.approx(recall[0])
            continue
        of = "" if k == 2 else f" of {name}"
        assert found[f"sensitivity{of}"].value == pytest.approx(recall[c])
        auc = roc_auc_score(e.codes == c, e.probabilities[:, c])
        assert found[f"AUC{of}"].value == pytest.approx(auc)
        others = recall_score(e.codes != c, e.predicted != c)
        assert found[f"specificity{of}"].value == pytest.approx(others)


def test_shares_of_independent_samples_have_wilsons_interval() -> None:
    e = predictions(2)
    k, n = int((e.codes == 1).sum()), len(e.codes)
    hits = int(((e.codes == 1) & (e.predicted == 1)).sum())
    found = e.measures(0.9)
    want = binomtest(hits, k).proportion_ci(0.9, method="wilson")
    assert (found["sensitivity"].low, found["sensitivity"].high) == pytest.approx(want)
    want = binomtest(e.n_errors, n).proportion_ci(0.9, method="wilson")
    assert e.interval(0.9) == pytest.approx(want)
    assert (found["error"].low, found["error"].high) == e.interval(0.9)


def test_held_out_samples_count_as_fewer() -> None:
    """The factor is the variance of Nadeau and Bengio over that of K trials."""
    for folds in (2, 5, 10):
        plain, corrected = 1 / folds, 1 / folds + 1 / (folds - 1)
        assert folds_factor(folds) == pytest.approx(corrected / plain)
    tested, held_out = predictions(2), predictions(2, 5)
    for a, b in zip(tested.measures(), held_out.measures(), strict=True):
        assert b.low < a.low < a.value == b.value < a.high < b.high


def delong(scores: np.ndarray, own: np.ndarray) -> tuple[float, float]:
    """The area and its variance, from all pairs."""
    wins = np.sign(scores[own][:, None] - scores[~own]) / 2 + 0.5
    m, n = wins.shape
    s10 = wins.mean(axis=1).var(ddof=1)
    s01 = wins.mean(axis=0).var(ddof=1)
    return wins.mean(), s10 / m + s01 / n


def test_the_area_and_its_variance_are_delongs() -> None:
    rng = np.random.default_rng(0)
    own = rng.random(50) < 0.3
    scores = (rng.normal(size=50) + own).round(1)
    value, influence = area(scores, own)
    want, variance = delong(scores, own)
    assert value == pytest.approx(want)
    m, n = own.sum(), (~own).sum()
    squares = (influence[own] ** 2).sum() * m / (m - 1)
    squares += (influence[~own] ** 2).sum() * n / (n - 1)
    assert squares == pytest.approx(variance)
    assert influence.sum() == pytest.approx(0)
    # Copies of each sample are worth one; samples that are alone are worth all.
    groups = np.repeat(np.arange(50), 4)
    _, four = area(np.repeat(scores, 4), np.repeat(own, 4))
    assert inflation(four, np.repeat(own, 4), groups) == pytest.approx(4, rel=0.05)
    assert inflation(influence, own, np.arange(50)) == pytest.approx(1, abs=0.05)


def test_newcombes_interval_solves_its_equation() -> None:
    z = norm.ppf(0.95)
    for a, m, n in ((0.8, 12, 30), (0.55, 40, 40), (0.99, 9, 7)):
        mean = (m + n) / 2
        for end in newcombe(a, m, n, 0.9):
            spread = 1 + (mean - 1) * ((1 - end) / (2 - end) + end / (1 + end))
            sd = np.sqrt(end * (1 - end) * spread / (m * n))
            assert abs(a - end) == pytest.approx(z * sd, rel=1e-6)
    low, high = newcombe(0.8, 10, 20, 0.95)
    assert newcombe(0.2, 10, 20, 0.95) == pytest.approx((1 - high, 1 - low))
    assert newcombe(1.0, 10, 10, 0.95)[1] == 1
    assert newcombe(0.0, 10, 10, 0.95)[0] == 0
    assert 0.7 < newcombe(1.0, 10, 10, 0.95)[0] < 0.9


@pytest.mark.slow
def test_newcombes_interval_covers() -> None:
    """Of normal scores of 25 and 20 independent samples."""
    rng = np.random.default_rng(8)
    own = np.arange(45) < 20
    for shift in (0.5, 1.2, 2.5):
        true, rounds = norm.cdf(shift / np.sqrt(2)), 400
        inside = 0
        for _ in range(rounds):
            value, _ = area(rng.normal(size=45) + shift * own, own)
            low, high = newcombe(value, 20, 25, 0.95)
            inside += low <= true <= high
        assert 0.92 < inside / rounds < 0.99


def test_probabilities_of_nearly_one_are_ordered() -> None:
    """They are all 1 in floating point; their complements are not."""
    p = np.array([0.5, 1e-20, 1e-30, 1e-40])
    sure = Evaluation(
        np.array(["a", "b"]), np.array([0, 0, 1, 1]), np.column_stack([p, 1 - p]), 0
    )
    assert (sure.probabilities[1:, 1] == 1).all()
    assert sure.measures()["AUC"].value == 1.0


def test_other_scores_have_the_corrected_t() -> None:
    scores = np.random.default_rng(0).normal(size=(3, 5))
    mean, low, high = corrected_t(scores, 0.9)
    half = student.ppf(0.95, 14) * np.sqrt((1 / 15 + 1 / 4) * scores.var(ddof=1))
    assert (low, high) == pytest.approx((mean - half, mean + half))
    # With training sets as large as can be it is the t interval of a mean.
    many = np.random.default_rng(0).normal(size=(1, 4000))
    _, low, high = corrected_t(many, 0.9)
    plain = student.interval(0.9, 3999, many.mean(), many.std(ddof=1) / np.sqrt(4000))
    wider = np.sqrt(1 + 4000 / 3999)
    assert (high - low) / (plain[1] - plain[0]) == pytest.approx(wider)


def test_scorers_of_any_kind_are_those_of_scikit_learn() -> None:
    X, y = data()
    model = LogisticRegression()
    folds = StratifiedKFold(4, shuffle=True, random_state=7)
    want = sklearn_cross_validate(
        model, X, y, cv=folds, scoring=["roc_auc", "balanced_accuracy"]
    )
    found = cross_validate(
        model, X, y, 4, seed=7, scoring=["roc_auc", "balanced_accuracy"]
    )
    for name in ("roc_auc", "balanced_accuracy"):
        np.testing.assert_allclose(found.scores[name], want[f"test_{name}"])
        assert found.measures()[name].value == pytest.approx(
            want[f"test_{name}"].mean()
        )

    def share_of_ill(fitted: Any, X: Any, y: Any) -> float:
        return float(np.mean(fitted.predict(X) == "ill"))

    scoring = {
        "ill": share_of_ill,
        "recall": make_scorer(recall_score, pos_label="ill"),
    }
    found = cross_validate(model, X, y, scoring=scoring)
    assert list(found.scores) == ["ill", "recall"]
    assert list(cross_validate(model, X, y, scoring=share_of_ill).scores) == [
        "share_of_ill"
    ]
    assert found.measures()["ill"].kind == "Nadeau-Bengio"
    with pytest.raises(ValueError, match=r"scoring.*nothing"):
        cross_validate(model, X, y, scoring="nothing")


def test_repetitions_are_means_and_no_new_samples() -> None:
    X, y = data()
    once = [cross_validate(LogisticRegression(), X, y, seed=s) for s in (4, 5, 6)]
    found = cross_validate(
        LogisticRegression(), X, y, seed=4, n_repeats=3, scoring="accuracy"
    )
    assert isinstance(found, RepeatedEvaluation)
    for one, other in zip(once, found.evaluations, strict=True):
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert found.error == pytest.approx(np.mean([e.error for e in once]))
    repeated, single = found.measures(), [e.measures() for e in once]
    for name in ("error", "AUC", "sensitivity", "specificity"):
        assert repeated[name].value == pytest.approx(
            np.mean([m[name].value for m in single])
        )
        widths = [m[name].high - m[name].low for m in single]
        width = repeated[name].high - repeated[name].low
        assert width == pytest.approx(np.mean(widths), rel=0.1)
    assert (repeated["error"].low, repeated["error"].high) == found.interval()
    assert repeated["accuracy"].value == pytest.approx(1 - found.error)
    with pytest.raises(ValueError, match="n_repeats must be at least 1"):
        cross_validate(LogisticRegression(), X, y, n_repeats=0)


def test_samples_of_a_group_make_intervals_wider(tmp_path: Path) -> None:
    e = predictions(2, 5)
    groups = np.repeat(np.arange(len(e.codes)), 3)
    three = replace(
        e,
        codes=np.repeat(e.codes, 3),
        probabilities=np.repeat(e.probabilities, 3, axis=0),
        groups=groups,
    )
    for a, b in zip(e.measures(), three.measures(), strict=True):
        assert b.value == pytest.approx(a.value)
        assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=0.01)
    naive = replace(three, groups=None)
    assert naive.interval()[1] < three.interval()[1] - 0.02
    # A model file keeps them.
    X, y = data()
    patient = np.arange(60) // 2
    model = EBClassifier(calibrate=False, covariance="diagonal", shrinkage="mean")
    found = cross_validate(model, X, y, groups=patient, scoring="accuracy")
    np.testing.assert_array_equal(found.groups, patient)
    ebda.save(model.fit(X, y), tmp_path / "m.ebda", evaluation=found)
    again = ebda.load_record(tmp_path / "m.ebda").evaluation
    np.testing.assert_array_equal(again.groups, patient)
    np.testing.assert_array_equal(again.scores["accuracy"], found.scores["accuracy"])
    assert repr(again) == repr(found)


def test_a_test_without_a_class_has_no_number_for_it() -> None:
    X, y = data()
    model = IndependenceRule().fit(X, y)
    found = evaluate(model, X[y == "ill"], y[y == "ill"]).measures()
    assert np.isnan(found["AUC"].value)
    assert np.isnan(found["sensitivity"].high)
    assert 0 < found["specificity"].value <= 1
    with pytest.raises(KeyError, match="there is no 'F1'; there are 'error', 'AUC'"):
        found["F1"]


def test_results_in_words_and_as_tables() -> None:
    X, y = data(k=3)
    found = cross_validate(IndependenceRule(), X, y, groups=np.arange(60) // 2)
    lines = repr(found).splitlines()
    assert lines[0].endswith("held out in 5 folds of 30 groups, were wrong.")
    assert len(lines) == 1 + 1 + 9
    assert lines[1].startswith("error ")
    frame = found.measures().to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.loc["AUC of well", "value"] == found.measures()["AUC of well"].value
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + 10
    odd = replace(found, classes=np.array(["<b>", "well", "young"]))
    assert "<b>" not in odd._repr_html_()
    both = cross_validate(IndependenceRule(), X, y, n_repeats=2)
    assert "60 samples, held out in 5 folds, 2 times" in repr(both)
    assert both._repr_html_().count("<table>") == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_repeats", [None, 2])
def test_intervals_hold_the_true_values(n_repeats: int | None) -> None:
    """Over 120 data sets, of the error and the AUC of the rule that is fitted to all.

    By the binomial distribution 95 % would be 0.91 to 0.98 here.
    """
    rng = np.random.default_rng(1)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.arange(n) % 2
        X = rng.normal(size=(n, 200))
        X[:, :10] += 0.6 * y[:, None]
        return X, y

    new, truth = drawn(2000)
    inside, plain = [], []
    for seed in range(120):
        X, y = drawn(40)
        model = IndependenceRule().fit(X, y)
        true = {
            "error": 1 - model.score(new, truth),
            "AUC": roc_auc_score(truth, model.decision_function(new)),
        }
        found = cross_validate(
            IndependenceRule(), X, y, seed=seed, n_repeats=n_repeats or 1
        )
        rows = found.measures()
        inside.append([rows[k].low <= true[k] <= rows[k].high for k in true])
        as_test = RepeatedEvaluation(
            tuple(replace(e, n_folds=0) for e in found.evaluations)
        ).measures()
        plain.append([as_test[k].low <= true[k] <= as_test[k].high for k in true])
    assert (np.mean(inside, axis=0) > 0.91).all()
    # Without the correction there are clearly fewer.
    assert (np.mean(plain, axis=0) < np.mean(inside, axis=0) - 0.03).all()
