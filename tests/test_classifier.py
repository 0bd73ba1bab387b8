"""EBClassifier: the rule, its identities, scikit-learn, and bad input."""

from __future__ import annotations

import pickle
import re
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ebda import EBClassifier, theory
from ebda.baselines import GreenshteinPark, IndependenceRule
from ebda.cached import Later
from ebda.covariance import COVARIANCES
from ebda.datasets import load_khan, make_two_class
from ebda.paper.methods import PaperRule
from ebda.priors import DirichletProcess, DiscretePrior

# The paper's model: nothing is moderated, correlated or compared.
PAPER: dict[str, Any] = {
    "variance": "pooled",
    "covariance": "diagonal",
    "shrinkage": "mean",
    "calibrate": False,
}

FITTED = (
    "coef_",
    "intercept_",
    "z_",
    "posterior_mean_",
    "prob_zero_",
    "selected_",
    "class_prior_",
)


def data(
    n: tuple[int, ...] = (12, 9), p: int = 60, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(n)), n)
    X = rng.normal(size=(len(y), p)) * rng.uniform(0.5, 3, p) + rng.normal(size=p)
    for k in range(1, len(n)):
        X[y == k, 5 * k : 5 * k + 5] += 3
    return X, y


def assert_same_model(a: EBClassifier, b: EBClassifier, rtol: float = 1e-7) -> None:
    np.testing.assert_array_equal(a.classes_, b.classes_)
    for name in FITTED:
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=rtol, atol=1e-9, err_msg=name
        )


# The rule


def test_two_class_rule_is_the_papers_equation() -> None:
    X, y = data()
    prior = DiscretePrior([-2, 0, 3], [0.1, 0.7, 0.2])
    model = PaperRule(prior=prior, priors="uniform", **PAPER).fit(X, y)
    first, second = X[y == 0], X[y == 1]
    d = second.mean(0) - first.mean(0)
    n1, n2 = len(first), len(second)
    squares = ((first - first.mean(0)) ** 2).sum(0)
    squares += ((second - second.mean(0)) ** 2).sum(0)
    s = np.sqrt(squares / (n1 + n2 - 2))
    z = d / (s * np.sqrt(1 / n1 + 1 / n2))
    eta = prior.posterior(z).mean
    score = ((X - (first.mean(0) + second.mean(0)) / 2) / s) @ eta
    np.testing.assert_allclose(model.z_, z)
    ratio = model.decision_function(X) / score
    np.testing.assert_allclose(ratio, ratio[0])
    assert ratio[0] > 0


def test_decision_is_linear_in_the_units_of_the_data() -> None:
    for n in ((12, 9), (8, 7, 6)):
        X, y = data(n)
        model = EBClassifier().fit(X, y)
        decision = X @ model.coef_.T + model.intercept_
        expected = decision[:, 0] if len(n) == 2 else decision
        np.testing.assert_allclose(model.decision_function(X), expected)
        np.testing.assert_allclose(model.transform(X), decision)


@pytest.mark.parametrize("priors", [None, "uniform", [0.2, 0.8]])
def test_without_shrinkage_it_is_linear_naive_bayes(priors: Any) -> None:
    """A very wide prior does not shrink: the log-odds of normals of one variance."""
    X, y = data(p=20)
    wide = DiscretePrior(np.linspace(-60, 60, 24_001), np.ones(24_001))
    model = PaperRule(prior=wide, priors=priors, **PAPER).fit(X, y)
    bayes = GaussianNB(priors=model.class_prior_).fit(X, y)
    df = len(y) - 2
    bayes.var_[:] = (
        sum(((X[y == k] - X[y == k].mean(0)) ** 2).sum(0) for k in (0, 1)) / df
    )
    log_odds = np.diff(bayes.predict_joint_log_proba(X), axis=1)[:, 0]
    np.testing.assert_allclose(model.decision_function(X), log_odds, rtol=1e-6)
    # The unbiased midpoint: the divergence of eta = z is the number of features.
    moved = EBClassifier(prior=wide, priors=priors, **PAPER).fit(X, y)
    np.testing.assert_allclose(moved.coef_, model.coef_)
    np.testing.assert_allclose(
        moved.intercept_ - model.intercept_, 20 * (1 / 9 - 1 / 12) / 2, rtol=1e-6
    )


