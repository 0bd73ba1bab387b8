"""Known batches and covariates, against limma and by what they promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.stats import kstest, norm
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ebda
from ebda import EBClassifier
from ebda.evaluation import cross_validate
from ebda.report import render
from ebda.sizes import override
from ebda.typing import FloatArray, IntArray

LIMMA = json.loads(
    (Path(__file__).parent / "reference" / "limma_covariates.json").read_text()
)


def quick(**parameters: Any) -> EBClassifier:
    given = {"calibrate": False, "covariance": "diagonal", "shrinkage": "mean"}
    return EBClassifier(**(given | parameters))


def batches(
    seed: int, n: int = 40, p: int = 800, confounding: float = 0.3, effect: float = 0.0
) -> tuple[FloatArray, IntArray, dict[str, Any]]:
    """Two classes on two plates, unevenly, with effects of age and plate."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    plate = np.where(rng.random(n) < 0.5 + confounding * (y - 0.5), "p2", "p1")
    age = rng.normal(50, 10, n) + 5 * y
    X = rng.normal(size=(n, p)) + np.outer(plate == "p2", rng.normal(0, 2, p))
    X += np.outer(age, rng.normal(0, 0.1, p))
    X[:, :20] += effect * y[:, None]
    return X, y, {"plate": plate, "age": age}


@pytest.mark.parametrize("kind", ["two", "three"])
def test_statistics_are_those_of_limma(kind: str) -> None:
    X = np.array(LIMMA["X"])
    covariates = {name: LIMMA[name] for name in ("age", "sex", "plate")}
    name, t = ("class", LIMMA["t"]) if kind == "two" else ("class3", LIMMA["t3"])
    model = quick().fit(X, np.array(LIMMA[name]), covariates=covariates)
    expected = np.atleast_2d(t)
    np.testing.assert_allclose(model.contrasts_.z, expected, rtol=1e-6, atol=1e-9)
    if kind == "two":
        means = model.moments_.means
        difference = np.array(LIMMA["coefficient"])
        np.testing.assert_allclose(means[1] - means[0], difference, rtol=1e-6)
        assert model.moments_.residual_df == pytest.approx(18)


def test_coefficients_are_those_of_least_squares() -> None:
    X, y, covariates = batches(0)
    model = quick().fit(X, y, covariates=covariates)
    plate = (covariates["plate"] == "p2").astype(float)
    D = np.column_stack([np.ones(40), y, plate, covariates["age"]])
    b, rss = np.linalg.lstsq(D, X, rcond=None)[:2]
    found = model.covariates_
    assert found is not None
    slopes = found.slopes[found.slopes.any(axis=1)]
    # The first plate has the slope, and the second none.
    np.testing.assert_allclose(slopes, [-b[2], b[3]], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.moments_.centred_squares.sum(axis=0), rss)


@pytest.mark.slow
def test_z_is_standard_normal_under_the_null() -> None:
    z, naive = [], []
    for seed in range(5):
        X, y, covariates = batches(seed)
        z.append(quick().fit(X, y, covariates=covariates).contrasts_.z.ravel())
        naive.append(quick().fit(X, y).contrasts_.z.ravel())
    assert kstest(np.concatenate(z), norm.cdf).statistic < 0.02
    assert abs(np.mean(np.abs(np.concatenate(z)) > 1.96) - 0.05) < 0.01
    assert kstest(np.concatenate(naive), norm.cdf).statistic > 0.05


@pytest.mark.slow
def test_held_out_samples_are_adjusted_without_themselves() -> None:
    """Without a difference of the classes neither they nor new ones are separated.

    The errors of slopes and means are dependent, and without the correction of that
    scores of very many features tell the covariates, and by them the class.
    """
    held_out, new = [], []
    for seed in range(8):
        X, y, known = batches(seed + 20, n=440, p=3000, confounding=0.6)
        fitted = {name: column[:40] for name, column in known.items()}
        model = EBClassifier(covariance="diagonal", shrinkage="mean")
        model.fit(X[:40], y[:40], covariates=fitted)
        held_out.append(model.selection_.combined)
        others = {name: column[40:] for name, column in known.items()}
        score = model.decision_function(X[40:], covariates=others)
        one, two = score[y[40:] == 0], score[y[40:] == 1]
        sd = np.sqrt((one.var() + two.var()) / 2)
        new.append((two.mean() - one.mean()) / (2 * sd))
    assert np.mean(held_out) == pytest.approx(np.mean(new), abs=0.25)
    # What is left of 2.5, because the prior is estimated from the same noise.
    assert abs(np.mean(new)) < 0.5


