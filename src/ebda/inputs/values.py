"""What is done to the numbers: logarithms, missing values, and hints about both."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import skew

from ebda.data.distortion import log_hint
from ebda.data.structure import check_structure
from ebda.inputs.logarithms import LOGARITHMS
from ebda.listing import counted, listed, quoted
from ebda.typing import FloatArray, IntArray

IMPUTATIONS = ("median",)
# Raw intensities and counts: logarithms stay below the first, and numbers that suit a
# linear rule are seldom as skewed as the second.
_LARGE = 50.0
_SKEWED = 2.0
# Whole numbers up to less than this may be genotypes or grades.
_COUNTS = 10.0
_LOOKED_AT = 1_000_000


def in_memory(X: Any) -> Any:
    """An ndarray or a CSR array of floating point numbers; float32 stays what it is."""
    check_structure(X)
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    if sparse.issparse(X) and not X.has_canonical_format:
        X.sum_duplicates()
    return X if X.dtype.kind == "f" and X.dtype.itemsize >= 4 else X.astype(np.float64)


def _stored(X: Any) -> npt.NDArray[Any]:
    """The numbers that are there: all of them, or those that a sparse matrix stores."""
    data: npt.NDArray[Any] = X.data if sparse.issparse(X) else X
    return data


def cells_where(X: Any, test: Any = np.isnan) -> tuple[IntArray, IntArray]:
    """Rows and columns of the values for which a test is true; of those that miss."""
    found = test(_stored(X))
    if not found.any():
        return np.empty(0, np.intp), np.empty(0, np.intp)
    if sparse.issparse(X):
        at = X.tocoo()
        return at.row[found].astype(np.intp), at.col[found].astype(np.intp)
    rows, columns = np.nonzero(found)
    return rows, columns


def refuse(
    X: Any, kind: str, samples: Any, features: Any, source: str, way_out: str
) -> None:
    """Refuse missing or infinite values: how many there are, and the first of them."""
    rows, columns = cells_where(X, {"missing": np.isnan, "infinite": np.isinf}[kind])
    if not len(rows):
        return
    first = listed(
        np.column_stack([rows, columns]),
        3,
        lambda at: f"sample {str(samples[at[0]])!r}, feature {str(features[at[1]])!r}",
        "; ",
    )
    raise ValueError(
        f"{source}: {len(rows)} of {X.shape[0] * X.shape[1]} values "
        f"{'is' if len(rows) == 1 else 'are'} {kind}: {first}; {way_out}"
    )


def missing_words(X: Any, columns: IntArray) -> str:
    """How many values are missing, where, and what is done.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Values.
    columns : ndarray of int
        The feature of each missing value.

    >>> missing_words(np.zeros((2, 5)), np.array([3, 3, 4]))[:56]
    '3 values of 10 (30.0%) missing, in 2 of 5 features: mean'
    >>> missing_words(np.zeros((200, 50)), np.array([3]))[:37]
    '1 value of 10000 (less than 0.1%) mis'
    """
    n, p = X.shape
    share = len(columns) / (n * p)
    shown = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
    return (
        f"{counted(len(columns), 'value')} of {n * p} ({shown}) "
        f"missing, in {len(np.unique(columns))} of {counted(p, 'feature')}: means and "
        "variances are of the values that are there (--impute median fills them)"
    )


def medians(X: Any, columns: IntArray, features: Any, source: str) -> FloatArray:
    """Median of the values that are not missing, for some features."""
    found = np.empty(len(columns))
    by_column = sparse.csc_array(X) if sparse.issparse(X) else X
    for k, j in enumerate(columns):
        column = by_column[:, [j]]
        cells = column.toarray() if sparse.issparse(X) else column
        there = cells[~np.isnan(cells)]
        found[k] = np.median(there) if there.size else np.nan
    empty = columns[np.isnan(found)]
    if len(empty):
        names = [features[j] for j in empty]
        raise ValueError(
            f"{source}: {counted(len(empty), 'feature', 'have')} no value at all: "
            f"{quoted(names)}; leave {'it' if len(names) == 1 else 'them'} out with "
            "--drop NAME"
        )
    return found


def fill(X: Any, values: FloatArray) -> Any:
    """Replace missing values by the value of their feature in `values`.

    >>> fill(np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([0.0, 9.0])).tolist()
    [[1.0, 9.0], [3.0, 4.0]]
    """
    rows, columns = cells_where(X)
    if not len(rows):
        return X
    filled = X.copy()
    stored = _stored(filled)
    stored[np.isnan(stored)] = values[columns]
    return filled


def hint_about_log(X: Any, log: bool | str) -> str | None:
    """A hint for when ``--log2`` was probably forgotten, or given without need.

    >>> rng = np.random.default_rng(0)
    >>> hint_about_log(np.exp(rng.normal(6, 2, (20, 30))), log=False)[-48:]
    '--log2 takes sign(x) log2(1 + |x|) of the values'
    >>> hint_about_log(rng.normal(8, 2, (20, 30)), log=False) is None
    True
    >>> hint_about_log(rng.negative_binomial(0.3, 0.05, (50, 90)) + 0.0, log=False)[:33]
    'the values are counts (whole numb'
    """
    way_out = f"--log2 takes {LOGARITHMS['log2'].line} of the values"
    if not log and (words := _count_words(X)):
        return f"{words}; {way_out}, which usually helps"
    if not log and (hint := log_hint(X)):
        return f"{hint}; {way_out}"
    # What that cannot judge: few samples, negative values, many zeros.
    stored = np.asarray(_stored(X), dtype=np.float64).ravel()
    step = max(1, stored.size // _LOOKED_AT)
    seen = stored[::step]
    seen = seen[np.isfinite(seen)]
    if not seen.size or np.ptp(seen) == 0:
        return None
    largest = float(np.abs(stored[np.isfinite(stored)]).max())
    raw = largest > _LARGE and abs(float(skew(seen))) > _SKEWED
    if raw and not log:
        return (
            f"the values look like raw intensities or counts (up to {largest:.4g}, "
            f"most of them far smaller); {way_out}, which usually helps"
        )
    if log and largest <= _LARGE:
        return (
            f"the values reach {largest:.3g} only and may be logarithms already; then "
            f"leave {'--log2' if log == 'log2' else '--log'} out"
        )
    return None


def _count_words(X: Any) -> str | None:
    """Whether the values are counts: whole numbers, most of them far from the largest.

    Zeros that a sparse matrix does not store are counts, too.
    """
    stored = np.asarray(_stored(X)).ravel()
    seen = stored[:: max(1, stored.size // _LOOKED_AT)]
    seen = np.asarray(seen[np.isfinite(seen)], dtype=np.float64)
    if not seen.size or seen.min() < 0 or (seen != np.floor(seen)).any():
        return None
    largest = float(stored[np.isfinite(stored)].max())
    some = seen[seen > 0]
    if largest < _COUNTS or np.ptp(some) == 0 or skew(some) < _SKEWED:
        return None
    return f"the values are counts (whole numbers up to {largest:.4g})"


def constant_features(X: Any) -> int:
    """Number of features with the same value in all samples."""
    ends = X.min(axis=0), X.max(axis=0)
    low, high = (e.toarray() if sparse.issparse(X) else e for e in ends)
    return int(np.count_nonzero(low == high))
