"""Results in scanpy's forms: beside what scanpy wrote, and in scanpy where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ebda.scanpy
from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.datasets import load_khan

STORED = json.loads(
    (Path(__file__).parent / "reference" / "scanpy_ranking.json").read_text()
)
QUICK = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)


def cells(kind: Any = np.array) -> anndata.AnnData:
    """As in tests/reference/scanpy_ranking.py."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.6, 2.0, 25), size=(60, 25)).astype(np.float64)
    counts[:20, :3] += 4
    kinds = pd.Categorical(np.repeat(["b", "c", "a"], 20), categories=["c", "a", "b"])
    obs = pd.DataFrame({"kind": kinds}, index=[f"cell{i}" for i in range(60)])
    obs["donor"] = [f"d{i % 6}" for i in range(60)]
    var = pd.DataFrame(index=[f"gene{j}" for j in range(25)])
    adata = anndata.AnnData(kind(np.log1p(counts) / np.log(2)), obs=obs, var=var)
    adata.uns["log1p"] = {"base": 2}
    return adata


def column(adata: anndata.AnnData, what: str, group: str) -> pd.Series:
    found = adata.uns["rank_genes_groups"]
    return pd.Series(found[what][group], index=found["names"][group])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix])
def test_what_is_written_has_the_form_and_the_numbers_of_scanpy(kind: Any) -> None:
    adata = cells(kind)
    ebda.scanpy.rank_genes_groups(adata, "kind", model=QUICK, pts=True)
    found = adata.uns["rank_genes_groups"]
    assert sorted(found["params"]) == STORED["params"]
    for name, fields in STORED["types"].items():
        assert isinstance(found[name], np.recarray)
        got = [[f, str(kind[0])] for f, kind in found[name].dtype.fields.items()]
        assert got == fields
    for group, table in STORED["tables"].items():
        ratios = column(adata, "logfoldchanges", group).loc[adata.var_names]
        np.testing.assert_allclose(
            ratios, table["logfoldchanges"], rtol=1e-4, atol=1e-9
        )
        np.testing.assert_allclose(found["pts"][group], table["pct_nz_group"])
        np.testing.assert_allclose(found["pts_rest"][group], table["pct_nz_reference"])
        scores = column(adata, "scores", group)
        assert (np.diff(scores) <= 0).all()


def test_scores_and_rates_are_those_of_the_ranking() -> None:
    adata = cells()
    model = ebda.scanpy.rank_genes_groups(adata, "kind", model=QUICK, n_genes=4)
    found = model.ranking_.marginal
    genes = adata.var_names.to_numpy()
    for k, group in enumerate(model.classes_):
        first = np.argsort(-found.t[k])[:4]
        scores = column(adata, "scores", group)
        assert scores.index.tolist() == genes[first].tolist()
        np.testing.assert_allclose(scores, found.t[k, first], rtol=1e-6)
        q = column(adata, "pvals_adj", group)
        np.testing.assert_allclose(q, found.q_value[k, first])
        p = np.log(column(adata, "pvals", group))
        np.testing.assert_allclose(p, found.log_p[k, first])
    np.testing.assert_array_equal(adata.var["ebda_q_value"], found.q_over_classes)
    assert (adata.var["ebda_class"].iloc[:3] == "b").all()


def test_t_against_the_rest_is_t_against_the_mean() -> None:
    """With one group against all others as two classes, t is nearly the same."""
    adata = cells()
    ebda.scanpy.rank_genes_groups(adata, "kind", model=QUICK)
    three = column(adata, "scores", "b")
    adata.obs["b"] = np.where(adata.obs["kind"] == "b", "yes", "no")
    ebda.scanpy.rank_genes_groups(adata, "b", model=QUICK)
    two = column(adata, "scores", "yes")
    np.testing.assert_allclose(two.loc[three.index], three, rtol=0.1, atol=0.1)
    np.testing.assert_allclose(column(adata, "scores", "no").loc[two.index], -two)
    assert (
        column(adata, "pvals_adj", "no").loc[two.index]
        == column(adata, "pvals_adj", "yes")
    ).all()