@pytest.mark.slow
def test_adjusting_for_a_batch_lowers_the_error() -> None:
    errors = []
    for adjusts in (True, False):
        total = 0.0
        for seed in range(3):
            X, y, known = batches(seed + 40, n=60, p=300, effect=0.8)
            given = known if adjusts else None
            table = None if given is None else pd.DataFrame(given)
            total += cross_validate(EBClassifier(), X, y, covariates=table).error
        errors.append(total / 3)
    assert errors[0] < errors[1] - 0.03


@pytest.mark.parametrize("constant", [np.ones(40), ["one plate"] * 40])
def test_a_constant_covariate_changes_nothing(constant: Any) -> None:
    X, y, _ = batches(1)
    model, plain = EBClassifier().fit(X, y, covariates=constant), EBClassifier()
    plain.fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert model.covariates_ is None


def test_what_others_tell_adds_nothing() -> None:
    X, y, known = batches(2)
    site = np.where(known["plate"] == "p2", "north", "south")
    once = quick().fit(X, y, covariates=known)
    twice = quick().fit(X, y, covariates=known | {"site": site, "days": known["age"]})
    np.testing.assert_allclose(twice.coef_, once.coef_, rtol=1e-9, atol=1e-12)


def test_predictions_are_those_of_adjusted_samples() -> None:
    X, y, known = batches(3, effect=1.0)
    model = EBClassifier().fit(X, y, covariates=known)
    found = model.covariates_
    assert found is not None
    columns = np.column_stack(
        [known["plate"] == "p1", known["plate"] == "p2", known["age"]]
    )
    order = [1, 2, 0] if found.is_number[0] else [0, 1, 2]
    columns = columns[:, order] - found.centre
    adjusted = X - columns @ found.slopes
    assert found.bias is not None
    np.testing.assert_allclose(
        model.decision_function(X, covariates=known),
        model.decision_function(adjusted) + columns @ found.bias[0],
    )
    model.covariates_ = replace(found, between=None, divergence=None)
    for method in ("decision_function", "transform", "predict", "predict_proba"):
        score = getattr(model, method)
        np.testing.assert_allclose(score(X, covariates=known), score(adjusted))
    assert model.score(X, y, covariates=known) == model.score(adjusted, y)
    np.testing.assert_allclose(columns.mean(axis=0), 0.0, atol=1e-12)


def test_samples_without_covariates_have_their_mean() -> None:
    X, y, known = batches(4)
    age = known["age"]
    model = quick().fit(X, y, covariates=age)
    at_mean = model.decision_function(X, covariates=np.full(40, age.mean()))
    np.testing.assert_allclose(model.decision_function(X), at_mean, atol=1e-9)


def test_rescaled_covariates_change_nothing() -> None:
    X, y, known = batches(5)
    model = EBClassifier().fit(X, y, covariates=known)
    other = known | {"age": 365.25 * known["age"] - 1e4}
    moved = EBClassifier().fit(X, y, covariates=other)
    np.testing.assert_allclose(moved.coef_, model.coef_, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(
        moved.predict_proba(X, covariates=other),
        model.predict_proba(X, covariates=known),
        rtol=1e-6,
    )


@pytest.mark.parametrize("kind", ["csr", "csc", "memmap", "dask"])
def test_every_kind_of_data_is_adjusted(kind: str, tmp_path: Any) -> None:
    X, y, known = batches(6, p=150, effect=1.0)
    X[np.abs(X) < 0.5] = 0.0
    if kind == "dask":
        data: Any = pytest.importorskip("dask.array").from_array(X, chunks=(15, 60))
    elif kind == "memmap":
        data = np.memmap(tmp_path / "x", X.dtype, mode="w+", shape=X.shape)
        data[:] = X
    else:
        data = sparse.csr_array(X) if kind == "csr" else sparse.csc_array(X)
    model = EBClassifier().fit(X, y, covariates=known)
    with override(tile_elements=700, block_bytes=4000):
        other = EBClassifier().fit(data, y, covariates=known)
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(
        np.asarray(other.predict_proba(data, covariates=known)),
        model.predict_proba(X, covariates=known),
        rtol=1e-6,
    )


def test_groups_and_covariates_go_together() -> None:
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(24), 4)
    y, age = groups % 2, rng.normal(50, 10, 24)[groups]
    X = 0.7 * rng.normal(size=(24, 3000))[groups] + 0.7 * rng.normal(size=(96, 3000))
    X += np.outer(age, rng.normal(0, 0.1, 3000))
    model = EBClassifier().fit(X, y, groups=groups, covariates=age)
    assert model.groups_ is not None
    assert model.groups_.icc == pytest.approx(0.5, abs=0.05)
    assert model.contrasts_.z.std() == pytest.approx(1.0, abs=0.05)
    order = rng.permutation(96)
    other = EBClassifier().fit(
        X[order], y[order], groups=groups[order], covariates=age[order]
    )
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5, atol=1e-10)


