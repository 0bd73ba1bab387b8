"""A small panel: the error against the number of features, without a leak."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from scipy.stats import binomtest, f_oneway
from scipy.stats import t as student
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ebda import EBClassifier, panel
from ebda.baselines import IndependenceRule
from ebda.datasets import load_golub, make_two_class
from ebda.evaluation import Panel
from ebda.evaluation.evidence import fold_orders, order_by_evidence
from ebda.evaluation.folds import dealt_folds, predict_folds
from ebda.evaluation.intervals import standard_error, wilson, worth
from ebda.evaluation.panels import chosen
from ebda.moments import class_moments
from ebda.plotting import PanelDisplay

RULE = IndependenceRule()


def data(
    n: int = 40, p: int = 300, signals: int = 5, n_classes: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, p))
    X[:, :signals] += (
        1.6
        * rng.permuted(np.tile(np.arange(n_classes)[:, None], signals), axis=0)[codes]
    )
    return X, np.array(["ill", "well", "young"])[codes]


def same(one: Panel, other: Panel) -> None:
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-12)
    np.testing.assert_array_equal(one.sizes, other.sizes)
    np.testing.assert_array_equal(one.features.columns, other.features.columns)
    np.testing.assert_allclose(one.features.low, other.features.low)
    np.testing.assert_array_equal(
        one.features.share_of_folds, other.features.share_of_folds
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_what_a_loop_over_training_sets_does(n_classes: int) -> None:
    X, y = data(n_classes=n_classes)
    found = panel(RULE, X, y, [2, 10], n_folds=4, n_repeats=2, seed=5)
    codes = np.unique(y, return_inverse=True)[1]
    for r in range(2):
        fold = dealt_folds(codes, 4, 5 + r)
        np.testing.assert_array_equal(found.fold[r], fold)
        for f in range(4):
            train, test = fold != f, fold == f
            moments = class_moments(X[train], codes[train], n_classes)
            order = order_by_evidence(moments)
            for i, size in enumerate((2, 10)):
                cols = np.sort(order[:size])
                model = IndependenceRule().fit(X[train][:, cols], y[train])
                expected = model.predict_proba(X[test][:, cols])
                np.testing.assert_allclose(
                    found.probabilities[i, r, test], expected, rtol=1e-9
                )


def test_the_evidence_is_the_f_of_many_samples() -> None:
    # With many samples nothing is left to moderate.
    X, y = data(n=3000, p=20)
    codes = np.unique(y, return_inverse=True)[1]
    f = f_oneway(*(X[codes == k] for k in range(2))).statistic
    order = order_by_evidence(class_moments(X, codes, 2))
    np.testing.assert_allclose(f[order], np.sort(f)[::-1], rtol=0.1)
    assert order[0] == f.argmax()


def test_classes_take_turns() -> None:
    """One class differs in thirty features, the others in one each, and by less."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 200))
    X[codes == 0, :30] += 4
    X[codes == 1, 30] += 2
    X[codes == 2, 31] += 2
    order = order_by_evidence(class_moments(X, codes, 3))
    assert {30, 31} < set(order[:3])
    f = f_oneway(*(X[codes == k] for k in range(3))).statistic
    assert not {30, 31} & set(np.argsort(-f)[:20])
    found = panel(RULE, X, codes, [3], n_folds=3)
    assert set(found.features.label) == {0, 1, 2}
    # The names of the classes do not matter.
    moved = order_by_evidence(class_moments(X, 2 - codes, 3))
    np.testing.assert_array_equal(order, moved)


def test_the_order_with_missing_values_is_by_p_values() -> None:
    X, y = data(p=6, signals=2)
    X[3:, 0] = np.nan
    X[:, 5] = 1.0
    codes = np.unique(y, return_inverse=True)[1]
    order = order_by_evidence(class_moments(X, codes, 2))
    assert order[0] == 1
    assert order[-1] == 5


