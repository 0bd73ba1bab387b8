"""Regularised discriminant analysis, with shrunken centroids or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid

import ebda
from ebda.baselines import (
    IndependenceRule,
    LinearProgrammingDA,
    PseudoInverseLDA,
    RegularizedDA,
    SparseLDA,
)
from ebda.baselines.held_out import amounts, fewest
from ebda.baselines.regularized_covariance import principal_axes, row_space
from ebda.datasets import load_khan, make_two_class
from ebda.sizes import override

REFERENCE = Path(__file__).parent / "reference"
RDA_CASES = json.loads((REFERENCE / "rda.json").read_text())["cases"]


def curved(n: int, p: int, seed: int = 0, n_classes: int = 2) -> tuple[Any, Any]:
    """Classes with covariances of their own, the same for any seed."""
    fixed, rng = np.random.default_rng(7), np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), n)
    mixing = np.eye(p) + 0.2 * fixed.normal(size=(p, p))
    X = rng.normal(size=(len(codes), p)) @ mixing
    X *= fixed.uniform(0.5, 2, size=(n_classes, p))[codes]
    X[:, 0] += codes
    return X + 3.0, codes


def joint_by_definition(
    X: Any, y: Any, new: Any, pooling: float, shrinkage: float, diagonal: bool
) -> Any:
    """Friedman's equations, with dense matrices."""
    n, p = X.shape
    classes = np.unique(y)
    scatters = [(len(X[y == k]) - 1) * np.cov(X[y == k].T) for k in classes]
    out = []
    for k, own in zip(classes, scatters, strict=True):
        count = (y == k).sum()
        df = (1 - pooling) * (count - 1) + pooling * (n - len(classes))
        covariance = ((1 - pooling) * own + pooling * sum(scatters)) / df
        trace = np.trace(covariance) / p
        target = np.diag(np.diag(covariance)) if diagonal else trace * np.eye(p)
        covariance = (1 - shrinkage) * covariance + shrinkage * target
        mean = X[y == k].mean(axis=0)
        density = multivariate_normal(mean, covariance).logpdf(new)
        out.append(np.log(count / n) + density)
    return np.array(out).T


# Corners


def test_without_any_regularisation_it_is_qda() -> None:
    X, y = curved(30, 6)
    ours = RegularizedDA(pooling=0, shrinkage=0).fit(X, y)
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    # scikit-learn divides by n - 1, and since version 1.8 by n.
    ratio = theirs.covariance_[0][0, 0] / X[:30, 0].var(ddof=1)
    log_det = np.diff([np.linalg.slogdet(c)[1] for c in theirs.covariance_]) / 2
    np.testing.assert_allclose(
        ours.decision_function(X) + log_det,
        ratio * (theirs.decision_function(X) + log_det),
        rtol=1e-8,
    )
    assert not hasattr(ours, "coef_")


def test_pooled_it_is_lda() -> None:
    X, y = curved(30, 6)
    ours = RegularizedDA(pooling=1, shrinkage=0).fit(X, y)
    lda = PseudoInverseLDA().fit(X, y)
    np.testing.assert_allclose(ours.coef_, lda.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, lda.intercept_, rtol=1e-8)


def test_pooled_and_diagonal_it_is_the_independence_rule() -> None:
    X, y = curved(10, 40)
    ours = RegularizedDA(pooling=1, shrinkage=1, target="diagonal").fit(X[5:], y[5:])
    rule = IndependenceRule().fit(X[5:], y[5:])
    np.testing.assert_allclose(ours.coef_, rule.coef_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, rule.intercept_, rtol=1e-8)


def test_pooled_and_spherical_it_is_the_nearest_centroid() -> None:
    X, y = curved(10, 40, n_classes=3)
    ours = RegularizedDA(pooling=1, shrinkage=1, priors="uniform").fit(X, y)
    new = curved(50, 40, seed=1, n_classes=3)[0]
    theirs = NearestCentroid().fit(X, y)
    assert ours.predict(new).tolist() == theirs.predict(new).tolist()


# Definition


