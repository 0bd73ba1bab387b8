"""Reading tables of samples and features, whichever program wrote them.

`read` gives a `Table`; `match_features` finds the features of a model in it. Tables of
text and Parquet are read with Polars (``ebda[cli]``), ``.h5ad`` with ``ebda[anndata]``,
Zarr with ``ebda[zarr]``.
"""

from __future__ import annotations

from ebda.inputs.matching import Match, match_features
from ebda.inputs.reading import read
from ebda.inputs.table import Table

__all__ = ["Match", "Table", "match_features", "read"]
