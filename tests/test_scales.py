"""Samples with scales of their own: measured, weighted, and read off new samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from scipy import sparse, stats

import ebda
from ebda import EBClassifier
from ebda.covariance import Summary
from ebda.covariance.elliptical import explained_by_scales, kurtosis
from ebda.covariance.sample_scale import SampleScale
from ebda.covariance.scales import may_differ, measure, moderate
from ebda.data import InMemory, RowSamples
from ebda.modelfile import load, save
from ebda.moments import VARIANCES, class_contrasts
from ebda.selection.calibration import Calibration, ScaledCalibration, calibrate
from ebda.sizes import override
from test_onnx import assert_agrees

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


def draw(
    seed: int = 0,
    df: float = 2.0,
    n: tuple[int, ...] = (40, 40),
    p: int = 500,
    effect: float = 1.0,
    factors: float = 0.0,
) -> Drawn:
    """Samples of a multivariate t distribution, their classes, and their scales."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(n)), n)
    s = np.ones(len(y)) if np.isinf(df) else np.sqrt(df / rng.chisquare(df, len(y)))
    L = np.random.default_rng(99).normal(size=(p, 2)) * factors
    X = s[:, None] * (rng.normal(size=(len(y), p)) + rng.normal(size=(len(y), 2)) @ L.T)
    X += effect * (np.arange(p) // 20 == y[:, None] - 1)
    return X, y, s


def summary(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    precision: np.ndarray | None = None,
) -> Summary:
    samples = RowSamples.of(X, y, weight)
    if precision is not None:
        samples = samples.with_precision(precision)
    moments = samples.moments(int(y.max()) + 1)
    contrasts = class_contrasts(moments, VARIANCES["moderated"].estimate(moments))
    return Summary(moments, contrasts, samples)


def converged(X: Any, y: np.ndarray, weight: np.ndarray | None = None) -> Any:
    scales = measure(summary(X, y, weight))
    for _ in range(2):
        scales = measure(summary(X, y, weight, scales.precision))
    return scales


# Measured.


@pytest.mark.parametrize("factors", [0.0, 0.7])
@pytest.mark.parametrize("df", [5.0, 2.0, 1.0])
def test_scales_are_those_of_the_samples(df: float, factors: float) -> None:
    X, y, s = draw(df=df, factors=factors, p=1000)
    scales = converged(X, y)
    assert scales.combine.shape[1] == (2 if factors else 0)
    found = np.log(scales.precision * s**2)
    # A mean over p features is known up to sqrt(2 / p), and some are lost to factors.
    assert found.std() < 1.7 * np.sqrt(2 / 1000)
    assert scales.is_worthwhile
    assert scales.gain > df / (df + 2)
    assert scales.degrees_of_freedom == pytest.approx(df, rel=0.5)


def test_one_round_is_close() -> None:
    X, y, s = draw(df=1.0, p=1000)
    assert np.log(measure(summary(X, y)).precision * s**2).std() < 0.2


def test_scales_are_a_fixed_point() -> None:
    """Weighted means, variances about them, and scales in their units."""
    X, y, _ = draw(df=3.0)
    w = converged(X, y).precision
    means = np.stack([np.average(X[y == k], axis=0, weights=w[y == k]) for k in (0, 1)])
    r = X - means[y]
    variance = w @ r**2 / (len(y) - 2)
    left = 1 - w / np.bincount(y, w)[y]
    again = left / np.mean(r**2 / variance, axis=1)
    np.testing.assert_allclose(w, again / again.mean(), rtol=0.03)


def test_normal_samples_have_a_common_scale() -> None:
    differ = 0
    for seed in range(20):
        X, y, _ = draw(seed, np.inf, factors=0.5 * (seed % 2))
        scales = measure(summary(X, y))
        assert scales.precision == pytest.approx(np.ones(len(y)), abs=0.25)
        assert not scales.is_worthwhile
        assert scales.gain < 1.02
        differ += scales.is_significant
        assert seed % 2 or not may_differ(summary(X, y))
    assert differ <= 5  # 1 to 8 % are


def test_effective_features_of_equal_ones() -> None:
    """Each of 300 features ten times is 300 features."""
    X, y, _ = draw(df=3.0, p=300, effect=0.0)
    once, ten = measure(summary(X, y)), measure(summary(np.tile(X, 10), y))
    assert once.n_effective == pytest.approx(300, rel=0.1)
    assert ten.n_effective == pytest.approx(300, rel=0.25)


def test_weights_are_repetitions_and_the_order_does_not_matter() -> None:
    X, y, _ = draw(df=2.0, factors=0.7)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    often = np.repeat(np.arange(len(y)), weight.astype(int))
    scales, repeated = converged(X, y, weight), converged(X[often], y[often])
    np.testing.assert_allclose(scales.precision[often], repeated.precision, rtol=1e-8)
    for field in ("degrees_of_freedom", "gain", "unit", "inflation", "n_effective"):
        a, b = getattr(scales, field), getattr(repeated, field)
        assert a == pytest.approx(b, rel=1e-8)
    mixed = np.random.default_rng(1).permutation(len(y))
    plain = converged(X, y).precision
    np.testing.assert_allclose(converged(X[mixed], y[mixed]).precision, plain[mixed])
    units = np.exp(np.random.default_rng(2).normal(size=X.shape[1]))
    np.testing.assert_allclose(
        converged(X[:, ::-1] * units, y).precision, plain, rtol=0.1
    )


def test_a_mean_of_one_in_each_class_where_variances_are_separate() -> None:
    X, y, _ = draw(df=2.0, n=(30, 50))
    w = measure(summary(X, y), by_class=True).precision
    np.testing.assert_allclose([w[y == k].mean() for k in (0, 1)], 1.0)
    assert measure(summary(X, y)).precision.mean() == pytest.approx(1.0)


# The scale of a new sample.


def fitted(seed: int = 0, **settings: Any) -> tuple[EBClassifier, Drawn]:
    X, y, s = draw(seed, factors=0.7)
    return EBClassifier(sample_scale="own", **settings).fit(X, y), (X, y, s)


def scale_of(model: EBClassifier) -> SampleScale:
    assert model.sample_scale_ is not None
    return model.sample_scale_


def test_new_samples_by_definition() -> None:
    model, (X, _, s) = fitted()
    scale = scale_of(model)
    residuals = (X - scale.moments.means[:, None]) / scale.divisor
    D = scale.directions
    assert len(D) == 2
    np.testing.assert_allclose(D @ D.T, np.eye(2), atol=1e-12)
    left = residuals - residuals @ D.T @ D
    nearest = np.einsum("knj,knj->kn", left, left).min(axis=0) / scale.expected
    known = scale.n_effective, scale.degrees_of_freedom, scale.variance
    found = scale.precision_of(
        InMemory(X).lengths(scale.centre, scale.divisor, scale.rows)
    )
    np.testing.assert_allclose(found, scale.unit / moderate(nearest, *known))
    X_new, _, s_new = draw(1, factors=0.7)
    found = scale.precision_of(
        InMemory(X_new).lengths(scale.centre, scale.divisor, scale.rows)
    )
    new, old = np.log(found * s_new**2), np.log(scale.precision * s**2)
    assert new.std() < 0.15
    assert new.mean() == pytest.approx(old.mean(), abs=0.05)


def test_the_posterior_is_that_of_the_multivariate_t() -> None:
    """Scores times the precision, against the ratio of the densities."""
    p, df = 4000, 3.0
    rng = np.random.default_rng(0)
    d = np.zeros(p)
    d[:40] = 0.5
    X = rng.normal(size=(50, p)) * np.sqrt(df / rng.chisquare(df, 50))[:, None]
    q = np.stack([(X**2).sum(axis=1), ((X - d) ** 2).sum(axis=1)])
    exact = (df + p) / 2 * (np.log1p(q[0] / df) - np.log1p(q[1] / df))
    s2 = moderate(q.min(axis=0) / p, p, df, 1.0)
    np.testing.assert_allclose((X - d / 2) @ d / s2, exact, rtol=0.01, atol=0.01)


def test_calibration_with_precision() -> None:
    known = Calibration(np.ones(1), np.array([0.9]), 0.1, np.array([0.8, 0.2]))
    decision = np.linspace(-3, 3, 7)[:, None]
    scaled = ScaledCalibration(known)
    ones = np.column_stack([decision, np.ones(7)])
    np.testing.assert_array_equal(
        scaled.log_probabilities(ones), known.log_probabilities(decision)
    )
    nothing = np.exp(scaled.log_probabilities(np.column_stack([decision, np.zeros(7)])))
    np.testing.assert_allclose(nothing, np.tile([0.8, 0.2], (7, 1)))


def test_calibration_finds_the_slope_of_scaled_scores() -> None:
    rng = np.random.default_rng(0)
    codes, w = np.repeat([0, 1], [1500, 500]), rng.chisquare(2, 2000) / 2
    # Log-odds 2 x w, from a normal distribution with the variance 1 / w.
    x = (2 * codes - 1 + rng.normal(size=2000) / np.sqrt(w))[:, None]
    prior = np.log([0.75, 0.25])
    slope, midpoint, found = calibrate(
        x * w[:, None], codes, np.ones(2000), prior, precision=w
    )
    assert slope == pytest.approx(2.0, rel=0.1)
    assert midpoint == pytest.approx(0.0, abs=0.2)
    assert found.noise < 0.02


# Whether they are what makes the tails heavy.


def explained(X: np.ndarray, y: np.ndarray) -> float:
    precision = converged(X, y).precision
    return explained_by_scales(summary(X, y), summary(X, y, None, precision))


def test_the_kurtosis_is_the_mean_over_the_features() -> None:
    X, y, _ = draw(df=5.0, n=(9, 6), p=60)
    X[:, 3] = y
    residuals = X - np.array([X[y == k].mean(axis=0) for k in (0, 1)])[y]
    varying = np.arange(60) != 3
    expected = np.mean(stats.kurtosis(residuals[:, varying], fisher=False))
    assert kurtosis(summary(X, y)) == pytest.approx(expected, rel=1e-10)


def test_normal_residuals_have_the_kurtosis_of_their_degrees_of_freedom() -> None:
    X, y, _ = draw(df=np.inf, n=(8, 8), p=20_000)
    assert kurtosis(summary(X, y)) == pytest.approx(3 * 14 / 16, abs=0.02)


def test_repeated_samples_have_the_kurtosis_of_weights() -> None:
    X, y, _ = draw(df=3.0, n=(12, 9), p=80)
    weight = 1 + np.arange(21) % 3
    rows = np.repeat(np.arange(21), weight)
    repeated = RowSamples.of(X[rows], y[rows], None)
    moments = repeated.moments(2)
    contrasts = class_contrasts(moments, VARIANCES["moderated"].estimate(moments))
    found = kurtosis(summary(X, y, weight.astype(float)))
    assert found == pytest.approx(kurtosis(Summary(moments, contrasts, repeated)))


@pytest.mark.parametrize("factors", [0.0, 0.7])
@pytest.mark.parametrize("df", [5.0, 2.0, 1.0])
def test_elliptical_tails_are_explained(df: float, factors: float) -> None:
    for n in ((40, 40), (15, 10)):
        X, y, _ = draw(df=df, factors=factors, n=n)
        assert explained(X, y) > 0.9


def test_tails_of_some_features_are_not_explained() -> None:
    """Some features of each sample are wild, more in one sample than in another."""
    X, y, _ = draw(df=np.inf, effect=0.0, p=1000)
    rng = np.random.default_rng(1)
    wild = rng.random(X.shape) < rng.uniform(0, 0.1, len(y))[:, None]
    assert converged(np.where(wild, 9 * X, X), y).is_worthwhile
    assert explained(np.where(wild, 9 * X, X), y) < 0.5
    # And not where no tails are heavy.
    assert explained(X, y) == 0.0


@pytest.mark.slow
def test_few_elliptical_samples_are_enough() -> None:
    """Labels alone would not say it: of five designs with 2 x 15 samples."""
    wrong = dict.fromkeys(("common", "auto", "own"), 0.0)
    for seed in range(5):
        X, y, _ = draw(seed, 2.0, (15, 15), p=1000)
        X_new, y_new, _ = draw(seed + 50, 2.0, (200, 200), p=1000)
        for name in wrong:
            model = EBClassifier(sample_scale=name).fit(X, y)
            wrong[name] += float(np.mean(model.predict(X_new) != y_new)) / 5
    gain = wrong["common"] - wrong["own"]
    assert gain > 0.05
    assert wrong["auto"] < wrong["common"] - 0.6 * gain


# The classifier.


@pytest.mark.parametrize("df", [2.0, 1.0])
def test_noisy_samples_count_less(df: float) -> None:
    wrong = dict.fromkeys(("common", "own", "auto"), 0.0)
    for seed in (1, 2):
        (X, y, _), (X_new, y_new, _) = draw(seed, df), draw(seed + 10, df, (300, 300))
        for name in wrong:
            model = EBClassifier(sample_scale=name).fit(X, y)
            wrong[name] += np.mean(model.predict(X_new) != y_new)
            assert (model.sample_scale_ is None) == (name == "common")
    assert wrong["own"] < 0.75 * wrong["common"]
    assert wrong["auto"] == wrong["own"]


def test_auto_is_common_where_scales_are_equal() -> None:
    X, y, _ = draw(df=np.inf)
    auto = EBClassifier().fit(X, y)
    common = EBClassifier(sample_scale="common").fit(X, y)
    assert auto.sample_scale_ is None
    for name in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(auto, name), getattr(common, name))
    np.testing.assert_array_equal(auto.predict_proba(X), common.predict_proba(X))


