"""Missing values: moments, contrasts, correlations, folds, scores of what is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest
from scipy.stats import t as student
from sklearn.utils import get_tags

from ebda import EBClassifier, modelfile
from ebda.baselines import FAIR, GreenshteinPark, IndependenceRule
from ebda.cli import main
from ebda.covariance import Summary
from ebda.covariance.factor import Factors, factors_of
from ebda.covariance.summary import mean_overlap
from ebda.data import InMemory, Labels
from ebda.data.disk import open_parquet
from ebda.data.disk.kept import DenseKept
from ebda.data.disk.source import Block
from ebda.data.finite import has_nan
from ebda.moments import (
    VARIANCES,
    ClassMoments,
    class_contrasts,
    class_moments,
    merge_all,
)
from ebda.moments.contrasts import error_factor
from ebda.moments.variance import degrees_of_freedom, variance_prior
from ebda.rule.expected import Expectation, GapScores
from ebda.selection.stack import FoldStack
from ebda.sizes import override

LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


def draw(
    n: int = 40, p: int = 60, k: int = 2, share: float = 0.2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Two common factors, a few differences, and values missing at random."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 2)) @ rng.normal(size=(2, p))
    X[:, :10] += 1.5 * y[:, None]
    X[rng.random((n, p)) < share] = np.nan
    return X, y


def feature_by_feature(
    X: np.ndarray, y: np.ndarray, k: int, weight: np.ndarray | None = None
) -> list[ClassMoments]:
    """Moments of each feature over the samples that have it."""
    return [
        class_moments(
            x[there, None], y[there], k, None if weight is None else weight[there]
        )
        for x in X.T
        for there in [~np.isnan(x)]
    ]


def assert_same(got: ClassMoments, want: ClassMoments, rtol: float = 1e-11) -> None:
    for name in ("counts", "means", "centred_squares"):
        pair = getattr(got, name), getattr(want, name)
        np.testing.assert_allclose(*pair, rtol=rtol, atol=rtol)
    n = np.broadcast_to(want.n_values, want.means.shape)
    np.testing.assert_allclose(np.broadcast_to(got.n_values, n.shape), n, rtol=rtol)


# Moments


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_are_those_of_complete_cases(layout: str, weighted: bool) -> None:
    X, y = draw(37, 11, 3)
    weight = np.random.default_rng(1).uniform(0, 2, 37) if weighted else None
    got = class_moments(LAYOUTS[layout](X), y, 3, weight)
    assert got.observed is not None
    for j, want in enumerate(feature_by_feature(X, y, 3, weight)):
        np.testing.assert_allclose(got.observed[:, j], want.counts, rtol=1e-12)
        np.testing.assert_allclose(got.means[:, j], want.means[:, 0], rtol=1e-11)
        np.testing.assert_allclose(
            got.centred_squares[:, j], want.centred_squares[:, 0], rtol=1e-11
        )


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_compiled_loop_agrees_with_numpy(kind: type) -> None:
    X, y = draw(50, 300)
    X = X.astype(kind)
    want = class_moments(X, y, 2)
    with override(compiled_elements=0):
        got = class_moments(X, y, 2)
    assert_same(got, want, 1e-12)


@pytest.mark.parametrize("compiled_elements", [0, 1 << 25])
def test_complete_features_keep_their_bits(compiled_elements: int) -> None:
    X, y = draw(share=0.0)
    gaps = X.copy()
    gaps[::3, 5] = np.nan
    with override(compiled_elements=compiled_elements):
        want, got = class_moments(X, y, 2), class_moments(gaps, y, 2)
    others = np.arange(X.shape[1]) != 5
    assert got.observed is not None
    for name in ("means", "centred_squares"):
        pair = getattr(got, name)[:, others], getattr(want, name)[:, others]
        np.testing.assert_array_equal(*pair)
    assert (got.observed[:, others] == got.counts[:, None]).all()
    assert want.observed is None
    assert got.features(np.flatnonzero(others)).observed is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_in_any_order_merge_to_one_pass(layout: str) -> None:
    X, y = draw(60, 9, 3)
    X[:20] = np.nan_to_num(X[:20])  # a batch in which nothing is missing
    X[40:, 4] = np.nan
    want = class_moments(X, y, 3)
    cut = [slice(0, 20), slice(20, 41), slice(41, 60)]
    parts = [class_moments(LAYOUTS[layout](X[rows]), y[rows], 3) for rows in cut]
    assert_same(merge_all(parts), want)
    a, b, c = parts
    assert_same(a.merge(b.merge(c)), want)
    assert_same(c.merge(a).merge(b), want)
    joined = ClassMoments.join_features(
        [class_moments(X[:, :4], y, 3), class_moments(X[:, 4:], y, 3)]
    )
    assert_same(joined, want)


def test_samples_without_any_value_change_no_mean() -> None:
    X, y = draw(share=0.0)
    more = np.vstack([X, np.full((4, X.shape[1]), np.nan)])
    got = class_moments(more, np.append(y, [0, 0, 1, 1]), 2)
    want = class_moments(X, y, 2)
    assert_same(replace(got, counts=want.counts), want)


def test_infinity_is_no_missing_value() -> None:
    X, y = draw()
    X[3, 7] = np.inf
    moments = class_moments(X, y, 2)
    assert not np.isfinite(moments.means[y[3], 7])
    assert np.isfinite(np.delete(moments.means, 7, axis=1)).all()
    assert has_nan(X)
    assert has_nan(sparse.csr_array(X))
    assert not has_nan(np.array([[np.inf, -np.inf]]))


# Variances and contrasts


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["pooled", "separate"])
def test_z_is_that_of_complete_cases(name: str, k: int) -> None:
    """The t of each feature by itself, or its normal quantile among all features."""
    X, y = draw(60, 8, k)
    moments = class_moments(X, y, k)
    variance = VARIANCES[name].estimate(moments)
    contrasts = class_contrasts(moments, variance)
    df = np.broadcast_to(variance.degrees_of_freedom, (8,))
    for j, own in enumerate(feature_by_feature(X, y, k)):
        alone = VARIANCES[name].estimate(own)
        np.testing.assert_allclose(variance.within[j], alone.within[0], rtol=1e-10)
        assert df[j] == alone.degrees_of_freedom
        weights = contrasts.positive - contrasts.negative
        spread = np.broadcast_to(alone.by_class[:, 0], k)
        scale = np.sqrt((weights**2 / own.counts * spread).sum(axis=1))
        t = (weights @ own.means)[:, 0] / scale
        p = 2 * student.sf(np.abs(contrasts.z[:, j]), 60 - k)
        np.testing.assert_allclose(p, 2 * student.sf(np.abs(t), df[j]), rtol=1e-6)
        np.testing.assert_array_equal(np.sign(contrasts.z[:, j]), np.sign(t))
        # z times its standard error is the difference, whatever its tails.
        d = contrasts.z[:, j] * contrasts.scale[:, j]
        np.testing.assert_allclose(d, weights @ moments.means[:, j], rtol=1e-9)


# The call and the versions of limma and R are in the file.
LIMMA = json.loads(
    (Path(__file__).parent / "reference" / "squeeze_var.json").read_text()
)


def test_moderated_variances_with_unequal_degrees_of_freedom_are_those_of_limma() -> (
    None
):
    s2, df = np.array(LIMMA["var"]), np.array(LIMMA["df"])
    prior = variance_prior(s2, df)
    assert prior.degrees_of_freedom == pytest.approx(LIMMA["df.prior"], rel=1e-6)
    assert prior.variance == pytest.approx(LIMMA["var.prior"], rel=1e-6)
    np.testing.assert_allclose(prior.shrink(s2, df), LIMMA["var.post"], rtol=1e-6)


def test_equal_degrees_of_freedom_give_the_prior_of_one_number() -> None:
    rng = np.random.default_rng(0)
    s2 = rng.chisquare(9, 500) / 9 / rng.gamma(3, 1 / 3, 500)
    s2[:3] *= 1e6  # outliers
    one, each = variance_prior(s2, 9.0), variance_prior(s2, np.full(500, 9.0))
    assert each.degrees_of_freedom == pytest.approx(one.degrees_of_freedom, rel=1e-9)
    assert each.variance == pytest.approx(one.variance, rel=1e-9)
    np.testing.assert_allclose(
        each.shrink(s2, np.full(500, 9.0)), one.shrink(s2, 9.0), rtol=1e-9
    )


def test_without_degrees_of_freedom_the_prior_stands_for_the_variance() -> None:
    X, y = draw(40, 200)
    X[2:, 3] = np.nan  # one value in each class
    moments = class_moments(X, y, 2)
    variance = VARIANCES["moderated"].estimate(moments)
    df = degrees_of_freedom(moments)
    s2 = moments.centred_squares.sum(axis=0) / np.maximum(df, 1.0)
    prior = variance_prior(np.where(df > 0, s2, 0.0), df)
    assert variance.known is None
    assert variance.within[3] == pytest.approx(prior.variance, rel=1e-12)
    contrasts = class_contrasts(moments, variance)
    assert not contrasts.constant[3]
    pooled = VARIANCES["pooled"].estimate(moments)
    assert pooled.known is not None
    assert not pooled.known[3]
    assert class_contrasts(moments, pooled).constant[3]


@pytest.mark.parametrize("variance", list(VARIANCES))
@pytest.mark.parametrize("k", [2, 3])
def test_p_values_without_differences_are_uniform(variance: str, k: int) -> None:
    rng = np.random.default_rng(k)
    X = rng.normal(size=(45, 4000)) * rng.gamma(2, 1, 4000)
    X[rng.random(X.shape) < 0.4] = np.nan
    moments = class_moments(X, np.arange(45) % k, k)
    contrasts = class_contrasts(moments, VARIANCES[variance].estimate(moments))
    df = 45 - k
    p = 2 * student.sf(np.abs(contrasts.z[0, ~contrasts.constant]), df)
    if variance == "moderated":  # the prior adds degrees of freedom
        assert (p < 0.01).mean() < 0.014
    elif variance == "pooled":  # those of Welch's test are fewer
        assert kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("model", [EBClassifier, IndependenceRule])
def test_a_feature_without_values_in_a_class_has_no_weight(model: Any) -> None:
    X, y = draw()
    want = model().fit(np.delete(X, [4, 8], axis=1), y)
    # A variance of one class would tell something about those of other features.
    X[y == 1, 4] = X[2:, 4] = np.nan
    X[:, 8] = np.nan
    found = model().fit(X, y)
    assert found.contrasts_.constant[[4, 8]].all()
    assert not found.selected_[[4, 8]].any()
    assert found.moments_.without_values.nonzero()[0].tolist() == [4, 8]
    np.testing.assert_allclose(
        np.delete(found.coef_, [4, 8], axis=1), want.coef_, rtol=1e-6, atol=1e-9
    )
    new = np.random.default_rng(3).normal(size=(5, X.shape[1]))
    got, known = found.predict_proba(new), np.delete(new, [4, 8], axis=1)
    np.testing.assert_allclose(got, want.predict_proba(known), rtol=1e-5)


def test_standard_errors_count_values() -> None:
    n = np.array([[4.0, 2.0], [4.0, 8.0]])
    got = error_factor(np.ones((1, 2)), n)
    np.testing.assert_allclose(got, [[0.5, 0.625]])
    np.testing.assert_array_equal(error_factor(np.ones((1, 2)), n[:, :1]), got[:, :1])


# Correlation


def summary(X: np.ndarray, y: np.ndarray) -> Summary:
    k = int(y.max()) + 1
    data = InMemory(X)
    moments, samples = data.summarise(Labels(y, k, allow_missing=True), keep=True)
    contrasts = class_contrasts(moments, VARIANCES["moderated"].estimate(moments))
    return Summary(moments, contrasts, samples)


def test_overlap_is_the_share_where_values_are_missing_by_chance() -> None:
    rng = np.random.default_rng(0)
    there = rng.random((200, 300)) < 0.6
    used = np.ones(300, bool)
    assert mean_overlap(there, np.ones(200), used) == pytest.approx(0.6, abs=0.01)
    # By hand, of two features.
    small = np.array([[1, 1], [1, 0], [0, 1], [1, 1]], bool)
    assert mean_overlap(small, np.ones(4), used[:2]) == pytest.approx(2 / 3)
    assert mean_overlap(small, np.ones(4), np.array([True, False])) == 1.0


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_factors_have_their_size_however_many_values_are_missing(share: float) -> None:
    rng = np.random.default_rng(1)
    L = rng.normal(size=(2, 3000))
    X = rng.normal(size=(80, 3000)) + rng.normal(size=(80, 2)) @ L
    X[rng.random(X.shape) < share] = np.nan
    factors = factors_of(summary(X, np.arange(80) % 2))
    assert isinstance(factors, Factors)
    truth = L.T / np.sqrt(1 + (L**2).sum(axis=0))[:, None]
    explained = (factors.loadings**2).sum() / (truth**2).sum()
    assert 0.8 < explained < 1.15
    # The noise of the contrasts has less of them.
    _, specific = factors.of_contrasts
    assert specific.mean() >= factors.specific.mean()


def test_what_is_left_of_contrasts_has_unit_noise() -> None:
    rng = np.random.default_rng(2)
    L = 2 * rng.normal(size=(1, 3000))
    X = rng.normal(size=(80, 3000)) + rng.normal(size=(80, 1)) @ L
    X[rng.random(X.shape) < 0.4] = np.nan
    data = summary(X, np.arange(80) % 2)
    factors = factors_of(data)
    assert factors is not None
    z = factors.decorrelate(data.contrasts.z).z
    assert np.std(z) == pytest.approx(1.0, abs=0.1)


# Scores


def test_expected_values_give_the_discriminant_of_the_other_features() -> None:
    """w_o + R_oo^-1 R_om w_m = R_oo^-1 d_o, for a factor model."""
    rng = np.random.default_rng(0)
    p = 12
    L, psi = rng.normal(size=(p, 2)), rng.uniform(0.2, 1, p)
    sigma, mean = L @ L.T + np.diag(psi), rng.normal(size=(2, p))
    d, middle = mean[1] - mean[0], mean.mean(axis=0)
    coef = np.linalg.solve(sigma, d)
    x, gone = rng.normal(size=p), rng.random(p) < 0.4
    rule = GapScores(
        coef[None],
        -coef[None] @ middle,
        middle[None],
        np.ones(p),
        expectation=Expectation(L, psi),
    )
    sample = InMemory(np.where(gone, np.nan, x)[None])
    score = sample.scores(rule.coef, rule.intercept, rule)
    kept = np.ix_(~gone, ~gone)
    want = np.linalg.solve(sigma[kept], d[~gone]) @ (x - middle)[~gone]
    np.testing.assert_allclose(score, [[want]], rtol=1e-10)


@pytest.mark.parametrize("k", [2, 3])
def test_the_independence_rule_adds_up_the_features_that_are_there(k: int) -> None:
    X, y = draw(60, 20, k, share=0.1)
    model = IndependenceRule().fit(X, y)
    sides = (model.contrasts_.positive + model.contrasts_.negative) / 2
    middle = sides @ model.moments_.means
    odds = np.log(np.bincount(y) / len(y))
    odds = odds[1:] - odds[:1] if k == 2 else odds
    part = np.where(np.isnan(X)[:, None], 0.0, X[:, None] - middle)
    want = (part * model.coef_).sum(axis=2) + odds
    got = model.transform(X)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_folds_without_gaps_are_folds(k: int) -> None:
    """Samples of which nothing is missing, on the path of those with missing values."""
    X, y = draw(30, 50, k, share=0.0)
    data = summary(X, y)
    broadcast = np.tile(data.moments.counts[:, None], (1, 50))
    moments = replace(data.moments, observed=broadcast)
    same = Summary(moments, data.contrasts, data.samples)
    train = [np.arange(0, 25), np.arange(5, 30)]
    test = [np.arange(25, 30), np.arange(5)]
    plain, gaps = FoldStack(data, train), FoldStack(same, train)
    assert plain.gaps is None
    assert gaps.gaps is not None
    np.testing.assert_allclose(gaps.contrasts.z, plain.contrasts.z, rtol=1e-9)
    factor = np.broadcast_to(
        plain.contrasts.variance_factor, gaps.contrasts.variance_factor.shape
    )
    np.testing.assert_allclose(gaps.contrasts.variance_factor, factor, rtol=1e-9)
    weights = np.random.default_rng(0).normal(size=plain.contrasts.z.shape)
    nothing = np.zeros(len(weights))
    np.testing.assert_allclose(
        gaps.scores(weights, np.zeros_like(weights), test),
        plain.scores(weights, nothing, test),
        rtol=1e-8,
        atol=1e-9,
    )


def test_held_out_scores_know_nothing_of_the_class_of_a_sample() -> None:
    """A held-out sample without values gets the same score whatever its class is."""
    X, y = draw(30, 50, share=0.1)
    X[[28, 29]] = np.nan
    assert y[28] != y[29]
    stack = FoldStack(summary(X, y), [np.arange(28)])
    weights = np.random.default_rng(0).normal(size=stack.contrasts.z.shape)
    scores = stack.scores(weights, np.zeros_like(weights), [np.array([28, 29])])
    np.testing.assert_allclose(scores, 0.0, atol=1e-12)


# The classifiers, and all that they go through


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "covariance", ["auto", "diagonal", "factor", "shrunken", "neighbours"]
)
def test_the_classifier_takes_missing_values(covariance: str, k: int) -> None:
    X, y = draw(60, 300, k, share=0.3)
    new, truth = draw(200, 300, k, share=0.3, seed=0)
    model = EBClassifier(covariance=covariance).fit(X, y)
    for given in (new, np.nan_to_num(new), np.full((2, 300), np.nan)):
        p = model.predict_proba(given)
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.predict(X) == y).mean() > 0.9
    assert get_tags(model).input_tags.allow_nan
    np.testing.assert_allclose(
        model.transform(np.nan_to_num(X)), np.nan_to_num(X) @ model.coef_.T
        + model.intercept_, rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    assert len(truth) == 200


def test_factors_tell_missing_values_of_new_samples() -> None:
    """A model of complete data, and new samples of which 60 % are missing."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    L = rng.normal(size=(2, 400))
    X = 0.5 * rng.normal(size=(400, 400)) + rng.normal(size=(400, 2)) @ L
    X[:, :20] += 0.5 * y[:, None]
    assert EBClassifier().fit(X[:100], y[:100]).expectation_ is None
    model = EBClassifier(covariance="factor").fit(X[:100], y[:100])
    assert model.expectation_ is not None
    gaps = np.where(rng.random(X.shape) < 0.6, np.nan, X)[100:]
    expected = (model.predict(gaps) != y[100:]).mean()
    model.expectation_ = None
    at_midpoint = (model.predict(gaps) != y[100:]).mean()
    assert expected < 0.8 * at_midpoint


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_model_file_keeps_what_missing_values_need(
    share: float, tmp_path: Path
) -> None:
    X, y = draw(40, 200, share=share)
    model = EBClassifier(covariance="factor").fit(X, y)
    assert model.expectation_ is not None
    modelfile.save(model, tmp_path / "model")
    again = modelfile.load(tmp_path / "model")
    X[::2, ::3] = np.nan
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.posterior_mean_, model.posterior_mean_)
    if share:
        np.testing.assert_array_equal(again.moments_.observed, model.moments_.observed)


