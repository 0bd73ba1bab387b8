"""A fitted classifier without some of its features: nothing of them is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ebda
from ebda import EBClassifier
from ebda.baselines import GreenshteinPark, IndependenceRule
from ebda.cli import main

PLAIN = {"covariance": "diagonal", "shrinkage": "mean"}


def design(
    sizes: tuple[int, ...], effect: float, n_signals: int, p: int = 3000
) -> tuple[np.ndarray, ...]:
    """Classes of these sizes, and 300 new samples of each."""
    rng = np.random.default_rng(0)
    means = np.zeros((len(sizes), p))
    for k in range(len(sizes)):
        means[k, rng.permutation(p)[:n_signals]] = effect
    y = np.repeat(np.arange(len(sizes)), sizes)
    new = np.repeat(np.arange(len(sizes)), 300)
    X, X_new = (rng.normal(size=(len(c), p)) + means[c] for c in (y, new))
    return X, y, X_new, new


@pytest.mark.slow
@pytest.mark.parametrize("settings", [PLAIN, {}], ids=["one rule", "default"])
@pytest.mark.parametrize(
    ("sizes", "effect", "n_signals", "share"),
    [
        ((15, 45), 0.4, 1000, 0.8),
        ((15, 60), 0.35, 400, 0.4),
        ((10, 20, 60), 0.6, 200, 0.8),
    ],
)
def test_absent_features_leave_nothing_behind(
    sizes: tuple[int, ...],
    effect: float,
    n_signals: int,
    share: float,
    settings: dict[str, Any],
) -> None:
    """In 0.1.0 the errors were 0.30 to 0.65, where those of refits are 0.02 to 0.09."""
    X, y, X_new, new = design(sizes, effect, n_signals)
    absent = np.random.default_rng(1).random(X.shape[1]) < share
    refit = EBClassifier(**settings).fit(X[:, ~absent], y)
    model = EBClassifier(**settings).fit(X, y).without(absent)
    error = 1 - refit.score(X_new[:, ~absent], new)
    assert 1 - model.score(X_new, new) <= error + 0.04


@pytest.mark.slow
def test_nor_do_those_of_a_file(tmp_path: Path) -> None:
    """``ebda predict --missing zero-weight``, which 0.1.0 has too: its error is 0.5."""
    X, y, X_new, new = design((15, 45), 0.4, 1000)
    there = np.flatnonzero(np.random.default_rng(1).random(X.shape[1]) >= 0.4)
    for name, values, labels in (("fit", X, y), ("new", X_new[:, there], new)):
        names = np.arange(X.shape[1]) if name == "fit" else there
        columns = {f"g{j}": column for j, column in zip(names, values.T, strict=True)}
        frame = pl.DataFrame({"type": [f"c{k}" for k in labels], **columns})
        frame.write_parquet(tmp_path / f"{name}.parquet")
    model, out = tmp_path / "m.ebda", tmp_path / "out.parquet"
    quick = ["--covariance", "diagonal", "--shrinkage", "mean", "--cv", "0", "--quiet"]
    data = [str(tmp_path / "fit.parquet"), "--target", "type", "--model", str(model)]
    assert main(["fit", *data, *quick]) == 0
    data = [str(model), str(tmp_path / "new.parquet"), "--out", str(out), "--quiet"]
    assert main(["predict", *data, "--missing", "zero-weight"]) == 0
    predicted = pl.read_parquet(out)["predicted"].to_numpy()
    refit = EBClassifier(**PLAIN).fit(X[:, there], y)
    error = 1 - refit.score(X_new[:, there], new)
    assert np.mean(predicted != [f"c{k}" for k in new]) <= error + 0.02


def test_the_midpoint_of_the_features_that_are_there_is_corrected() -> None:
    """One rule of independent features is the sum of what they add one by one."""
    X, y, X_new, _ = design((15, 45), 1.0, 200, p=300)
    # What held-out samples say of the midpoint is not of one feature or another.
    model = EBClassifier(**PLAIN, priors="uniform", calibrate=False).fit(X, y)
    absent = np.random.default_rng(1).random(X.shape[1]) < 0.5
    parts = [model.without(a) for a in (absent, ~absent)]
    sd = [np.sqrt(m.coef_**2 @ model.contrasts_.variance) for m in (model, *parts)]
    np.testing.assert_allclose(sd, sd[:1] * 3)
    for part, there in zip(parts, (~absent, absent), strict=True):
        scale = part.coef_[0, there][0] / model.coef_[0, there][0]
        part.coef_, part.intercept_ = part.coef_ / scale, part.intercept_ / scale
    total = sum(part.decision_function(X_new) for part in parts)
    np.testing.assert_allclose(total, model.decision_function(X_new), atol=1e-10)


@pytest.mark.parametrize(
    "model", [EBClassifier(), IndependenceRule(), GreenshteinPark()], ids=str
)
@pytest.mark.parametrize("sizes", [(15, 45), (10, 12, 14)])
def test_values_of_absent_features_do_not_matter(
    model: Any, sizes: tuple[int, ...]
) -> None:
    X, y, X_new, _ = design(sizes, 1.0, 50, p=200)
    model.fit(X, y)
    before = model.predict_proba(X_new)
    absent = np.arange(200) % 3 == 0
    without = model.without(absent)
    want = without.predict_proba(X_new)
    X_new[:, absent] = 1e6
    np.testing.assert_array_equal(without.predict_proba(X_new), want)
    X_new = design(sizes, 1.0, 50, p=200)[2]
    np.testing.assert_array_equal(model.predict_proba(X_new), before)
    same = model.without(np.zeros(200, dtype=bool)).predict_proba(X_new)
    np.testing.assert_allclose(same, before, atol=1e-12)


def test_without_all_features_the_class_probabilities_are_left() -> None:
    X, y, X_new, _ = design((15, 45), 1.0, 50, p=200)
    model = EBClassifier().fit(X, y).without(np.ones(200, dtype=bool))
    p = model.predict_proba(X_new)
    np.testing.assert_allclose(p, p[:1].repeat(len(p), axis=0))
    assert (p[:, 1] > p[:, 0]).all()
    assert not model.selected_.any()


def test_a_model_file_keeps_what_is_needed(tmp_path: Path) -> None:
    X, y, X_new, _ = design((15, 45), 1.0, 50, p=200)
    model = EBClassifier().fit(X, y)
    assert model.midpoint_correction_ is not None
    ebda.save(model, tmp_path / "model.ebda")
    absent = np.arange(200) % 2 == 0
    again = ebda.load(tmp_path / "model.ebda").without(absent)
    np.testing.assert_array_equal(
        again.decision_function(X_new), model.without(absent).decision_function(X_new)
    )