def test_own_without_differences_is_nearly_common() -> None:
    X, y, _ = draw(df=np.inf)
    own = EBClassifier(sample_scale="own").fit(X, y)
    common = EBClassifier(sample_scale="common").fit(X, y)
    np.testing.assert_allclose(own.predict_proba(X), common.predict_proba(X), atol=0.05)


def test_labels_are_the_most_probable_and_scores_linear() -> None:
    X, y, _ = draw(df=1.0, n=(60, 20))
    model = EBClassifier(sample_scale="own").fit(X, y)
    X_new, _, _ = draw(5, df=1.0, n=(200, 200))
    p = model.predict_proba(X_new)
    np.testing.assert_array_equal(model.predict(X_new), p.argmax(axis=1))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    score = model.decision_function(X_new)
    np.testing.assert_allclose(score, X_new @ model.coef_[0] + model.intercept_)
    # Of samples with the same score a noisy one has the class probabilities.
    sample = model.contrasts_.positive @ scale_of(model).moments.means
    noise = np.random.default_rng(0).normal(size=X.shape[1])
    noise *= 100 * np.sqrt(model.contrasts_.variance)
    w = model.coef_[0]
    noise -= w * (w @ noise) / (w @ w)
    quiet, noisy = model.predict_proba(np.vstack([sample, sample + noise]))
    assert quiet[1] > 0.9
    np.testing.assert_allclose(noisy, model.class_prior_, atol=0.01)
    assert model.class_prior_.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_classes_and_separate_variances(n_classes: int) -> None:
    (X, y, _), (X_new, y_new, _) = (draw(k, n=(30,) * n_classes) for k in (0, 1))
    for variance in ("moderated", "separate"):
        model = EBClassifier(sample_scale="own", variance=variance).fit(X, y)
        assert np.mean(model.predict(X_new) != y_new) < 0.3