@pytest.mark.filterwarnings("ignore:fit keeps no samples:UserWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stream_of_batches_is_one_fit(layout: str) -> None:
    X, y = draw(60, 80, share=0.15)
    X[:20] = np.nan_to_num(X[:20])
    model = EBClassifier()
    for rows in (slice(0, 20), slice(20, 45), slice(45, 60)):
        model.partial_fit(LAYOUTS[layout](X[rows]), y[rows], classes=[0, 1])
    want = EBClassifier().fit(X, y)
    np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), want.predict_proba(X), rtol=1e-6)


def test_integers_with_nulls_in_parquet_files(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 50, (60, 40)).astype(float), np.arange(60) % 2
    X[:, :5] += 20 * y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:30] = np.nan_to_num(X[:30])  # no nulls in the first row group
    columns = {
        f"g{j}": pa.array([None if np.isnan(v) else int(v) for v in x], pa.int64())
        for j, x in enumerate(X.T)
    }
    path = tmp_path / "X.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=30)
    with override(block_rows=1, block_bytes=1 << 12):
        model = EBClassifier().fit(open_parquet(path), y)
        got = model.predict_proba(open_parquet(path))
    want = EBClassifier().fit(X, y)
    np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(got, want.predict_proba(X), rtol=1e-7)


def test_kept_rows_widen_their_type_for_the_first_missing_value() -> None:
    kept = DenseKept(np.arange(4), 2, np.dtype(np.int64))
    everything = slice(0, 2)
    kept.add(Block(slice(0, 2), everything), np.array([[1, 2], [3, 4]]))
    gap = np.array([[np.nan, 5], [6, 7]], np.float32)
    kept.add(Block(slice(2, 4), everything), gap)
    want = [[1, 2], [3, 4], [np.nan, 5], [6, 7]]
    np.testing.assert_array_equal(kept.array(), want)


