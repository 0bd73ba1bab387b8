"""The loops that are compiled for large arrays (:mod:`ebda.kernels.compiled`).

Plain functions in the subset of Python that Numba knows. Each does what a few NumPy
operations do in the kernel that calls it, but reads and writes its arrays once. They
work on the entries ``left:right`` and write to arrays among their arguments. What a
processor can do for several numbers at a time is a loop of its own over a slice;
positions are unsigned, because negative ones would have to be checked for.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.typing import FloatArray, IntArray

# Columns that several passes are made over while they are in the first cache.
_TILE = 1024
# Without its sign a float64 is ordered as the whole number that its bits are, and a
# processor compares several of those at a time.
_WITHOUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def class_sums(
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    width: int,
    means: FloatArray,
    squares: FloatArray,
    left: int,
    right: int,
) -> None:
    """Means and centred sums of squares, `width` columns at a time.

    Class k are the rows ``rows[bounds[k]:bounds[k + 1]]`` of X.
    """
    mean, rest, square = np.empty(width), np.empty(width), np.empty(width)
    for start in range(left, right, width):
        w = min(width, right - start)
        for k in range(len(bounds) - 1):
            n = bounds[k + 1] - bounds[k]
            if n == 0:
                continue
            for j in range(w):
                mean[j] = 0.0
            for i in range(bounds[k], bounds[k + 1]):
                row = X[rows[i], start : start + w]
                for j in range(w):
                    mean[j] += row[j]
            for j in range(w):
                mean[j] /= n
                rest[j] = 0.0
                square[j] = 0.0
            for i in range(bounds[k], bounds[k + 1]):
                row = X[rows[i], start : start + w]
                for j in range(w):
                    d = row[j] - mean[j]
                    rest[j] += d
                    square[j] += d * d
            for j in range(w):
                # The residuals sum to the rounding error of the mean: put it back.
                r = rest[j] / n
                means[k, start + j] = mean[j] + r
                squares[k, start + j] = max(square[j] - r * r * n, 0.0)


def missing_class_sums(
    X: npt.NDArray[Any],
    rows: IntArray,
    bounds: IntArray,
    columns: IntArray,
    width: int,
    counts: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    left: int,
    right: int,
) -> None:
    """The same for the values of some columns that are not NaN, and their number."""
    for start in range(left, right, width):
        stop = min(start + width, right)
        for k in range(len(bounds) - 1):
            count, mean = counts[k, start:stop], means[k, start:stop]
            square, rest = squares[k, start:stop], np.zeros(stop - start)
            for i in range(bounds[k], bounds[k + 1]):
                row = X[rows[i]]
                for j in range(len(mean)):
                    value = row[np.uint64(columns[start + j])]
                    there = value == value
                    count[j] += 1.0 if there else 0.0
                    mean[j] += value if there else 0.0
            for j in range(len(mean)):
                mean[j] /= max(count[j], 1.0)
            for i in range(bounds[k], bounds[k + 1]):
                row = X[rows[i]]
                for j in range(len(mean)):
                    value = row[np.uint64(columns[start + j])]
                    d = value - mean[j] if value == value else 0.0
                    rest[j] += d
                    square[j] += d * d
            for j in range(len(mean)):
                # The residuals sum to the rounding error of the mean: put it back.
                r = rest[j] / max(count[j], 1.0)
                mean[j] += r
                square[j] = max(square[j] - r * r * count[j], 0.0)


def leading_bits(
    bits: npt.NDArray[np.int64],
    dropped: int,
    last: int,
    first: int,
    size: int,
    left: int,
    right: int,
) -> npt.NDArray[np.int64]:
    """How many begin with the same bits, and the sums of the bits that follow.

    Position 0 is for what begins with less than `first`.
    """
    follow, most = (1 << (dropped - last)) - 1, size - 1
    found = np.zeros((2, size), np.int64)
    some, counts, sums = bits[left:right], found[0], found[1]
    for j in range(len(some)):
        place = np.uint64(min(max((some[j] >> dropped) - (first - 1), 0), most))
        counts[place] += 1
        sums[place] += (some[j] >> last) & follow
    return found


def two_class_z(
    means: FloatArray,
    squares: FloatArray,
    variance: FloatArray,
    factor: float,
    z: FloatArray,
    left: int,
    right: int,
) -> tuple[np.int64, np.int64, np.int64]:
    """The second mean less the first, over ``sqrt(factor variance)``.

    Returns the bits of the largest absolute mean, of the smallest variance, and of the
    smallest sum of squares, that of the class with more.
    """
    largest, least, smallest = np.int64(0), _WITHOUT_SIGN, _WITHOUT_SIGN
    for start in range(left, right, _TILE):
        stop = min(start + _TILE, right)
        given, d = variance[start:stop], z[start:stop]
        first, second = means[0, start:stop], means[1, start:stop]
        for j in range(len(given)):
            d[j] = (second[j] - first[j]) / sqrt(factor * given[j])
        a, b = given.view(np.int64), first.view(np.int64)
        for j in range(len(a)):
            least = min(least, a[j])
            largest = max(largest, b[j] & _WITHOUT_SIGN)
        a, b = squares[0, start:stop].view(np.int64), second.view(np.int64)
        c = squares[1, start:stop].view(np.int64)
        for j in range(len(a)):
            smallest = min(smallest, max(a[j], c[j]))
            largest = max(largest, b[j] & _WITHOUT_SIGN)
    return largest, least, smallest


def divide_by_root(
    rows: FloatArray, variance: FloatArray, left: int, right: int
) -> None:
    """Each row over the square root of `variance`, in place."""
    given = variance[left:right]
    for c in range(len(rows)):
        row = rows[c, left:right]
        for j in range(len(given)):
            row[j] = row[j] / sqrt(given[j])


def cell_sums(
    z: FloatArray,
    step: float,
    width: float,
    farthest: float,
    size: int,
    left: int,
    right: int,
) -> tuple[npt.NDArray[np.int64], np.int64, int]:
    """Values by cell: how many, and by how many steps they exceed its left end.

    The middle column of the result is the cell that begins at zero. Also returns the
    sum of the squares of these excesses, and how many values lie beyond the cells.
    """
    found = np.zeros((2, size), np.int64)
    counts, totals = found[0], found[1]
    middle, squares, far = size // 2, np.int64(0), 0
    per_step, per_width, steps = 1 / step, 1 / width, width / step
    places, excesses = np.empty(_TILE, np.int64), np.empty(_TILE, np.int64)
    for start in range(left, right, _TILE):
        some = z[start : min(start + _TILE, right)]
        for j in range(len(some)):
            whole = np.rint(some[j] * per_step)
            x = whole * step
            cell = np.floor(x * per_width)
            excesses[j] = np.int64(whole - np.rint(cell * steps))
            places[j] = np.int64(cell) + middle if abs(x) <= farthest else -1
        for j in range(len(some)):
            if places[j] < 0:
                far += 1
                continue
            place, excess = np.uint64(places[j]), excesses[j]
            counts[place] += 1
            totals[place] += excess
            squares += excess * excess
    return found, squares, far


def cubics(
    x: FloatArray,
    step: float,
    first: float,
    coefficients: FloatArray,
    out: FloatArray,
    left: int,
    right: int,
) -> None:
    """Cubics between nodes: one row of coefficients per power, the constant first."""
    constant, linear, square, cube = coefficients
    last = len(constant) - 1.0
    cells = np.empty(_TILE, np.int64)
    for start in range(left, right, _TILE):
        some = x[start : min(start + _TILE, right)]
        values = out[start : start + len(some)]
        for j in range(len(some)):
            t = some[j] / step - first
            t = t if t > 0.0 else 0.0
            t = t if t < last else last
            cell = np.int64(t)
            cells[j], values[j] = cell, t - cell
        for j in range(len(some)):
            t, place = values[j], np.uint64(cells[j])
            value = cube[place] * t + square[place]
            value = value * t + linear[place]
            values[j] = value * t + constant[place]


def hash_rows(
    X: npt.NDArray[Any], keys: npt.NDArray[np.uint64], left: int, right: int
) -> npt.NDArray[np.uint64]:
    """Folded bits of each row times the keys of the columns, modulo 2**64."""
    total, half = np.zeros(len(X), np.uint64), np.uint64(32)
    values = np.empty(_TILE)
    bits = values.view(np.uint64)
    for i in range(len(X)):
        for start in range(left, right, _TILE):
            row = X[i, start : min(start + _TILE, right)]
            own = keys[start : start + len(row)]
            for j in range(len(row)):
                values[j] = row[j] + 0.0  # -0.0 becomes 0.0
            found = np.uint64(0)
            for j in range(len(row)):
                found += (bits[j] ^ (bits[j] >> half)) * own[j]
            total[i] += found
    return total