def assert_same(got: EBClassifier, want: EBClassifier) -> None:
    np.testing.assert_allclose(
        got.coef_, want.coef_, rtol=1e-5, atol=1e-7 * np.abs(want.coef_).max()
    )
    np.testing.assert_allclose(
        scale_of(got).precision, scale_of(want).precision, rtol=1e-6
    )


@pytest.mark.slow
def test_every_kind_of_data_has_the_same_model(tmp_path: Path) -> None:
    model, (X, y, _) = fitted()
    mapped = np.memmap(tmp_path / "X.dat", float, "w+", shape=X.shape)
    mapped[:] = X
    kinds = {
        "columns": np.asfortranarray(X),
        "sparse": sparse.csr_array(X),
        "memory map": mapped,
        "Zarr": zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(30, 170)),
        "Dask": da.from_array(X, (30, 170)),
    }
    wanted = model.predict_proba(X)
    for kind in kinds.values():
        other = EBClassifier(sample_scale="own").fit(kind, y)
        assert_same(other, model)
        found = other.predict_proba(kind)
        np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-6)
        labels = np.asarray(other.predict(kind))
        np.testing.assert_array_equal(labels, model.predict(X))


def test_a_stream_that_is_kept_has_the_same_model() -> None:
    model, (X, y, _) = fitted()
    stream = EBClassifier(sample_scale="own")
    for rows in np.array_split(np.arange(len(y)), 3):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_same(stream, model)
    # The moments that a stream goes on from are those of equal scales.
    np.testing.assert_allclose(stream.moments_.counts, [40, 40])