def test_shrinkages_of_the_paper() -> None:
    X, y = data()
    fits = {
        name: EBClassifier(**{**PAPER, "shrinkage": name}, zero_threshold=0.4).fit(X, y)
        for name in ("mean", "sparse", "hard")
    }
    mean = fits["mean"]
    zero = mean.prob_zero_ > 0.4
    assert 0 < zero.sum() < len(zero)
    weight = mean.coef_[0]
    np.testing.assert_array_equal(fits["sparse"].coef_[0], np.where(zero, 0, weight))
    np.testing.assert_array_equal(fits["hard"].selected_, ~zero)
    np.testing.assert_allclose(
        fits["hard"].coef_[0, ~zero],
        (weight * mean.z_ / mean.posterior_mean_)[~zero],
    )


def test_a_feature_that_cannot_be_told_from_zero_gets_no_weight() -> None:
    X, y = data()
    model = EBClassifier(prior=DiscretePrior([0], [1])).fit(X, y)
    assert not model.selected_.any()
    np.testing.assert_allclose(model.predict_proba(X), [[12 / 21, 9 / 21]] * 21)


def test_threshold_of_one_keeps_everything_and_of_zero_nothing() -> None:
    X, y = data()
    rule = EBClassifier(shrinkage="sparse", covariance="diagonal")
    assert clone(rule).set_params(zero_threshold=1).fit(X, y).selected_.all()
    none = rule.set_params(zero_threshold=0).fit(X, y)
    assert none.selected_.sum() == (none.prob_zero_ == 0).sum()


def test_error_comes_near_the_limit_on_simulated_data() -> None:
    sim = make_two_class(n_signals=200, effect=2.0, variance=12.5, random_state=0)
    model = EBClassifier(priors="uniform").fit(sim.data, sim.target)
    error = theory.error_rate(
        model.coef_, model.intercept_, sim.means[0], sim.means[1], sim.variance
    )
    assert error < 0.07  # no shrinkage: 0.14; the limit with known variances: 0.028


@pytest.mark.slow
def test_many_classes_on_real_data() -> None:
    khan = load_khan()
    train = khan.split == "train"
    model = EBClassifier().fit(khan.data[train], khan.target[train])
    assert model.coef_.shape == (4, 2308)
    assert model.score(khan.data[~train], khan.target[~train]) >= 0.8


def test_class_priors() -> None:
    X, y = data((15, 5))
    base = EBClassifier(priors="uniform").fit(X, y)
    for priors, odds in ((None, 1 / 3), ("empirical", 1 / 3), ([0.1, 0.9], 9)):
        model = EBClassifier(priors=priors).fit(X, y)
        np.testing.assert_allclose(model.intercept_ - base.intercept_, np.log(odds))


# Probabilities


@pytest.mark.slow
@given(scale=st.floats(1e-3, 1e6), n_classes=st.integers(2, 4))
def test_probabilities_are_finite_and_agree_with_predict(
    scale: float, n_classes: int
) -> None:
    X, y = data((6,) * n_classes, p=30)
    model = EBClassifier().fit(X, y)
    far = X * scale
    proba = model.predict_proba(far)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isfinite(model.predict_log_proba(far)).all()
    np.testing.assert_array_equal(model.classes_[proba.argmax(1)], model.predict(far))


# Ways to give the data


@pytest.mark.slow
@pytest.mark.parametrize("n", [(12, 9), (8, 7, 6)])
@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.csr_array,
        lambda X: X[:, ::-1][:, ::-1],
        lambda X: pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])]),
        lambda X: pl.DataFrame(X, schema=[f"g{j}" for j in range(X.shape[1])]),
        lambda X: X.tolist(),
    ],
)
def test_the_container_does_not_matter(n: tuple[int, ...], convert: Any) -> None:
    X, y = data(n)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    reference = EBClassifier().fit(X, y)
    other = EBClassifier().fit(convert(X), y)
    assert_same_model(reference, other)
    np.testing.assert_allclose(
        other.predict_proba(convert(X)), reference.predict_proba(X), rtol=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.int64])
