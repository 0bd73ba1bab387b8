"""Two lists of features: limma's statistics, order, tables, and what they promise."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import false_discovery_control

from ebda import EBClassifier
from ebda.cli.features import feature_words, listed_features
from ebda.datasets import load_golub, load_khan, make_factor_classes, make_two_class
from ebda.moments import class_moments
from ebda.rule.conditional import rest_variance
from ebda.rule.marginal import Statistics, moderated_t
from ebda.rule.ranking import FeatureList, feature_list, tail_average

LIMMA = json.loads(
    (Path(__file__).parent / "reference" / "limma.json").read_text(encoding="utf-8")
)
RATES = arrays.arrays(
    np.float64,
    st.integers(1, 40),
    # Few different values, so that there are ties.
    elements=st.sampled_from([0.0, 1e-9, 0.01, 0.2, 0.2000001, 0.5, 0.9, 1.0]),
)


def classifier(**settings: Any) -> EBClassifier:
    """Makes the lists of the default, without its comparison of rules."""
    known = {"covariance": "factor", "shrinkage": "mean", "calibrate": False}
    return EBClassifier(**(known | settings))


def judged(t: np.ndarray, df: float = 1e9, **more: Any) -> FeatureList:
    """The list of these statistics, of two classes or of one class per row."""
    t = np.atleast_2d(t)
    counts = np.full(max(len(t), 2), 10.0)
    constant = more.pop("constant", np.zeros(t.shape[1], dtype=bool))
    return feature_list("", Statistics(t, df, counts), constant, 0.0)


def logarithms(data: np.ndarray) -> np.ndarray:
    return np.sign(data) * np.log1p(np.abs(data))


# limma's statistics


@pytest.mark.parametrize("name", ["golub", "khan"])
def test_statistics_are_those_of_limma(name: str) -> None:
    """lmFit, contrasts.fit and eBayes of limma 3.54.1, of every so manieth feature."""
    bunch = {"golub": load_golub, "khan": load_khan}[name]()
    X = logarithms(bunch.data) if name == "golub" else bunch.data
    codes = np.unique(bunch.target, return_inverse=True)[1]
    statistics, contrasts = moderated_t(class_moments(X, codes, codes.max() + 1))
    found = feature_list("", statistics, contrasts.constant, 0.0)
    stored = LIMMA[name]
    every = slice(None, None, stored["every"])
    assert found.df == pytest.approx(stored["df_total"], rel=1e-8)
    for values, key in (
        (np.atleast_2d(found.t)[:, every], "t"),
        (np.atleast_2d(found.p_value)[:, every], "p"),
        (found.f[every], "F"),
        (found.p_over_classes[every], "F_p"),
    ):
        np.testing.assert_allclose(values, stored[key], rtol=1e-8)


def test_f_of_two_classes_is_the_square_of_t() -> None:
    X = np.random.default_rng(0).normal(size=(14, 80))
    statistics, _ = moderated_t(class_moments(X, np.repeat([0, 1], [5, 9]), 2))
    np.testing.assert_array_equal(statistics.f, statistics.t[0] ** 2)


def test_f_is_between_over_within() -> None:
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(20, 60)), np.repeat([0, 1, 2], [3, 7, 10])
    moments = class_moments(X, codes, 3)
    statistics, contrasts = moderated_t(moments)
    centre = X.mean(axis=0)
    between = (moments.counts[:, None] * (moments.means - centre) ** 2).sum(axis=0) / 2
    np.testing.assert_allclose(statistics.f, between / contrasts.variance, rtol=1e-9)


def test_equal_variances_and_classes_change_next_to_nothing() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2000))
    statistics, _ = moderated_t(class_moments(X, np.repeat([0, 1], 20), 2))
    np.testing.assert_allclose(statistics.ratio, 1.0, atol=0.15)
    assert statistics.df > 100
    np.testing.assert_allclose(statistics.scores, statistics.t, atol=0.2)


def test_a_small_class_that_is_wide_has_a_larger_standard_error() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2000))
    X[:10] *= 2
    statistics, _ = moderated_t(class_moments(X, np.repeat([0, 1], [10, 30]), 2))
    true = (4 / 10 + 1 / 30) / ((9 * 4 + 29) / 38 * (1 / 10 + 1 / 30))
    assert np.median(statistics.ratio) == pytest.approx(true, rel=0.05)
    assert np.std(statistics.t) > 1.3
    assert np.std(statistics.scores) == pytest.approx(1.0, abs=0.05)


def test_rest_variance_is_that_of_the_analysis_of_covariance() -> None:
    g = np.array([[3.0, 4.0]])
    shrunken = g * (1 - 2 / 25)
    z = np.random.default_rng(0).normal(size=(1, 20_000))
    np.testing.assert_allclose(rest_variance(3 * z, shrunken, 50.0), [[1 + 25 / 50]])
    np.testing.assert_array_equal(rest_variance(3 * z, None, 50.0), [[1.0]])
    # No more than there is.
    root = np.sqrt(1.2)
    np.testing.assert_allclose(rest_variance(root * z, shrunken, 50.0), 1.2, atol=0.05)
    np.testing.assert_array_equal(rest_variance(0.5 * z, shrunken, 50.0), [[1.0]])


# Order


def test_order_is_by_evidence_also_where_probabilities_underflow() -> None:
    """z = -39.7 was ranked above z = 78, both with a rate of zero."""
    t = np.random.default_rng(1).normal(size=300)
    t[:4] = [-39.7, 78.0, 60.0, -300.0]
    found = judged(t)
    assert found.order[:4].tolist() == [3, 1, 2, 0]
    assert (np.diff(found.log_p[found.order]) >= 0).all()
    assert (np.diff(found.q_value[found.order]) >= 0).all()
    assert sorted(found.order.tolist()) == list(range(300))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_lists_do_not_depend_on_the_order_of_features(n_classes: int) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8 * n_classes, 120))
    X[:8, :9] += 3.0
    codes = np.repeat(np.arange(n_classes), 8)
    shuffled = rng.permutation(120)
    plain, turned = (
        feature_list("", statistics, contrasts.constant, 0.01)
        for statistics, contrasts in (
            moderated_t(class_moments(table, codes, n_classes))
            for table in (X, X[:, shuffled])
        )
    )
    for name in ("log_p", "q_value", "lfdr", "log_p_over_classes", "q_over_classes"):
        before, after = getattr(plain, name), getattr(turned, name)
        np.testing.assert_allclose(before[..., shuffled], after, rtol=1e-9, atol=1e-12)


def test_constant_features_come_last() -> None:
    rng = np.random.default_rng(2)
    t = rng.normal(scale=2, size=(1, 60))
    constant = np.zeros(60, dtype=bool)
    constant[[4, 30]] = True
    t[:, constant] = 0.0
    found = judged(t, constant=constant)
    assert set(found.order[-2:].tolist()) == {4, 30}
    for values in (found.q_value, found.lfdr, found.p_value, found.p_over_classes):
        np.testing.assert_array_equal(values[constant], 1.0)
    # They take no part in the q-values of the others.
    rest = judged(t[:, ~constant])
    np.testing.assert_allclose(found.q_value[~constant], rest.q_value)


def test_many_classes_are_ordered_by_f_and_each_by_its_own() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 400))
    codes = np.repeat([0, 1, 2], 10)
    X[codes == 2, 7] += 5
    X[codes == 0, 9] -= 7
    statistics, contrasts = moderated_t(class_moments(X, codes, 3))
    found = feature_list("", statistics, contrasts.constant, 0.0)
    assert found.order[:2].tolist() == [9, 7]
    assert found.strongest[[7, 9]].tolist() == [2, 0]
    assert found.order_in(2)[0] == 7
    assert found.q_value.shape == (3, 400)
    assert set(np.flatnonzero(found.selected())) >= {7, 9}
    # A class is named only where there is a difference over all classes.
    assert (found.q_value >= found.q_over_classes).all()
    assert found.selected_in_classes()[[2, 0], [7, 9]].all()
    assert not (found.selected_in_classes() & ~found.selected()).any()


# The table, and the classifier's own


def test_table_of_a_fitted_classifier() -> None:
    sim = make_two_class(
        n_per_class=15, n_features=200, n_signals=10, effect=2.0, random_state=0
    )
    X = sim.data.copy()
    X[:, 77] = 3.0
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(200)])
    model = classifier().fit(frame, sim.target)
    ranked = model.ranking_
    table = ranked.to_frame()
    assert table.index.name == "feature"
    assert table.index.tolist() == [f"g{j}" for j in ranked.order]
    assert table.index[-1] == "g77"
    columns = ["t", "p_value", "q_value", "lfdr"]
    beyond = [f"conditional_{name}" for name in columns]
    assert list(table.columns) == ["difference", *columns, *beyond]
    assert table.q_value.is_monotonic_increasing
    np.testing.assert_array_equal(table.t, ranked.marginal.t[ranked.order])
    np.testing.assert_allclose(
        table.difference, np.diff(model.moments_.means, axis=0)[0, ranked.order]
    )
    assert set(table.index[:10]) == {f"g{j}" for j in range(10)}
    folds = ranked.to_frame(log_base=np.e)["log2_fold_change"]
    np.testing.assert_allclose(folds * np.log(2), table.difference)
    plain = classifier().fit(X, sim.target).ranking_
    assert plain.to_frame().index.tolist() == plain.order.tolist()


def test_table_of_one_of_many_classes() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat(["a", "b", "c"], 12)
    X = rng.normal(size=(36, 80))
    X[y == "b", 7] += 6
    X[y == "c", 9] -= 6
    ranking = classifier().fit(X, y).ranking_
    assert set(ranking.order[:2].tolist()) == {7, 9}
    every = ranking.to_frame()
    assert every.loc[[7, 9], "class"].tolist() == ["b", "c"]
    assert every.loc[7, "difference"] > 3 > -3 > every.loc[9, "difference"]
    assert every.q_value.is_monotonic_increasing
    for contrast, best in ((1, 7), (2, 9)):
        table = ranking.to_frame(contrast)
        assert table.index[0] == best
        t = ranking.marginal.t[contrast]
        np.testing.assert_array_equal(table.t, t[table.index])


def test_there_is_no_ranking_before_fit() -> None:
    assert not hasattr(EBClassifier(), "ranking_")


def test_batches_give_the_lists_of_one_fit() -> None:
    sim = make_two_class(20, 300, 20, 1.5, random_state=1)
    whole = classifier().fit(sim.data, sim.target).ranking_
    model = classifier()
    for part in np.array_split(np.random.default_rng(0).permutation(40), 3):
        model.partial_fit(sim.data[part], sim.target[part], classes=["a", "b"])
    for name in ("marginal", "conditional"):
        one, streamed = getattr(whole, name), getattr(model.ranking_, name)
        np.testing.assert_allclose(one.t, streamed.t, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(one.q_value, streamed.q_value, rtol=1e-5)


def test_without_factors_both_lists_are_the_same() -> None:
    sim = make_two_class(30, 500, 20, 1.2, random_state=2)
    model = classifier().fit(sim.data, sim.target)
    assert model.n_factors_ == 0
    ranking = model.ranking_
    np.testing.assert_allclose(ranking.marginal.t, ranking.conditional.t, rtol=0.02)
    words = feature_words(model, 3, log_base=None)
    assert "No common factors were found" in words


@given(lfsr=RATES)
def test_tail_averages_are_means_of_the_tail(lfsr: np.ndarray) -> None:
    direct = [lfsr[lfsr <= rate].mean() for rate in lfsr]
    np.testing.assert_allclose(tail_average(lfsr), direct, rtol=1e-12)


# What was seen in 0.1.0, and is not to be seen again


@pytest.mark.slow
def test_permuted_labels_give_no_list() -> None:
    """All 7129 genes had q <= 0.05 with the labels permuted by default_rng(0)."""
    golub = load_golub()
    X = logarithms(golub.data)
    for seed in range(8):
        y = np.random.default_rng(seed).permutation(golub.target)
        ranking = classifier().fit(X, y).ranking_
        for found in (ranking.marginal, ranking.conditional):
            assert found.selected().sum() <= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alon_colon", "khan_srbct", "sorlie_breast5"])
def test_permuted_labels_of_real_sets_give_no_list(name: str) -> None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("EBDA_DATA", beside)) / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there; EBDA_DATA says where the real sets lie")
    with np.load(path, allow_pickle=True) as stored:
        X, y = np.asarray(stored["X"], dtype=float), stored["y"]
    X = logarithms(X) if np.abs(X).max() > 100 else X
    found = []
    for seed in range(10):
        permuted = np.random.default_rng(seed).permutation(y)
        ranking = classifier().fit(X, permuted).ranking_
        found.append(
            [row.selected().sum() for row in (ranking.marginal, ranking.conditional)]
        )
    assert (np.array(found) > 0).sum(axis=0).max() <= 1
    assert np.max(found) < X.shape[1] / 10


@pytest.mark.parametrize(("n", "effect"), [(3, 4.0), (10, 1.6)])
def test_few_degrees_of_freedom_count(n: int, effect: float) -> None:
    """46 % of the calls were false with 3 + 3 samples, 16 % with 10 + 10."""
    false = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2 * n, 5000))
        X[n:, :100] += effect * rng.choice([-1, 1], 100)
        X *= np.sqrt(4 / rng.chisquare(4, 5000))
        statistics, _ = moderated_t(class_moments(X, np.repeat([0, 1], n), 2))
        chosen = feature_list("", statistics, np.zeros(5000, bool), 0.0).selected()
        false.append(chosen[100:].sum() / max(chosen.sum(), 1))
        assert chosen[:100].sum() > 10
    assert np.mean(false) < 0.09


def test_what_a_factor_shifts_is_in_one_list_and_not_in_the_other() -> None:
    """With common factors nothing differed where a t-test had found thousands."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 25)
    loadings = rng.normal(size=1500) * (np.arange(1500) < 600)
    scores = rng.normal(size=50) + 2 * y
    X = np.outer(scores, loadings) + rng.normal(size=(50, 1500))
    X[y == 1, 1400:] += 2.0
    model = classifier().fit(X, y)
    assert model.n_factors_ == 1
    marginal, conditional = (
        found.selected()
        for found in (model.ranking_.marginal, model.ranking_.conditional)
    )
    assert marginal[:600].mean() > 0.3
    assert conditional[:600].mean() < 0.02
    assert marginal[1400:].mean() > 0.9
    assert conditional[1400:].mean() > 0.8
    words = feature_words(model, 5, log_base=math.e)
    for found in (model.ranking_.marginal, model.ranking_.conditional):
        assert f"{found.question}\n{found.selected().sum()} of 1500 do," in words


