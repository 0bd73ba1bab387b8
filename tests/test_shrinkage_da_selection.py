"""Features of shrinkage discriminant analysis by their local false discovery rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from ebda.baselines import ShrinkageDA
from ebda.baselines.local_fdr import cutoff_of, fit_null, grenander, local_fdr, mode
from ebda.baselines.shrinkage_da import solve
from ebda.datasets import load_golub, load_khan, make_two_class
from ebda.modelfile import load, save

REFERENCE = Path(__file__).parent / "reference" / "sda_ranking.json"
CASES = json.loads(REFERENCE.read_text())["cases"]


def training(name: str) -> tuple[Any, Any]:
    """As they were given to R: logarithms of every fourth probe, and all of Khan's."""
    data = {"golub": load_golub, "khan": load_khan}[name]()
    X, y = data.data[data.split == "train"], data.target[data.split == "train"]
    return (np.sign(X) * np.log1p(np.abs(X)))[:, ::4] if name == "golub" else X, y


@pytest.mark.parametrize(
    "case", CASES, ids=lambda c: c["data"] + " diagonal" * c["diagonal"]
)
def test_it_is_that_of_r(case: dict[str, Any]) -> None:
    """Scores, rates, features and rule of ``sda.ranking`` and ``sda``.

    R finds the width of the null to three digits only.
    """
    X, y = training(case["data"])
    model = ShrinkageDA(diagonal=case["diagonal"], max_local_fdr=0.8).fit(X, y)

    def some(count: int, of: int) -> Any:
        return (np.linspace(1, of, count) + 1e-9).astype(np.intp) - 1

    p = X.shape[1]
    scores = np.array(case["scores"])
    np.testing.assert_allclose(model.cat_scores_[:, some(40, p)], scores, rtol=1e-8)
    rates = model.local_fdr_[some(200, p)]
    np.testing.assert_allclose(rates, case["lfdr"], atol=1e-4)
    kept = np.flatnonzero(model.selected_)
    np.testing.assert_array_equal(kept, case["kept"])
    beta, alpha = np.array(case["beta"]), np.array(case["alpha"])
    if len(alpha) == 2:
        beta, alpha = np.diff(beta, axis=0), np.diff(alpha)
    coef = model.coef_[:, kept][:, some(beta.shape[1], len(kept))]
    np.testing.assert_allclose(coef, beta, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, alpha, rtol=1e-8)
    assert not model.coef_[:, ~model.selected_].any()


def test_scores_are_their_definition() -> None:
    rng = np.random.default_rng(0)
    scaled = rng.normal(size=(9, 20))
    scaled -= scaled.mean(axis=0)
    scaled /= scaled.std(axis=0, ddof=1)
    shrunken = 0.7 * scaled.T @ scaled / 8 + 0.3 * np.eye(20)
    values, vectors = np.linalg.eigh(shrunken)
    root = vectors / np.sqrt(values) @ vectors.T
    rows = rng.normal(size=(2, 20))
    np.testing.assert_allclose(solve(scaled, rows, 0.3, exponent=0.5), rows @ root)
    twice = solve(scaled, solve(scaled, rows, 0.3, exponent=0.5), 0.3, exponent=0.5)
    np.testing.assert_allclose(twice, solve(scaled, rows, 0.3))


def test_it_is_the_rule_of_the_selected_features_alone() -> None:
    sim = make_two_class(15, 300, n_signals=20, effect=3.0, random_state=0)
    plain = ShrinkageDA().fit(sim.data, sim.target)
    assert plain.selected_.all()
    assert not hasattr(plain, "local_fdr_")
    few = ShrinkageDA(max_local_fdr=0.8).fit(sim.data, sim.target)
    again = ShrinkageDA().fit(sim.data[:, few.selected_], sim.target)
    np.testing.assert_allclose(few.coef_[:, few.selected_], again.coef_, rtol=1e-12)
    assert not hasattr(few.set_params(max_local_fdr=None).fit(*_of(sim)), "local_fdr_")


def _of(sim: Any) -> tuple[Any, Any]:
    return sim.data, sim.target


