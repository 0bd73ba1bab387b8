"""Annotated data: labels by the name of a column, genes by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

from ebda import EBClassifier, panel
from ebda.baselines import FAIR, IndependenceRule
from ebda.evaluation import cross_validate, evaluate, plan

QUICK = {"covariance": "diagonal", "shrinkage": "mean", "calibrate": False}
N, P = 40, 30


def made(kind: Any = np.array, seed: int = 0) -> anndata.AnnData:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)).round(2)
    X[np.abs(X) < 0.3] = 0
    X[::2, :4] += 1.5
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical(["B", "T"] * (N // 2)),
            "donor": [f"d{i // 4}" for i in range(N)],
            "age": rng.normal(50, 9, N),
        },
        index=[f"cell{i}" for i in range(N)],
    )
    return anndata.AnnData(
        kind(X), obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(P)])
    )


def dense(adata: anndata.AnnData) -> np.ndarray:
    return adata.to_df().to_numpy()


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_labels_and_covariates_are_columns_of_obs(kind: Any) -> None:
    adata = made(kind)
    y, donor = np.asarray(adata.obs["cell_type"]), np.asarray(adata.obs["donor"])
    want = EBClassifier(**QUICK).fit(dense(adata), y)
    got = EBClassifier(**QUICK).fit(adata, "cell_type")
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-12)
    assert got.feature_names_in_.tolist() == adata.var_names.tolist()
    assert got.score(adata, "cell_type") == got.score(adata, y)
    known = {"groups": donor, "covariates": adata.obs[["age"]].to_numpy()}
    want = EBClassifier(**QUICK).fit(dense(adata), y, **known)
    got = EBClassifier(**QUICK).fit(
        adata, "cell_type", groups="donor", covariates=["age"]
    )
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        got.predict_proba(adata, covariates="age"),
        want.predict_proba(dense(adata), covariates=known["covariates"]),
        rtol=1e-9,
    )


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_views_are_fitted_to_and_cross_validated(kind: Any) -> None:
    """0.1.0: 'SparseCSRMatrixView' object has no attribute 'group'."""
    rows = np.random.default_rng(1).permutation(N)
    view = made(kind)[rows]
    y = view.obs["cell_type"]
    assert view.is_view
    want = cross_val_score(EBClassifier(**QUICK), dense(view), y, cv=4)
    for X in (view, view.X):
        got = cross_val_score(EBClassifier(**QUICK), X, y, cv=4, error_score="raise")
        np.testing.assert_array_equal(got, want)
    genes = view[:, 5:20]
    got = EBClassifier(**QUICK).fit(genes, "cell_type")
    assert got.feature_names_in_.tolist() == [f"g{j}" for j in range(5, 20)]


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_genes_are_found_by_name(kind: Any, tmp_path: Path) -> None:
    adata = made(kind)
    model = EBClassifier(**QUICK).fit(adata[:, 3:20], "cell_type")
    want = model.predict_proba(adata.to_df().iloc[:, 3:20])
    moved = adata[:, np.random.default_rng(0).permutation(P)]
    np.testing.assert_allclose(model.predict_proba(moved), want, rtol=1e-12)
    moved.copy().write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    np.testing.assert_allclose(model.predict_proba(backed), want, rtol=1e-12)
    backed.file.close()
    with pytest.raises(ValueError, match=r"2 of the 17 genes .*'g3', 'g4'"):
        model.predict(adata[:, 5:])
    twice = adata.copy()
    twice.var_names = ["g0", *twice.var_names[:-1]]
    with pytest.raises(ValueError, match="var_names_make_unique"):
        model.predict(twice)


def test_data_of_numbers_are_not_aligned() -> None:
    adata = made()
    model = EBClassifier(**QUICK).fit(dense(adata), adata.obs["cell_type"])
    assert model.predict(adata[:, ::-1]).shape == (N,)


def test_baselines_and_evaluations_take_the_column_too() -> None:
    adata = made()
    y = np.asarray(adata.obs["cell_type"])
    for rule in (IndependenceRule(), FAIR()):
        fitted = rule.fit(adata, "cell_type")
        want = type(rule)().fit(dense(adata), y)
        np.testing.assert_allclose(fitted.coef_, want.coef_, rtol=1e-12)
    rule = IndependenceRule().fit(adata, "cell_type")
    assert rule.score(adata, "cell_type") == rule.score(adata.to_df(), y)
    assert evaluate(rule, adata, "cell_type").n_errors == np.sum(
        rule.predict(adata) != y
    )
    got = cross_validate(IndependenceRule(), adata, "cell_type", groups="donor")
    want = cross_validate(
        IndependenceRule(), dense(adata), y, groups=np.asarray(adata.obs["donor"])
    )
    np.testing.assert_allclose(got.probabilities, want.probabilities, rtol=1e-9)
    assert plan(IndependenceRule(), adata, "cell_type", [40]).n_samples == N


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix])
def test_a_panel_of_genes(kind: Any) -> None:
    adata = made(kind)
    y = np.asarray(adata.obs["cell_type"])
    want = panel(IndependenceRule(), dense(adata), y, [2, 4, 30], n_folds=4)
    got = panel(IndependenceRule(), adata[:, :], "cell_type", [2, 4, 30], n_folds=4)
    np.testing.assert_allclose(got.probabilities, want.probabilities, rtol=1e-9)
    assert got.names.tolist() == [f"g{j}" for j in want.columns]
    # The model finds its genes among all.
    np.testing.assert_array_equal(
        got.model.predict(adata[:, ::-1]),
        want.model.predict(dense(adata)[:, want.columns]),
    )


def test_a_name_needs_a_column() -> None:
    adata = made()
    with pytest.raises(ValueError, match=r"y='kind' is not a column .*'cell_type'"):
        EBClassifier().fit(adata, "kind")
    with pytest.raises(ValueError, match="groups='patient' is not a column"):
        EBClassifier().fit(adata, "cell_type", groups="patient")
    with pytest.raises(ValueError, match="y='cell_type' names a column, which only"):
        EBClassifier().fit(adata.to_df(), "cell_type")
    adata.obs["cell_type"] = adata.obs["cell_type"].where(np.arange(N) != 7)
    with pytest.raises(ValueError, match=r"1 missing label.*row 7"):
        EBClassifier().fit(adata, "cell_type")
