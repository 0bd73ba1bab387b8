"""What every implementation of `Data` and `Samples` must do, against plain NumPy.

`check_data` compares all methods of the two protocols (:mod:`ebda.data.protocols`) with
their definition. ``test_data_conformance.py`` runs it for each implementation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse

from ebda.data import Data, Labels, RowSamples, Samples
from ebda.moments.classwise import ClassMoments

N_CLASSES = 3


@dataclass(frozen=True)
class Rows:
    """Samples as plain arrays, and their sums by definition."""

    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    number: np.ndarray

    def take(self, chosen: np.ndarray) -> Rows:
        return Rows(
            *(v[chosen] for v in (self.X, self.codes, self.weight, self.number))
        )

    def features(self, chosen: np.ndarray) -> Rows:
        return replace(self, X=self.X[:, chosen])

    def residuals(self, means: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return (self.X - means[self.codes]) / scale

    def moments(self) -> ClassMoments:
        X, shape = self.X, (N_CLASSES, self.X.shape[1])
        counts, means, squares = np.zeros(N_CLASSES), np.zeros(shape), np.zeros(shape)
        for k in np.unique(self.codes[self.weight > 0]):
            w = np.where(self.codes == k, self.weight, 0.0)
            counts[k] = w.sum()
            means[k] = w @ X / counts[k]
            squares[k] = w @ (X - means[k]) ** 2
        return ClassMoments(counts, means, squares)


def random_rows(rng: np.random.Generator) -> Rows:
    """Whole numbers that no dtype changes: with zeros, constants, equal rows.

    Often one of three classes is missing; there may be a single row or column.
    """
    n, p = (int(rng.choice([1, 2, rng.integers(3, most)])) for most in (30, 40))
    X = rng.integers(-9, 10, (n, p)).astype(float)
    X[rng.random((n, p)) < 0.4] = 0.0
    X[:, rng.random(p) < 0.1] = 7.0
    codes = rng.choice(rng.permutation(N_CLASSES)[: rng.integers(1, N_CLASSES + 1)], n)
    twin = rng.integers(n, size=2)
    X[twin[0]], codes[twin[0]] = X[twin[1]], codes[twin[1]]
    weight = rng.integers(0, 4, n) / 2
    weight[twin] = 1.0
    return Rows(X, codes.astype(np.intp), weight, np.arange(n))


def kept_rows(rows: Rows) -> Rows:
    """The samples that are kept of these, where they are an array in memory."""
    kept = RowSamples.of(rows.X, rows.codes, rows.weight).kept()
    return Rows(rows.X[kept.rows], kept.codes, kept.weight, kept.number)


def close(got: Any, want: Any) -> None:
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-9)


def same_moments(got: ClassMoments, want: ClassMoments) -> None:
    for field in ("counts", "means", "centred_squares"):
        close(getattr(got, field), getattr(want, field))


def check_data(
    data: Data, rows: Rows, rng: np.random.Generator, can_copy: bool = True
) -> None:
    """Compare data with the array that they were made from.

    Parameters
    ----------
    data : Data
        The implementation.
    rows : Rows
        Its values, with classes and weights for them.
    rng : Generator
        Draws the arguments of the methods.
    can_copy : bool
        Whether samples can be copied and appended; else there is an error.
    """
    X, codes = rows.X, rows.codes
    assert data.shape == X.shape
    assert data.dtype.kind in "biuf"
    assert data.names is None or len(data.names) == X.shape[1]
    if data.values is not None:
        values = data.values.toarray() if issparse(data.values) else data.values
        np.testing.assert_array_equal(values, X)
    coef, intercept = rng.normal(size=(2, X.shape[1])), rng.normal(size=2)
    close(np.asarray(data.scores(coef, intercept)), X @ coef.T + intercept)
    weight = None if rng.random() < 0.3 else rows.weight
    expected = replace(rows, weight=np.ones(len(X))) if weight is None else rows
    labels = Labels(codes, N_CLASSES, weight)
    with data.job_context():
        moments, nothing = data.summarise(labels, keep=False)
        again, samples = data.summarise(labels, keep=True)
    assert nothing is None
    assert samples is not None
    same_moments(moments, expected.moments())
    same_moments(again, expected.moments())
    kept = kept_rows(expected)
    check_sums(samples, kept, rng)
    check_parts(samples, kept, rng)
    check_copies(samples, kept, can_copy)
    if can_copy:
        _, later = data.summarise(
            replace(labels, weight=rows.weight, first=1000), keep=True
        )
        assert later is not None
        of_all = kept_rows(rows)
        np.testing.assert_array_equal(later.number, of_all.number + 1000)
        close(later.scores(coef), of_all.X @ coef.T)
    else:
        with pytest.raises(ValueError, match="partial_fit cannot keep the samples"):
            data.summarise(replace(labels, first=1000), keep=True)


def check_parts(samples: Samples, rows: Rows, rng: np.random.Generator) -> None:
    """Take some of the samples, by mask or by position, and some of the features."""
    n, p = rows.X.shape
    chosen = rng.random(n) < 0.6
    chosen[rng.integers(n)] = True
    if rng.random() < 0.5:
        chosen = np.flatnonzero(chosen)
    part, want = samples.take(chosen), rows.take(chosen)
    if rng.random() < 0.7:
        some = np.sort(rng.choice(p, rng.integers(1, p + 1), replace=False))
        part, want = part.features(some), want.features(some)
    check_sums(part, want, rng)


def check_sums(samples: Samples, rows: Rows, rng: np.random.Generator) -> None:
    """Compare each sum with its definition."""
    n, p = rows.X.shape
    assert len(samples) == n
    for field in ("codes", "weight", "number"):
        np.testing.assert_array_equal(getattr(samples, field), getattr(rows, field))

    means, scale = rng.normal(size=(N_CLASSES, p)), rng.uniform(1, 2, p)
    R = rows.residuals(means, scale)
    root = np.sqrt(rows.weight)[:, None]
    fingerprint = samples.fingerprint(means, scale)
    close(fingerprint, (R * np.abs(R)).sum(axis=1))
    _, which = np.unique(
        np.column_stack([rows.codes, rows.X]), axis=0, return_inverse=True
    )
    # Equal samples have equal bits.
    assert len(np.unique(fingerprint)) <= which.max() + 1
    close(samples.gram(means, scale), (root * R) @ (root * R).T)
    combine = rng.normal(size=(n, 2))
    close(samples.loadings(means, scale, combine), R.T @ combine)
    coef = rng.normal(size=(2, p))
    close(samples.scores(coef), rows.X @ coef.T)

    third = np.sort(rng.integers(3, size=p))
    third[rng.random(p) < rng.choice([0.0, 0.3, 1.0])] = -1
    sums, used = samples.neighbour_sums(means, scale, third), (root * R)[:, third >= 0]
    assert sums.near == pytest.approx(
        (used[:, 1:] * used[:, :-1]).sum(), rel=1e-10, abs=1e-9
    )
    by_third = [(root * R)[:, third == j].sum(axis=1) for j in range(3)]
    close(sums.thirds, np.column_stack(by_third))
    if used.shape[1]:
        close(sums.ends, used[:, [0, -1]])
    else:
        assert sums.ends is None

    same_moments(samples.moments(N_CLASSES), rows.moments())
    group = rng.integers(3, size=n)
    for g, moments in enumerate(samples.moments_by(group, 4, N_CLASSES)):
        same_moments(moments, rows.take(group == g).moments())


def check_copies(samples: Samples, rows: Rows, can_copy: bool) -> None:
    """Copy the samples, and append one half of them to the other."""
    halves = [samples.take(part) for part in np.array_split(np.arange(len(rows.X)), 2)]
    if not can_copy:
        for refused in (samples.copy, lambda: halves[0].append(halves[1])):
            with pytest.raises(ValueError, match="give the whole array to fit"):
                refused()
        return
    rng = np.random.default_rng(0)
    check_sums(samples.copy(), rows, rng)
    check_sums(halves[0].append(halves[1]), rows, rng)