def test_numbers_of_any_type_are_summed_in_float64(dtype: Any) -> None:
    X, y = data()
    X = np.abs(np.rint(X * 10)).astype(dtype)
    assert_same_model(
        EBClassifier().fit(X.astype(np.float64), y), EBClassifier().fit(X, y), 1e-12
    )
    assert EBClassifier().fit(X, y).predict_proba(X).dtype == np.float64


def test_names_of_features_are_kept_and_checked() -> None:
    X, y = data()
    frame = pd.DataFrame(X).rename(columns=lambda j: f"g{j}")
    model = EBClassifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_duplicated_feature_names_are_named() -> None:
    X, y = data()
    frame = pd.DataFrame(X).rename(columns=lambda j: f"g{j // 2}")
    with pytest.raises(ValueError, match=r"'g0' \(2 times\), .* and 25 more"):
        EBClassifier().fit(frame, y)
    assert EBClassifier().fit(frame.to_numpy(), y).predict(X).shape == y.shape


def test_order_of_features_and_samples_does_not_matter() -> None:
    X, y = data()
    rng = np.random.default_rng(1)
    features, samples = rng.permutation(X.shape[1]), rng.permutation(len(y))
    reference = EBClassifier().fit(X, y)
    shuffled = EBClassifier().fit(X[samples][:, features], y[samples])
    np.testing.assert_allclose(shuffled.coef_, reference.coef_[:, features], rtol=1e-6)
    np.testing.assert_allclose(shuffled.intercept_, reference.intercept_, rtol=1e-6)


def test_a_common_unit_does_not_matter() -> None:
    """Moderated variances are shrunken to each other, so the features share a unit."""
    X, y = data()
    reference = EBClassifier().fit(X, y)
    for unit in (1e-8, 3.0, 1e8):
        scaled = EBClassifier().fit(X * unit + 7 * unit, y)
        np.testing.assert_allclose(
            scaled.decision_function(X * unit + 7 * unit),
            reference.decision_function(X),
            rtol=1e-6,
        )


@pytest.mark.parametrize("shrinkage", ["mean", "auto"])
def test_units_of_features_do_not_matter_to_pooled_variances(shrinkage: str) -> None:
    X, y = data()
    units = np.geomspace(1e-8, 1e8, X.shape[1])
    rule = EBClassifier(**{**PAPER, "shrinkage": shrinkage})
    reference = clone(rule).fit(X, y)
    scaled = rule.fit(X * units + 7 * units, y)
    np.testing.assert_allclose(
        scaled.decision_function(X * units + 7 * units),
        reference.decision_function(X),
        rtol=1e-6,
    )


# Streams and weights


@pytest.mark.slow
@given(cuts=st.lists(st.integers(1, 20), max_size=4), order=st.randoms())
def test_any_stream_of_batches_gives_the_model_of_one_fit(
    cuts: list[int], order: Any
) -> None:
    X, y = data()
    rows = np.arange(len(y))
    order.shuffle(rows)
    stream = EBClassifier()
    for part in np.split(rows, sorted(cuts)):
        if part.size:
            stream.partial_fit(X[part], y[part], classes=[0, 1])
    assert_same_model(EBClassifier().fit(X, y), stream, 1e-6)


def test_a_stream_says_what_it_lacks() -> None:
    X, y = data()
    model = EBClassifier().partial_fit(X[:5], y[:5], classes=[0, 1])
    with pytest.raises(
        NotFittedError, match="cannot predict yet: no sample of class 1"
    ):
        model.predict(X)
    few = EBClassifier().partial_fit(X[[0, -1]], y[[0, -1]], classes=[0, 1])
    with pytest.raises(NotFittedError, match="too few to estimate a variance"):
        few.predict(X)
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="differ from those of the first"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="needs classes"):
        EBClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two"):
        EBClassifier().partial_fit(X, y, classes=[0])
    with pytest.raises(NotFittedError):
        EBClassifier().predict(X)