def test_all_features_are_plain_cross_validation() -> None:
    X, y = data(p=30)
    found = panel(RULE, X, y, [30], n_folds=5, seed=2)
    codes = np.unique(y, return_inverse=True)[1]
    plain = predict_folds(RULE, X, y, dealt_folds(codes, 5, 2))
    np.testing.assert_allclose(found.held_out.probabilities, plain.probabilities)
    assert found.error[0] == plain.error
    assert found.held_out.n_folds == 5
    low, high = plain.interval()
    assert (found.low[0], found.high[0]) == pytest.approx((low, high))


def test_no_label_leaks_into_the_choice_of_features() -> None:
    """Noise: the features that fit all samples best would show an error near zero."""
    X, y = data(n=60, p=3000, signals=0, seed=1)
    found = panel(RULE, X, y, [5, 20, 100], n_repeats=2)
    assert (found.error > 0.3).all()
    # What the same data say when features are chosen first, outside of the folds.
    first = SelectKBest(f_classif, k=20).fit_transform(X, y)
    leaked = panel(RULE, first, y, [20])
    assert leaked.error[0] < 0.15
    # And scikit-learn's own nested choice agrees.
    nested = predict_folds(
        make_pipeline(SelectKBest(f_classif, k=20), IndependenceRule()),
        X,
        y,
        found.fold[0],
    )
    assert abs(nested.error - found.wrong[1, 0].mean()) < 0.1


@pytest.mark.slow
def test_the_choice_of_the_size_is_paid_for() -> None:
    """Over data without signal, the least error is too small, and the other is not."""
    least, honest = [], []
    for seed in range(40):
        X, y = data(n=30, p=200, signals=0, seed=seed)
        found = panel(RULE, X, y, [1, 2, 5, 10, 20, 50], n_folds=5)
        least.append(found.error.min())
        honest.append(found.error_of_choice)
    spread = np.std(honest) / np.sqrt(len(honest))
    assert np.mean(least) < 0.45
    assert abs(np.mean(honest) - 0.5) < 3 * spread
    assert spread < 0.03


def test_the_features_that_differ_are_found() -> None:
    sim = make_two_class(
        n_per_class=40, n_features=1000, n_signals=4, effect=2, random_state=0
    )
    found = panel(EBClassifier(calibrate=False), sim.data, sim.target, [1, 2, 4, 8, 50])
    assert found.size <= 8
    assert set(found.features.columns[:4]) == set(range(4))
    assert found.features.share_of_folds[:4].min() == 1.0
    assert found.error.min() < 0.05
    a, b = np.unique(sim.target)
    truth = sim.data[sim.target == b].mean(axis=0) - sim.data[sim.target == a].mean(0)
    np.testing.assert_allclose(found.features.difference, truth[found.features.columns])
    predicted = found.model.predict(sim.data[:, found.columns])
    assert np.mean(predicted == sim.target) > 0.9


def test_intervals_of_differences_are_those_of_t() -> None:
    X, y = data(n=2000, p=60, signals=3)
    found = panel(RULE, X, y, [3], n_folds=2)
    a, b = X[y == "ill"], X[y == "well"]
    for i, j in enumerate(found.features.columns):
        d = b[:, j].mean() - a[:, j].mean()
        df = len(X) - 2
        s2 = ((a[:, j] - a[:, j].mean()) ** 2).sum()
        s2 += ((b[:, j] - b[:, j].mean()) ** 2).sum()
        half = student.ppf(0.975, df) * np.sqrt(s2 / df * (1 / len(a) + 1 / len(b)))
        assert found.features.low[i] == pytest.approx(d - half, rel=0.01)
        assert found.features.high[i] == pytest.approx(d + half, rel=0.01)
    assert set(found.features.label) == {"well"}