@pytest.mark.parametrize("shape", [(12, 5), (6, 30)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("target", ["identity", "diagonal"])
@pytest.mark.parametrize(("pooling", "shrinkage"), [(0.3, 0.2), (0, 0.6), (1, 0.1)])
def test_it_is_its_definition(
    shape: Any, n_classes: int, target: str, pooling: float, shrinkage: float
) -> None:
    X, y = curved(*shape, n_classes=n_classes)
    X, y = X[2:], y[2:]
    new = curved(*shape, seed=1, n_classes=n_classes)[0]
    model = RegularizedDA(pooling, shrinkage, target).fit(X, y)
    joint = joint_by_definition(X, y, new, pooling, shrinkage, target == "diagonal")
    want = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_log_proba(new), want, rtol=1e-7, atol=1e-9)
    with override(score_elements=7 * X.shape[1]):
        again = RegularizedDA(pooling, shrinkage, target).fit(X, y)
        np.testing.assert_allclose(
            again.decision_function(new), model.decision_function(new), rtol=1e-12
        )


@pytest.mark.parametrize("target", ["identity", "diagonal"])
def test_held_out_errors_are_those_of_fits_without_the_fold(target: str) -> None:
    """Cross-validation works in the space of all samples; a fold of its own agrees."""
    X, y = curved(12, 20)
    X[:, 3] = np.where(np.arange(24) == 5, 1.0, 0.0)  # constant without sample 5
    grid: dict[str, Any] = {"pooling": [0, 0.4, 1], "shrinkage": [0, 0.2, 1]}
    model = RegularizedDA(**grid, target=target, cv=4, random_state=0).fit(X, y)
    want = np.zeros((3, 3))
    for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        for i, pooling in enumerate(grid["pooling"]):
            for j, shrinkage in enumerate(grid["shrinkage"]):
                part = RegularizedDA(pooling, shrinkage, target, priors=[0.5, 0.5])
                try:
                    part.fit(X[train], y[train])
                except ValueError:
                    want[i, j] = np.inf
                else:
                    want[i, j] += (part.predict(X[test]) != y[test]).sum()
    np.testing.assert_array_equal(model.errors_, want)
    assert np.isinf(model.errors_[:, 0]).all()
    least = np.argwhere(want == want.min())[-1]
    assert model.pooling_ == grid["pooling"][least[0]]
    assert model.shrinkage_ == grid["shrinkage"][least[1]]


@pytest.mark.parametrize("shape", [(9, 30), (30, 9)])
def test_axes_are_eigenvectors(shape: tuple[int, int]) -> None:
    A = np.random.default_rng(0).normal(size=shape)
    axes, eigenvalues = principal_axes(A)
    np.testing.assert_allclose(axes @ axes.T, np.eye(9), atol=1e-10)
    np.testing.assert_allclose((axes.T * eigenvalues) @ axes, A.T @ A, atol=1e-9)


def test_the_row_space_keeps_distances() -> None:
    X = curved(4, 50)[0]
    points = row_space(X)
    assert points.shape == (8, 7)
    for i in range(8):
        np.testing.assert_allclose(
            np.linalg.norm(points - points[i], axis=1), np.linalg.norm(X - X[i], axis=1)
        )


# Recovery of the truth


def test_unequal_covariances_are_found() -> None:
    X, y = curved(60, 8)
    new, labels = curved(500, 8, seed=1)
    model = RegularizedDA(random_state=0).fit(X, y)
    linear = RegularizedDA(pooling=1, random_state=0).fit(X, y)
    assert model.pooling_ < 1
    assert model.score(new, labels) > linear.score(new, labels) + 0.1


def test_equal_covariances_are_pooled() -> None:
    sim = make_two_class(30, 15, n_signals=5, effect=1, rho=0.8, random_state=0)
    assert RegularizedDA(random_state=0).fit(sim.data, sim.target).pooling_ > 0.5


# Shrunken centroids


@pytest.mark.parametrize(
    "case", RDA_CASES, ids=lambda c: f"{c['data']} {c['regularization']}"
)
def test_shrunken_centroids_are_those_of_r(case: dict[str, Any]) -> None:
    """Scores and features of ``rda`` for all amounts and thresholds.

    The data are in such units that R's variances, with denominator N, are 1: on
    average for "S", each for "R". Here they have N - K, which the factor accounts for;
    other units change nothing.
    """
    X, y, new = (np.array(case[name]) for name in ("X", "y", "new"))
    diagonal = case["regularization"] == "R"
    unit = np.linspace(1, 4, X.shape[1]) if diagonal else 5.0
    factor = np.sqrt(len(y) / (len(y) - len(np.unique(y))))
    prior = np.log(np.bincount(y)[1:] / len(y))
    for i, alpha in enumerate(case["alpha"]):
        for j, delta in enumerate(case["delta"]):
            model = RegularizedDA(
                shrinkage=1 - alpha,
                threshold=delta / factor,
                target="diagonal" if diagonal else "identity",
                centroids=True,
            ).fit(unit * X, y)
            scores = (np.array(case["scores"])[i, j] - prior) / factor**2 + prior
            if len(prior) == 2:
                scores = np.diff(scores)[:, 0]
            found = model.decision_function(unit * new)
            np.testing.assert_allclose(found, scores, rtol=1e-8, atol=1e-9)
            assert (
                model.selected_.tolist() == (np.array(case["genes"])[i, j] > 0).tolist()
            )


@pytest.mark.parametrize("target", ["identity", "diagonal"])
def test_without_threshold_centroids_are_pooled(target: str) -> None:
    X, y = curved(8, 30, n_classes=3)
    plain = RegularizedDA(1, 0.3, target).fit(X, y)
    model = RegularizedDA(None, 0.3, target, centroids=True, threshold=0).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(X), rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("target", ["identity", "diagonal"])
def test_thresholds_are_chosen_and_leave_features_out(target: str) -> None:
    khan = load_khan()
    X, y = khan.data[:, :300].astype(float), khan.target
    model = RegularizedDA(target=target, centroids=True, cv=4, random_state=0).fit(X, y)
    assert 0 < model.selected_.sum() < 200
    assert model.threshold_ > 0
    assert np.isfinite(model.errors_[1:]).all()
    least = model.errors_.min()
    assert least == model.errors_[:, ::-1].min()
    other = RegularizedDA(
        None, model.shrinkage_, target, centroids=True, threshold=model.threshold_
    ).fit(X, y)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert model.score(X, y) > 0.9


# Robustness


@pytest.mark.parametrize("centroids", [False, True])
@pytest.mark.parametrize("target", ["identity", "diagonal"])
def test_order_of_features_units_and_shifts_change_nothing(
    target: str, centroids: bool
) -> None:
    X, y = curved(10, 25)
    model = RegularizedDA(target=target, centroids=centroids, random_state=0)
    want = model.fit(X, y).decision_function(X)
    order = np.random.default_rng(0).permutation(25)
    others = [X[:, order], 1e5 * X, X - 2.0]
    if target == "diagonal":
        others.append(X * np.linspace(1, 9, 25))
    for other in others:
        got = model.fit(other, y).decision_function(other)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_constant_features_have_no_part_in_a_diagonal_target() -> None:
    X, y = curved(10, 25)
    X[:, 4] = 0.1
    X[:, 7] = y
    for pooling in (0.5, 1):
        model = RegularizedDA(pooling, 0.5, "diagonal").fit(X, y)
        kept = np.delete(X, [4, 7], axis=1)
        other = RegularizedDA(pooling, 0.5, "diagonal").fit(kept, y)
        np.testing.assert_allclose(
            model.decision_function(X), other.decision_function(kept)
        )
        assert model.selected_.sum() == 23


def test_a_singular_covariance_is_an_error() -> None:
    X, y = curved(6, 30)
    for parameters in ({"pooling": 0, "shrinkage": 0}, {"pooling": 1, "shrinkage": 0}):
        with pytest.raises(ValueError, match="singular; allow larger amounts"):
            RegularizedDA(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="singular; allow a shrinkage"):
        RegularizedDA(shrinkage=0, threshold=0, centroids=True).fit(X, y)
    with pytest.raises(ValueError, match="singular"):
        RegularizedDA(pooling=0, shrinkage=0.5).fit(X[5:], y[5:])
    with pytest.raises(ValueError, match="singular"):
        RegularizedDA(pooling=[0, 1], shrinkage=0, cv=3).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pooling": 1.5}, "pooling must be None, a number .* between 0 and 1"),
        ({"shrinkage": "auto"}, "shrinkage must be"),
        ({"target": "zero"}, "target must be one of"),
        ({"centroids": True, "threshold": -1}, "threshold must be .* zero or more"),
        ({"centroids": True, "pooling": 0.5}, "shrunken centroids need pooling=1"),
        ({"cv": 1}, "cv at least 2"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    X, y = curved(6, 5)
    with pytest.raises(ValueError, match=message):
        RegularizedDA(**parameters).fit(X, y)


def test_it_refuses_what_it_cannot_take() -> None:
    X, y = curved(6, 5)
    with pytest.raises(ValueError, match="two samples in every class"):
        RegularizedDA().fit(X[5:], y[5:])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        RegularizedDA().fit(sparse.csr_matrix(X), y)
    model = RegularizedDA(pooling=0.5, shrinkage=0.5).fit(X, y)
    with pytest.raises(ValueError, match="NaN or infinity in column 2"):
        model.predict(np.where(np.arange(5) == 2, np.nan, X))
    with pytest.raises(TypeError, match="not linear"):
        ebda.to_onnx(model)
    assert model.transform(X).shape == (12, 1)
    assert len(model.get_feature_names_out()) == 1


def test_a_second_fit_forgets_the_first() -> None:
    X, y = curved(10, 5)
    model = RegularizedDA(pooling=1, shrinkage=0.5).fit(X, y)
    model.set_params(pooling=0.5).fit(X, y)
    assert not hasattr(model, "coef_")
    model.set_params(pooling=1).fit(X, y)
    assert not hasattr(model, "axes_")
    assert model.coef_.shape == (1, 5)


@pytest.mark.parametrize(
    "model",
    [
        RegularizedDA(random_state=0),
        RegularizedDA(target="diagonal", random_state=0),
        RegularizedDA(centroids=True, random_state=0),
        SparseLDA(random_state=0),
        LinearProgrammingDA(random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_fold_without_variation_is_an_error(model: Any) -> None:
    X, y = np.zeros((20, 3)), np.arange(20) % 2
    X[4, 0] = 1.0
    with pytest.raises(ValueError, match="without the samples of a fold no feature"):
        model.fit(X, y)


def test_amounts_and_ties() -> None:
    assert amounts("a", None, (0.5, 0.1)).tolist() == [0.1, 0.5]
    assert amounts("a", 0.3, ()).tolist() == [0.3]
    with pytest.raises(ValueError, match="a must be"):
        amounts("a", [], ())
    assert fewest(np.array([[1.0, 1.0], [1.0, np.inf]])) == (1, 0)