def test_by_size_and_from_a_layer_with_donors() -> None:
    adata = cells()
    adata.layers["log"] = adata.X.copy()
    adata.X = np.zeros(adata.shape)
    model = ebda.scanpy.rank_genes_groups(
        adata,
        "kind",
        model=QUICK,
        layer="log",
        samples="donor",
        rankby_abs=True,
        key_added="mine",
    )
    assert model.groups_.n_groups == 6
    found = adata.uns["mine"]
    assert found["params"]["layer"] == "log"
    assert (np.diff(np.abs(found["scores"]["a"])) <= 0).all()
    with pytest.raises(ValueError, match=r"layer 'logs' is not in .*has 'log'"):
        ebda.scanpy.rank_genes_groups(adata, "kind", layer="logs")
    with pytest.raises(TypeError, match="must be an AnnData object, got ndarray"):
        ebda.scanpy.rank_genes_groups(np.zeros((2, 2)), "kind")
    with pytest.raises(TypeError, match="IndependenceRule has no list of genes"):
        ebda.scanpy.rank_genes_groups(adata, "kind", model=IndependenceRule())


def test_scaled_values_have_no_ratio() -> None:
    adata = cells()
    adata.X = adata.X - adata.X.mean(axis=0) - 5
    ebda.scanpy.rank_genes_groups(adata, "kind", model=QUICK)
    assert np.isfinite(column(adata, "scores", "a")).all()
    adata.X[adata.obs["kind"] == "a", 0] += 20
    ebda.scanpy.rank_genes_groups(adata, "kind", model=QUICK)
    assert np.isnan(column(adata, "logfoldchanges", "a").loc["gene0"])


@pytest.mark.parametrize("model", [QUICK, IndependenceRule()])
def test_predictions_are_written_beside_the_cells(model: Any) -> None:
    adata = cells()
    model.fit(adata[:, 2:20], "kind")
    new = adata[::2, ::-1].copy()
    ebda.scanpy.predict(new, model, key_added="cell")
    p = model.predict_proba(adata[::2])
    np.testing.assert_array_equal(new.obs["cell"], model.predict(adata[::2]))
    assert new.obs["cell"].cat.categories.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(new.obs["cell_probability"], p.max(axis=1))
    table = new.obsm["cell_probabilities"]
    assert table.index.equals(new.obs_names)
    np.testing.assert_array_equal(table["b"], p[:, 1])


def test_what_is_written_survives_a_file(tmp_path: Path) -> None:
    adata = cells(sparse.csr_matrix)
    model = ebda.scanpy.rank_genes_groups(adata, "kind", model=QUICK, pts=True)
    ebda.scanpy.predict(adata, model)
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(
        column(again, "scores", "c"), column(adata, "scores", "c")
    )
    assert again.obs["ebda"].tolist() == adata.obs["ebda"].tolist()


def test_scanpy_shows_it(tmp_path: Path) -> None:
    sc = pytest.importorskip(
        "scanpy", reason="scanpy is not installed: pip install scanpy"
    )
    khan = load_khan()
    adata = anndata.AnnData(
        khan.data - khan.data.min(),
        obs=pd.DataFrame(
            {"tumour": pd.Categorical(khan.target)},
            index=[f"s{i}" for i in range(len(khan.target))],
        ),
    )
    ebda.scanpy.rank_genes_groups(adata, "tumour", model=QUICK, pts=True)
    table = sc.get.rank_genes_groups_df(adata, "EWS")
    assert len(table) == khan.data.shape[1]
    assert table["pvals_adj"].iloc[0] < 1e-3
    assert {"pct_nz_group", "pct_nz_reference"} < set(table)
    few = sc.get.rank_genes_groups_df(adata, None, pval_cutoff=0.05, log2fc_min=0.1)
    assert {"EWS", "RMS"} < set(few["group"]) <= set(khan.target)
    sc.settings.figdir = tmp_path
    sc.pl.rank_genes_groups(adata, n_genes=5, show=False, save=".png")
    sc.pl.rank_genes_groups_dotplot(adata, n_genes=3, show=False, save=".png")
    assert len(list(tmp_path.glob("*.png"))) == 2
    sc.tl.filter_rank_genes_groups(adata)