def test_weights_are_repetitions() -> None:
    X, y, known = batches(8, p=100)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    rows = np.repeat(np.arange(40), weight)
    once = quick().fit(X, y, sample_weight=weight, covariates=known["age"])
    repeated = quick().fit(X[rows], y[rows], covariates=known["age"][rows])
    np.testing.assert_allclose(once.coef_, repeated.coef_, rtol=1e-8)


def test_a_confounded_batch_is_an_error() -> None:
    X, y, known = batches(9)
    with pytest.raises(ValueError, match=r"'batch' cannot be told from the class 0"):
        EBClassifier().fit(X, y, covariates=known | {"batch": 1 - y})
    three = np.arange(40) % 3
    plate = np.where(three == 2, "last", "first")
    with pytest.raises(ValueError, match=r"'plate' cannot be told from the class 2"):
        EBClassifier().fit(X, three, covariates={"plate": plate})


def test_a_partly_confounded_batch_is_a_caution() -> None:
    X, y, known = batches(10, confounding=0.9)
    model = EBClassifier().fit(X, y, covariates=known)
    assert "partly confounded" in str(model.covariates_)
    assert "Covariates partly confounded" in render(model)
    X, y, known = batches(10, confounding=0.0)
    found = EBClassifier().fit(X, y, covariates=known["plate"]).covariates_
    assert found is not None
    assert not found.caution


def test_a_new_category_has_the_mean_and_a_warning() -> None:
    X, y, known = batches(11)
    model = quick().fit(X, y, covariates={"plate": known["plate"]})
    with pytest.warns(UserWarning, match="'plate' has 'p9', which no sample"):
        score = model.decision_function(X, covariates={"plate": ["p9"] * 40})
    np.testing.assert_allclose(score, model.decision_function(X), atol=1e-12)


@pytest.mark.parametrize(
    ("covariates", "words"),
    [
        ({"age": np.ones(3)}, r"'age' has shape \(3,\)"),
        ({"age": [np.nan, *range(39)]}, "'age' has 1 missing value"),
        ({"age": [np.inf, *range(39)]}, "infinite"),
        ({"site": ["1", *range(39)]}, "'site' has '1' as int and as str"),
        (np.zeros((40, 2, 2)), "3 dimensions"),
    ],
)
def test_covariates_are_checked(covariates: Any, words: str) -> None:
    X, y, _ = batches(12, p=10)
    with pytest.raises(ValueError, match=words):
        EBClassifier().fit(X, y, covariates=covariates)


def test_what_cannot_be_done_is_an_error() -> None:
    X, y, known = batches(13, p=10)
    age, plate = known["age"], known["plate"]
    with pytest.raises(ValueError, match="partial_fit takes no covariates"):
        EBClassifier().partial_fit(X, y, [0, 1], covariates=age)
    model = quick().fit(X, y, covariates={"age": age})
    with pytest.raises(ValueError, match="after a fit with covariates"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="those of the fit were 'age'"):
        model.predict(X, covariates={"plate": plate})
    with pytest.raises(ValueError, match="'age' had numbers in the fit"):
        model.predict(X, covariates={"age": plate})
    with pytest.raises(ValueError, match="fitted without covariates"):
        quick().fit(X, y).predict(X, covariates=age)
    many = np.random.default_rng(0).normal(size=(40, 38))
    with pytest.raises(ValueError, match="no degrees of freedom"):
        quick().fit(X, y, covariates=many)
    with pytest.raises(ValueError, match="takes no covariates"):
        cross_validate(LogisticRegression(), X, y, covariates=age)
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match=r"infinity in column 4"):
        quick().fit(X, y, covariates=age)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X, covariates={"age": age})


def test_onnx_has_no_covariates() -> None:
    pytest.importorskip("onnx")
    X, y, known = batches(14, p=10)
    model = quick().fit(X, y, covariates=known)
    with pytest.raises(ValueError, match="covariates"):
        ebda.to_onnx(model)


def test_a_model_file_keeps_covariates(tmp_path: Any) -> None:
    X, y, known = batches(15, p=60)
    model = EBClassifier().fit(X, y, covariates=known)
    ebda.save(model, tmp_path / "model.ebda")
    loaded = ebda.load(tmp_path / "model.ebda")
    assert str(loaded.covariates_) == str(model.covariates_)
    np.testing.assert_array_equal(
        loaded.predict_proba(X, covariates=known),
        model.predict_proba(X, covariates=known),
    )


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_covariates_are_routed(routing: None) -> None:
    X, y, known = batches(16, p=60)
    table = pd.DataFrame(known)
    own = quick().set_fit_request(covariates=True)
    own.set_predict_request(covariates=True).set_predict_proba_request(covariates=True)
    own.set_score_request(covariates=True)
    pipeline = make_pipeline(StandardScaler(), own)
    pipeline.fit(X, y, covariates=table)
    assert pipeline[-1].covariates_ is not None
    labels = pipeline.predict(X, covariates=table)
    assert (labels != pipeline.predict(X)).any()
    search = GridSearchCV(pipeline, {"ebclassifier__variance": ["pooled"]}, cv=3)
    search.fit(X, y, covariates=table)
    assert search.best_estimator_[-1].covariates_ is not None
    assert cross_validate(pipeline, X, y, covariates=table).n_folds == 5


