"""The features of a model, found by name in other data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ebda.inputs import values
from ebda.inputs.table import Table
from ebda.listing import counted, quoted
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Match:
    """Data in the order of a model's features.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        One column per feature of the model.
    missing : list of str
        Features of the model that the data do not have.
    n_extra : int
        Number of features of the data that the model does not have.
    n_filled : int
        Number of missing values in the features that are there.
    """

    X: Any
    missing: list[str]
    n_extra: int
    n_filled: int


def match_features(
    table: Table,
    names: Sequence[str],
    stand_in: FloatArray | None = None,
    absent: bool = False,
    way_out: str = "give data with these features",
) -> Match:
    """Put the features of a table into the order of a model's.

    Parameters
    ----------
    table : Table
        Data with names, perhaps with missing values.
    names : sequence of str
        Features of the model.
    stand_in : ndarray of shape (n_features,), optional
        Values that replace missing ones, one per feature. None makes missing values
        an error.
    absent : bool
        Whether they also replace features that are missing altogether; if not, these
        are an error.
    way_out : str
        What the error advises to do.

    Examples
    --------
    >>> table = Table(np.array([[1.0, 2.0, 3.0]]), None, np.array(["s"]),
    ...               np.array(["c", "a", "x"]), "new.csv", "text")
    >>> match_features(table, ["a", "b", "c"], np.array([7.0, 8.0, 9.0]), absent=True)
    Match(X=array([[2., 8., 1.]]), missing=['b'], n_extra=1, n_filled=0)
    """
    place = {name: j for j, name in enumerate(table.feature_names.tolist())}
    at = np.array([place.get(name, -1) for name in names], dtype=np.intp)
    there = at >= 0
    missing = [name for name, found in zip(names, there, strict=True) if not found]
    n_extra = table.n_ignored + table.n_features - int(there.sum())
    if not there.any():
        raise ValueError(
            f"{table.source}: none of the {len(names)} features of the model is there; "
            f"the model has {quoted(list(names))}, and the data (samples in "
            f"{table.orientation}) have {quoted(table.feature_names.tolist())}"
        )
    if table.absent_is_zero:
        missing = []
    if missing and not absent:
        raise ValueError(
            f"{table.source}: {counted(len(missing), 'feature')} of the model "
            f"{'is' if len(missing) == 1 else 'are'} missing: "
            f"{quoted(missing, 5)}; {way_out}"
        )
    X = table.X[:, at[there]]
    gaps = len(values.cells_where(X)[0])
    if stand_in is None:
        known = table.feature_names[at[there]]
        values.refuse(X, "missing", table.sample_names, known, table.source, way_out)
    else:
        X = values.fill(X, stand_in[there])
    if not there.all():
        if stand_in is None or table.absent_is_zero:
            stand_in = np.zeros(len(names))
        X = _with_stand_ins(X, there, stand_in)
    return Match(X, missing, n_extra, gaps)


@contextmanager
def by_name() -> Iterator[None]:
    """Silence scikit-learn about names: the columns were matched by name before."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def _with_stand_ins(X: Any, there: Any, stand_in: FloatArray) -> Any:
    """X with constant columns for the features of the model that it lacks."""
    if sparse.issparse(X) and not stand_in[~there].any():
        found = X.tocoo()
        columns = np.flatnonzero(there)[found.col]
        shape = (X.shape[0], len(there))
        return sparse.csr_array((found.data, (found.row, columns)), shape=shape)
    dense = X.toarray() if sparse.issparse(X) else X
    whole = np.tile(stand_in, (X.shape[0], 1))
    whole[:, there] = dense
    return whole
