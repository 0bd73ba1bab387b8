"""Missing values in folds and rules: nothing of a held-out sample is in its rule."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ebda import EBClassifier
from ebda.covariance import COVARIANCES, Summary
from ebda.data import InMemory, Labels
from ebda.moments import VARIANCES, Variance, class_contrasts, class_moments
from ebda.moments.contrasts import complete_df, matched_t
from ebda.priors import DiscretePrior, make_prior
from ebda.rule.effects import Effects
from ebda.rule.shrinkage import SHRINKAGES
from ebda.selection.stack import FoldStack


def draw(
    n: int = 40, p: int = 60, k: int = 2, share: float = 0.3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = rng.normal(size=(n, p)) * rng.gamma(2, 1, p)
    X += rng.normal(size=(n, 2)) @ rng.normal(size=(2, p))
    X[:, :10] += 1.5 * y[:, None]
    X[rng.random((n, p)) < share] = np.nan
    return X, y


def summary(X: np.ndarray, y: np.ndarray, name: str) -> tuple[Summary, Variance]:
    labels = Labels(y, int(y.max()) + 1, allow_missing=True)
    moments, samples = InMemory(X).summarise(labels, keep=True)
    variance = VARIANCES[name].estimate(moments)
    return Summary(moments, class_contrasts(moments, variance), samples), variance


TRAIN = [np.arange(0, 34), np.arange(6, 40)]


@pytest.mark.parametrize("k", [2, 3])
def test_variances_of_a_fold_are_those_of_its_samples(k: int) -> None:
    X, y = draw(k=k)
    data, variance = summary(X, y, "pooled")
    stack = FoldStack(data, TRAIN, True, variance.degrees_of_freedom)
    assert stack.gaps is not None
    for found, train in zip(stack.gaps.deviation, TRAIN, strict=True):
        own = VARIANCES["pooled"].estimate(class_moments(X[train], y[train], k))
        np.testing.assert_allclose(found**2, own.within / variance.within, rtol=1e-9)


def test_what_a_prior_added_to_a_variance_stays() -> None:
    """(SS + d0 s0^2) / (df + d0), with sums of squares of the training samples."""
    X, y = draw(p=400)
    data, variance = summary(X, y, "moderated")
    stack = FoldStack(data, TRAIN, True, variance.degrees_of_freedom)
    assert stack.gaps is not None
    whole = data.moments.centred_squares.sum(axis=0)
    added = variance.within * variance.degrees_of_freedom - whole
    own_df = data.moments.n_values.sum(axis=0) - 2
    d0 = variance.degrees_of_freedom - own_df
    for found, train in zip(stack.gaps.deviation, TRAIN, strict=True):
        fold = class_moments(X[train], y[train], 2)
        squares = fold.centred_squares.sum(axis=0) + added
        want = squares / (fold.n_values.sum(axis=0) - 2 + d0) / variance.within
        np.testing.assert_allclose(found**2, want, rtol=1e-9)


@pytest.mark.parametrize("name", ["pooled", "moderated"])
def test_contrasts_of_a_fold_do_not_know_the_other_samples(name: str) -> None:
    """Others of the same variances, held out, leave the contrasts as they are."""
    X, y = draw(p=300)
    contrasts = []
    for sign in (1, -1):
        # The held-out samples mirrored about the class means of those in training.
        other = X.copy()
        fold = class_moments(X[:34], y[:34], 2)
        mirrored = fold.means[y[34:]] + sign * (X[34:] - fold.means[y[34:]])
        other[34:] = mirrored
        data, variance = summary(other, y, name)
        df = variance.degrees_of_freedom
        contrasts.append(FoldStack(data, TRAIN[:1], True, df).contrasts)
    a, b = contrasts
    # The prior of the variances is of all samples, and so are degrees of freedom.
    rtol = 1e-3 if name == "pooled" else 0.02
    np.testing.assert_allclose(a.z, b.z, rtol=rtol, atol=1e-3)
    np.testing.assert_allclose(
        np.sqrt(a.variance_factor), np.sqrt(b.variance_factor), rtol=rtol
    )


def test_matched_t_are_those_of_scipy() -> None:
    t = np.linspace(0.1, 8, 40)
    for df, tolerance in ((3.0, 0.025), (5.0, 0.012), (20.0, 0.002)):
        for other in (30.0, np.inf):
            tail = stats.t.sf(t, df)
            want = stats.norm.isf(tail) if np.isinf(other) else stats.t.isf(tail, other)
            found = matched_t(-t, np.array(df), other)
            np.testing.assert_allclose(-found, want, rtol=tolerance)
    np.testing.assert_allclose(matched_t(t, np.array(7.0), 7.0), t, rtol=1e-12)


def test_complete_degrees_of_freedom() -> None:
    X, y = draw(p=200)
    data, variance = summary(X, y, "moderated")
    complete = np.nan_to_num(X)
    own = VARIANCES["pooled"].estimate(class_moments(complete, y, 2))
    d0 = variance.degrees_of_freedom - (data.moments.n_values.sum(axis=0) - 2)
    found = complete_df(data.moments, variance.degrees_of_freedom)
    assert found == pytest.approx(own.degrees_of_freedom + d0.max())


def test_weights_are_made_for_values_as_they_come() -> None:
    """Units of single features stand outside of the inverse of the correlation."""
    X, y = draw(60, 300, share=0.4)
    data, _ = summary(X, y, "moderated")
    covariance = COVARIANCES["shrunken"](data)
    values = covariance.decorrelate(data.contrasts.z)
    known = (
        data.contrasts,
        covariance,
        values,
        make_prior(DiscretePrior([0, 2], [1, 1])),
    )
    mean = SHRINKAGES["mean"]
    found, variance = Effects(*known, has_missing=True).weights(mean, 0.5)
    e = mean.estimate(values.z, Effects(*known).posterior, 0.5)
    unit = np.sqrt(data.contrasts.variance_factor)
    want = unit * covariance.solve(covariance.restore(e, values))
    np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-10)
    assert variance > 0


@pytest.mark.parametrize("name", list(VARIANCES))
@pytest.mark.parametrize("k", [2, 3])
def test_features_with_hardly_any_values(name: str, k: int) -> None:
    """No class of theirs tells a variance, in all samples or in some folds."""
    X, y = draw(40, 80, k, share=0.2)
    for j in range(60, 80):
        for c in range(k):
            kept = np.flatnonzero((y == c) & ~np.isnan(X[:, j]))[: 1 + j % 3]
            lost = np.setdiff1d(np.flatnonzero(y == c), kept)
            X[lost, j] = np.nan
    model = EBClassifier(variance=name).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.selection_.separation).all()
    p = model.predict_proba(X)
    assert np.mean(p.argmax(axis=1) == y) > 0.6


@pytest.mark.slow
def test_held_out_samples_say_what_new_ones_do() -> None:
    """With variances of all samples their separation was larger by 1.0."""
    rng = np.random.default_rng(0)
    gap = []
    for _ in range(8):
        n, p = 30, 2000
        y = np.arange(n + 400) % 2
        X = rng.normal(size=(n + 400, p))
        X[:, :60] += 0.5 * y[:, None]
        X *= np.sqrt(4 / rng.chisquare(4, p))
        X[rng.random(X.shape) < 0.4] = np.nan
        model = EBClassifier(covariance="diagonal", shrinkage="top100")
        model.fit(X[:n], y[:n])
        score, codes = model.decision_function(X[n:]), y[n:]
        own = [score[codes == c] for c in (0, 1)]
        spread = np.sqrt(np.mean([part.var() for part in own]))
        new = (own[1].mean() - own[0].mean()) / 2 / spread
        gap.append(model.selection_.combined - new)
    # Its standard error is 0.15.
    assert abs(np.mean(gap)) < 0.4


@pytest.mark.parametrize("n", [20, 40])
def test_p_values_of_the_conditional_list_are_uniform(n: int) -> None:
    """Few values are counted once: twice, 4.2 % to 4.5 % were up to 0.05."""
    rng = np.random.default_rng(n)
    p = []
    for _ in range(2):
        X = rng.normal(size=(n, 4000)) * rng.gamma(2, 1, 4000)
        X[rng.random(X.shape) < 0.4] = np.nan
        model = EBClassifier(covariance="factor", shrinkage="mean", calibrate=False)
        found = model.fit(X, np.arange(n) % 2).ranking_
        used = ~found.conditional.constant
        p.append(found.conditional.p_value[used])
        # Without factors both lists ask the same.
        np.testing.assert_allclose(p[-1], found.marginal.p_value[used], rtol=1e-4)
    shares = [(np.concatenate(p) <= level).mean() for level in (0.05, 0.01)]
    np.testing.assert_allclose(shares, [0.05, 0.01], rtol=0.2)
