"""The rules that the paper compares with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

import real_sets
from ebda import EBClassifier
from ebda.baselines import (
    FAIR,
    GreenshteinPark,
    IndependenceRule,
    LassoLogistic,
    PseudoInverseLDA,
    ShrinkageDA,
    ShrunkenCentroids,
)
from ebda.baselines.lasso_path import logistic_path
from ebda.baselines.shrinkage_da import solve
from ebda.datasets import load_golub, load_khan, make_two_class
from ebda.priors import Kernel
from ebda.sizes import override

REFERENCE = Path(__file__).parent / "reference"
FAIR_CASES = json.loads((REFERENCE / "fair.json").read_text())
HIDIMDA_CASES = json.loads((REFERENCE / "hidimda.json").read_text())["cases"]
SDA_CASES = json.loads((REFERENCE / "sda.json").read_text())["cases"]
KERNEL_CASES = json.loads((REFERENCE / "dp_variational.json").read_text())
ALL = [
    IndependenceRule,
    FAIR,
    GreenshteinPark,
    PseudoInverseLDA,
    ShrinkageDA,
    ShrunkenCentroids,
    LassoLogistic,
]


@pytest.fixture(scope="module")
def sim() -> Any:
    return make_two_class(
        n_per_class=20, n_features=300, n_signals=20, effect=1.5, random_state=0
    )


@pytest.mark.parametrize("rule", ALL)
def test_every_rule_is_linear_and_better_than_guessing(rule: Any, sim: Any) -> None:
    model = rule().fit(sim.data, sim.target)
    new = make_two_class(
        n_per_class=200, n_features=300, n_signals=20, effect=1.5, random_state=1
    )
    np.testing.assert_allclose(
        model.decision_function(new.data),
        (new.data @ model.coef_.T + model.intercept_)[:, 0],
    )
    assert model.score(new.data, new.target) > 0.7


@pytest.mark.parametrize("rule", ALL)
def test_labels_name_the_positive_side(rule: Any, sim: Any) -> None:
    first = rule().fit(sim.data, sim.target)
    swapped = rule().fit(sim.data, np.where(sim.target == "a", "z", "b"))
    if rule in (LassoLogistic, ShrunkenCentroids):  # other folds
        assert np.sign(first.coef_ @ swapped.coef_.T) == -1
    else:
        np.testing.assert_allclose(swapped.coef_, -first.coef_, rtol=1e-6, atol=1e-12)


# Independence rule


def test_independence_rule_is_the_classifier_without_shrinkage(sim: Any) -> None:
    rule = IndependenceRule().fit(sim.data, sim.target)
    d = sim.data[20:].mean(0) - sim.data[:20].mean(0)
    squares = 20 * (sim.data[:20].var(0) + sim.data[20:].var(0))
    np.testing.assert_allclose(rule.coef_[0], d / (squares / 38))
    hard = EBClassifier(
        shrinkage="hard",
        zero_threshold=1,
        variance="pooled",
        covariance="diagonal",
        calibrate=False,
    ).fit(sim.data, sim.target)
    np.testing.assert_allclose(rule.coef_, hard.coef_)
    np.testing.assert_allclose(rule.intercept_, hard.intercept_)
    none = EBClassifier(
        shrinkage="none", variance="pooled", covariance="diagonal", calibrate=False
    ).fit(sim.data, sim.target)
    np.testing.assert_allclose(rule.coef_, none.coef_)
    np.testing.assert_allclose(rule.intercept_, none.intercept_)


def test_independence_rule_streams_and_takes_sparse(sim: Any) -> None:
    whole = IndependenceRule().fit(sim.data, sim.target)
    stream = IndependenceRule()
    for part in np.array_split(np.arange(40), 3):
        stream.partial_fit(sim.data[part], sim.target[part], classes=["a", "b"])
    np.testing.assert_allclose(stream.coef_, whole.coef_)
    other = IndependenceRule().fit(sparse.csr_matrix(sim.data), sim.target)
    np.testing.assert_allclose(other.coef_, whole.coef_)


# FAIR


@pytest.mark.parametrize("case", FAIR_CASES, ids=lambda c: f"{len(c['X'])} samples")
def test_fair_selects_the_features_of_the_reference(case: dict[str, Any]) -> None:
    X = np.array(case["X"])
    model = FAIR().fit(X, case["y"])
    assert model.selected_.nonzero()[0].tolist() == case["selected_zero_based"]
    assert model.n_selected_ == case["n_selected"]
    assert (model.coef_[0] != 0).tolist() == model.selected_.tolist()


@pytest.mark.parametrize(
    "case", HIDIMDA_CASES, ids=lambda c: " ".join([c["data"], c.get("part", "")])
)
def test_fair_with_unequal_classes_is_that_of_hidimda(case: dict[str, Any]) -> None:
    if case["data"] == "golub":
        golub = load_golub()
        part = golub.split == "train" if case["part"] == "train" else golub.split != ""
        X, y = golub.data[part], golub.target[part]
    else:
        X, y = real_sets.load(case["data"]), case["y"]
    model = FAIR().fit(X, y)
    assert model.selected_.nonzero()[0].tolist() == case["selected"]


def test_fair_with_one_sample_in_a_class_has_the_unit_of_the_other(sim: Any) -> None:
    X, y = sim.data[:21], sim.target[:21]
    criterion = FAIR().fit(X, y).criterion_
    z = IndependenceRule().fit(X, y).z_
    first = np.argmax(np.abs(z))
    t2 = z[first] ** 2
    unit = X[:20, first].var(ddof=1)
    eigenvalue = X[:20, first].var() * 20 / (19 * unit)
    expected = 21 * (t2 + 19 / 21) ** 2 / (eigenvalue * 20 * (1 + t2))
    assert criterion[0] == pytest.approx(expected)


def test_fair_eigenvalues_are_those_of_the_correlation(sim: Any) -> None:
    whole = FAIR().fit(sim.data, sim.target).criterion_
    residual = sim.data - np.repeat(
        [sim.data[:20].mean(0), sim.data[20:].mean(0)], 20, axis=0
    )
    z = IndependenceRule().fit(sim.data, sim.target).z_
    order = np.argsort(-np.abs(z))
    for m in (1, 2, 7, 60):
        kept = order[:m]
        correlation = np.atleast_2d(np.corrcoef(residual[:, kept].T))
        eigenvalue = np.linalg.eigvalsh(correlation)[-1]
        total = np.sum(z[kept] ** 2)
        expected = 40 * total**2 / (eigenvalue * 400 * (m + total))
        assert whole[m - 1] == pytest.approx(expected)
    with override(gram_elements=40**2 * 7):
        early = FAIR().fit(sim.data, sim.target).criterion_
    np.testing.assert_allclose(early, whole[: len(early)])
    assert len(early) < len(whole)
    assert np.argmax(early) == np.argmax(whole)


def test_fair_on_the_leukemia_data() -> None:
    golub = load_golub()
    train = golub.split == "train"
    model = FAIR(priors="uniform").fit(golub.data[train], golub.target[train])
    wrong = model.predict(golub.data) != golub.target
    # The values that R's HiDimDA gives on the raw data.
    assert (wrong[train].sum(), wrong[~train].sum()) == (0, 6)


def test_fair_considers_as_many_features_as_it_is_told(sim: Any) -> None:
    assert len(FAIR(max_features=5).fit(sim.data, sim.target).criterion_) == 5
    with pytest.raises(ValueError, match="max_features"):
        FAIR(max_features=0).fit(sim.data, sim.target)


# Greenshtein and Park


@pytest.mark.parametrize("method", ["exact", "fast"])
@pytest.mark.parametrize("number", range(len(KERNEL_CASES)))
def test_kernel_equals_the_reference(number: int, method: str) -> None:
    case = KERNEL_CASES[number]
    x = np.array(case["x"])
    mean = Kernel(bandwidth=0.3, method=method).fit(x).prior_.posterior(x).mean
    np.testing.assert_allclose(mean, case["kernel_eb_h0.3"], atol=1e-8)


@pytest.mark.slow
def test_fast_kernel_is_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=12_000)
    z[:300] += rng.normal(0, 5, 300)
    exact, fast = (Kernel(method=m).fit(z).prior_ for m in ("exact", "fast"))
    dense = rng.normal(size=60_000)  # enough to be interpolated
    for values in (z, np.linspace(z.min() - 3, z.max() + 3, 500), dense):
        np.testing.assert_allclose(
            fast.posterior(values).mean, exact.posterior(values).mean, atol=1e-5
        )
        np.testing.assert_allclose(fast.logpdf(values), exact.logpdf(values), atol=1e-6)
        np.testing.assert_allclose(
            fast.posterior(values).sd, exact.posterior(values).sd, atol=5e-3
        )


def test_greenshtein_park_is_the_classifier_with_a_kernel_prior(sim: Any) -> None:
    rule = GreenshteinPark(bandwidth=0.4).fit(sim.data, sim.target)
    same = EBClassifier(
        prior=Kernel(bandwidth=0.4),
        shrinkage="mean",
        variance="pooled",
        covariance="diagonal",
        calibrate=False,
    ).fit(sim.data, sim.target)
    np.testing.assert_allclose(rule.coef_, same.coef_)
    np.testing.assert_allclose(rule.posterior_mean_, same.posterior_mean_)


def test_greenshtein_park_on_the_leukemia_data() -> None:
    golub = load_golub()
    train = golub.split == "train"
    model = GreenshteinPark(variance="separate", priors="uniform")
    model.fit(golub.data[train], golub.target[train])
    wrong = model.predict(golub.data) != golub.target
    assert (wrong[train].sum(), wrong[~train].sum()) == (0, 3)  # Table 7


@pytest.mark.parametrize(
    ("parameter", "message"),
    [({"bandwidth": 0}, "bandwidth must be"), ({"method": "fft"}, "method must be")],
)
def test_bad_kernels_are_refused(parameter: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Kernel(**parameter).fit([1.0, 2.0])


# Pseudo-inverse LDA


def test_pseudo_inverse_is_lda_where_that_is_defined() -> None:
    sim = make_two_class(
        n_per_class=60, n_features=10, n_signals=5, effect=1, rho=0.7, random_state=0
    )
    ours = PseudoInverseLDA().fit(sim.data, sim.target)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(sim.data, sim.target)
    # scikit-learn divides by N, not by N - K.
    np.testing.assert_allclose(ours.coef_ * 120 / 118, theirs.coef_, rtol=1e-8)


def test_pseudo_inverse_with_many_features_is_the_definition(sim: Any) -> None:
    model = PseudoInverseLDA(priors="uniform").fit(sim.data, sim.target)
    residual = sim.data - np.repeat(
        [sim.data[:20].mean(0), sim.data[20:].mean(0)], 20, axis=0
    )
    inverse = np.linalg.pinv(residual.T @ residual / 38, rcond=1e-10, hermitian=True)
    d = sim.data[20:].mean(0) - sim.data[:20].mean(0)
    np.testing.assert_allclose(model.coef_[0], inverse @ d, rtol=1e-6, atol=1e-10)
    assert model.rank_ == 38


def test_pseudo_inverse_needs_variation() -> None:
    with pytest.raises(ValueError, match="do not vary"):
        PseudoInverseLDA().fit(np.repeat(np.eye(2), 3, axis=0), [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="too few to estimate a variance"):
        PseudoInverseLDA().fit(np.eye(2), [0, 1])


# Shrinkage discriminant analysis


@pytest.mark.parametrize(
    "case", SDA_CASES, ids=lambda c: c["data"] + " diagonal" * c["diagonal"]
)
def test_shrinkage_da_is_that_of_r(case: dict[str, Any]) -> None:
    """Amounts, weights and scores of ``sda``, each class against the pooled mean.

    The small sets are in the file; one has a constant feature, one more samples than
    features. The others are the training samples of the embedded sets, every 200th
    feature.
    """
    if "X" in case:
        X, y, new = (np.array(case[name]) for name in ("X", "y", "new"))
    else:
        data = {"golub": load_golub, "khan": load_khan}[case["data"]]()
        train = data.split == "train"
        X, y, new = data.data[train], data.target[train], data.data[~train]
    model = ShrinkageDA(diagonal=case["diagonal"]).fit(X, y)
    found = (
        model.correlation_shrinkage_,
        model.variance_shrinkage_,
        model.frequency_shrinkage_,
    )
    np.testing.assert_allclose(found, case["shrinkage"], rtol=1e-12)
    np.testing.assert_allclose(model.class_prior_, case["freqs"], rtol=1e-12)
    beta, alpha, score = (np.array(case[name]) for name in ("beta", "alpha", "score"))
    if len(alpha) == 2:
        beta, alpha, score = np.diff(beta, axis=0), np.diff(alpha), np.diff(score)
    coef = model.coef_[:, case["features"]]
    np.testing.assert_allclose(coef, beta, rtol=1e-10, atol=1e-12 * np.abs(beta).max())
    np.testing.assert_allclose(model.intercept_, alpha, rtol=1e-10)
    np.testing.assert_allclose(model.decision_function(new), np.squeeze(score), 1e-10)


@pytest.mark.parametrize("shape", [(9, 30), (30, 9)])
@pytest.mark.parametrize("amount", [0.0, 0.3, 1.0])
def test_solve_inverts_the_shrunken_correlations(
    shape: tuple[int, int], amount: float
) -> None:
    rng = np.random.default_rng(0)
    scaled = rng.normal(size=shape)
    scaled -= scaled.mean(axis=0)
    scaled /= scaled.std(axis=0, ddof=1)
    scaled[:, 3] = 0.0
    shrunken = (1 - amount) * scaled.T @ scaled / (len(scaled) - 1)
    shrunken += amount * np.eye(shape[1])
    shrunken[3, 3] = 1.0
    rows = rng.normal(size=(2, shape[1]))
    expected = rows @ np.linalg.pinv(shrunken, rcond=1e-10, hermitian=True)
    np.testing.assert_allclose(solve(scaled, rows, amount), expected, atol=1e-9)


def test_shrinkage_da_does_without_the_features_that_r_divides_by_zero_for() -> None:
    rng = np.random.default_rng(0)
    X = np.ones((20, 9))
    X[:, :2] = rng.normal(size=(20, 2))
    y = np.repeat([0, 1], 10)
    model = ShrinkageDA().fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert not model.coef_[:, 2:].any()


# Lasso


def test_lasso_path_meets_the_optimality_conditions(sim: Any) -> None:
    X = np.asfortranarray((sim.data - sim.data.mean(0)) / sim.data.std(0))[:36]
    sign = np.where(sim.target == "b", 1.0, -1.0)[:36]
    lambdas = np.array([0.2, 0.1, 0.05])
    coef, intercept = logistic_path(X, sign, lambdas, tol=1e-9)
    for k, penalty in enumerate(lambdas):
        margin = sign * (X @ coef[:, k] + intercept[k])
        pull = X.T @ (sign / (1 + np.exp(margin))) / 36
        active = coef[:, k] != 0
        assert active.any()
        np.testing.assert_allclose(
            pull[active], penalty * np.sign(coef[active, k]), atol=1e-5
        )
        assert np.abs(pull).max() <= penalty * (1 + 1e-4)
        assert np.sum(sign / (1 + np.exp(margin))) == pytest.approx(0, abs=1e-3)


def test_lasso_is_scikit_learns_at_the_same_lambda(sim: Any) -> None:
    X = np.asfortranarray((sim.data - sim.data.mean(0)) / sim.data.std(0))
    sign = np.where(sim.target == "b", 1.0, -1.0)
    coef, intercept = logistic_path(X, sign, np.array([0.1]), tol=1e-10)
    # Since version 1.8 of scikit-learn l1_ratio=1 stands for penalty="l1".
    new = LogisticRegression().penalty == "deprecated"
    lasso: dict[str, Any] = {"l1_ratio": 1} if new else {"penalty": "l1"}
    theirs = LogisticRegression(
        **lasso, solver="saga", C=1 / (0.1 * 40), tol=1e-8, max_iter=50_000
    ).fit(X, sign)
    np.testing.assert_allclose(coef[:, 0], theirs.coef_[0], atol=1e-4)
    np.testing.assert_allclose(intercept[0], theirs.intercept_[0], atol=1e-3)


@pytest.mark.slow
def test_lasso_chooses_by_cross_validation(sim: Any) -> None:
    one = LassoLogistic(rule="1se", random_state=0).fit(sim.data, sim.target)
    least = LassoLogistic(rule="min", random_state=0).fit(sim.data, sim.target)
    assert one.lambda_ >= least.lambda_
    assert one.selected_.sum() <= least.selected_.sum()
    best = np.argmin(least.deviances_)
    assert least.lambda_ == least.lambdas_[best]
    limit = one.deviances_[best] + one.deviance_se_[best]
    place = np.searchsorted(-one.lambdas_, -one.lambda_)
    assert one.deviances_[place] <= limit
    assert (one.deviances_[:place] > limit).all()
    assert one.lambdas_[-1] == pytest.approx(one.lambdas_[0] / 100)
    again = LassoLogistic(rule="1se", random_state=0).fit(sim.data, sim.target)
    np.testing.assert_array_equal(one.coef_, again.coef_)


def test_lasso_says_what_to_install(sim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "celer", None)
    with pytest.raises(ImportError, match=r"ebda\[lasso\]"):
        LassoLogistic().fit(sim.data, sim.target)


def test_lasso_refuses_what_it_cannot_do(sim: Any) -> None:
    with pytest.raises(ValueError, match="rule must be one of"):
        LassoLogistic(rule="best").fit(sim.data, sim.target)
    with pytest.raises(ValueError, match="two samples in every class"):
        LassoLogistic().fit(sim.data[:21], sim.target[:21])


@pytest.mark.parametrize("rule", [FAIR, LassoLogistic])
def test_two_class_rules_refuse_more(rule: Any) -> None:
    khan = load_khan()
    with pytest.raises(ValueError, match="4 classes"):
        rule().fit(khan.data, khan.target)


@pytest.mark.parametrize("rule", ALL)
def test_bad_input_is_named(rule: Any, sim: Any) -> None:
    broken = sim.data.copy()
    broken[3, 5] = np.inf
    with pytest.raises(ValueError, match="column 5"):
        rule().fit(broken, sim.target)
    with pytest.raises(ValueError, match="one class only"):
        rule().fit(sim.data, ["a"] * 40)
    with pytest.raises(ValueError, match=r"constant|do not vary"):
        rule().fit(np.ones((40, 3)), sim.target)
