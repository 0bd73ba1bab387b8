"""Results in scanpy's forms, so that its plots and tables show them.

- `rank_genes_groups` fits a classifier and writes its list of genes as
  ``scanpy.tl.rank_genes_groups`` does: ``scanpy.pl.rank_genes_groups`` and
  ``scanpy.get.rank_genes_groups_df`` work on it.
- `predict` writes the most probable class of each cell and its probabilities.

scanpy itself is not needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from ebda.estimators.annotated import is_annotated
from ebda.estimators.classifier import EBClassifier
from ebda.moments import ClassMoments
from ebda.typing import FloatArray, IntArray

__all__ = ["predict", "rank_genes_groups"]

# What scanpy adds to means before it takes their ratio.
_PSEUDO = 1e-9
_TYPES = {
    "names": "O",
    "scores": "float32",
    "pvals": "float64",
    "pvals_adj": "float64",
    "logfoldchanges": "float32",
}


def rank_genes_groups(
    adata: Any,
    groupby: str,
    *,
    model: Any = None,
    layer: str | None = None,
    samples: str | None = None,
    covariates: list[str] | None = None,
    n_genes: int | None = None,
    rankby_abs: bool = False,
    pts: bool = False,
    key_added: str = "rank_genes_groups",
) -> Any:
    """Fit a classifier, and list the genes that differ, in scanpy's form.

    Each group is compared with the rest. The scores are limma's moderated t; p-values
    and q-values are those of ``model.ranking_.marginal``, which are judged against the
    bulk of the genes. With `samples`, cells of one donor count as far as they are
    alike, and not as independent samples.

    Parameters
    ----------
    adata : AnnData
        Logarithms of normalised counts, as of ``scanpy.pp.log1p``.
    groupby : str
        Column of ``adata.obs`` with the classes.
    model : EBClassifier, optional
        It is cloned; by default ``EBClassifier()``.
    layer : str, optional
        Layer of ``adata.layers`` to take instead of ``adata.X``.
    samples : str, optional
        Column of ``adata.obs`` that says which cells are not independent, such as the
        donor: the `groups` of ``EBClassifier.fit``.
    covariates : list of str, optional
        Columns of ``adata.obs`` to adjust for.
    n_genes : int, optional
        Genes of each group to list; by default all.
    rankby_abs : bool
        Whether genes are listed by the absolute score, and not those first that are
        higher in the group.
    pts : bool
        Whether to write the share of cells of each group, and of the rest, in which
        the gene is not zero.
    key_added : str
        Where in ``adata.uns`` to write.

    Returns
    -------
    EBClassifier
        The fitted model. In ``adata`` there is now ``uns[key_added]``, with "names",
        "scores", "pvals", "pvals_adj" and "logfoldchanges" as record arrays with one
        field per group; and ``var["ebda_q_value"]``, ``var["ebda_lfdr"]`` and
        ``var["ebda_class"]``, over all groups.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from anndata import AnnData
    >>> import ebda.scanpy
    >>> X = np.random.default_rng(0).gamma(2.0, size=(40, 100))
    >>> X[20:, 7] += 9
    >>> adata = AnnData(np.log1p(X), obs=pd.DataFrame({"kind": ["B"] * 20 + ["T"] * 20},
    ...                 index=[f"cell{i}" for i in range(40)]))
    >>> model = ebda.scanpy.rank_genes_groups(adata, "kind")
    >>> adata.uns["rank_genes_groups"]["names"]["T"][0]
    '7'
    """
    X = _with_layer(adata, layer)
    model = clone(model) if model is not None else EBClassifier()
    if not hasattr(type(model), "ranking_"):
        raise TypeError(
            f"{type(model).__name__} has no list of genes; give an EBClassifier"
        )
    model.fit(X, groupby, groups=samples, covariates=covariates)
    ranking = model.ranking_
    found = ranking.marginal
    two = found.t.ndim == 1
    values = {
        "scores": np.stack([-found.t, found.t]) if two else found.t,
        "pvals": np.exp(np.maximum(_each(found.log_p), -745.0)),
        "pvals_adj": _each(found.q_value),
        "logfoldchanges": log2_ratios(model.moments_, _log_base(adata)),
    }
    order = _group_order(adata.obs[groupby], model.classes_)
    groups = [str(model.classes_[k]) for k in order]
    lists = [
        _order(row, found.constant, rankby_abs)[:n_genes] for row in values["scores"]
    ]
    names = np.asarray(adata.var_names, dtype=object)
    columns = {"names": [names[genes] for genes in lists]} | {
        name: [row[genes] for row, genes in zip(rows, lists, strict=True)]
        for name, rows in values.items()
    }
    params = {
        "groupby": groupby,
        "reference": "rest",
        "method": "ebda",
        "use_raw": False,
        "layer": layer,
        "corr_method": "ebda",
    }
    result: dict[str, Any] = {"params": params}
    if pts:
        result |= _shares(X, model.classes_, adata.obs[groupby], order, names)
    for name, kind in _TYPES.items():
        rows = [np.asarray(columns[name][k]).astype(kind) for k in order]
        dtype = [(group, kind) for group in groups]
        result[name] = np.rec.fromarrays(rows, dtype=dtype)
    adata.uns[key_added] = result
    adata.var["ebda_q_value"] = found.q_over_classes
    adata.var["ebda_lfdr"] = found.lfdr_over_classes
    higher = found.strongest if not two else (found.t > 0).astype(np.intp)
    adata.var["ebda_class"] = _categories(higher, model.classes_)
    return model


def predict(
    adata: Any,
    model: Any,
    *,
    layer: str | None = None,
    covariates: Any = None,
    key_added: str = "ebda",
) -> None:
    """Write the most probable class of each cell, and the probabilities.

    Genes are found by their names, in any order and among others. Predictions of cells
    that the model was fitted to say nothing about its error; for that see
    :func:`ebda.evaluation.cross_validate`.

    Parameters
    ----------
    adata : AnnData
        New cells, normalised as those of the fit.
    model : classifier
        A fitted one.
    layer : str, optional
        Layer of ``adata.layers`` to take instead of ``adata.X``.
    covariates : list of str or array-like, optional
        As for ``EBClassifier.predict``.
    key_added : str
        ``adata.obs[key_added]`` will be the class, ``obs[key_added + "_probability"]``
        its probability, and ``obsm[key_added + "_probabilities"]`` a table with those
        of all classes.
    """
    import pandas as pd

    X = _with_layer(adata, layer)
    given = {} if covariates is None else {"covariates": covariates}
    p = np.asarray(model.predict_proba(X, **given))
    place = p.argmax(axis=1)
    adata.obs[key_added] = _categories(place, model.classes_)
    adata.obs[f"{key_added}_probability"] = p[np.arange(len(p)), place]
    names = [str(label) for label in model.classes_]
    table = pd.DataFrame(p, index=adata.obs_names, columns=names)
    adata.obsm[f"{key_added}_probabilities"] = table


def log2_ratios(moments: ClassMoments, base: float | None = None) -> FloatArray:
    """Logarithms to base 2 of the ratio of each class to the rest, as scanpy has them.

    Means are of logarithms of 1 + x, and turned back before their ratio is taken:
    ``log2((expm1(m_k) + 1e-9) / (expm1(m_rest) + 1e-9))``. NaN where one of the means
    is negative, as after scaling.

    Parameters
    ----------
    moments : ClassMoments
        Of the classes.
    base : float, optional
        Base of the logarithms, e by default.
    """
    n = moments.n_values
    sums = n * moments.means
    rest = (sums.sum(axis=0) - sums) / np.maximum(n.sum(axis=0) - n, 1.0)
    factor = 1.0 if base is None else np.log(base)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        own, other = (np.expm1(factor * m) + _PSEUDO for m in (moments.means, rest))
        ratio = own / other
        return np.asarray(np.where(ratio > 0, np.log2(ratio), np.nan))


def _with_layer(adata: Any, layer: str | None) -> Any:
    """The same object, or one with a layer as its X."""
    if not is_annotated(adata):
        raise TypeError(f"adata must be an AnnData object, got {type(adata).__name__}")
    if layer is None:
        return adata
    if layer not in adata.layers:
        known = ", ".join(map(repr, adata.layers)) or "none"
        raise ValueError(f"layer {layer!r} is not in adata.layers, which has {known}")
    return type(adata)(adata.layers[layer], obs=adata.obs, var=adata.var)


def _each(rows: FloatArray) -> FloatArray:
    """One row per class: of two classes both have the same."""
    return np.stack([rows, rows]) if rows.ndim == 1 else rows


def _order(
    scores: FloatArray, constant: npt.NDArray[np.bool_], by_size: bool
) -> IntArray:
    key = np.abs(scores) if by_size else scores
    order: IntArray = np.lexsort((constant, -key))
    return order


def _log_base(adata: Any) -> float | None:
    """Base of the logarithms, where ``scanpy.pp.log1p`` has left it."""
    base = adata.uns.get("log1p", {}).get("base")
    return None if base is None else float(base)


def _group_order(column: Any, classes: npt.NDArray[Any]) -> list[int]:
    """Classes in the order of the categories, where the column has any."""
    known = classes.tolist()
    if not hasattr(column, "cat"):
        return list(range(len(known)))
    return [known.index(label) for label in column.cat.categories if label in known]


def _categories(place: IntArray, classes: npt.NDArray[Any]) -> Any:
    import pandas as pd

    return pd.Categorical.from_codes(place, categories=classes)


def _shares(
    X: Any,
    classes: npt.NDArray[Any],
    column: Any,
    order: list[int],
    names: npt.NDArray[Any],
) -> dict[str, Any]:
    """Shares of cells that are not zero, in each group and in the rest."""
    import pandas as pd

    labels = np.asarray(column)
    counts, n = [], []
    for label in classes:
        rows = np.flatnonzero(labels == label)
        block = X[rows].X
        counts.append(np.asarray((block != 0).sum(axis=0)).ravel())
        n.append(len(rows))
    found, total = np.array(counts, dtype=np.float64), np.array(n)[:, None]
    rest = (found.sum(axis=0) - found) / (total.sum() - total)
    groups = [str(classes[k]) for k in order]
    return {
        "pts": pd.DataFrame((found / total)[order].T, index=names, columns=groups),
        "pts_rest": pd.DataFrame(rest[order].T, index=names, columns=groups),
    }
