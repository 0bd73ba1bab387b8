"""Reading tables of samples and features, whichever program wrote them.

`read` gives a `Table`; `match_features` finds the features of a model in it, and
`compare_with_training` says whether its values are like those of the fit. Tables of
text and Parquet are read with Polars (``ebda[cli]``), ``.h5ad`` with ``ebda[anndata]``,
Zarr with ``ebda[zarr]``.
"""

from __future__ import annotations

from ebda.inputs.matching import Match, match_features
from ebda.inputs.reading import read
from ebda.inputs.shift import DataShift, compare_with_training
from ebda.inputs.table import Table
from ebda.inputs.training_values import TrainingValues

__all__ = [
    "DataShift",
    "Match",
    "Table",
    "TrainingValues",
    "compare_with_training",
    "match_features",
    "read",
]
