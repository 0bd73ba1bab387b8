"""Rules compared on a part of the features: which part, and that it does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss

import ebda.estimators.classifier
from ebda import EBClassifier
from ebda.covariance import (
    COVARIANCES,
    Covariance,
    CovarianceEstimator,
    Diagonal,
    Summary,
)
from ebda.covariance.neighbours import Autoregression
from ebda.datasets import make_factor_classes, make_two_class
from ebda.moments import VARIANCES, ClassMoments, Variance, choose_features
from ebda.moments.contrasts import choose_runs
from ebda.moments.variance import VarianceEstimator
from ebda.priors import DirichletProcess
from ebda.selection.candidates import Recipe
from ebda.selection.folds import N_FOLDS
from ebda.sizes import override

PART = 300
ATTRIBUTES = ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_")


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Compare on few features; how many each comparison had."""
    with override(least_compared=PART, most_compared=PART):
        yield counted(monkeypatch)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    numbers: list[int] = []
    select = ebda.estimators.classifier.select

    def counting(recipe: Recipe, data: Summary, *rest: Any) -> Any:
        numbers.append(data.moments.means.shape[1])
        return select(recipe, data, *rest)

    monkeypatch.setattr(ebda.estimators.classifier, "select", counting)
    return numbers


def data(factors: bool = False, n: tuple[int, ...] = (24, 20), p: int = 1500) -> Any:
    rng = np.random.default_rng(8)
    y = np.repeat(np.arange(len(n)), n)
    X = rng.normal(size=(len(y), p)) * rng.uniform(0.5, 2, p)
    if factors:
        X += rng.normal(size=(len(y), 2)) @ rng.normal(size=(2, p))
    for k in range(1, len(n)):
        X[y == k, 100 * k : 100 * k + 100] += 1.0
    order = rng.permutation(len(y))
    return X[order], y[order]


def assert_same_model(got: EBClassifier, want: EBClassifier, rtol: float) -> None:
    for name in ATTRIBUTES:
        a, b = getattr(got, name), getattr(want, name)
        atol = rtol * np.abs(b).max()
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=name)
    np.testing.assert_allclose(got.selection_.weight, want.selection_.weight)


