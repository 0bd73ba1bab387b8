"""What scanpy writes for the cells of tests/test_scanpy.py.

Run with scanpy 1.11.5: ``python scanpy_ranking.py > scanpy_ranking.json``.
"""

import json
import sys

import anndata
import numpy as np
import pandas as pd
import scanpy as sc


def cells():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.6, 2.0, 25), size=(60, 25)).astype(np.float64)
    counts[:20, :3] += 4
    kinds = pd.Categorical(np.repeat(["b", "c", "a"], 20), categories=["c", "a", "b"])
    obs = pd.DataFrame({"kind": kinds}, index=[f"cell{i}" for i in range(60)])
    var = pd.DataFrame(index=[f"gene{j}" for j in range(25)])
    return anndata.AnnData(np.log1p(counts) / np.log(2), obs=obs, var=var)


if __name__ == "__main__":
    adata = cells()
    adata.uns["log1p"] = {"base": 2}
    sc.tl.rank_genes_groups(adata, "kind", method="t-test", pts=True)
    found = adata.uns["rank_genes_groups"]
    tables = {
        group: sc.get.rank_genes_groups_df(adata, group).set_index("names")
        for group in "abc"
    }
    columns = ["logfoldchanges", "pct_nz_group", "pct_nz_reference"]
    out = {
        "versions": {"scanpy": sc.__version__, "anndata": anndata.__version__},
        "types": {
            name: [[field, str(kind[0])] for field, kind in values.dtype.fields.items()]
            for name, values in found.items()
            if hasattr(values, "dtype")
        },
        "params": sorted(found["params"]),
        "tables": {
            group: {c: table[c].loc[adata.var_names].tolist() for c in columns}
            for group, table in tables.items()
        },
    }
    json.dump(out, sys.stdout)
