"""Nearest shrunken centroids, against R's pamr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit
from sklearn.neighbors import NearestCentroid

import real_sets
from ebda.baselines import ShrunkenCentroids
from ebda.datasets import load_golub, load_khan, make_two_class

REFERENCE = Path(__file__).parent / "reference" / "pamr.json"
CASES = json.loads(REFERENCE.read_text())["cases"]


def _data(case: dict[str, Any]) -> Any:
    embedded = {"golub": load_golub, "khan": load_khan}
    if case["data"] in embedded:
        return embedded[case["data"]]().data.astype(np.float64)
    return real_sets.load(case["data"])


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["data"])
def test_predictions_are_those_of_pamr(case: dict[str, Any]) -> None:
    X, y = _data(case), np.array(case["y"])
    for values in (case, case.get("given")):
        if values is None:
            continue
        for i, threshold in enumerate(values["thresholds"]):
            model = ShrunkenCentroids(threshold).fit(X, y)
            assert model.selected_.sum() == values["nonzero"][i]
            classes = np.array(values["classes"])[:, i]
            np.testing.assert_array_equal(model.predict(X), classes)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["data"])
def test_cross_validation_is_that_of_pamr(case: dict[str, Any]) -> None:
    X, y = _data(case), np.array(case["y"])
    model = ShrunkenCentroids(cv=PredefinedSplit(case["fold"])).fit(X, y)
    np.testing.assert_allclose(model.thresholds_[:-1], case["thresholds"], atol=1e-9)
    np.testing.assert_allclose(model.errors_[:-1], case["errors"], atol=1e-12)
    assert model.threshold_ == pytest.approx(case["best"])
    assert model.selected_.nonzero()[0].tolist() == case["selected"]
    np.testing.assert_allclose(model.predict_proba(X), case["posterior"], atol=1e-8)
    if "given" in case:
        first = ShrunkenCentroids(1.0).fit(X, y)
        expected = case["given"]["posterior_at_1"]
        np.testing.assert_allclose(first.predict_proba(X), expected, atol=1e-12)


def test_centroids_are_those_of_scikit_learn() -> None:
    khan = load_khan()
    data = khan.data.astype(np.float64)
    for threshold in (0.5, 2.0):
        ours = ShrunkenCentroids(threshold, priors="uniform").fit(data, khan.target)
        theirs = NearestCentroid(shrink_threshold=threshold).fit(data, khan.target)
        np.testing.assert_allclose(ours.centroids_, theirs.centroids_)


def test_scores_are_distances_to_the_centroids() -> None:
    khan = load_khan()
    data = khan.data.astype(np.float64)
    model = ShrunkenCentroids(2.0).fit(data, khan.target)
    means = np.array([data[khan.target == k].mean(axis=0) for k in model.classes_])
    codes = np.searchsorted(model.classes_, khan.target)
    s = np.sqrt(((data - means[codes]) ** 2).sum(axis=0) / (len(data) - 4))
    distance = [
        (((data - c) / (s + np.median(s))) ** 2).sum(1) for c in model.centroids_
    ]
    score = np.log(model.class_prior_) - 0.5 * np.array(distance).T
    np.testing.assert_allclose(
        np.diff(model.decision_function(data)), np.diff(score), rtol=1e-6, atol=1e-6
    )


def test_beyond_the_largest_difference_the_class_probabilities_are_left() -> None:
    khan = load_khan()
    model = ShrunkenCentroids(1e3).fit(khan.data, khan.target)
    assert not model.selected_.any()
    share = np.unique(khan.target, return_counts=True)[1] / len(khan.target)
    np.testing.assert_allclose(model.predict_proba(khan.data[:3]), [share] * 3)


def test_it_finds_the_features_that_differ() -> None:
    sim = make_two_class(
        n_per_class=40, n_features=1000, n_signals=10, effect=2.5, random_state=0
    )
    model = ShrunkenCentroids(random_state=0).fit(sim.data, sim.target)
    assert model.selected_[:10].sum() >= 8
    assert model.selected_.sum() < 12
    new = make_two_class(
        n_per_class=500, n_features=1000, n_signals=10, effect=2.5, random_state=1
    )
    assert model.score(new.data, new.target) > 0.99
    again = ShrunkenCentroids(random_state=0).fit(sim.data, sim.target)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_features_without_variance_where_r_divides_by_zero() -> None:
    rng = np.random.default_rng(0)
    X = np.ones((20, 9))
    X[:, :2] = rng.normal(size=(20, 2))
    y = np.repeat([0, 1], 10)
    model = ShrunkenCentroids(0.1).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert not model.coef_[:, 2:].any()


def test_they_need_variation() -> None:
    with pytest.raises(ValueError, match="do not vary"):
        ShrunkenCentroids().fit(np.repeat(np.eye(2), 3, axis=0), [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="too few to estimate a variance"):
        ShrunkenCentroids().fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("threshold", [-1.0, np.inf, np.nan, "best"])
def test_bad_thresholds_are_refused(threshold: Any) -> None:
    sim = make_two_class(5, 10, n_signals=3, random_state=0)
    with pytest.raises(ValueError, match="shrink_threshold must be"):
        ShrunkenCentroids(threshold).fit(sim.data, sim.target)


def test_a_class_of_one_sample_needs_a_threshold() -> None:
    sim = make_two_class(5, 10, n_signals=3, random_state=0)
    X, y = sim.data[:6], sim.target[:6]
    with pytest.raises(ValueError, match="at least two samples in every class"):
        ShrunkenCentroids().fit(X, y)
    assert np.isfinite(ShrunkenCentroids(1.0).fit(X, y).coef_).all()
