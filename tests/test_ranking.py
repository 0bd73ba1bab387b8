"""The ranking: q-values, order, tables, and the false discoveries it promises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ebda import EBClassifier
from ebda.datasets import make_factor_classes, make_two_class
from ebda.priors import DiscretePrior
from ebda.rule.ranking import Ranking, rank_features, tail_average

RATES = arrays.arrays(
    np.float64,
    st.integers(1, 40),
    # Few different values, so that there are ties.
    elements=st.sampled_from([0.0, 1e-9, 0.01, 0.2, 0.2000001, 0.5, 0.9, 1.0]),
)
PRIOR = DiscretePrior([-2.0, 0.0, 3.0], [0.1, 0.7, 0.2])


def ranking(z: np.ndarray, constant: np.ndarray | None = None) -> Ranking:
    if constant is None:
        constant = np.zeros(z.shape[1], dtype=bool)
    return rank_features(z, PRIOR.posterior(z), constant, None)


# q-values


@given(lfsr=RATES)
def test_q_values_are_means_of_the_tail(lfsr: np.ndarray) -> None:
    direct = [lfsr[lfsr <= rate].mean() for rate in lfsr]
    np.testing.assert_allclose(tail_average(lfsr), direct, rtol=1e-12)


@given(lfsr=RATES, order=st.randoms())
def test_q_values_are_no_larger_and_in_the_same_order(
    lfsr: np.ndarray, order: object
) -> None:
    q = tail_average(lfsr)
    assert (q <= lfsr * (1 + 1e-12)).all()
    by_rate = np.argsort(lfsr, kind="stable")
    assert (np.diff(q[by_rate]) >= -1e-15).all()
    np.testing.assert_allclose(q.max(), lfsr.mean(), rtol=1e-12)
    shuffled = np.arange(len(lfsr))
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(tail_average(lfsr[shuffled]), q[shuffled])


def test_q_values_of_several_contrasts_are_those_of_all_together() -> None:
    lfsr = np.random.default_rng(0).uniform(size=(3, 20))
    q = tail_average(lfsr)
    assert q.shape == (3, 20)
    np.testing.assert_array_equal(q.ravel(), tail_average(lfsr.ravel()))


# Order


def test_order_is_by_the_local_false_sign_rate_and_then_by_the_mean() -> None:
    z = np.random.default_rng(1).normal(scale=3, size=(1, 200))
    ranked = ranking(z)
    assert (np.diff(ranked.lfsr[ranked.order]) >= 0).all()
    assert (np.diff(ranked.q_value[ranked.order]) >= 0).all()
    assert sorted(ranked.order.tolist()) == list(range(200))
    # Far beyond the last atoms the rates are zero, and the means decide: -2 and 3.
    far = ranking(np.array([[-600.0, 0.1, 900.0]]))
    assert far.lfsr[[0, 2]].tolist() == [0.0, 0.0]
    assert far.order.tolist() == [2, 0, 1]


def test_features_of_many_classes_are_ordered_by_their_best_contrast() -> None:
    z = np.zeros((3, 5))
    z[2, 3], z[0, 1] = 5.0, 4.0
    ranked = ranking(z)
    assert ranked.order[:2].tolist() == [3, 1]
    assert ranked.q_value.shape == (3, 5)
    assert np.flatnonzero(ranked.selected(0.05).any(axis=0)).tolist() == [1, 3]


def test_constant_features_come_last() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(scale=2, size=(1, 50))
    constant = np.zeros(50, dtype=bool)
    constant[[4, 30]] = True
    z[:, constant] = 0.0
    ranked = ranking(z, constant)
    assert set(ranked.order[-2:].tolist()) == {4, 30}
    for values, expected in (
        (ranked.q_value, 1.0),
        (ranked.lfsr, 1.0),
        (ranked.prob_zero, 1.0),
        (ranked.posterior_mean, 0.0),
    ):
        np.testing.assert_array_equal(values[constant], expected)
    # They take no part in the q-values of the others.
    rest = ranking(z[:, ~constant])
    np.testing.assert_allclose(ranked.q_value[~constant], rest.q_value)


def test_constant_features_come_last_where_nothing_differs() -> None:
    z = np.random.default_rng(3).normal(size=(1, 6))
    constant = np.array([True, False, False, True, False, False])
    nothing = DiscretePrior([0.0], [1.0])
    ranked = rank_features(z, nothing.posterior(z), constant, None)
    assert set(ranked.order[-2:].tolist()) == {0, 3}


# The table, and the classifier's own


def test_table_of_a_fitted_classifier() -> None:
    sim = make_two_class(
        n_per_class=15, n_features=200, n_signals=10, effect=2.0, random_state=0
    )
    X = sim.data.copy()
    X[:, 77] = 3.0
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(200)])
    model = EBClassifier().fit(frame, sim.target)
    ranked = model.ranking_
    table = ranked.to_frame()
    assert table.index.name == "feature"
    assert table.index.tolist() == [f"g{j}" for j in ranked.order]
    assert table.index[-1] == "g77"
    assert list(table.columns) == [
        "z",
        "posterior_mean",
        "prob_zero",
        "lfsr",
        "q_value",
    ]
    assert table.q_value.is_monotonic_increasing
    np.testing.assert_array_equal(table.z, model.z_[ranked.order])
    np.testing.assert_array_equal(table.lfsr, ranked.lfsr[ranked.order])
    assert set(table.index[:10]) == {f"g{j}" for j in range(10)}
    plain = EBClassifier().fit(X, sim.target).ranking_
    assert plain.to_frame().index.tolist() == plain.order.tolist()


def test_table_of_one_of_many_classes() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 12)
    X = rng.normal(size=(36, 80))
    X[y == 1, 7] += 6
    X[y == 2, 9] -= 6
    model = EBClassifier().fit(X, y)
    assert model.ranking_.lfsr.shape == (3, 80)
    assert set(model.ranking_.order[:2].tolist()) == {7, 9}
    for contrast, best in ((1, 7), (2, 9)):
        table = model.ranking_.to_frame(contrast)
        assert table.index[0] == best
        assert table.lfsr.is_monotonic_increasing
        np.testing.assert_array_equal(table.z, model.z_[contrast][table.index])


def test_there_is_no_ranking_before_fit() -> None:
    assert not hasattr(EBClassifier(), "ranking_")


# Recovery of a known truth: false discoveries


def false_share(model: EBClassifier, means: np.ndarray) -> float:
    chosen = model.ranking_.selected(0.05)
    return float((chosen & (means[1] == means[0])).sum() / max(chosen.sum(), 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_signals", "effect", "dropped"),
    [(0, 0.0, 0), (100, 1.0, 0), (300, 0.7, 0), (100, 1.2, 20)],
)
def test_false_discoveries_among_independent_features(
    n_signals: int, effect: float, dropped: int
) -> None:
    shares = []
    # Where there is nothing the share of a data set is 0 or 1, and 2.5 % have a call.
    for seed in range(12 if n_signals else 40):
        sim = make_two_class(30, 3000, n_signals, effect, random_state=seed)
        model = EBClassifier().fit(sim.data[dropped:], sim.target[dropped:])
        shares.append(false_share(model, sim.means))
    assert np.mean(shares) <= 0.07


@pytest.mark.slow
def test_false_discoveries_beside_common_factors() -> None:
    shares, found = [], []
    for seed in range(12):
        sim = make_factor_classes(n_test=2, random_state=seed)
        model = EBClassifier().fit(sim.data, sim.target)
        shares.append(false_share(model, sim.means))
        found.append(model.ranking_.selected(0.05).sum())
    assert np.mean(found) > 5
    assert np.mean(shares) <= 0.07