def test_of_a_longer_stream_the_scales_are_not_known() -> None:
    X, y, _ = draw()
    parts = np.array_split(np.random.default_rng(0).permutation(len(y)), 2)
    with override(kept_samples=30, most_kept=30, kept_per_class=10):
        model = EBClassifier().partial_fit(X[parts[0]], y[parts[0]], classes=[0, 1])
        assert model.partial_fit(X[parts[1]], y[parts[1]]).sample_scale_ is None
        own = EBClassifier(sample_scale="own")
        own.partial_fit(X[parts[0][:20]], y[parts[0][:20]], classes=[0, 1])
        with pytest.raises(ValueError, match="give all to one fit, or use sample_sca"):
            own.partial_fit(X[parts[1]], y[parts[1]])


@pytest.mark.parametrize("scale", ["own", "auto"])
def test_of_many_samples_in_one_call_all_are_weighted(scale: str) -> None:
    X, y, _ = draw(n=(150, 150), effect=0.5)
    X_new, y_new, _ = draw(9, n=(300, 300), effect=0.5)
    whole = EBClassifier(sample_scale=scale).fit(X, y)
    with override(kept_samples=60, most_kept=60, kept_per_class=10):
        model = EBClassifier(sample_scale=scale).fit(X, y)
    assert len(scale_of(model).precision) == 60
    common = EBClassifier(sample_scale="common").fit(X, y)
    error, least, most = (
        np.mean(m.predict(X_new) != y_new) for m in (model, whole, common)
    )
    assert error < most
    assert error == pytest.approx(least, abs=0.05)