@pytest.mark.slow
def test_a_gene_that_is_seen_in_one_cell_differs_nowhere() -> None:
    """Such genes were "higher" in all eight classes at once."""
    rng = np.random.default_rng(0)
    n, p = 3000, 400
    y = rng.integers(8, size=n)
    fold = np.ones((8, p))
    fold[rng.integers(8, size=60), np.arange(60)] = 2.0
    rate = np.exp(rng.normal(-3, 2, p)) * fold[y]
    X = rng.poisson(rate * rng.lognormal(0, 0.4, (n, 1))).astype(float)
    X[:, 300:] = 0.0
    X[rng.integers(n, size=100), np.arange(300, 400)] = 1.0
    total = X.sum(axis=1, keepdims=True)
    X = np.log1p(X / np.maximum(total, 1) * np.median(total))
    found = classifier().fit(X, y).ranking_.marginal
    chosen = found.selected()
    assert chosen[:60].sum() > 15
    assert chosen[60:].sum() <= 4
    assert not found.selected_in_classes()[:, 300:].any()


def test_where_there_is_nothing_nothing_is_listed() -> None:
    """Ten features were listed, in the order of the file."""
    X = np.random.default_rng(1).normal(size=(30, 400))
    model = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    model.fit(X, np.repeat(["a", "b"], 15))
    ranking = model.ranking_
    assert not ranking.selected().any()
    assert listed_features(model, ranking, ranking.marginal, 10, log_base=None) == []
    words = feature_words(model, 10, log_base=None)
    assert "No feature does, at a false discovery rate of 5%." in words
    assert "The first" not in words