def test_a_stream_waits_for_what_the_variance_needs() -> None:
    X, y = data()
    order = np.argsort(np.arange(len(y)) % 9, kind="stable")
    model = EBClassifier(variance="separate")
    for part in np.array_split(order, 7):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert_same_model(EBClassifier(variance="separate").fit(X, y), model, 1e-6)


def test_a_stream_may_begin_with_constants() -> None:
    X, y = data()
    start = np.zeros((4, X.shape[1]))
    labels = np.array([0, 1, 0, 1])
    model = EBClassifier().partial_fit(start, labels, classes=[0, 1])
    with pytest.raises(NotFittedError, match="all 60 features are constant"):
        model.predict(X)
    model.partial_fit(X, y)
    whole = EBClassifier().fit(np.vstack([start, X]), np.append(labels, y))
    assert_same_model(whole, model, 1e-6)


def test_a_batch_that_fails_changes_nothing() -> None:
    X, y = data()
    model = EBClassifier(priors=[0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="2 classes"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not in classes"):
        model.set_params(priors=None).partial_fit(X, y, classes=[1, 2])
    model.partial_fit(X, y, classes=[0, 1])
    broken = X.copy()
    broken[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(broken, y)
    assert_same_model(EBClassifier().fit(X, y), model)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(broken, y + 5)
    np.testing.assert_array_equal(model.classes_, [0, 1])


class Failing(DirichletProcess):
    """A prior that cannot be fitted while it is told to fail."""

    fails = True

    def fit(self, z: Any, scale: Any = 1.0) -> Self:
        if Failing.fails:
            raise KeyboardInterrupt if Failing.fails == "stopped" else OSError("prior")
        return super().fit(z, scale)


# Keeps samples of a stream, and compares nothing.
KEEPING = {
    **EBClassifier().get_params(deep=False),
    "covariance": "factor",
    "shrinkage": "mean",
}


def spoil(X: np.ndarray) -> np.ndarray:
    spoiled = X.copy()
    spoiled[0, 0] = np.inf
    return spoiled


def named(X: np.ndarray, last: str) -> pd.DataFrame:
    columns = [*(f"g{j}" for j in range(X.shape[1] - 1)), last]
    return pd.DataFrame(X, columns=columns)


# What is wrong with the data or the parameters; the first are noticed first.
MISTAKES: dict[str, Any] = {
    "parameter": lambda X, y: (X, y, {"variance": "none"}),
    "shape": lambda X, y: (X[:, 0], y, {}),
    "names": lambda X, y: (named(X, "g0"), y, {}),
    "missing label": lambda X, y: (X, np.where(y == 0, None, "b"), {}),
    "label": lambda X, y: (X, y + np.linspace(0, 0.5, len(y)), {}),
    "length": lambda X, y: (X, y[1:], {}),
    "infinity": lambda X, y: (spoil(X), y, {}),
    "infinity beside names": lambda X, y: (named(spoil(X), "other"), y, {}),
    "priors": lambda X, y: (X, y, {"priors": [0.2, 0.3, 0.5]}),
    "prior": lambda X, y: (X, y, {"prior": Failing()}),
}


def state(model: EBClassifier) -> dict[str, Any]:
    """Everything the model holds but its parameters, by what it is."""
    kept = {k: v for k, v in vars(model).items() if k not in model.get_params(False)}
    return {name: (id(value), pickle.dumps(value)) for name, value in kept.items()}


def start(seen: str, X: np.ndarray, y: np.ndarray) -> EBClassifier:
    """A model that has seen nothing, was fitted, or has seen batches."""
    model = EBClassifier(**KEEPING)
    if seen == "fit":
        return model.fit(X, y)
    if seen != "nothing":
        rows = slice(0, 5 if seen == "one class" else None, 2)
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    return model


@pytest.mark.parametrize("seen", ["nothing", "fit", "one class", "batches"])
@pytest.mark.parametrize("mistake", [*MISTAKES, "one class", "too few", "constant"])
def test_a_fit_that_fails_changes_nothing(mistake: str, seen: str) -> None:
    X, y = data()
    more: dict[str, Any] = {
        "one class": lambda X, y: (X, np.zeros(len(y)), {}),
        "too few": lambda X, y: (X[[0, -1]], y[[0, -1]], {}),
        "constant": lambda X, y: (np.ones_like(X), y, {}),
    }
    model = start(seen, X, y)
    wrong, labels, parameters = {**MISTAKES, **more}[mistake](X, y)
    before = state(model)
    with pytest.raises((ValueError, OSError)):
        model.set_params(**parameters).fit(wrong, labels)
    assert state(model) == before
    model.set_params(**KEEPING)
    assert_same_model(EBClassifier(**KEEPING).fit(X, y), model.fit(X, y), 0.0)


def test_a_baseline_that_cannot_be_fitted_is_what_it_was() -> None:
    X, y = data()
    model = IndependenceRule()
    with pytest.raises(ValueError, match="infinity"):
        model.fit(spoil(X), y)
    assert vars(model) == IndependenceRule().get_params()
    before = vars(model.fit(X, y)).copy()
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="infinity"):
            call(spoil(X), y)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())


@pytest.mark.filterwarnings("ignore:fit keeps no samples:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@pytest.mark.parametrize("seen", ["nothing", "fit", "one class", "batches"])
@pytest.mark.parametrize("mistake", [*MISTAKES, "unknown label", "classes"])
def test_a_batch_that_failed_can_be_given_again(mistake: str, seen: str) -> None:
    X, y = data()
    more: dict[str, Any] = {
        "unknown label": lambda X, y: (X, y + 1, {}),
        "classes": lambda X, y: (X, y, {}),
    }
    batch, target = X[1::2], y[1::2]
    model, want = (start(seen, X, y) for _ in range(2))
    wrong, labels, parameters = {**MISTAKES, **more}[mistake](batch, target)
    classes = [0] if mistake == "classes" else [0, 1]
    before = state(model)
    with pytest.raises((ValueError, OSError)):
        model.set_params(**parameters).partial_fit(wrong, labels, classes=classes)
    assert state(model) == before
    assert hasattr(model, "coef_") == (seen in ("fit", "batches"))
    model.set_params(**KEEPING)
    model.partial_fit(batch, target, classes=[0, 1])
    want.partial_fit(batch, target, classes=[0, 1])
    assert_same_model(want, model, 0.0)
    assert model.n_seen_ == want.n_seen_


@pytest.mark.parametrize("how", ["error", "stopped"])
def test_a_prior_that_fails_may_be_fitted_later(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception of any kind, after most of the work was done."""
    X, y = data()
    error: type[BaseException] = KeyboardInterrupt if how == "stopped" else OSError
    monkeypatch.setattr(Failing, "fails", how)
    model = EBClassifier(prior=Failing())
    with pytest.raises(error):
        model.fit(X, y)
    with pytest.raises(error):
        model.partial_fit(X, y, classes=[0, 1])
    assert not state(model)
    monkeypatch.setattr(Failing, "fails", "")
    model.partial_fit(X[::2], y[::2], classes=[0, 1])
    before, predicted = state(model), model.predict_proba(X)
    monkeypatch.setattr(Failing, "fails", how)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(error):
            call(X[1::2], y[1::2])
        assert state(model) == before
        np.testing.assert_array_equal(model.predict_proba(X), predicted)
    monkeypatch.setattr(Failing, "fails", "")
    model.partial_fit(X[1::2], y[1::2])
    whole = EBClassifier(prior=DirichletProcess()).fit(X, y)
    assert_same_model(whole, model, 1e-6)


@pytest.mark.parametrize("variance", ["pooled", "moderated", "separate"])
def test_partial_fit_goes_on_after_fit(variance: str) -> None:
    X, y = data()
    rule = EBClassifier(**{**PAPER, "variance": variance})
    model = clone(rule).fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    assert_same_model(rule.fit(X, y), model, 1e-6)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"shrinkage": "mean"},
        {"covariance": "diagonal"},
        {"covariance": "factor", "shrinkage": "mean"},
        {"covariance": "neighbours", "shrinkage": "mean"},
    ],
)
def test_after_fit_factors_and_folds_are_those_of_the_batches_since(
    parameters: dict[str, str],
) -> None:
    """Moments go on from `fit`, which does not keep the samples."""
    X, y = data((20, 20))
    model = EBClassifier(**parameters).fit(X[::2], y[::2])
    assert model.samples_ is None
    with pytest.warns(UserWarning, match="fit keeps no samples"):
        model.partial_fit(X[1::4], y[1::4])
    model.partial_fit(X[3::4], y[3::4])
    whole = EBClassifier(**parameters).fit(X, y)
    np.testing.assert_allclose(model.moments_.means, whole.moments_.means)
    np.testing.assert_allclose(model.contrasts_.z, whole.contrasts_.z)
    assert model.samples_ is not None
    assert model.samples_.number.tolist() == list(range(20, 40))
    np.testing.assert_array_equal(model.samples_.X, np.vstack([X[1::4], X[3::4]]))
    assert (model.predict(X) == whole.predict(X)).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_weights_are_frequencies(convert: Any) -> None:
    X, y = data()
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    assert_same_model(
        EBClassifier().fit(X[repeated], y[repeated]),
        EBClassifier().fit(convert(X), y, sample_weight=weight),
        1e-6,
    )


# At home in scikit-learn


@pytest.mark.slow
def test_works_with_the_tools_of_scikit_learn() -> None:
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), EBClassifier(shrinkage="sparse"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    grid = GridSearchCV(
        EBClassifier(shrinkage="sparse"), {"zero_threshold": [0.1, 0.5, 0.9]}, cv=3
    ).fit(X, y)
    assert grid.best_score_ > 0.8
    nested = GridSearchCV(
        EBClassifier(prior=DirichletProcess()), {"prior__zero_weight": [0.1, 0.9]}, cv=3
    ).fit(X, y)
    assert nested.best_score_ > 0.8
    calibrated = CalibratedClassifierCV(EBClassifier(), cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.8
    chosen = SelectFromModel(EBClassifier(shrinkage="sparse"), threshold=1e-9).fit(X, y)
    np.testing.assert_array_equal(
        chosen.get_support(), EBClassifier(shrinkage="sparse").fit(X, y).selected_
    )


def test_clone_pickle_and_joblib(tmp_path: Any) -> None:
    X, y = data()
    model = EBClassifier(prior=DirichletProcess(zero_weight=0.9)).fit(X, y)
    assert not hasattr(clone(model), "coef_")
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    joblib.dump(model, tmp_path / "model")
    loaded = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_output_of_transform_is_set(container: str) -> None:
    X, y = data((8, 7, 6))
    out = EBClassifier().set_output(transform=container).fit(X, y).transform(X)
    assert list(out.columns) == [f"ebclassifier{k}" for k in range(3)]


def test_metadata_is_routed() -> None:
    X, y = data()
    weight = np.random.default_rng(3).integers(1, 4, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            EBClassifier().set_fit_request(sample_weight=True),
        )
        pipeline.fit(X, y, sample_weight=weight)
    direct = EBClassifier().fit(pipeline[:-1].transform(X), y, sample_weight=weight)
    np.testing.assert_allclose(pipeline[-1].coef_, direct.coef_)


def test_verbose_prints_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    EBClassifier(verbose=2).fit(*data())
    printed = capsys.readouterr().out
    assert "moments of 21 x 60" in printed
    assert "prior" in printed
    assert "choice of the rule" in printed
    assert "diagonal   mean    weight" in printed


def test_verbose_says_so_where_there_was_no_choice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    EBClassifier(**PAPER, verbose=2).fit(*data())
    assert "One rule, not calibrated" in capsys.readouterr().out
    EBClassifier(**{**PAPER, "calibrate": True}, verbose=2).fit(*data())
    assert "One rule; its probabilities are calibrated" in capsys.readouterr().out


def test_named_prior_gets_seed_and_jobs() -> None:
    model = EBClassifier(random_state=3, n_jobs=1).fit(*data())
    assert model.prior_estimator_.random_state == 3
    assert model.prior_estimator_.n_jobs == 1


# Bad input


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_infinity_is_named(value: float, convert: Any) -> None:
    X, y = data()
    X[4, 7], X[2, 7] = value, np.nan
    with pytest.raises(ValueError, match=r"infinity in column 7 .*in row 4"):
        EBClassifier().fit(convert(X), y)
    good, _ = data()
    model = EBClassifier().fit(good, y)
    with pytest.raises(ValueError, match=r"infinity in column 7 .*in row 4"):
        model.predict(convert(X))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_rules_without_missing_values_name_them(convert: Any) -> None:
    X, y = data()
    model = GreenshteinPark().fit(X, y)
    X[4, 7] = np.nan
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match=r"column 7 .*NaN in row 4"):
            call(convert(X), y)


def test_infinities_are_named_by_feature() -> None:
    X, y = data()
    X[4, [7, 9]] = np.inf
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(X.shape[1])])
    with pytest.raises(ValueError, match=r"columns 7 \('gene7'\), 9 \('gene9'\)"):
        EBClassifier().fit(frame, y)


def test_many_bad_columns_are_counted() -> None:
    X, y = data()
    X[0] = np.inf
    with pytest.raises(ValueError, match="and 55 more"):
        EBClassifier().fit(X, y)


def test_huge_values() -> None:
    X, y = data()
    X[:, 3] = X[:, 3] * 1e150
    assert np.isfinite(EBClassifier().fit(X, y).predict_proba(X)).all()
    X[:, 3] = X[:, 3] * 1e100
    with pytest.raises(ValueError, match="too large for their squares in column 3"):
        EBClassifier().fit(X, y)


def test_tiny_values() -> None:
    X, y = data()
    X[:, 3] = X[:, 3] * 1e-140
    assert np.isfinite(EBClassifier().fit(X, y).predict_proba(X)).all()
    X[:, 3] = X[:, 3] * 1e-60
    with pytest.raises(ValueError, match="too small for their squares in column 3"):
        EBClassifier().fit(X, y)


def test_scores_that_overflow_are_named() -> None:
    X, y = data()
    model = EBClassifier().fit(X, y)
    X[2] = 1.7e308 * np.sign(model.coef_[0])
    with pytest.raises(ValueError, match="score of row 2 overflows"):
        model.predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.1, 1234.567])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_constants_are_constant_in_any_container(value: float, convert: Any) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.3).astype(int)
    X = rng.normal(size=(20_000, 3))
    X[:, 1] = value
    model = EBClassifier().fit(convert(X), y)
    assert model.contrasts_.constant.tolist() == [False, True, False]


def test_constant_features_get_weight_zero() -> None:
    X, y = data()
    X[:, 3], X[:, 8] = 0.1, 0.0
    model = EBClassifier().fit(X, y)
    assert not model.selected_[[3, 8]].any()
    assert (model.z_[[3, 8]] == 0).all()
    rest = np.delete(np.arange(60), [3, 8])
    np.testing.assert_allclose(
        model.coef_[:, rest], EBClassifier().fit(X[:, rest], y).coef_, rtol=1e-6
    )


def test_all_constant_is_an_error() -> None:
    with pytest.raises(ValueError, match="all 3 features are constant"):
        EBClassifier().fit(np.ones((6, 3)), [0, 0, 0, 1, 1, 1])


def test_a_perfect_separator_classifies() -> None:
    y = np.repeat([0, 1], 10)
    model = EBClassifier().fit(y[:, None] * 5.0, y)
    assert model.predict([[0.0], [5.0]]).tolist() == [0, 1]


def test_one_class_is_an_error() -> None:
    X, _ = data()
    with pytest.raises(ValueError, match=r"one class only .*'a'"):
        EBClassifier().fit(X, ["a"] * len(X))


def test_a_class_with_one_sample() -> None:
    X, y = data((12, 1))
    assert EBClassifier().fit(X, y).predict(X).shape == y.shape
    with pytest.raises(ValueError, match="needs 2 samples in every class, and class 1"):
        EBClassifier(variance="separate").fit(X, y)
    with pytest.raises(ValueError, match="too few to estimate a variance"):
        EBClassifier().fit(X[[0, -1]], y[[0, -1]])


def test_a_class_without_weight() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="no sample of class 1"):
        EBClassifier().fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [True, False],
        [-1, 1],
        [2.0, 5.0],
        np.array(["a", "b"], dtype=object),
        pd.Categorical(["x", "y"]),
    ],
)
def test_labels_of_any_type(labels: Any) -> None:
    X, y = data()
    target = np.asarray(labels)[y]
    model = EBClassifier().fit(X, target)
    assert set(model.predict(X).tolist()) <= set(target.tolist())
    np.testing.assert_array_equal(model.classes_, np.unique(target))


def test_bad_labels_are_named() -> None:
    X, y = data()
    target = y.astype(object)
    target[6] = None
    with pytest.raises(ValueError, match=r"missing label.*row 6"):
        EBClassifier().fit(X, target)
    nullable = pd.Series(y.astype(str), dtype="string").where(np.arange(len(y)) != 6)
    with pytest.raises(ValueError, match=r"missing label.*row 6"):
        EBClassifier().fit(X, nullable)
    target[6] = "one"
    with pytest.raises(ValueError, match="one type"):
        EBClassifier().fit(X, target)
    with pytest.raises(ValueError, match="Unknown label type"):
        EBClassifier().fit(X, y + 0.5 + np.arange(len(y)) / 100)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"shrinkage": "soft"}, "shrinkage must be one of"),
        ({"variance": "no"}, "variance must be one of"),
        (
            {"covariance": "full"},
            re.escape(f"covariance must be one of {['auto', *COVARIANCES]}"),
        ),
        ({"prior": "gauss"}, "prior must be one of"),
        ({"zero_threshold": 1.5}, "zero_threshold must lie between 0 and 1"),
        ({"zero_threshold": "a"}, "zero_threshold must lie between 0 and 1"),
        ({"priors": {0: 0.3, 1: 0.7}}, "list of probabilities"),
        ({"priors": "flat"}, "priors must be one of"),
        ({"priors": [0.5]}, "one probability for each of the 2 classes"),
        ({"priors": [0.5, 0.6]}, "sum to 1"),
        ({"priors": [0.0, 1.0]}, "positive"),
    ],
)
def test_bad_parameters_are_named(parameter: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EBClassifier(**parameter).fit(*data())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), "one weight for each"),
        (-np.ones(21), "not negative; row 0"),
        (np.full(21, np.nan), "finite"),
        (np.zeros(21), "zero for every sample"),
    ],
)
def test_bad_weights_are_named(weight: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EBClassifier().fit(*data(), sample_weight=weight)


@pytest.mark.slow
def test_one_number_is_a_weight_for_all() -> None:
    X, y = data()
    twice = np.repeat(np.arange(len(y)), 2)
    assert_same_model(
        EBClassifier().fit(X[twice], y[twice]),
        EBClassifier().fit(X, y, sample_weight=2),
        1e-6,
    )


def test_the_posterior_is_made_when_it_is_asked_for() -> None:
    """No rule in use needed it; what is copied is the same as what is asked for."""
    sim = make_two_class(30, 600, 20, [2.0], random_state=3)
    X = sim.data + np.random.default_rng(3).normal(size=(60, 1))
    model = EBClassifier(covariance="factor", shrinkage="top10").fit(X, sim.target)
    assert model.n_factors_
    assert isinstance(vars(model)["posterior_"], Later)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.posterior_mean_, model.posterior_mean_)
    assert not isinstance(vars(model)["posterior_"], Later)
    seeded = clone(model).set_params(random_state=0).fit(X, sim.target)
    np.testing.assert_array_equal(seeded.posterior_mean_, model.posterior_mean_)
    with pytest.raises(AttributeError, match="posterior_"):
        _ = EBClassifier().posterior_