def test_without_held_out_samples_auto_is_common() -> None:
    X, y, _ = draw()
    single: dict[str, Any] = {"covariance": "diagonal", "shrinkage": "mean"}
    model = EBClassifier(calibrate=False, **single).fit(X, y)
    assert model.sample_scale_ is None
    own = EBClassifier(calibrate=False, sample_scale="own", **single).fit(X, y)
    assert scale_of(own).gain > 2
    few = np.r_[:4, -4:0]
    assert EBClassifier().fit(X[few], y[few]).sample_scale_ is None


def test_a_model_file_has_the_scales(tmp_path: Path) -> None:
    model, (X, _, _) = fitted()
    save(model, tmp_path / "model.ebda")
    again = load(tmp_path / "model.ebda")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert str(again.sample_scale_) == str(model.sample_scale_)
    assert "degrees of freedom" in str(again.sample_scale_)


def test_without_some_features() -> None:
    model, (X, y, s) = fitted()
    absent = np.arange(X.shape[1]) % 2 == 0
    part = model.without(absent)
    wild = np.where(absent, 1e6, X)
    np.testing.assert_allclose(part.predict_proba(wild), part.predict_proba(X))
    assert np.mean(part.predict(X) == y) > 0.8
    scale = scale_of(part)
    found = scale.precision_of(
        InMemory(wild).lengths(scale.centre, scale.divisor, scale.rows)
    )
    assert np.log(found * s**2).std() < 0.2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_onnx(n_classes: int) -> None:
    X, y, _ = draw(n=(25,) * n_classes, factors=0.7 * (n_classes == 2))
    model = EBClassifier(sample_scale="own").fit(X, y)
    assert len(scale_of(model).directions) == (2 if n_classes == 2 else 0)
    assert_agrees(model, X)
    assert ebda.to_onnx(model).graph.output[0].name == "label"