def test_missing_values_of_features_to_do_without_do_not_matter() -> None:
    X, y = draw(60, 100, share=0.1)
    model = EBClassifier(covariance="factor").fit(X, y)
    absent = np.arange(100) < 5
    new = X.copy()
    new[:, absent] = 1e9
    part = model.without(absent)
    want = np.where(absent, np.nan, X)
    np.testing.assert_allclose(
        part.transform(new), part.transform(want), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("rule", [FAIR, GreenshteinPark])
def test_other_rules_refuse_missing_values(rule: Any) -> None:
    X, y = draw()
    assert not get_tags(rule()).input_tags.allow_nan
    with pytest.raises(ValueError, match="NaN in row"):
        rule().fit(X, y)


def test_features_that_all_lack_a_class_are_nothing_to_classify_by() -> None:
    X, y = draw()
    X[y == 0] = np.nan
    with pytest.raises(ValueError, match="constant or have too few values"):
        EBClassifier().fit(X, y)


@pytest.mark.slow
def test_a_fit_by_the_command_line_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = draw(30, 6, share=0.0)
    X[:3, 1] = np.nan
    X[y == 1, 2] = X[:, 4] = np.nan
    cells = [[("" if np.isnan(v) else f"{v:.6g}") for v in row] for row in X]
    lines = ["id,type," + ",".join(f"g{j}" for j in range(6))]
    lines += [
        f"s{i},{'ab'[k]}," + ",".join(row)
        for i, (k, row) in enumerate(zip(y, cells, strict=True))
    ]
    path = tmp_path / "X.csv"
    path.write_text("\n".join(lines) + "\n")
    common = ["fit", str(path), "--target", "type", "--cv", "2"]
    report = tmp_path / "r.html"
    assert main([*common, "--report", str(report)]) == 0
    out = capsys.readouterr().out
    assert "48 values of 180 (26.7%) missing, in 3 of 6 features" in out
    assert "1 feature has no value at all, and no weight: 'g4'." in out
    assert "1 feature without a value in some class has no weight: 'g2'" in out
    assert main([*common, "--json", "--quiet"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["missing_values"] == 48
    assert answer["features_without_values"] == ["g2", "g4"]
    assert "Missing values" in report.read_text()


def uneven(n: int = 40, p: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Half of the values of a fifth of the features are missing."""
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(n, p)), np.arange(n) % 2
    X[:, :20] += y[:, None]
    X[:, ::5][rng.random((n, p // 5)) < 0.5] = np.nan
    return X, y


def test_a_model_whose_features_have_unequal_noise_comes_back(tmp_path: Path) -> None:
    X, y = uneven()
    model = EBClassifier(covariance="diagonal", calibrate=False).fit(X, y)
    assert model.contrasts_.noise is not None
    modelfile.save(model, tmp_path / "model.ebda")
    again = modelfile.load(tmp_path / "model.ebda")
    np.testing.assert_array_equal(again.posterior_mean_, model.posterior_mean_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_one_missing_value_does_not_undo_groups() -> None:
    rng = np.random.default_rng(3)
    groups, y = np.tile(np.arange(15), 2), np.repeat([0, 1], 15)
    X = 3 * rng.normal(size=(15, 100))[groups] + rng.normal(size=(30, 100))
    X[:, :10] += 2 * y[:, None]
    rule = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    want = rule.fit(X, y, groups=groups).ranking_.marginal.t
    X[0, 99] = np.nan
    got = rule.fit(X, y, groups=groups).ranking_.marginal.t
    np.testing.assert_allclose(got[:99], want[:99], rtol=0.02)


def test_a_sample_without_values_is_at_the_midpoint_of_weighted_means() -> None:
    rng = np.random.default_rng(5)
    y = np.arange(40) % 2
    X = 10 + np.sqrt(2 / rng.chisquare(2, 40))[:, None] * rng.normal(size=(40, 30))
    X[:, :5] += y[:, None]
    rule = EBClassifier(
        covariance="diagonal", shrinkage="mean", calibrate=False, sample_scale="own"
    )
    rule.fit(X, y)
    score = rule.decision_function(np.full((1, 30), np.nan))

    np.testing.assert_allclose(score, 0.0, atol=1e-8)
