"""`read`: a file, whatever its format, as a table of samples and features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from os import PathLike
from pathlib import Path

import numpy as np

from ebda.estimators.validation import one_of
from ebda.inputs import values
from ebda.inputs.base import Block, Format, Names, Reading, Sheet
from ebda.inputs.formats import find_format, load
from ebda.inputs.grid import Known
from ebda.inputs.labels import (
    Labels,
    NoLabelsError,
    as_classes,
    choose,
    labelled,
    load_labels,
)
from ebda.inputs.names import DUPLICATES, refuse_twice
from ebda.inputs.orientation import ORIENTATIONS, to_block
from ebda.inputs.table import Table
from ebda.listing import counted, quoted


def read(
    path: str | PathLike[str],
    target: str | None = None,
    orient: str = "auto",
    labels: str | PathLike[str] | None = None,
    impute: str | None = None,
    log: bool = False,
    *,
    layer: str | None = None,
    drop: Iterable[str] = (),
    duplicates: str = "error",
    features: Sequence[str] | None = None,
    keep_missing: bool = False,
) -> Table:
    r"""Read samples, features and labels from a file.

    CSV and TSV (also gzipped), Parquet, AnnData ``.h5ad``, GCT, NumPy ``.npz``, LIBSVM
    text and Zarr, told apart by content.

    Parameters
    ----------
    path : path
        The file, or the folder of a Zarr store.
    target : str, optional
        Column or row of the labels; in a file of labels, its column.
    orient : {"auto", "rows", "columns"}
        Where the samples are.
    labels : path, optional
        A second file with the labels, matched by the names of the samples.
    impute : {None, "median"}
        How missing values are filled: by the median of the feature. None makes them
        an error.
    log : bool
        Whether to take ``sign(x) log(1 + |x|)``.
    layer : str, optional
        Of AnnData, instead of X.
    drop : iterable of str
        Columns, rows or features to leave out.
    duplicates : {"error", "number"}
        What is done about features with the same name: "number" makes them name,
        name.1 and so on, as R does.
    features : sequence of str, optional
        The features that are wanted, which also tell the orientation; others are left
        out where that saves work.
    keep_missing : bool
        Whether missing values stay NaN, to be filled later.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "expression.csv"
    ...     _ = path.write_text("gene,s1,s2,s3\ntype,a,b,b\nCD33,1.5,2,4\n")
    ...     table = read(path, target="type")
    >>> table.X.tolist(), table.y.tolist(), table.feature_names.tolist()
    ([[1.5], [2.0], [4.0]], ['a', 'b', 'b'], ['CD33'])
    """
    one_of("orient", orient, ORIENTATIONS)
    one_of("duplicates", duplicates, DUPLICATES)
    if impute is not None:
        one_of("impute", impute, values.IMPUTATIONS)
    path = Path(path)
    second = None if labels is None else load_labels(Path(labels))
    known = Known(
        target if second is None else None,
        None if features is None else frozenset(features),
        () if second is None else second.samples(),
        frozenset(drop),
    )
    found = find_format(path)
    loaded = load(path, found, Reading(orient, layer))
    if isinstance(loaded, Sheet):
        loaded = to_block(loaded, orient, known, str(path))
    block = _prepared(loaded, known, duplicates, str(path))

    taken: Labels | None
    if second is not None:
        n = block.values.shape[0]
        taken = second.labels_of(_listed(block.samples), n, target)
    else:
        taken = choose(block, target, str(path))
    table = _table(block, path, found)
    if taken is not None:
        table = _with_labels(table, taken)
    return _transformed(table, impute, log, keep_missing)


def _listed(names: Names | None) -> list[str] | None:
    return None if names is None else names.tolist()


def _running(n: int) -> Names:
    return np.arange(1, n + 1).astype(np.str_)


def _prepared(block: Block, known: Known, duplicates: str, source: str) -> Block:
    """With unique names of features, and without the features to leave out."""
    n, p = block.values.shape
    features = _running(p) if block.features is None else block.features
    if block.samples is not None:
        refuse_twice(block.samples, "sample", source)
    if known.drop:
        keep = ~np.isin(features, list(known.drop))
        features, block = features[keep], replace(block, values=block.values[:, keep])
    features = DUPLICATES[duplicates](features, source)
    if not n or not len(features):
        what = "sample" if not n else "feature with numbers"
        if n and known.features is not None:
            what = "feature of the model"
        raise ValueError(
            f"{source}: there is no {what}, with samples in {block.orientation} "
            f"({block.evidence}); if that is the wrong way round, say so with --orient"
        )
    return replace(block, features=features)


def _table(block: Block, path: Path, found: Format) -> Table:
    n = block.values.shape[0]
    assert block.features is not None
    return Table(
        values.as_float(block.values),
        None,
        _running(n) if block.samples is None else block.samples,
        block.features,
        str(path),
        found.name,
        block.orientation,
        evidence=block.evidence,
        notes=block.notes,
        candidates=tuple(block.annotations),
        n_ignored=block.n_ignored,
        absent_is_zero=block.absent_is_zero,
    )


def _with_labels(table: Table, labels: Labels) -> Table:
    """With labels; samples without one are left out, and listed in a note."""
    has = labelled(labels.cells)
    if not has.any():
        raise NoLabelsError(f"{table.source}: no sample has a label in {labels.words}")
    notes = table.notes
    if not has.all():
        names = table.sample_names[~has].tolist()
        left = f"left out {counted(len(names), 'sample')} without a label"
        notes = (*notes, f"{left}: {quoted(names)}")
    return replace(
        table,
        X=table.X if has.all() else table.X[has],
        y=as_classes(list(compress(labels.cells, has)), table.source),
        sample_names=table.sample_names[has],
        target=labels.name,
        labels_from=labels.words,
        notes=notes,
    )


def _transformed(
    table: Table, impute: str | None, log: bool, keep_missing: bool
) -> Table:
    X, names = table.X, (table.sample_names, table.feature_names)
    values.refuse_infinite(X, *names, table.source)
    notes, done = list(table.notes), []
    hint = values.hint_about_log(X, log)
    if log:
        X = values.log_transform(X)
        done.append(values.LOG)
    rows, columns = values.missing_cells(X)
    if impute is None and not keep_missing:
        way_out = "correct them, or fill in the median of the feature: --impute median"
        values.refuse_missing(X, *names, table.source, way_out)
    elif impute is not None and len(rows):
        which = np.unique(columns)
        medians = np.full(table.n_features, np.nan)
        medians[which] = values.medians(X, which, table.feature_names, table.source)
        X = values.fill(X, medians)
        done.append(f"{counted(len(rows), 'missing value')} replaced by the median")
    constant = values.constant_features(X)
    if constant:
        notes.append(
            f"{counted(constant, 'feature', 'are')} constant, which says nothing about "
            "the classes"
        )
    if hint:
        notes.append(f"hint: {hint}")
    return replace(
        table,
        X=X,
        transformation=", ".join(done) or "none",
        notes=tuple(notes),
    )