@pytest.mark.slow
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("n", [(24, 20), (14, 15, 16)])
def test_the_order_of_the_features_does_not_matter(
    n: tuple[int, ...], factors: bool, compared: list[int]
) -> None:
    X, y = data(factors, n)
    order = np.random.default_rng(2).permutation(X.shape[1])
    want, got = EBClassifier().fit(X, y), EBClassifier().fit(X[:, order], y)
    assert compared == [PART, PART]
    back = np.argsort(order)
    for name in ATTRIBUTES:
        a, b = getattr(got, name), getattr(want, name)
        a = a if name == "intercept_" else a[..., back]
        np.testing.assert_allclose(
            a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max(), err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize("factors", [False, True])
def test_a_stream_of_batches_gives_the_model_of_one_fit(
    factors: bool, compared: list[int]
) -> None:
    X, y = data(factors)
    want = EBClassifier().fit(X, y)
    got = EBClassifier()
    for rows in np.array_split(np.arange(len(y)), 3):
        got.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert compared[-1] == PART
    assert_same_model(got, want, 1e-8)


@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_data_give_the_model_of_dense_data(
    convert: Any, compared: list[int]
) -> None:
    X, y = data()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    want, got = EBClassifier().fit(X, y), EBClassifier().fit(convert(X), y)
    assert compared == [PART, PART]
    assert_same_model(got, want, 1e-8)


def split(name: str, seed: int) -> Any:
    if name == "factors":
        sim = make_factor_classes(n_features=2000, random_state=seed)
        return sim.data, sim.target, sim.test_data, sim.test_target
    two = make_two_class(230, 2000, 200, 0.5, random_state=seed)
    train = np.arange(460) % 230 < 30
    return (
        two.data[train],
        two.target[train],
        two.data[~train],
        two.target[~train],
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent", "factors"])
def test_a_part_of_the_features_tells_the_rule_and_its_slope(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slope is for rules in units of the standard deviation
    that they have on the part compared.

    Without these units decisions would be four times as large; in units of that on
    all features they would be too small, and the log-loss a fifth larger.
    """
    numbers = counted(monkeypatch)
    decision, loss = [], []
    for seed in range(3):
        X, y, fresh, labels = split(name, seed)
        models = []
        for most in (2000, 1000):
            with override(least_compared=most, most_compared=most):
                models.append(EBClassifier().fit(X, y))
        whole, part = models
        assert numbers[-2:] == [2000, 1000]
        # The same classes but for a few on the border.
        error = [np.mean(m.predict(fresh) != labels) for m in models]
        assert error[1] < error[0] + 0.03
        size = [np.abs(m.decision_function(fresh)).mean() for m in (part, whole)]
        decision.append(np.log(size[0] / size[1]))
        losses = [log_loss(labels, m.predict_proba(fresh)) for m in (part, whole)]
        loss.append(np.log(losses[0] / losses[1]))
    # As sure as the comparison of all features would make it, and as well calibrated.
    assert 0.7 < np.exp(np.mean(decision)) < 1.5
    assert np.exp(np.mean(loss)) < 1.1


class Counting(DirichletProcess):
    """Notes how many values it is fitted to."""

    fitted_to: ClassVar[list[int]] = []

    def fit(self, z: Any, scale: Any = 1.0) -> Self:
        self.fitted_to.append(np.size(z))
        return super().fit(z, scale)


@pytest.mark.parametrize(
    "arguments",
    [
        {"covariance": "diagonal", "shrinkage": "mean"},
        {"covariance": "factor", "shrinkage": "sparse"},
        {"covariance": "neighbours", "shrinkage": "mean"},
        {"covariance": "shrunken", "shrinkage": "none"},
    ],
)
def test_a_single_rule_is_fitted_as_ever(
    arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without calibration its prior is fitted once, to all features."""
    fitted_to: list[int] = []
    monkeypatch.setattr(Counting, "fitted_to", fitted_to)
    X, y = data(factors=True)
    rule = EBClassifier(prior=Counting(), calibrate=False, **arguments)
    want = clone(rule).fit(X, y)
    with override(least_compared=PART, most_compared=PART):
        got = clone(rule).fit(X, y)
    assert fitted_to == [1500, 1500]
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))


@pytest.mark.parametrize(
    "arguments",
    [
        {"covariance": "diagonal", "shrinkage": "mean"},
        {"covariance": "factor", "shrinkage": "sparse"},
    ],
)
def test_a_single_rule_is_calibrated_on_a_part(
    arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule is that of all features but for its slope."""
    fitted_to: list[int] = []
    monkeypatch.setattr(Counting, "fitted_to", fitted_to)
    X, y = data(factors=True)
    want = EBClassifier(prior=Counting(), calibrate=False, **arguments).fit(X, y)
    with override(least_compared=PART, most_compared=PART):
        got = EBClassifier(prior=Counting(), **arguments).fit(X, y)
    assert fitted_to == [1500, PART, *[PART] * N_FOLDS, 1500]
    for name in ("z_", "posterior_mean_", "prob_zero_"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    slope = (got.coef_ @ want.coef_[0]) / (want.coef_[0] @ want.coef_[0])
    assert slope[0] > 0
    np.testing.assert_allclose(got.coef_, slope * want.coef_, rtol=1e-10)


def test_the_largest_differences_of_a_part_are_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fifth of the features has a fifth of them; the rule has all. Folds need no
    prior for it."""
    fitted_to: list[int] = []
    monkeypatch.setattr(Counting, "fitted_to", fitted_to)
    kept: list[int | None] = []
    select = ebda.estimators.classifier.select

    def noting(recipe: Recipe, *rest: Any) -> Any:
        kept.extend(recipe.shrinkage(name).n_largest for name in recipe.names)
        return select(recipe, *rest)

    monkeypatch.setattr(ebda.estimators.classifier, "select", noting)
    X, y = data()
    rule = EBClassifier(prior=Counting(), covariance="diagonal", shrinkage="top100")
    want = clone(rule).set_params(calibrate=False).fit(X, y)
    with override(least_compared=PART, most_compared=PART):
        got = clone(rule).fit(X, y)
    assert fitted_to == []  # no prior is needed before it is asked for
    assert want.posterior_mean_.shape == got.posterior_mean_.shape
    assert fitted_to == [1500, 1500]
    assert kept == [PART * 100 // 1500]
    assert got.selected_.sum() == want.selected_.sum() == 100
    slope = (got.coef_ @ want.coef_[0]) / (want.coef_[0] @ want.coef_[0])
    np.testing.assert_allclose(got.coef_, slope * want.coef_, rtol=1e-10)


def in_order() -> Any:
    """Each feature strongly correlated with the next."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(44, 1500))
    for j in range(1, 1500):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    y = np.arange(44) % 2
    X[:, 500:700] += y[:, None]
    return X, y


def test_neighbours_that_were_asked_for_are_calibrated_on_runs_of_features(
    compared: list[int],
) -> None:
    """Features drawn from anywhere are no neighbours."""
    X, y = in_order()
    model = EBClassifier(covariance="neighbours", shrinkage="mean").fit(X, y)
    assert 0.8 * PART < compared[0] <= PART
    assert model.selection_.candidates == [("neighbours", "mean")]
    plain = EBClassifier(covariance="neighbours", shrinkage="mean", calibrate=False)
    np.testing.assert_array_equal(model.z_, plain.fit(X, y).z_)
    # One of its values alone would tell less about a feature in the run that differs.
    assert np.abs(model.posterior_mean_[510:690]).min() > 0.5


def in_a_part_only(data: Summary) -> Covariance:
    contrasts = data.contrasts
    if len(contrasts.variance) > PART:
        return Diagonal()
    return Autoregression(0.3, contrasts.constant)


def test_a_correlation_of_the_part_alone_is_none(compared: list[int]) -> None:
    X, y = data()
    entry = CovarianceEstimator("part", "in a part only", in_a_part_only)
    with COVARIANCES.added(entry):
        model = EBClassifier(covariance="part", shrinkage="mean").fit(X, y)
    assert compared == [PART]
    np.testing.assert_array_equal(model.z_, model.contrasts_.z[0])
    assert np.isfinite(model.predict_proba(X)).all()


def test_as_many_features_as_are_compared_are_all_compared(
    compared: list[int],
) -> None:
    X, y = data(p=PART)
    got = EBClassifier().fit(X, y)
    with override(least_compared=PART + 1, most_compared=PART + 1):
        assert_same_model(EBClassifier().fit(X, y), got, 0.0)
    assert compared == [PART, PART]


@pytest.mark.slow
def test_many_samples_are_compared_on_fewer_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = counted(monkeypatch)
    X, y = data()
    with override(least_compared=50, most_compared=1000, compared_values=44 * 400):
        EBClassifier().fit(X, y)
        EBClassifier().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    with override(least_compared=50, most_compared=1000, compared_values=44):
        EBClassifier().fit(X, y)
    assert numbers == [400, 200, 50]


def test_without_folds_the_usual_rule_is_that_of_all_features(
    compared: list[int],
) -> None:
    """Eight samples are too few to compare rules by."""
    X, y = data(n=(4, 4))
    model = EBClassifier().fit(X, y)
    assert compared == [PART]
    assert model.selection_.n_folds == 0
    covariance, shrinkage = model.selection_.best
    want = EBClassifier(covariance=covariance, shrinkage=shrinkage).fit(X, y)
    np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, want.intercept_, rtol=1e-10)


@pytest.mark.slow
def test_rules_that_rest_on_order_are_not_compared_on_a_part(
    compared: list[int],
) -> None:
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(40, 1200)), axis=1)  # neighbours are alike
    X -= X.mean(axis=1, keepdims=True)
    y = np.arange(40) % 2
    X[y == 1, 300:600] += 2.0
    model = EBClassifier().fit(X, y)
    assert compared == [PART]
    assert "neighbours" not in {c for c, _ in model.selection_.candidates}
    # Asked for by name it stays.
    model = EBClassifier(covariance="neighbours").fit(X, y)
    assert {c for c, _ in model.selection_.candidates} == {"neighbours"}


# Which part


def moments(squares: np.ndarray) -> ClassMoments:
    """Two classes with these sums of squares in the first, and others that follow."""
    rows = np.stack([squares, 3.0 * squares])
    return ClassMoments(np.array([4.0, 5.0]), np.zeros_like(rows), rows)


@pytest.mark.parametrize("size", [1, 17, 500, 999, 1000])
def test_the_part_has_the_size_asked_for_and_no_feature_twice(size: int) -> None:
    got = choose_features(
        moments(np.random.default_rng(0).exponential(size=1000)), size
    )
    assert len(got) == size
    assert (np.diff(got) > 0).all()
    assert got.min() >= 0
    assert got.max() < 1000


def test_the_part_is_that_of_any_order_and_of_any_last_digits() -> None:
    rng = np.random.default_rng(1)
    variance = np.exp(rng.normal(scale=3, size=5000))
    want = set(variance[choose_features(moments(variance), 700)])
    order = rng.permutation(5000)
    assert set(variance[order][choose_features(moments(variance[order]), 700)]) == want
    noisy = variance * (1 + 1e-14 * rng.uniform(-1, 1, 5000))
    assert (noisy != variance).any()
    assert set(variance[choose_features(moments(noisy), 700)]) == want


def test_the_part_is_as_if_drawn_at_random() -> None:
    rng = np.random.default_rng(2)
    variance = np.sort(rng.exponential(size=20_000))
    chosen = choose_features(moments(variance), 2000)
    # Neither large nor small variances are preferred: the ranks are uniform.
    share = np.histogram(chosen, bins=10, range=(0, 20_000))[0]
    assert share.min() > 140
    assert share.max() < 260
    # Nor are neighbours taken together.
    assert np.mean(np.diff(chosen) == 1) < 0.2


def test_ties_fill_the_part_as_far_as_there_is_room() -> None:
    assert choose_features(moments(np.full(100, 2.0)), 30).tolist() == list(range(30))
    variance = np.repeat(np.random.default_rng(3).exponential(size=40), 25)
    for size in (1, 30, 260, 1000):
        chosen = choose_features(moments(variance), size)
        assert len(set(chosen.tolist())) == size
        # Whole groups but for one.
        _, members = np.unique(variance[chosen], return_counts=True)
        assert np.count_nonzero(members < 25) == (size % 25 > 0)


@pytest.mark.parametrize(("p", "size"), [(100, 32), (101, 100), (5000, 7), (20, 1)])
def test_runs_are_neighbours_spread_over_all_features(p: int, size: int) -> None:
    chosen = choose_runs(p, size)
    assert 0.8 * size <= len(chosen) <= size
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] == 0
    assert chosen[-1] == (p - 1 if size > 1 else 0)
    if size > 32:
        assert np.mean(np.diff(chosen) == 1) > 0.8


def all_one(moments: ClassMoments) -> Variance:
    one = np.ones(moments.means.shape[1])
    return Variance(one, one[None, :], np.inf)


def test_the_part_is_no_run_of_features_where_moderated_variances_are_equal(
    compared: list[int],
) -> None:
    """As with variances that differ by chance alone, and the differences in front."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 3000)), np.arange(24) % 2
    X[y == 1, :PART] += 1.0
    with VARIANCES.added(VarianceEstimator("equal", "all the same", all_one)):
        model = EBClassifier(variance="equal").fit(X, y)
        order = rng.permutation(3000)
        again = EBClassifier(variance="equal").fit(X[:, order], y)
    assert compared == [PART, PART]
    assert np.ptp(model.contrasts_.variance) == 0
    chosen = choose_features(model.moments_, PART)
    share = np.histogram(chosen, bins=6, range=(0, 3000))[0]
    assert share.min() > 20
    np.testing.assert_allclose(again.coef_, model.coef_[:, order], rtol=1e-9)