@pytest.mark.parametrize("form", ["table", "csr", "csc", "list"])
def test_all_forms_of_data_give_the_same(form: str) -> None:
    X, y = data(p=60)
    X[np.abs(X) < 0.4] = 0
    plain = panel(RULE, X, y, [2, 5, 60], n_folds=4)
    names = np.array([f"g{j}" for j in range(60)], dtype=object)
    given: Any = {
        "table": lambda: pd.DataFrame(X, columns=names),
        "csr": lambda: sparse.csr_matrix(X),
        "csc": lambda: sparse.csc_array(X),
        "list": lambda: X.tolist(),
    }[form]()
    found = panel(RULE, given, y, [2, 5, 60], n_folds=4)
    same(plain, found)
    assert plain.names is None
    if form == "table":
        np.testing.assert_array_equal(found.names, names[found.columns])
        assert found.model.predict(given[list(found.names)]).tolist() == (
            plain.model.predict(X[:, plain.columns]).tolist()
        )
        frame = found.to_frame()
        assert frame.index.tolist() == names[found.features.columns].tolist()
        assert repr(found).endswith(", ".join(frame.index))


@pytest.mark.slow
def test_jobs_in_parallel_change_nothing() -> None:
    X, y = data(p=60)
    calls: list[int] = []
    one = panel(RULE, X, y, [2, 60], n_folds=3, after_fold=lambda: calls.append(1))
    same(one, panel(RULE, X, y, [2, 60], n_folds=3, n_jobs=2))
    assert len(calls) == 3


def test_the_order_of_features_does_not_matter() -> None:
    X, y = data(p=100)
    found = panel(RULE, X, y, [3, 10], n_folds=4)
    order = np.random.default_rng(0).permutation(100)
    moved = panel(RULE, X[:, order], y, [3, 10], n_folds=4)
    np.testing.assert_allclose(moved.probabilities, found.probabilities, atol=1e-10)
    np.testing.assert_array_equal(order[moved.features.columns], found.features.columns)


class TakesGroups(LogisticRegression):
    """Remembers the groups that it was fitted with."""

    seen: ClassVar[list[set[int]]] = []

    def fit(self, X: Any, y: Any, groups: Any = None) -> Any:
        TakesGroups.seen.append(set(groups.tolist()))
        return super().fit(X, y)


def test_groups_stay_together_and_are_given_to_the_fit() -> None:
    X, y = data(n=60, p=30)
    # Pairs of two samples of one class.
    groups = 100 + np.arange(60) // 4 * 2 + np.arange(60) % 2
    found = panel(TakesGroups(), X, y, [3], groups=groups, n_folds=5)
    for g in np.unique(groups):
        assert len(set(found.fold[0, groups == g])) == 1
    *in_folds, last = TakesGroups.seen
    assert len(in_folds) == 5
    assert last == set(groups)
    assert all(len(seen) < 30 for seen in in_folds)


def test_a_large_group_is_ranked_as_one_sample() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(24, 50)), np.tile([0, 1], 12)
    X[y == 1, 0] += 4
    # Forty copies of a single sample with another feature that is high.
    extra = np.tile(rng.normal(size=50), (40, 1)) + 0.01 * rng.normal(size=(40, 50))
    extra[:, 1] += 5
    X, y = np.vstack([X, extra]), np.append(y, np.ones(40, int))
    groups = np.append(np.arange(24), np.full(40, 99))
    fold = np.zeros(64, dtype=int)
    fold[:12] = 1
    number = np.unique(groups, return_inverse=True)[1]
    of_samples = fold_orders(X, y, 2, fold)[1]
    of_groups = fold_orders(X, y, 2, fold, number)[1]
    assert of_samples[0] == 1
    assert of_groups[0] == 0


def test_a_class_with_one_sample_is_in_every_fit() -> None:
    X, y = data(n=31, p=20)
    y = y.copy()
    y[0] = "young"
    found = panel(RULE, X, y, [5], n_folds=3)
    assert found.classes.tolist() == ["ill", "well", "young"]
    assert len(found.codes) == 30
    assert found.probabilities.shape == (1, 1, 30, 3)
    assert np.isfinite(found.probabilities).all()


def test_missing_values_are_for_models_that_take_them() -> None:
    X, y = data(p=40)
    X[::7, ::3] = np.nan
    found = panel(RULE, X, y, [3, 40], n_folds=4)
    assert np.isfinite(found.probabilities).all()
    assert np.isfinite(found.features.high).all()


