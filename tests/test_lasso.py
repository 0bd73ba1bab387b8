"""The lasso with its penalty by cross-validation, against R's glmnet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit, StratifiedKFold

from ebda.baselines import LassoLogistic
from ebda.baselines.lasso_path import fit_path
from ebda.datasets import load_golub, make_two_class
from real_sets import load

# Values of a fit that has converged: by default glmnet stops early, and its
# cross-validated deviance is off by up to 0.7 % at the end of the path.
REFERENCE = Path(__file__).parent / "reference" / "glmnet.json"
CASES = json.loads(REFERENCE.read_text())["cases"]


def _data(case: dict[str, Any]) -> Any:
    if "X" in case:
        return np.array(case["X"])
    if case["data"] == "golub":
        return load_golub().data.astype(np.float64)
    return load(case["data"])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["data"])
def test_cross_validation_is_that_of_glmnet(case: dict[str, Any]) -> None:
    """Path, deviances, both lambdas and the coefficients there, with R's folds."""
    X, y = _data(case), case["y"]
    model = LassoLogistic(cv=PredefinedSplit(case["fold"])).fit(X, y)
    np.testing.assert_allclose(model.lambdas_, case["lambda"], rtol=1e-10)
    np.testing.assert_allclose(model.deviances_, case["cvm"], rtol=1e-4)
    np.testing.assert_allclose(model.deviance_se_, case["cvsd"], rtol=2e-4)
    assert model.lambda_ == pytest.approx(case["l1se"], rel=1e-10)
    least = model.lambdas_[np.argmin(model.deviances_)]
    assert least == pytest.approx(case["lmin"], rel=1e-10)
    _check_coefficients(model, case["coef1se"])
    if "X" in case:
        model = LassoLogistic(rule="min", cv=PredefinedSplit(case["fold"])).fit(X, y)
        assert model.lambda_ == least
        _check_coefficients(model, case["coefmin"])


def _check_coefficients(model: LassoLogistic, case: dict[str, Any]) -> None:
    expected = np.zeros(model.n_features_in_)
    expected[case["features"]] = case["values"]
    largest = np.abs(expected).max()
    np.testing.assert_allclose(model.coef_[0], expected, atol=1e-5 * largest)
    assert model.intercept_[0] == pytest.approx(case["intercept"], abs=1e-5)


@pytest.fixture(scope="module")
def sim() -> Any:
    return make_two_class(
        n_per_class=20, n_features=100, n_signals=10, effect=1.5, random_state=0
    )


def test_a_path_ends_where_nothing_is_left_to_explain() -> None:
    sim = make_two_class(
        n_per_class=40, n_features=5, n_signals=5, effect=3, random_state=0
    )
    codes = (sim.target == "b").astype(np.intp)
    path = fit_path(sim.data, codes, 100, 1e-8)
    assert 5 < len(path.lambdas) < 100
    margin = np.where(codes == 1, 1, -1)[:, None] * path.scores(sim.data, path.lambdas)
    explained = 1 - np.logaddexp(0, -margin).mean(axis=0) / np.log(2)
    assert explained[-1] > 0.999
    assert (explained[:-1] <= 0.999).all()


def test_scores_between_lambdas_are_interpolated(sim: Any) -> None:
    path = fit_path(sim.data, (sim.target == "b").astype(np.intp), 20, 1e-8)
    first, second = path.lambdas[5:7]
    ends = path.scores(sim.data, path.lambdas[5:7])
    between = path.scores(sim.data, np.array([0.3 * first + 0.7 * second]))
    np.testing.assert_allclose(between[:, 0], ends @ [0.3, 0.7])
    beyond = path.scores(sim.data, np.array([2.0, 0.5]) * path.lambdas[[0, -1]])
    np.testing.assert_allclose(beyond, path.scores(sim.data, path.lambdas[[0, -1]]))


def test_units_of_the_features_do_not_matter(sim: Any) -> None:
    model = LassoLogistic(random_state=0, n_lambdas=30, cv=3)
    first = model.fit(sim.data, sim.target).decision_function(sim.data)
    unit = np.logspace(-6, 6, 100)
    second = model.fit(sim.data * unit, sim.target).decision_function(sim.data * unit)
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_folds_can_be_given(sim: Any) -> None:
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    number = LassoLogistic(cv=4, random_state=3, n_lambdas=20)
    splits = list(folds.split(sim.data, sim.target))
    for cv in (folds, splits):
        given = LassoLogistic(cv=cv, n_lambdas=20).fit(sim.data, sim.target)
        expected = number.fit(sim.data, sim.target).deviances_
        np.testing.assert_array_equal(given.deviances_, expected)


def test_bad_folds_are_refused(sim: Any) -> None:
    alone = PredefinedSplit((sim.target == "a").astype(int))
    with pytest.raises(ValueError, match="has no sample of one of the classes"):
        LassoLogistic(cv=alone).fit(sim.data, sim.target)
    with pytest.raises(ValueError, match="cv at least 2"):
        LassoLogistic(cv=1).fit(sim.data, sim.target)


def test_without_any_difference_no_feature_is_selected() -> None:
    X = np.tile([[1.0, -1.0], [-1.0, 1.0]], (12, 1))
    y = np.repeat([0, 1], 12)
    model = LassoLogistic(cv=[(np.arange(24), np.arange(24))] * 2).fit(X, y)
    assert not model.selected_.any()
    np.testing.assert_allclose(model.predict_proba(X), 0.5)
