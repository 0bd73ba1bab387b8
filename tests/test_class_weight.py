"""Weights of classes: what an error of each class costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

import ebda
from ebda import EBClassifier
from ebda.baselines import IndependenceRule

QUICK = {"covariance": "diagonal", "shrinkage": "mean"}
MODELS = [EBClassifier(**QUICK), EBClassifier(), IndependenceRule()]


def data(k: int = 2, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.integers(0, k + 2, n), k - 1)  # the last class is frequent
    X = rng.normal(size=(n, 30))
    X[:, :k] += np.eye(k)[codes]
    return X, np.array(["ill", "sick", "well"])[3 - k :][codes]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("k", [2, 3])
def test_balanced_classes_are_equally_probable(model: Any, k: int) -> None:
    X, y = data(k)
    balanced = model.set_params(class_weight="balanced").fit(X, y)
    p = balanced.predict_proba(X)
    np.testing.assert_allclose(balanced.class_prior_, 1 / k)
    model.set_params(class_weight=None, priors="uniform").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), p, rtol=1e-12)
    model.set_params(priors=None)


@pytest.mark.parametrize("model", MODELS)
def test_weights_move_the_intercept_alone(model: Any) -> None:
    X, y = data()
    plain = model.fit(X, y)
    coef, intercept, z = plain.coef_, plain.intercept_, plain.z_
    weighted = model.set_params(class_weight={"well": 1, "sick": 6}).fit(X, y)
    np.testing.assert_array_equal(weighted.coef_, coef)
    np.testing.assert_array_equal(weighted.z_, z)
    np.testing.assert_allclose(weighted.intercept_, intercept - np.log(6))
    model.set_params(class_weight=None)


def test_weights_are_costs() -> None:
    """A class is said where it is worth it, at the probability that costs ask for."""
    X, y = data()
    model = IndependenceRule()
    odds = logit(model.fit(X, y).predict_proba(X)[:, 0])
    cheap = model.set_params(class_weight={"sick": 4.0}).fit(X, y)
    np.testing.assert_array_equal(cheap.predict(X) == "sick", odds > -np.log(4))
    weighted = logit(cheap.predict_proba(X)[:, 0])
    np.testing.assert_allclose(weighted, odds + np.log(4))


def test_a_logistic_regression_of_many_samples_moves_as_far() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(20000) % 2
    X = rng.normal(size=(20000, 2)) + 0.7 * y[:, None]
    shifts = []
    for model in (IndependenceRule(), LogisticRegression(C=1e9)):
        model.set_params(class_weight=None).fit(X, y)
        before = model.intercept_[0]
        model.set_params(class_weight={0: 1, 1: 3}).fit(X, y)
        shifts.append(model.intercept_[0] - before)
    assert shifts[0] == pytest.approx(np.log(3))
    assert shifts[1] == pytest.approx(np.log(3), abs=0.02)


def test_given_probabilities_are_multiplied() -> None:
    X, y = data()
    model = IndependenceRule(priors=[0.2, 0.8], class_weight={"sick": 4}).fit(X, y)
    np.testing.assert_allclose(model.class_prior_, [0.5, 0.5])


def test_of_a_stream_weights_follow_the_counts() -> None:
    X, y = data()
    model = IndependenceRule(class_weight="balanced")
    for rows in (slice(20), slice(20, 60)):
        model.partial_fit(X[rows], y[rows], classes=["sick", "well"])
        np.testing.assert_allclose(model.class_prior_, 0.5)
    whole = IndependenceRule(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(model.intercept_, whole.intercept_)


def test_a_model_file_keeps_them(tmp_path: Path) -> None:
    X, y = data()
    for labels, weights in ((y, {"sick": 6, "well": 0.5}), (y == "sick", {True: 2.0})):
        model = EBClassifier(**QUICK, class_weight=weights).fit(X, labels)
        ebda.save(model, tmp_path / "m.ebda")
        again = ebda.load(tmp_path / "m.ebda")
        assert again.class_weight == weights
        assert list(map(type, again.class_weight)) == list(map(type, weights))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("model", MODELS)
def test_what_is_wrong_is_said(model: Any) -> None:
    X, y = data()
    for weights, words in (
        ("even", r"None, 'balanced' or a dict .*got 'even'"),
        ([1, 2], r"a dict with a weight for each label, got \[1, 2\]"),
        ({"dead": 2}, r"not among the classes: \['dead'\]; .*'sick', 'well'"),
        ({"sick": 0}, "finite and above zero"),
        ({"sick": np.inf}, "finite and above zero"),
    ):
        with pytest.raises(ValueError, match=words):
            model.set_params(class_weight=weights).fit(X, y)
    model.set_params(class_weight=None)
