"""The Bayes rule with nonparametric priors of the class means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

import ebda
from ebda import EBClassifier
from ebda.baselines import DickerZhao, IndependenceRule
from ebda.datasets import load_golub, load_khan, make_two_class
from ebda.priors import NPMLE
from ebda.sizes import override


def draw(seed: int = 0, n: int = 25, p: int = 1000) -> tuple[Any, Any, Any, Any]:
    """Training and test samples of two classes with differences in a twentieth."""
    rng = np.random.default_rng(seed)
    means = np.zeros((2, p))
    means[1, : p // 20] = rng.choice([-0.7, 0.7], p // 20)
    means += 5 * rng.normal(size=p)
    scale = rng.uniform(0.5, 2, p)
    y = np.repeat([0, 1], n)
    labels = np.repeat([0, 1], 200)
    X = (means[y] + rng.normal(size=(2 * n, p))) * scale
    return X, y, (means[labels] + rng.normal(size=(400, p))) * scale, labels


def plain_rule(**parameters: Any) -> EBClassifier:
    return EBClassifier(
        shrinkage="mean",
        variance="pooled",
        covariance="diagonal",
        calibrate=False,
        **parameters,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_rule_is_its_definition(n_classes: int) -> None:
    """Ratios of densities of a new sample given the data, with normal densities."""
    rng = np.random.default_rng(0)
    y = np.append(np.arange(29) % n_classes, 0)
    X = 3 + 2 * rng.normal(size=(30, 12)) + np.outer(y, np.linspace(0, 2, 12))
    new = X[:5] + rng.normal(size=(5, 12))
    grid = np.array([-3.0, 0.0, 1.0, 4.0])
    model = DickerZhao(grid=grid).fit(X, y)

    counts = np.bincount(y)
    means = np.array([X[y == k].mean(axis=0) for k in range(n_classes)])
    sd = np.sqrt(((X - means[y]) ** 2).sum(axis=0) / (30 - n_classes))
    joint = np.tile(np.log(counts / 30), (5, 1))
    for k in range(n_classes):
        if n_classes == 2:
            error = np.sqrt(1 / counts[0] + 1 / counts[1])
            z = (means[1] - means[0]) / sd / error
            shift = (np.array([-counts[1], counts[0]]) / 30 * error)[k]
        else:
            shift = np.sqrt(1 / counts[k] - 1 / 30)
            z = (means[k] - X.mean(axis=0)) / sd / shift
        prior = NPMLE(grid=grid).fit(z).prior_
        weights = prior.weights * norm.pdf(z[:, None], prior.atoms)
        weights /= weights.sum(axis=1, keepdims=True)
        t = (new - X.mean(axis=0)) / sd
        density = norm.pdf(t[:, :, None], shift * prior.atoms, np.sqrt(1 + 1 / 30))
        joint[:, k] += np.log((density * weights).sum(axis=2)).sum(axis=1)
    want = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_log_proba(new), want, rtol=1e-8, atol=1e-9)
    assert not hasattr(model, "coef_")


def test_the_linear_rule_is_the_classifier_with_this_prior() -> None:
    X, y, new, _ = draw()
    ours, same = DickerZhao("linear").fit(X, y), plain_rule(prior="npmle").fit(X, y)
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-10)
    np.testing.assert_allclose(ours.intercept_, same.intercept_, rtol=1e-10)
    np.testing.assert_allclose(ours.posterior_mean_, same.posterior_mean_)
    np.testing.assert_array_equal(ours.atoms_, same.prior_.atoms)
    np.testing.assert_array_equal(ours.weights_, same.prior_.weights)
    np.testing.assert_array_equal(ours.predict(new), same.predict(new))


def test_the_bayes_rule_is_the_classifier_where_the_posterior_is_a_point() -> None:
    X, y, new, _ = draw()
    ours = DickerZhao(grid=[1.5]).fit(X, y)
    same = plain_rule(prior=NPMLE(grid=[1.5])).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(new) * (1 + 1 / 50), same.decision_function(new)
    )


def test_the_rules_come_together_with_many_samples() -> None:
    X, y, new, _ = draw(n=2000, p=50)
    bayes, linear = DickerZhao().fit(X, y), DickerZhao("linear").fit(X, y)
    np.testing.assert_allclose(
        bayes.decision_function(new), linear.decision_function(new), atol=0.15
    )


@pytest.mark.slow
def test_it_is_well_ahead_of_no_prior() -> None:
    errors = []
    for seed in range(5):
        X, y, new, labels = draw(seed)
        models = DickerZhao(), DickerZhao("linear"), IndependenceRule()
        errors.append([1 - m.fit(X, y).score(new, labels) for m in models])
    bayes, linear, none = np.mean(errors, axis=0)
    assert bayes < none - 0.02
    assert abs(bayes - linear) < 0.01


def test_real_data() -> None:
    golub = load_golub()
    train = golub.split == "train"
    X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    model = DickerZhao().fit(X[train], golub.target[train])
    assert model.score(X[~train], golub.target[~train]) > 0.9
    khan = load_khan()
    several = DickerZhao().fit(khan.data, khan.target)
    assert several.score(khan.data, khan.target) > 0.95
    assert several.predict_proba(khan.data).shape == (len(khan.data), 4)
    assert several.z_.shape == several.posterior_mean_.shape == (4, 2308)
    sums = np.bincount(several.atom_contrasts_, weights=several.weights_)
    np.testing.assert_allclose(sums, 1)


def test_units_order_blocks_and_constants_change_nothing() -> None:
    X, y, new, _ = draw(p=60)
    want = DickerZhao().fit(X, y).decision_function(new)
    order = np.random.default_rng(0).permutation(60)
    for change in (lambda Z: 7 * Z - 3, lambda Z: Z[:, order]):
        got = DickerZhao().fit(change(X), y).decision_function(change(new))
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    wider = np.column_stack([X, np.full(50, 2.0)])
    model = DickerZhao().fit(wider, y)
    assert model.selected_.tolist() == [True] * 60 + [False]
    got = model.decision_function(np.column_stack([new, np.full(400, 9.0)]))
    np.testing.assert_allclose(got, want, rtol=1e-9)
    with override(score_elements=1000):
        got = DickerZhao().fit(X, y).decision_function(new)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_far_samples_have_finite_scores() -> None:
    X, y, new, _ = draw(p=60)
    model = DickerZhao().fit(X, y)
    assert np.isfinite(model.predict_log_proba(1e6 * new)).all()


def test_it_refuses_what_it_cannot_take() -> None:
    X, y, _, _ = draw(p=20)
    with pytest.raises(ValueError, match="rule must be one of"):
        DickerZhao("quadratic").fit(X, y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        DickerZhao().fit(sparse.csr_matrix(X), y)
    with pytest.raises(TypeError, match="not linear"):
        ebda.to_onnx(DickerZhao().fit(X, y))
    sim = make_two_class(10, 30, n_signals=3, random_state=0)
    model = DickerZhao("linear").fit(sim.data, sim.target)
    assert model.set_params(rule="bayes").fit(sim.data, sim.target)
    assert not hasattr(model, "coef_")
