"""Annotated data: labels by the name of a column, and genes by their names.

In an AnnData object the labels, groups and covariates of the samples are columns of
``adata.obs``, and the genes have names. Nothing here imports anndata.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.listing import quoted


def is_annotated(X: Any) -> bool:
    """Whether X is an AnnData object, or one like it."""
    return hasattr(X, "var_names") and hasattr(X, "obs")


def resolved(
    X: Any, y: Any, groups: Any = None, covariates: Any = None
) -> tuple[Any, Any, Any]:
    """Labels, groups and covariates, of which each may be named by its column.

    Parameters
    ----------
    X : AnnData or any other data
        What has the columns, in its ``obs``.
    y, groups : str or array-like
        The name of a column, or values.
    covariates : list of str, or any other
        Names of columns, of AnnData; or values.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> adata = SimpleNamespace(var_names=["g"], obs={"kind": np.array(["B", "T"])})
    >>> resolved(adata, "kind")[0].tolist()
    ['B', 'T']
    """
    if is_annotated(X) and isinstance(covariates, list | str):
        names = [covariates] if isinstance(covariates, str) else covariates
        covariates = {name: _column(X, name, "covariates") for name in names}
    if isinstance(groups, str):
        groups = _column(X, groups, "groups")
    return _column(X, y, "y") if isinstance(y, str) else y, groups, covariates


def _column(X: Any, name: str, what: str) -> npt.NDArray[Any]:
    if not is_annotated(X):
        raise ValueError(
            f"{what}={name!r} names a column, which only AnnData has in its obs; give "
            "the values themselves, one for each sample"
        )
    known = list(X.obs)
    if name not in known:
        raise ValueError(
            f"{what}={name!r} is not a column of adata.obs, which has "
            + (quoted(known, 8) if known else "none")
        )
    return np.asarray(X.obs[name])


def aligned(X: Any, names: npt.NDArray[Any] | None) -> Any:
    """AnnData with these genes in this order; other data as they are.

    Parameters
    ----------
    X : AnnData or any other data
        New samples. There may be further genes.
    names : ndarray of str or None
        The genes of the fit; None where these had no names.
    """
    if names is None or not is_annotated(X):
        return X
    here = np.asarray(X.var_names)
    if np.array_equal(here, names):
        return X
    place = {name: j for j, name in enumerate(here.tolist())}
    if len(place) < len(here):
        raise ValueError(
            "adata.var_names has duplicates, so that genes cannot be found by name; "
            "call adata.var_names_make_unique(), as before the fit"
        )
    missing = [name for name in names.tolist() if name not in place]
    if missing:
        raise ValueError(
            f"{len(missing)} of the {len(names)} genes of the fit are not in "
            f"adata.var_names: {quoted(missing)}. Give data with all of them, or use "
            "model.without(...), a copy that does without some features"
        )
    return X[:, np.array([place[name] for name in names.tolist()])]