def test_directions_are_those_of_the_differences() -> None:
    sim = make_two_class(20, 300, 20, [-2.0], random_state=0)
    model = classifier().fit(sim.data, sim.target)
    rows = listed_features(
        model, model.ranking_, model.ranking_.marginal, 5, log_base=None
    )
    assert len(rows) == 5
    for row in rows:
        assert row["direction"] == "higher in a"
        assert row["difference"] < 0
        assert row["t"] < 0


@pytest.mark.slow
def test_over_many_classes_the_union_keeps_the_rate() -> None:
    """17 % of the features in the union over eight classes were false."""
    false, found = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(8), 30)
        means = np.zeros((8, 3000))
        means[rng.integers(8, size=100), np.arange(100)] = 1.2
        X = rng.normal(size=(240, 3000)) + means[codes]
        statistics, _ = moderated_t(class_moments(X, codes, 8))
        ranked = feature_list("", statistics, np.zeros(3000, bool), 0.0)
        for chosen in (ranked.selected(), ranked.selected_in_classes().any(axis=0)):
            false.append(chosen[100:].sum() / chosen.sum())
            found.append(chosen[:100].mean())
    assert np.mean(false) < 0.07
    assert np.mean(found) > 0.9


# Recovery of a known truth: false discoveries


def false_share(found: FeatureList, means: np.ndarray) -> float:
    chosen = found.selected(0.05)
    return float((chosen & (means[1] == means[0])).sum() / max(chosen.sum(), 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_signals", "effect", "dropped"),
    [(0, 0.0, 0), (100, 1.0, 0), (300, 0.7, 0), (100, 1.2, 20)],
)
def test_false_discoveries_among_independent_features(
    n_signals: int, effect: float, dropped: int
) -> None:
    shares = []
    # Where there is nothing the share of a data set is 0 or 1, and 5 % have a call.
    for seed in range(12 if n_signals else 40):
        sim = make_two_class(30, 3000, n_signals, effect, random_state=seed)
        model = classifier(covariance="diagonal")
        model.fit(sim.data[dropped:], sim.target[dropped:])
        shares.append(false_share(model.ranking_.marginal, sim.means))
    assert np.mean(shares) <= (0.07 if n_signals else 0.13)


@pytest.mark.slow
def test_false_discoveries_beside_common_factors() -> None:
    shares, found = [], []
    for seed in range(12):
        sim = make_factor_classes(n_test=2, random_state=seed)
        ranking = classifier().fit(sim.data, sim.target).ranking_
        for listed in (ranking.marginal, ranking.conditional):
            shares.append(false_share(listed, sim.means))
            found.append(listed.selected(0.05).sum())
    assert np.mean(found) > 5
    assert np.mean(shares) <= 0.07


def test_a_list_that_is_much_shorter_than_by_theory_says_so() -> None:
    """Half of Golub's patients: Benjamini and Hochberg list hundreds of genes, and
    genes are so correlated that the bulk of the values may be that wide by chance."""
    golub = load_golub()
    train = golub.split == "train"
    X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    model = EBClassifier(covariance="factor", shrinkage="mean", calibrate=False)
    found = model.fit(X[train], golub.target[train]).ranking_.marginal
    by_theory = false_discovery_control(found.p_value[~found.constant]) <= 0.05
    assert by_theory.sum() > 2 * found.selected().sum() + 20
    assert f"it would be {by_theory.sum()}" in found.doubt()
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    noise = rng.normal(size=(60, 1000)) + 3.0 * y[:, None] * (np.arange(1000) < 100)
    assert model.fit(noise, y).ranking_.marginal.doubt() == ""
