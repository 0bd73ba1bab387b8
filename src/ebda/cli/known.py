"""What a table knows of its samples besides their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ebda.inputs import Table
from ebda.inputs.labels import as_values
from ebda.listing import counted, quoted
from ebda.typing import IntArray

Covariates = dict[str, list[Any]]


def covariates_of(table: Table, names: Sequence[str]) -> Covariates | None:
    """Covariates of the samples by name; None where none are asked for."""
    if not names:
        return None
    return {name: complete(table, name, "covariate") for name in names}


def groups_of(table: Table, name: str | None) -> list[Any] | None:
    """Group of each sample; None where none are asked for."""
    return None if name is None else complete(table, name, "column of groups")


def complete(table: Table, name: str, what: str) -> list[Any]:
    """A value for each sample, or an error that names the first sample without.

    Parameters
    ----------
    table : Table
        Of all samples, so that the count is not that of a fold.
    name : str
        Column or row.
    what : str
        What it is, for the error.
    """
    values = as_values(table.aside[name])
    missing = [i for i, value in enumerate(values) if value is None]
    if missing:
        first = str(table.sample_names[missing[0]])
        raise ValueError(
            f"{table.source}: the {what} {name!r} has "
            f"{counted(len(missing), 'missing value')}, the first in sample "
            f"{first!r}; fill them in, or leave these samples out"
        )
    return values


def covariates_for(model: Any, table: Table) -> Covariates | None:
    """Those that a model was fitted with, or None where the table lacks any."""
    names = known_to(model)
    if any(name not in table.aside for name in names):
        return None
    return covariates_of(table, names)


def known_to(model: Any) -> list[str]:
    """Names of the covariates of a model."""
    found = getattr(model, "covariates_", None)
    names: list[str] = [] if found is None else found.names.tolist()
    return names


def given(covariates: Covariates | None, rows: IntArray) -> dict[str, Any]:
    """The argument of a prediction of some of the samples.

    >>> import numpy as np
    >>> given({"age": [50.0, 60.0]}, np.array([1])), given(None, np.array([1]))
    ({'covariates': {'age': [60.0]}}, {})
    """
    if covariates is None:
        return {}
    some = {name: [cells[i] for i in rows] for name, cells in covariates.items()}
    return {"covariates": some}


def remarks_on_covariates(model: Any, table: Table) -> list[str]:
    """Whether samples were adjusted for their covariates, in words."""
    names = known_to(model)
    lacking = [name for name in names if name not in table.aside]
    if not names:
        return []
    if not lacking:
        return [f"Adjusted for {quoted(names, 6)}."]
    return [
        f"Not adjusted for {quoted(names, 6)}: the data have no {quoted(lacking, 6)}. "
        "The mean of the fit is used."
    ]