def test_missing_values() -> None:
    model, (X, y, s) = fitted()
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    scale = scale_of(model)
    found = scale.precision_of(
        InMemory(gaps).lengths(scale.centre, scale.divisor, scale.rows)
    )
    assert np.log(found * s**2).std() < 0.2
    p = model.predict_proba(gaps)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(p.argmax(axis=1) == y) > 0.8
    # Scales are not measured with them.
    assert EBClassifier().fit(gaps, y).sample_scale_ is None
    with pytest.raises(ValueError, match="cannot be measured with missing values"):
        EBClassifier(sample_scale="own").fit(gaps, y)


@pytest.mark.parametrize(
    ("factors", "difference"), [(0.0, 2.0), (0.7, 0.0), (0.7, 2.0)]
)
def test_few_values_tell_the_same_scale(factors: float, difference: float) -> None:
    """Missing values add nothing to class means, and take nothing from factors."""
    X, y, _ = draw(3, factors=factors)
    wide = difference * (np.arange(X.shape[1]) < 100)
    model = EBClassifier(sample_scale="own").fit(X + np.outer(y, wide), y)
    scale = scale_of(model)
    X_new, y_new, s_new = draw(4, factors=factors)
    X_new = X_new + np.outer(y_new, wide)
    rng = np.random.default_rng(0)
    middle = []
    for share in (1.0, 0.5, 0.2):
        gaps = np.where(rng.random(X_new.shape) < share, X_new, np.nan)
        found = scale.precision_of(
            InMemory(gaps).lengths(scale.centre, scale.divisor, scale.rows)
        )
        middle.append(np.median(np.log(found * s_new**2)))
    np.testing.assert_allclose(middle[1:], middle[0], atol=0.1)


def test_an_unknown_scaling_is_refused() -> None:
    X, y, _ = draw()
    with pytest.raises(ValueError, match="sample_scale must be one of"):
        EBClassifier(sample_scale="each").fit(X, y)


def test_a_class_of_one_sample_has_the_usual_scale() -> None:
    X, y, s = draw(n=(40, 40))
    more, codes = np.vstack([X, X[:1] + 1.0]), np.append(y, 2)
    scales, without = measure(summary(more, codes)), measure(summary(X, y))
    assert scales.degrees_of_freedom == pytest.approx(without.degrees_of_freedom, 0.01)
    s2 = scales.unit / scales.precision[-1]
    assert s2 == pytest.approx(scales.variance)
    assert np.log(scales.precision[:-1] * s**2).std() < 0.2
    model = EBClassifier(sample_scale="own").fit(more, codes)
    assert np.isfinite(model.predict_proba(more)).all()


def test_constant_features_say_nothing_about_scales() -> None:
    X, y, _ = draw()
    more = np.column_stack([X, np.full((len(y), 50), 3.0)])
    got = EBClassifier(sample_scale="own").fit(more, y)
    want = EBClassifier(sample_scale="own").fit(X, y)
    np.testing.assert_allclose(scale_of(got).precision, scale_of(want).precision)
    np.testing.assert_allclose(got.predict_proba(more), want.predict_proba(X))
