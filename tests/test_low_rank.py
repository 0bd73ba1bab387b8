"""Solves with a diagonal plus a matrix of low rank."""

from __future__ import annotations

import numpy as np
import pytest

from ebda.covariance import low_rank


@pytest.mark.parametrize("k", [0, 1, 4, 30])
@pytest.mark.parametrize("shape", [(20,), (1, 20), (3, 20)])
def test_solve_is_that_of_the_dense_matrix(k: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(k)
    loadings, psi = rng.normal(size=(20, k)), rng.uniform(0.1, 3.0, 20)
    rows = rng.normal(size=shape)
    before = rows.copy()
    got = low_rank.solve(loadings, psi, rows)
    want = np.linalg.solve(loadings @ loadings.T + np.diag(psi), rows.T).T
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(rows, before)
