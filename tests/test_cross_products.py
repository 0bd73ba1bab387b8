"""More samples than features: cross-products in place of the Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ebda import EBClassifier
from ebda.covariance.cross_products import CrossResiduals
from ebda.covariance.residuals import RowResiduals
from ebda.covariance.shrunken import Shrunken, ledoit_wolf
from ebda.covariance.spectrum import spectrum_of
from ebda.data import RowSamples
from ebda.selection.copies import GramRows, near_copies
from ebda.selection.folds import enough_folds
from ebda.sizes import override


def residuals(
    seed: int, n: int = 60, p: int = 9
) -> tuple[CrossResiduals, RowResiduals, np.ndarray]:
    """Of some of the samples, with weights, scales, and a constant feature."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    samples = RowSamples.of(rng.normal(size=(n, p)), codes, rng.integers(1, 4, n) * 1.0)
    samples = samples.with_precision(rng.uniform(0.5, 2.0, n))
    rows = rng.normal(size=(n, 4)) @ rng.normal(size=(4, p)) + rng.normal(size=(n, p))
    rows *= np.sqrt(samples.information)[:, None]
    rows[:, 2] = 0.0
    used = np.flatnonzero(rng.random(n) < 0.8)
    return (
        CrossResiduals.of(rows, rows.T @ rows, samples, used),
        RowResiduals(rows, rows @ rows.T, samples, used),
        rng.normal(size=(2, p)),
    )


@pytest.mark.parametrize("seed", range(4))
def test_they_tell_what_the_rows_tell(seed: int) -> None:
    cross, plain, z = residuals(seed)
    one, other = spectrum_of(cross), spectrum_of(plain)
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.eigenvalue, other.eigenvalue, rtol=1e-10)
    np.testing.assert_allclose(one.squares, other.squares, rtol=1e-10)
    assert one.df == other.df
    amount = ledoit_wolf(one, cross.weight, 8)
    assert amount == pytest.approx(ledoit_wolf(other, plain.weight, 8), rel=1e-10)
    for exponent in (-1.0, -0.5, 0.5):
        got = Shrunken(cross, one, 0.2).power(exponent, z)
        want = Shrunken(plain, other, 0.2).power(exponent, z)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("covariance", ["shrunken", "factor"])
def test_a_fit_is_the_same_wherever_the_samples_are(covariance: str) -> None:
    """Without residuals in memory the Gram matrix is used."""
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 40)) + rng.normal(
        size=(200, 40)
    )
    X[:, :5] += y[:, None]
    model = EBClassifier(covariance=covariance, shrinkage="mean", calibrate=False)
    want = model.fit(X, y).decision_function(X)
    with override(residual_elements=10):
        got = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_copies_are_found_among_many_samples() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(2500, 400))
    rows[[2000, 1500]] = rows[[7, 1800]] + 0.2 * rng.normal(size=(2, 400))
    pairs = {tuple(pair) for pair in near_copies(GramRows(rows)).tolist()}
    assert pairs == {(7, 2000), (1500, 1800)}
    few = rows[:300]
    np.testing.assert_array_equal(near_copies(GramRows(few)), near_copies(few @ few.T))


def test_no_more_folds_than_tell_something() -> None:
    codes = np.arange(5000) % 2
    fold = np.arange(5000) // 2 % 10
    some = enough_folds(fold, codes, np.ones(5000))
    assert np.count_nonzero(some >= 0) == 1000  # never fewer than two folds
    # A rare class asks for more of them.
    codes = (np.arange(5000) >= 4900).astype(int)
    some = enough_folds(np.arange(5000) % 10, codes, np.ones(5000))
    held = np.count_nonzero((some >= 0) & (codes == 1))
    assert held == 50  # half of them
    # Few samples are all held out.
    np.testing.assert_array_equal(
        enough_folds(fold[:400], codes[:400], np.ones(400)), fold[:400]
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ebda.data.distortion.LogarithmWarning")
def test_many_samples_are_used() -> None:
    """With all samples the rule is about as good as ridge logistic regression."""
    X, y = load_digits(return_X_y=True)
    y %= 2
    wrong = np.zeros(2)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        ridge = make_pipeline(
            StandardScaler(),
            GridSearchCV(
                LogisticRegression(max_iter=2000), {"C": [1e-3, 1e-2, 0.1, 1]}
            ),
        )
        for k, model in enumerate((EBClassifier(), ridge)):
            wrong[k] += np.sum(
                model.fit(X[train], y[train]).predict(X[test]) != y[test]
            )
    assert wrong[0] < 1.2 * wrong[1]


@pytest.mark.slow
def test_many_samples_have_scales_in_any_stream() -> None:
    """Measured on some of them, and the same in batches and in one call."""
    rng = np.random.default_rng(7)
    n, p = 1500, 60
    y, scale = np.arange(n) % 2, np.sqrt(3 / rng.chisquare(3, n))
    X = rng.normal(size=(n, p)) * scale[:, None] + 5
    X[:, :6] += 0.4 * y[:, None]
    model = EBClassifier(sample_scale="own", wild_values="keep", covariance="diagonal")
    whole = model.fit(X, y).predict_proba(X)
    assert model.sample_scale_ is not None
    assert (
        np.corrcoef(np.log(model.sample_scale_.precision), np.log(scale))[0, 1] < -0.9
    )
    counts = model.sample_scale_.moments.counts.sum()
    assert counts == pytest.approx(n, rel=1e-6)
    stream = clone(model)
    for rows in (slice(0, 700), slice(700, n)):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(stream.predict_proba(X), whole, atol=1e-8)


@pytest.mark.parametrize("n", [40, 60])
def test_weights_are_rows_on_either_side(n: int) -> None:
    """Of 60 features: 40 samples of weight two are 80."""
    rng = np.random.default_rng(8)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 60)) + rng.normal(size=(n, 60))
    X[:, :5] += y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    got = EBClassifier().fit(X, y, sample_weight=np.full(n, 2.0)).predict_proba(X)
    want = EBClassifier().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict_proba(X)
    np.testing.assert_allclose(got, want, atol=1e-8)
