"""Permutation tests: their level, their power, and which labels may be exchanged."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, permutation_test_score
from sklearn.naive_bayes import GaussianNB

from ebda.baselines import IndependenceRule
from ebda.datasets import make_two_class
from ebda.evaluation import PermutationTest, cross_validate, permutation_test

SIM = make_two_class(
    n_per_class=15, n_features=60, n_signals=10, effect=1.0, random_state=0
)


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts by chance, and keeps the labels that it was fitted to."""

    seen: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any) -> Recorder:
        self.classes_ = np.unique(y)
        self.seen.append((X[:, 0].astype(int), np.array(y)))
        return self

    def predict_proba(self, X: Any) -> Any:
        first = np.arange(len(X)) % 2 == 0
        return np.column_stack([first, ~first]).astype(float)


def test_the_p_value_counts_the_labels_as_they_are() -> None:
    permuted = np.array([0.1, 0.2, 0.3, 0.4])
    assert PermutationTest(0.2, permuted).p_value == 3 / 5
    assert PermutationTest(0.0, permuted).p_value == 1 / 5
    assert PermutationTest(0.5, permuted).p_value == 1.0


def test_the_error_is_that_of_cross_validation_and_jobs_change_nothing() -> None:
    X, y = SIM.data, SIM.target
    found = permutation_test(IndependenceRule(), X, y, 6, seed=3)
    assert found.error == cross_validate(IndependenceRule(), X, y, seed=3).error
    again = permutation_test(IndependenceRule(), X, y, 6, seed=3, n_jobs=2)
    np.testing.assert_array_equal(found.permuted, again.permuted)
    other = permutation_test(IndependenceRule(), X, y, 6, seed=4)
    assert (found.permuted != other.permuted).any()


def test_the_errors_by_chance_are_those_of_scikit_learn() -> None:
    """Their mean and spread, over permutations of either's own."""
    X, y = SIM.data, SIM.target
    found = permutation_test(GaussianNB(), X, y, 80)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    score, scores, _ = permutation_test_score(
        GaussianNB(), X, y, cv=folds, n_permutations=80, random_state=0
    )
    assert found.error == pytest.approx(1 - score)
    both = np.std(scores) * np.sqrt(2 / 80)
    assert abs(found.permuted.mean() - (1 - scores).mean()) < 4 * both
    assert found.permuted.std() == pytest.approx(scores.std(), rel=0.4)


@pytest.mark.slow
def test_without_signal_small_p_values_are_rare() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    p = [
        permutation_test(
            GaussianNB(), rng.normal(size=(24, 20)), y, 9, n_folds=3
        ).p_value
        for _ in range(40)
    ]
    # At most one in five, and three standard errors.
    assert np.mean(np.array(p) <= 0.2) < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 40)


def exchanged(groups: Any, y: Any) -> list[Any]:
    """The labels of all samples under each permutation."""
    Recorder.seen.clear()
    X = np.arange(len(y))[:, None] * 1.0
    permutation_test(Recorder(), X, y, 5, n_folds=2, groups=groups)
    found = []
    for fold in range(0, len(Recorder.seen), 2):
        labels = np.empty(len(y), dtype=int)
        for rows, own in Recorder.seen[fold : fold + 2]:
            labels[rows] = own
        found.append(labels)
    return found


def test_labels_of_whole_groups_are_permuted_between_them() -> None:
    groups = np.repeat(np.arange(8), 3)
    y = np.repeat([0, 1] * 4, 3)
    first, *permuted = exchanged(groups, y)
    np.testing.assert_array_equal(first, y)
    assert any((labels != y).any() for labels in permuted)
    for labels in permuted:
        by_group = labels.reshape(8, 3)
        assert (by_group == by_group[:, :1]).all()
        assert by_group[:, 0].sum() == 4


def test_labels_that_differ_in_groups_are_permuted_within_them() -> None:
    groups = np.repeat(np.arange(8), 2)
    y = np.tile([0, 1], 8)
    first, *permuted = exchanged(groups, y)
    np.testing.assert_array_equal(first, y)
    assert any((labels != y).any() for labels in permuted)
    for labels in permuted:
        assert (labels.reshape(8, 2).sum(axis=1) == 1).all()


def test_no_permutation_is_no_test() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        permutation_test(IndependenceRule(), SIM.data, SIM.target, 0)
