"""Held-out predictions, and what is read off them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss
from sklearn.model_selection import StratifiedKFold

from ebda import EBClassifier
from ebda.evaluation import Evaluation, cross_validate, evaluate


@pytest.fixture
def three() -> Evaluation:
    """Six samples of three classes; the third and the last are wrong."""
    probabilities = np.array(
        [
            [0.7, 0.2, 0.1],
            [0.5, 0.3, 0.2],
            [0.1, 0.8, 0.1],
            [0.2, 0.6, 0.2],
            [0.1, 0.1, 0.8],
            [0.6, 0.1, 0.3],
        ]
    )
    classes = np.array(["a", "b", "c"])
    return Evaluation(classes, np.array([0, 0, 0, 1, 2, 2]), probabilities, 5)


def data(n: int = 40, p: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.where(np.arange(n) % 3 == 0, "ill", "well")
    X = rng.normal(size=(n, p))
    X[:, :3] += 1.5 * (y == "ill")[:, None]
    return X, y


def test_the_measures_are_those_of_scikit_learn(three: Evaluation) -> None:
    truth, predicted = three.classes[three.codes], three.classes[three.predicted]
    assert three.n_errors == 2
    assert three.error == pytest.approx(1 - accuracy_score(truth, predicted))
    expected = confusion_matrix(truth, predicted, labels=three.classes)
    np.testing.assert_array_equal(three.confusion, expected)
    assert three.log_loss == pytest.approx(log_loss(truth, three.probabilities))
    assert three.chance_error == 0.5


def test_the_interval_is_wilsons(three: Evaluation) -> None:
    # Of five folds: 2.25 samples count as one.
    n, share, z = 6 / 2.25, 2 / 6, norm.ppf(0.95)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low, high = three.interval(0.9)
    assert (low, high) == pytest.approx((middle - half, middle + half))
    wide = three.interval(0.99)
    assert wide[0] < low < high < wide[1]


def test_a_certain_mistake_has_a_finite_loss() -> None:
    sure = Evaluation(
        np.array([0, 1]), np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]]), 0
    )
    assert np.isfinite(sure.log_loss)
    assert sure.interval()[1] < 1


def test_every_sample_is_predicted_by_a_model_that_has_not_seen_it() -> None:
    X, y = data()
    model = LogisticRegression()
    found = cross_validate(model, X, y, n_folds=4, seed=3)
    split = StratifiedKFold(4, shuffle=True, random_state=3).split(X, y)
    for train, test in split:
        expected = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
        np.testing.assert_allclose(found.probabilities[test], expected)
    assert not hasattr(model, "coef_")
    assert found.classes[found.codes].tolist() == y.tolist()
    assert found.n_folds == 4


@pytest.mark.slow
def test_the_seed_deals_out_the_folds() -> None:
    X, y = data()
    model = LogisticRegression()
    first, again, other = (cross_validate(model, X, y, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert (first.probabilities != other.probabilities).any()


def test_a_rare_class_does_not_decide_the_number_of_folds() -> None:
    X, y = data(10)
    y[:] = "well"
    y[:3] = "ill"
    assert cross_validate(LogisticRegression(), X, y, n_folds=5).n_folds == 5
    found = cross_validate(LogisticRegression(), X, y, n_folds=50)
    assert found.n_folds == int((y == "well").sum())
    assert len(found.codes) == len(y)
    y[1:3] = "well"
    with pytest.raises(ValueError, match=r"'ill'.* has only one"):
        cross_validate(LogisticRegression(), X, y)


@pytest.mark.parametrize("numbers", [False, True])
def test_samples_of_a_test(numbers: bool) -> None:
    X, y = data()
    if numbers:
        y = (y == "well").astype(int)
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X[:30], y[:30])
    found = evaluate(model, X[30:], y[30:])
    assert found.n_folds == 0
    assert found.error == pytest.approx(1 - model.score(X[30:], y[30:]))
    assert found.classes[found.codes].tolist() == y[30:].tolist()


def test_a_class_that_the_model_does_not_know() -> None:
    X, y = data()
    model = LogisticRegression().fit(X, y)
    for unknown in ("aaa", "mad", "zzz"):
        with pytest.raises(ValueError, match=f"sample 1 has the class .*{unknown}"):
            evaluate(model, X[:2], [y[0], unknown])
