"""Sums over X on a CUDA device in one pass, where CuPy is installed.

The functions of :mod:`ebda.kernels.device` make several passes over each block, in
float64. Here a thread reads a column once, with neighbouring threads on neighbouring
columns, and the only thing that is written are the sums. Arrays of PyTorch and JAX are
handed to CuPy without a copy, by DLPack.

A class is summed about its first value in the column, which is no farther from the mean
than the values spread: nothing is cancelled when the mean is taken out of the squares.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ebda.kernels.threads import no_fork
from ebda.typing import FloatArray, IntArray

# Threads of a block, and about how many there should be of all.
_THREADS, _ALL_THREADS = 128, 1 << 18
# Rows that one thread adds up at least, and at most: more would lose digits.
_FEWEST_ROWS, _MOST_ROWS = 64, 4096

_SOURCE = r"""
template <typename T, bool WEIGHTED, bool MISSING>
__global__ void class_sums(
    const T* __restrict__ X, long long down, long long across, long long n_columns,
    const int* __restrict__ rows, const int* __restrict__ bounds, int n_classes,
    const double* __restrict__ weight,
    double* __restrict__ means, double* __restrict__ squares,
    double* __restrict__ counts)
{
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (j >= n_columns) return;
    int chunk = blockIdx.y;
    const T* column = X + j * across;
    for (int k = 0; k < n_classes; ++k) {
        int begin = bounds[chunk * n_classes + k];
        int end = bounds[chunk * n_classes + k + 1];
        double first = 0.0, sum = 0.0, square = 0.0, total = 0.0;
        if (MISSING) {
            while (begin < end && isnan((double)column[rows[begin] * down])) ++begin;
        }
        if (begin < end) first = (double)column[rows[begin] * down];
        #pragma unroll 8
        for (int i = begin; i < end; ++i) {
            double value = (double)column[rows[i] * down];
            double x = value - first;
            double w = WEIGHTED ? weight[i] : 1.0;
            if (MISSING && isnan(value)) { w = 0.0; x = 0.0; }
            double wx = WEIGHTED || MISSING ? w * x : x;
            sum += wx;
            square = fma(wx, x, square);
            if (WEIGHTED || MISSING) total += w;
        }
        if (!(WEIGHTED || MISSING)) total = end - begin;
        long long at = ((long long)chunk * n_classes + k) * n_columns + j;
        double mean = total > 0.0 ? sum / total : 0.0;
        square -= mean * sum;
        means[at] = total > 0.0 ? first + mean : 0.0;
        squares[at] = total > 0.0 && !(square < 0.0) ? square : 0.0;
        if (MISSING) counts[at] = total;
    }
}
"""
_TYPES = {"float32": "float", "float64": "double"}


@cache
def available() -> bool:
    """Whether CuPy is installed and finds a device."""
    try:
        with no_fork():
            cupy: Any = import_module("cupy")
        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # of the driver too: then the array API is used
        return False


def suits(X: Any) -> bool:
    """Whether X is a matrix that the kernel can read where it lies.

    >>> suits(np.zeros((2, 2)))
    False
    """
    if str(X.dtype).rpartition(".")[2] not in _TYPES:
        return False
    is_there = hasattr(X, "__dlpack_device__") and X.__dlpack_device__()[0] == 2
    return bool(is_there and available())


@cache
def _kernel(name: str) -> Any:
    cupy: Any = import_module("cupy")
    module = cupy.RawModule(
        code=_SOURCE, options=("--std=c++17",), name_expressions=[name]
    )
    return module.get_function(name)


def class_sums(
    X: Any,
    rows: IntArray,
    codes: IntArray,
    n_classes: int,
    weight: FloatArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Means, centred sums of squares and, if any value is NaN, counts of values.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of float32 or float64, on a CUDA device, with any strides.
    rows : ndarray of int
        Rows of X that count.
    codes : ndarray of int
        Their classes.
    n_classes : int
        Number of classes.
    weight : ndarray, optional
        Frequency weights of these rows.
    """
    sums = class_sums_on_device(X, rows, codes, n_classes, weight, missing=False)
    means, squares = (values.get() for values in sums[:2])
    if np.isfinite(means).all():
        return means, squares, None
    sums = class_sums_on_device(X, rows, codes, n_classes, weight, missing=True)
    means, squares, observed = (values.get() for values in sums)
    # To the bit the sum of all weights, where nothing is missing.
    totals = np.bincount(codes, weight, n_classes).astype(np.float64)[:, None]
    np.copyto(observed, totals, where=np.isclose(observed, totals, rtol=1e-12, atol=0))
    return means, squares, observed


def class_sums_on_device(
    X: Any,
    rows: IntArray,
    codes: IntArray,
    n_classes: int,
    weight: FloatArray | None,
    missing: bool,
) -> tuple[Any, Any, Any]:
    """The same as CuPy arrays; the counts are None unless `missing` asks for them.

    Parameters
    ----------
    X, rows, codes, n_classes, weight
        As in `class_sums`.
    missing : bool
        Whether NaN is a missing value; else it shows in the means.
    """
    cupy: Any = import_module("cupy")
    values = cupy.from_dlpack(X)
    p = values.shape[1]
    chunks = _chunks(len(rows), p)
    # Within a chunk the rows are sorted by class.
    chunk = np.repeat(np.arange(len(chunks)), chunks)
    place = chunk * n_classes + codes
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(chunks) * n_classes + 1))
    with values.device:
        shape = len(chunks), n_classes, p
        means, squares = cupy.empty(shape), cupy.empty(shape)
        counts = cupy.empty(shape if missing else (1,))
        w = cupy.asarray(np.ones(1) if weight is None else weight[order])
        kind = _TYPES[values.dtype.name]
        flags = ", ".join(str(x).lower() for x in (weight is not None, missing))
        down, across = (step // values.itemsize for step in values.strides)
        _kernel(f"class_sums<{kind}, {flags}>")(
            (-(-p // _THREADS), len(chunks)),
            (_THREADS,),
            (
                values,
                np.int64(down),
                np.int64(across),
                np.int64(p),
                cupy.asarray(rows[order].astype(np.int32)),
                cupy.asarray(bounds.astype(np.int32)),
                np.int32(n_classes),
                w,
                means,
                squares,
                counts,
            ),
        )
        if not missing:
            own = np.bincount(place, weight, len(chunks) * n_classes)
            counts = cupy.asarray(own.astype(np.float64).reshape(*shape[:2], 1))
        means, squares, total = _merged(cupy, counts, means, squares)
    return means, squares, total if missing else None


def _chunks(n: int, p: int) -> IntArray:
    """Numbers of rows that are summed side by side: enough threads, but no more."""
    wanted = -(-_ALL_THREADS // p)
    count = max(-(-n // _MOST_ROWS), min(wanted, n // _FEWEST_ROWS), 1)
    ends = np.linspace(0, n, count + 1).astype(np.intp)
    return ends[1:] - ends[:-1]


def _merged(xp: Any, counts: Any, means: Any, squares: Any) -> tuple[Any, Any, Any]:
    """Sums of chunks, along the first axis, merged (Chan, Golub and LeVeque)."""
    if len(means) == 1:
        return means[0], squares[0], counts[0]
    total = counts.sum(axis=0)
    share = counts / xp.where(total > 0, total, 1.0)
    mean = (share * means).sum(axis=0)
    shift = means - mean
    mean = mean + (share * shift).sum(axis=0)
    shift = means - mean
    return mean, (squares + counts * shift * shift).sum(axis=0), total
