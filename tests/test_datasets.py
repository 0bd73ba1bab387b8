"""Embedded and simulated data."""

from __future__ import annotations

import numpy as np
import pytest

from ebda.datasets import load_golub, load_khan, make_two_class


def test_golub_is_the_data_of_the_paper() -> None:
    golub = load_golub()
    train = golub.split == "train"
    assert golub.data.shape == (72, 7129)
    assert len(golub.feature_names) == 7129
    assert (golub.target[train] == "ALL").sum() == 27
    assert (golub.target[train] == "AML").sum() == 11
    assert (golub.target[~train] == "ALL").sum() == 20
    assert (golub.target[~train] == "AML").sum() == 14
    assert np.isfinite(golub.data).all()
    assert "Licence: LGPL" in golub.DESCR
    assert golub.subtype[0] == "ALL-B"


def test_khan_has_four_classes() -> None:
    khan = load_khan()
    assert khan.data.shape == (83, 2308)
    assert (khan.split == "train").sum() == 63
    assert len(khan.target_names) == 4


def test_simulated_means_are_the_truth() -> None:
    sim = make_two_class(
        n_per_class=4000,
        n_features=12,
        n_signals=(2, 3),
        effect=(1.0, -2.0),
        background=0.5,
        variance=4.0,
        rho=0.6,
        random_state=0,
    )
    assert sim.means[1, :5].tolist() == [1.0, 1.0, -2.0, -2.0, -2.0]
    assert sim.means[1, 5:].std() > 0.1
    for k, label in enumerate("ab"):
        rows = sim.data[sim.target == label]
        np.testing.assert_allclose(rows.mean(0), sim.means[k], atol=0.15)
        np.testing.assert_allclose(rows.var(0), 4.0, rtol=0.1)
        lag = [np.corrcoef(rows[:, j], rows[:, j + 2])[0, 1] for j in range(10)]
        np.testing.assert_allclose(lag, 0.36, atol=0.06)


def test_seed_gives_the_same_data() -> None:
    first, second = (make_two_class(random_state=3).data for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_bad_designs_are_refused() -> None:
    with pytest.raises(ValueError, match="2 groups but effect has 1"):
        make_two_class(n_signals=(1, 2), effect=1.0)
    with pytest.raises(ValueError, match="do not fit"):
        make_two_class(n_features=10, n_signals=11)
    with pytest.raises(ValueError, match="rho"):
        make_two_class(rho=1.0)
