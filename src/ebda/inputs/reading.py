"""`read`: a file, whatever its format, as a table of samples and features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from ebda.estimators.validation import one_of
from ebda.inputs import values
from ebda.inputs.base import Reading, Sheet
from ebda.inputs.cells import DECIMALS
from ebda.inputs.formats import find_format, load
from ebda.inputs.grid import among
from ebda.inputs.labels import labels_of, load_labels, with_aside, with_labels
from ebda.inputs.logarithms import find_logarithm
from ebda.inputs.names import DUPLICATES, refuse_twice
from ebda.inputs.orientation import ORIENTATIONS, to_block
from ebda.inputs.table import Table
from ebda.listing import counted


def read(
    path: str | PathLike[str],
    target: str | None = None,
    orient: str = "auto",
    labels: str | PathLike[str] | None = None,
    impute: str | None = None,
    log: bool | str = False,
    *,
    layer: str | None = None,
    drop: Iterable[str] = (),
    duplicates: str = "error",
    features: Sequence[str] | None = None,
    keep_missing: bool = False,
    decimal: str | None = None,
    max_memory: int | None = None,
    aside: Sequence[str] = (),
    aside_may_lack: bool = False,
) -> Table:
    r"""Read samples, features and labels from a file.

    CSV and TSV (also gzipped), Parquet, Excel ``.xlsx``, AnnData ``.h5ad``, GCT, the
    series matrix of GEO, folders of 10x, NumPy ``.npz`` and ``.npy``, LIBSVM text and
    Zarr, told apart by content.

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
        How missing values are filled: by the median of the feature. None leaves them
        as they are, or makes them an error without `keep_missing`.
    log : bool or {"natural", "log2"}
        Which logarithm is taken, ``sign(x) log(1 + |x|)`` to base e or 2; True is the
        natural one.
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
        Whether missing values stay NaN, for models that take them.
    decimal : {"point", "comma"}, optional
        The decimal sign of text files; the other one may stand between thousands. None
        finds out, and is an error where both would do.
    max_memory : int, optional
        Bytes that the content may take up; by default 1 GiB, or 20 times as much as
        the file has.
    aside : sequence of str
        Columns or rows, of the data or of the file of labels, that are known of the
        samples and are no features: groups and covariates.
    aside_may_lack : bool
        Whether those that are not there are left out, and not an error.

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
    if decimal is not None:
        one_of("decimal", decimal, DECIMALS)
    find_logarithm(log)
    path = Path(path)
    second = None if labels is None else load_labels(Path(labels))
    how = Reading(
        orient,
        layer,
        target if second is None else None,
        frozenset(drop),
        None if features is None else frozenset(features),
        () if second is None else second.samples(),
        tuple(aside),
        decimal,
        max_memory,
    )
    found = find_format(path)
    block = load(path, found, how)
    if isinstance(block, Sheet):
        block = to_block(block, how, str(path))
    # Names that are not there are made, 64 bytes each.
    how.refuse_large(64 * sum(block.values.shape), path)
    if block.samples is not None:
        way_out = "give each sample its own name"
        refuse_twice(block.samples, str(path), "sample name", way_out)
    table = _prepared(Table.of(block, str(path), found.name), how, duplicates)
    table = with_aside(table, block, second, aside, aside_may_lack)
    taken = labels_of(block, second, target, str(path))
    if taken is not None:
        table = with_labels(table, taken)
    return _transformed(table, impute, log, keep_missing)


def _prepared(table: Table, how: Reading, duplicates: str) -> Table:
    """With unique names of features, and without the features to leave out."""
    try:
        X, features = values.in_memory(table.X), table.feature_names
    except ValueError as error:
        raise ValueError(f"{table.source}: {error}") from None
    if how.drop:
        keep = ~among(features.tolist(), how.drop)
        X, features = X[:, keep], features[keep]
    if not X.shape[0] or not len(features):
        what = (
            "feature with numbers" if how.features is None else "feature of the model"
        )
        raise ValueError(
            f"{table.source}: there is no {what if X.shape[0] else 'sample'}, with "
            f"samples in {table.orientation} ({table.evidence}); if that is the wrong "
            "way round, say so with --orient"
        )
    names = DUPLICATES[duplicates](features, table.source)
    return replace(table, X=X, feature_names=names)


def _transformed(
    table: Table, impute: str | None, log: bool | str, keep_missing: bool
) -> Table:
    X, names = table.X, (table.sample_names, table.feature_names)
    way_out = "was a logarithm of zero taken? Correct or remove them"
    values.refuse(X, "infinite", *names, table.source, way_out)
    notes, done = list(table.notes), []
    hint = values.hint_about_log(X, log)
    if (logarithm := find_logarithm(log)) is not None:
        X = logarithm.of(X)
        done.append(logarithm.line)
    rows, columns = values.cells_where(X)
    if impute is None and not keep_missing:
        way_out = "correct them, or fill in the median of the feature: --impute median"
        values.refuse(X, "missing", *names, table.source, way_out)
    elif impute is None and len(rows):
        notes.append(values.missing_words(X, columns))
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
        table, X=X, transformation=", ".join(done) or "none", notes=tuple(notes)
    )
