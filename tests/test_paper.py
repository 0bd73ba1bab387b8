"""The paper's classifiers with the authors' settings."""

from __future__ import annotations

import numpy as np
import pytest

from ebda import paper
from ebda.datasets import load_golub


def leukemia_errors(method: str, seed: int) -> tuple[int, int]:
    golub = load_golub()
    train = golub.split == "train"
    model = paper.classifier(method, "leukemia", random_state=seed)
    wrong = model.fit(golub.data[train], golub.target[train]).predict(golub.data)
    wrong = wrong != golub.target
    return int(wrong[train].sum()), int(wrong[~train].sum())


@pytest.mark.parametrize("seed", range(10))
def test_table_7_dp_makes_two_or_three_test_errors(seed: int) -> None:
    train, test = leukemia_errors("DP", seed)
    assert train == 1
    assert test in (2, 3)


@pytest.mark.parametrize("seed", range(10))
def test_table_7_sparse_dp_makes_two_test_errors(seed: int) -> None:
    train, test = leukemia_errors("Sparse DP", seed)
    assert train in (1, 2)
    assert test == 2


def test_table_7_hard_thresh_dp_makes_two_test_errors() -> None:
    assert leukemia_errors("Hard Thresh DP", 0) == (1, 2)


def test_settings_are_those_of_the_authors() -> None:
    model = paper.classifier("Sparse DP", 1)
    assert model.prior.n_batches == 50
    assert model.prior.zero_weight == 0.01
    assert model.variance == "pooled"
    assert model.priors == "uniform"
    assert paper.classifier("DP", "leukemia").variance == "separate"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="study must be one of"):
        paper.classifier("DP", 9)
    with pytest.raises(ValueError, match="method must be one of"):
        paper.classifier("SVM", 1)


def test_the_seed_draws_the_batches() -> None:
    golub = load_golub()
    coefs = [
        paper.classifier("DP", "leukemia", random_state=seed, n_jobs=n_jobs)
        .fit(golub.data, golub.target)
        .coef_
        for seed, n_jobs in ((0, None), (0, 2), (1, None))
    ]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    assert not np.array_equal(coefs[0], coefs[2])