def test_features_that_differ_are_found() -> None:
    sim = make_two_class(25, 2000, n_signals=40, effect=2.0, random_state=0)
    model = ShrinkageDA(max_local_fdr=0.8).fit(sim.data, sim.target)
    assert model.selected_[:40].mean() > 0.9
    assert model.selected_[40:].mean() < 0.05
    three = np.where(np.arange(50) % 2, sim.target, "c")
    assert ShrinkageDA(max_local_fdr=0.8).fit(sim.data, three).cat_scores_.shape == (
        3,
        2000,
    )


def test_no_feature_leaves_the_class_probabilities(tmp_path: Path) -> None:
    X = np.random.default_rng(3).normal(size=(40, 400))
    y = np.repeat([0, 1], [10, 30])
    model = ShrinkageDA(max_local_fdr=1e-9, priors="empirical").fit(X, y)
    assert not model.selected_.any()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.75)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.local_fdr_, model.local_fdr_)


def test_units_and_order_change_nothing() -> None:
    X, y = training("khan")
    model = ShrinkageDA(max_local_fdr=0.8).fit(X, y)
    order = np.random.default_rng(0).permutation(X.shape[1])
    other = ShrinkageDA(max_local_fdr=0.8).fit(3 * X[:, order] + 1, y)
    np.testing.assert_allclose(other.local_fdr_, model.local_fdr_[order], rtol=1e-4)
    np.testing.assert_array_equal(other.selected_, model.selected_[order])


@pytest.mark.parametrize("bound", [0.0, 1.5, -1])
def test_bad_bounds_are_refused(bound: float) -> None:
    with pytest.raises(ValueError, match="max_local_fdr must be None or lie between"):
        ShrinkageDA(max_local_fdr=bound).fit(np.eye(6), [0, 1] * 3)


# Local false discovery rates


def test_the_null_is_that_of_fdrtool() -> None:
    """Cutoff, share and width of fdrtool 1.2.18, the width to its three digits."""
    z = np.random.default_rng(1).standard_t(4, size=3000)
    null = fit_null(z)
    assert cutoff_of(z) == pytest.approx(2.696519, rel=1e-6)
    assert null.share == pytest.approx(0.9530718, rel=1e-5)
    assert null.sd == pytest.approx(1.098112, rel=1e-4)


def test_the_null_is_recovered() -> None:
    z = 1.5 * np.random.default_rng(0).normal(size=20_000)
    null = fit_null(z)
    assert null.sd == pytest.approx(1.5, rel=0.02)
    assert null.share == pytest.approx(1.0, abs=0.01)


def test_the_width_is_that_of_most_likelihood() -> None:
    z = np.random.default_rng(1).standard_t(4, size=3000)
    cutoff, null = cutoff_of(z), fit_null(z)
    inside = z[np.abs(z) <= cutoff]

    def likelihood(sd: float) -> float:
        mass = norm.cdf(cutoff / sd) - norm.cdf(-cutoff / sd)
        return float(norm.logpdf(inside, scale=sd).sum() - len(inside) * np.log(mass))

    best = likelihood(null.sd)
    assert best > max(likelihood(null.sd * 1.001), likelihood(null.sd / 1.001))


def test_the_density_falls_and_ends_in_the_share() -> None:
    rng = np.random.default_rng(2)
    p = np.append(rng.uniform(size=500), rng.beta(0.2, 5, size=100))
    density = grenander(p, 0.8)
    assert (np.diff(density[np.argsort(p)]) <= 1e-12).all()
    assert density[p.argmax()] == pytest.approx(0.8)
    rates = local_fdr(norm.isf(p / 2) * rng.choice([-1, 1], 600))
    assert ((rates >= 0) & (rates <= 1)).all()
    assert rates[p < 1e-4].max() < rates[p > 0.2].min()


def test_the_mode_is_where_a_kernel_estimate_is_largest() -> None:
    z = np.random.default_rng(0).gamma(3, size=800)
    h = 0.9 * min(z.std(ddof=1), np.subtract(*np.quantile(z, [0.75, 0.25])) / 1.34)
    h *= len(z) ** -0.2
    grid = np.linspace(z.min(), z.max(), 4000)
    density = norm.pdf((grid[:, None] - z) / h).sum(axis=1)
    step = (np.ptp(z) + 6 * h) / 511
    assert abs(mode(z) - grid[density.argmax()]) <= step


def test_equal_values_have_no_rates() -> None:
    with pytest.raises(ValueError, match="half of the values are equal"):
        local_fdr(np.append(np.zeros(30), [1.0, 2.0]))