def test_the_size_is_the_first_within_one_standard_error() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        wrong = rng.random((6, 3, 25)) < rng.random(6)[:, None, None]
        error = wrong.mean(axis=(1, 2))
        best = int(error.argmin())
        own = wrong[best].mean(axis=0)
        limit = error[best] + max(own.std(ddof=1) / np.sqrt(25), 1 / 25)
        expected = next(i for i in range(6) if error[i] <= limit + 1e-12)
        assert chosen(wrong) == expected
    # One error more than none is no reason for more features.
    none = np.zeros((2, 1, 83), dtype=bool)
    none[0, 0, 0] = True
    assert chosen(none) == 0


def test_intervals_are_wilsons_with_what_the_samples_are_worth() -> None:
    for k, n in ((0, 12), (3, 20), (20, 20)):
        ends = binomtest(k, n).proportion_ci(0.9, method="wilson")
        assert wilson(k / n, n, 0.9) == pytest.approx(tuple(ends), abs=1e-12)
    rng = np.random.default_rng(0)
    one = np.arange(200)
    shares = (rng.random(200) < 0.3).astype(float)
    assert standard_error(shares, one) == pytest.approx(standard_error(shares))
    assert worth(shares, one) == worth(shares) == 200
    # Twenty groups, each all right or all wrong, are worth twenty samples.
    groups = np.repeat(np.arange(20), 10)
    together = np.repeat((rng.random(20) < 0.3).astype(float), 10)
    assert worth(together, groups) == pytest.approx(20, rel=0.06)
    assert worth(np.zeros(200), groups) == 20


def test_what_is_wrong_is_said() -> None:
    X, y = data(p=20)
    with pytest.raises(ValueError, match=r"between 1 and 20.*got 21"):
        panel(RULE, X, y, [2, 21])
    with pytest.raises(ValueError, match="numbers of features, got"):
        panel(RULE, X, y, [2.5])
    endless = X.copy()
    endless[3, 7] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        panel(RULE, endless, y, [2])
    with pytest.raises(ValueError, match="n_folds must be at least 2"):
        panel(RULE, X, y, n_folds=1)
    with pytest.raises(ValueError, match="level must lie between"):
        panel(RULE, X, y, level=95)
    with pytest.raises(ValueError, match="one label for each"):
        panel(RULE, X, y[1:])
    with pytest.raises(ValueError, match="one class only"):
        panel(RULE, X, np.zeros(40))
    with pytest.raises(ValueError, match="two or more samples each"):
        panel(RULE, X[:2], ["a", "b"])
    with pytest.raises(ValueError, match="at least two groups of each class"):
        panel(RULE, X, y, groups=y)


def test_data_on_disk_are_refused(tmp_path: Any) -> None:
    X, y = data(p=20)
    on_disk = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    with pytest.raises(ValueError, match="panel needs data in memory"):
        panel(RULE, on_disk, y)


def test_the_result_in_words_and_as_a_picture() -> None:
    golub = load_golub()
    X = pd.DataFrame(golub.data, columns=golub.feature_names).iloc[:, :400]
    found = panel(RULE, X, golub.target, [1, 5, 25, 100], n_folds=5, n_repeats=2)
    lines = repr(found).splitlines()
    assert len(lines) == 1 + 1 + 4 + 1
    assert lines[0].startswith(f"{found.size} feature")
    assert "5 folds, 2 times" in lines[0]
    assert [line[0] for line in lines[2:6]].count("*") == 1
    display = PanelDisplay.from_panel(found).plot(Figure().subplots())
    curve = display.ax_.lines[0]
    np.testing.assert_array_equal(curve.get_xdata(), [1, 5, 25, 100])
    np.testing.assert_allclose(curve.get_ydata(), found.error)
    assert found.limit == found.error.min() + found.standard_error[found.error.argmin()]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"chosen: {found.size}" in legend