@pytest.mark.parametrize("kind", ["pandas", "polars", "list", "categorical"])
def test_tables_of_all_kinds_say_the_same(kind: str) -> None:
    X, y, known = batches(17, p=60)
    table: Any = pd.DataFrame(known)
    if kind == "polars":
        table = pytest.importorskip("polars").DataFrame(known)
    elif kind == "categorical":
        table["plate"] = table["plate"].astype("category")
    expected = quick().fit(X, y, covariates=known).coef_
    if kind == "list":
        table = [list(row) for row in zip(known["plate"], known["age"], strict=True)]
    np.testing.assert_allclose(quick().fit(X, y, covariates=table).coef_, expected)


def test_the_ranking_is_that_of_limma() -> None:
    X = np.array(LIMMA["X"])
    covariates = {name: LIMMA[name] for name in ("age", "sex", "plate")}
    model = quick().fit(X, np.array(LIMMA["class"]), covariates=covariates)
    marginal = model.ranking_.marginal
    np.testing.assert_allclose(marginal.t, LIMMA["t"], rtol=1e-6)
    np.testing.assert_allclose(marginal.p_value, LIMMA["p_value"], rtol=1e-6)
    np.testing.assert_allclose(marginal.df, LIMMA["df_total"], rtol=1e-6)


def test_a_variance_for_each_class_is_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 50)), np.arange(24) % 2
    rule = EBClassifier(variance="separate")
    with pytest.raises(ValueError, match="use 'moderated' or 'pooled' with covariates"):
        rule.fit(X, y, covariates=rng.normal(size=(24, 2)))


def test_a_class_of_no_weight_is_named() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 30)), np.repeat(["a", "b"], 10)
    weight = np.repeat([1.0, 0.0], 10)
    with pytest.raises(ValueError, match="no sample of class 'b'"):
        EBClassifier().fit(X, y, sample_weight=weight, groups=np.arange(20) // 2)


def test_a_rule_without_features_has_the_bias_of_the_others() -> None:
    """As if the estimates of the features that are gone had been zero."""
    X, y, known = batches(18, n=60, p=200, effect=1.0, confounding=0.5)
    model = EBClassifier(covariance="diagonal", shrinkage="mean")
    model.fit(X, y, covariates=known)
    absent = np.arange(200) % 3 > 0
    found, rest = model.covariates_, model.without(absent).covariates_
    assert found is not None
    assert rest is not None
    assert found.bias is not None
    assert found.divergence is not None
    assert rest.bias is not None
    # Weights of the scores grow by what the standard deviation lacks.
    left = model.without(absent).coef_
    factor = np.max(left[:, ~absent] / model.coef_[:, ~absent])
    share = found.divergence[:, ~absent].sum() / found.divergence.sum()
    np.testing.assert_allclose(rest.bias, factor * share * found.bias, rtol=1e-10)
    assert 0.1 < share < 0.6
    # Nothing of the absent features is left: what they are does not matter.
    other = X.copy()
    other[:, absent] = 1e3
    np.testing.assert_allclose(
        model.without(absent).decision_function(other, covariates=known),
        model.without(absent).decision_function(X, covariates=known),
    )
    # In two steps as in one.
    twice = model.without(np.arange(200) % 3 == 1).without(absent)
    assert twice.covariates_ is not None
    np.testing.assert_allclose(twice.covariates_.bias, rest.bias, rtol=1e-10)
    np.testing.assert_allclose(twice.intercept_, model.without(absent).intercept_)


def test_a_rule_without_all_features_has_no_bias() -> None:
    X, y, known = batches(19, n=60, p=40)
    model = quick().fit(X, y, covariates=known).without(np.ones(40, bool))
    assert model.covariates_ is not None
    np.testing.assert_array_equal(model.covariates_.bias, 0.0)
    score = model.decision_function(X, covariates=known)
    np.testing.assert_allclose(score, score[0])


def test_missing_covariates_are_counted_before_any_fold() -> None:
    rng = np.random.default_rng(0)
    X, age = rng.normal(size=(30, 5)), np.arange(30.0)
    age[11:21] = np.nan
    expected = "'covariate' has 10 missing values, the first in row 11;"
    with pytest.raises(ValueError, match=expected):
        cross_validate(EBClassifier(), X, np.repeat([0, 1], 15), covariates=age)
