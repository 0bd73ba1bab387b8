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

from ebda.data import Data, Labels, NonFiniteError, RowSamples, Samples
from ebda.kernels.residuals import LAGS
from ebda.moments.classwise import ClassMoments
from ebda.rule.expected import Expectation, GapScores

N_CLASSES = 3


@dataclass(frozen=True)
class Rows:
    """Samples as plain arrays, and their sums by definition."""

    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    number: np.ndarray
    precision: np.ndarray | None = None

    @property
    def information(self) -> np.ndarray:
        return self.weight if self.precision is None else self.weight * self.precision

    def take(self, chosen: np.ndarray) -> Rows:
        rows = Rows(
            *(v[chosen] for v in (self.X, self.codes, self.weight, self.number))
        )
        if self.precision is None:
            return rows
        return replace(rows, precision=self.precision[chosen])

    def features(self, chosen: np.ndarray) -> Rows:
        return replace(self, X=self.X[:, chosen])

    @property
    def known(self) -> np.ndarray:
        """X with zero for missing values."""
        return np.where(np.isnan(self.X), 0.0, self.X)

    def residuals(self, means: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Of the values that are there; zero for the others."""
        R = (self.X - means[self.codes]) / scale
        return np.where(np.isnan(R), 0.0, R)

    def moments(self) -> ClassMoments:
        """One feature at a time, of the samples that have it."""
        shape = N_CLASSES, self.X.shape[1]
        observed, means, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        counts = np.bincount(self.codes, self.information, N_CLASSES)
        for k in range(N_CLASSES):
            for j, x in enumerate(self.X.T):
                own = (self.codes == k) & (self.weight > 0) & ~np.isnan(x)
                if not own.any():
                    continue
                w, x = self.information[own], x[own]
                observed[k, j] = w.sum()
                means[k, j] = w @ x / w.sum()
                squares[k, j] = w @ (x - means[k, j]) ** 2
        return ClassMoments(counts, means, squares, observed)


def random_rows(rng: np.random.Generator, missing: bool = False) -> Rows:
    """Whole numbers that no dtype changes: with zeros, constants, equal rows.

    Often one of three classes is missing; there may be a single row or column. Some
    values may be missing, and at times all of a feature or of a sample.
    """
    n, p = (int(rng.choice([1, 2, rng.integers(3, most)])) for most in (30, 40))
    X = rng.integers(-9, 10, (n, p)).astype(float)
    X[rng.random((n, p)) < 0.4] = 0.0
    X[:, rng.random(p) < 0.1] = 7.0
    if missing:
        X[rng.random((n, p)) < rng.choice([0.01, 0.3, 0.9])] = np.nan
        X[:, rng.random(p) < 0.1] = np.nan
        X[rng.random(n) < 0.1] = np.nan
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
    close(np.broadcast_to(got.n_values, got.means.shape), want.n_values)


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
    missing = bool(np.isnan(X).any())
    if not missing:
        close(np.asarray(data.scores(coef, intercept)), X @ coef.T + intercept)
    check_gaps(data, X, coef, intercept, rng)
    scale = rng.uniform(1, 2, X.shape[1])
    scale[rng.random(X.shape[1]) < 0.2] = np.inf
    r = (X - coef[0]) / scale
    values = (~np.isnan(r))[:, np.isfinite(scale)].sum(axis=1)
    r[np.isnan(r)] = 0.0
    squares = np.einsum("ij,ij->i", r, r)
    found = np.asarray(data.lengths(coef[0], scale, coef))
    close(found, np.column_stack([squares, values, r @ coef.T]))
    weight = None if rng.random() < 0.3 else rows.weight
    expected = replace(rows, weight=np.ones(len(X))) if weight is None else rows
    labels = Labels(codes, N_CLASSES, weight, allow_missing=True)
    if missing and data.values is None:
        with pytest.raises(NonFiniteError, match="NaN"):
            data.summarise(replace(labels, allow_missing=False), keep=False)
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
    precision = rng.uniform(0.5, 2, len(samples))
    weighted = replace(kept, precision=precision)
    check_parts(samples.with_precision(precision), weighted, rng)
    check_copies(samples, kept, can_copy)
    if can_copy:
        _, later = data.summarise(
            replace(labels, weight=rows.weight, first=1000), keep=True
        )
        assert later is not None
        of_all = kept_rows(rows)
        np.testing.assert_array_equal(later.number, of_all.number + 1000)
        close(later.scores(coef), of_all.known @ coef.T)
    else:
        with pytest.raises(ValueError, match="partial_fit cannot keep the samples"):
            data.summarise(replace(labels, first=1000), keep=True)


def check_gaps(
    data: Data,
    X: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Compare scores with those of imputed samples, each imputed by itself."""
    p = X.shape[1]
    middle, correction = rng.normal(size=(2, *coef.shape))
    L, psi = rng.normal(size=(p, int(rng.integers(0, 4)))), rng.uniform(0.1, 1, p)
    scale = rng.uniform(1, 2, p)
    rule = GapScores(coef, intercept, middle, scale, correction, Expectation(L, psi))
    sigma = scale[:, None] * (L @ L.T + np.diag(psi)) * scale
    want = np.empty((len(X), len(coef)))
    for i, x in enumerate(X):
        gone = np.isnan(x)
        slope = np.linalg.solve(sigma[np.ix_(~gone, ~gone)], sigma[np.ix_(~gone, gone)])
        for c, w in enumerate(coef):
            filled = x.copy()
            filled[gone] = middle[c, gone] + (x - middle[c])[~gone] @ slope
            want[i, c] = w @ filled + intercept[c] - correction[c, gone].sum()
    np.testing.assert_allclose(
        np.asarray(data.scores(coef, intercept, rule)), want, rtol=1e-8, atol=1e-8
    )


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
    for field in ("codes", "weight", "information", "number"):
        np.testing.assert_array_equal(getattr(samples, field), getattr(rows, field))

    means, scale = rng.normal(size=(N_CLASSES, p)), rng.uniform(1, 2, p)
    R = rows.residuals(means, scale)
    root = np.sqrt(rows.information)[:, None]
    fingerprint = samples.fingerprint(means, scale)
    close(fingerprint, (R * np.abs(R)).sum(axis=1))
    values = np.where(np.isnan(rows.X), 99.0, rows.X)
    _, which = np.unique(
        np.column_stack([rows.codes, values]), axis=0, return_inverse=True
    )
    kept_nan = np.where(np.isnan(rows.X), np.nan, R)
    close(samples.residual_rows(means, scale), kept_nan)
    # Equal samples have equal bits.
    assert len(np.unique(fingerprint)) <= which.max() + 1
    close(samples.gram(means, scale), (root * R) @ (root * R).T)
    combine = rng.normal(size=(n, 2))
    close(samples.loadings(means, scale, combine), R.T @ combine)
    coef = rng.normal(size=(2, p))
    close(samples.scores(coef), rows.known @ coef.T)

    third = np.sort(rng.integers(3, size=p))
    third[rng.random(p) < rng.choice([0.0, 0.3, 1.0])] = -1
    sums, used = samples.neighbour_sums(means, scale, third), (root * R)[:, third >= 0]
    near = [
        (used[:, lag:] * used[:, : max(used.shape[1] - lag, 0)]).sum() for lag in LAGS
    ]
    close(sums.near, near)
    by_third = [(root * R)[:, third == j].sum(axis=1) for j in range(3)]
    close(sums.thirds, np.column_stack(by_third))
    close(sums.first, used[:, : LAGS[-1]])
    close(sums.last, used[:, -LAGS[-1] :])

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
