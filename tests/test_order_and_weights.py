"""Of more samples than are kept, neither the order nor repetition changes a fit.

Factors and the comparison of rules look again at ``sizes.kept(p)`` samples only.
Which ones depends on the samples, and not on where they stand.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from scipy import sparse

from ebda import EBClassifier
from ebda.sizes import override, sizes

P = 120
DESIGNS = ["independent", "factors", "counts", "rare class", "three classes"]
SLOW = {"factors", "counts"}


@cache
def data(design: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, P)), rng.integers(2, size=n)
    if design == "factors":
        X += rng.normal(size=(n, 2)) @ rng.normal(size=(2, P))
    elif design == "counts":  # with many equal samples
        X = rng.poisson(0.3, (n, P)).astype(float)
        copies = rng.integers(n // 2, size=n // 3)
        X[-len(copies) :], y[-len(copies) :] = X[copies], y[copies]
    elif design == "rare class":
        y = (rng.random(n) < 0.03).astype(int)
    elif design == "three classes":
        y = rng.integers(3, size=n)
    X[:, :10] += 0.1 * y[:, None]
    return X, y


def scores(X: Any, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    model = EBClassifier().fit(X, y, sample_weight=weight)
    return model.decision_function(np.random.default_rng(0).normal(size=(20, P)))


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8 * np.abs(want).max())


def stored(X: np.ndarray, layout: str, folder: Path) -> Any:
    if layout == "memory map":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    if layout == "Zarr":
        return zarr.create_array(folder / "X.zarr", data=X, chunks=(700, 50))
    make = {
        "dense": np.asarray,
        "by columns": np.asfortranarray,
        "CSR": sparse.csr_array,
        "CSC": sparse.csc_array,
        "Dask": lambda X: da.from_array(X, (800, 50)),
    }
    return make[layout](X)


@pytest.mark.parametrize("n", [1500, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "design", [pytest.param(d, marks=[pytest.mark.slow] * (d in SLOW)) for d in DESIGNS]
)
def test_the_order_of_samples_does_not_matter(design: str, n: int) -> None:
    X, y = data(design, n)
    order = np.random.default_rng(1).permutation(n)
    same(scores(X[order], y[order]), scores(X, y))


@pytest.mark.slow
@override(block_bytes=300_000, kept_bytes=100_000)
@pytest.mark.parametrize("design", ["factors", "counts"])
@pytest.mark.parametrize(
    "layout", ["by columns", "CSR", "CSC", "memory map", "Zarr", "Dask"]
)
def test_nor_wherever_they_are(design: str, layout: str, tmp_path: Path) -> None:
    X, y = data(design, 1500)
    order = np.random.default_rng(1).permutation(1500)
    with dask.config.set(scheduler="synchronous"):
        got = scores(stored(X[order], layout, tmp_path), y[order])
    same(got, scores(X, y))


@pytest.mark.slow
@pytest.mark.parametrize("n", [700, 1500])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_weight_of_two_is_two_samples(design: str, n: int) -> None:
    X, y = data(design, n)
    with override(kept_samples=1024, most_kept=1024):
        assert 2 * n > sizes.kept(X.shape[1])
        twice = scores(np.vstack([X, X]), np.append(y, y))
        same(scores(X, y, np.full(n, 2.0)), twice)
    twice = scores(np.vstack([X, X]), np.append(y, y))
    same(scores(X, y, np.full(n, 2.0)), twice)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_weights_are_numbers_of_samples(design: str) -> None:
    X, y = data(design, 1500)
    times = np.random.default_rng(2).integers(0, 4, 1500)
    repeated = np.repeat(np.arange(1500), times)
    same(scores(X, y, times.astype(float)), scores(X[repeated], y[repeated]))


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[700], [100, 1100, 1101]])
def test_batches_in_any_order_keep_the_same_samples(cuts: list[int]) -> None:
    X, y = data("factors", 1500)
    order = np.random.default_rng(1).permutation(1500)
    stream = EBClassifier()
    for rows in np.split(order, cuts):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    new = np.random.default_rng(0).normal(size=(20, P))
    same(stream.decision_function(new), scores(X, y))
