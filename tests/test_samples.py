"""Samples: every value once, in any layout, and the same rows in any batches."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ebda.data import RowSamples
from ebda.kernels.hashing import column_keys, hash_rows
from ebda.moments.classwise import class_moments
from ebda.sizes import override, sizes

LAYOUTS = ["C", "F", "float32", "int", "csr", "csc", "csr_matrix", "memmap"]


def sample(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers with many zeros, so that no type changes them; three classes."""
    rng = np.random.default_rng(n + p)
    X = rng.integers(-9, 10, size=(n, p)).astype(float)
    X[rng.random((n, p)) < 0.4] = 0.0
    return X, rng.integers(3, size=n)


def laid_out(X: np.ndarray, layout: str, folder: Path) -> Any:
    if layout == "memmap":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    make = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "float32": np.float32,
        "int": lambda X: X.astype(int),
        "csr": sparse.csr_array,
        "csc": sparse.csc_array,
        "csr_matrix": sparse.csr_matrix,
    }
    return make[layout](X)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("elements", [1, 40, 1 << 19])
def test_tiles_cover_the_chosen_rows_in_order(
    layout: str, elements: int, tmp_path: Path
) -> None:
    X, codes = sample(12, 17)
    weight = np.arange(12) % 4 / 2  # zero for every fourth row
    samples = RowSamples.of(laid_out(X, layout, tmp_path), codes, weight)
    np.testing.assert_array_equal(samples.rows, np.flatnonzero(weight))
    np.testing.assert_array_equal(samples.codes, codes[weight > 0])
    np.testing.assert_array_equal(samples.weight, weight[weight > 0])
    right = 0
    parts = []
    with override(tile_elements=elements):
        for cols, tile in samples.tiles():
            assert cols.start == right
            right = cols.stop
            assert tile.dtype == np.float64
            assert tile.shape == (9, right - cols.start)
            assert tile.size <= max(elements, 9)
            parts.append(tile.copy())
            tile[:] = np.nan  # a copy: X does not change
        again = np.hstack([tile for _, tile in samples.tiles()])
    assert right == 17
    np.testing.assert_array_equal(np.hstack(parts), X[weight > 0])
    np.testing.assert_array_equal(again, X[weight > 0])


@override(tile_elements=50)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_in_memory_may_be_taken_in_any_order(layout: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, codes = sample(15, 11)
    samples = RowSamples.of(laid_out(X, layout, tmp_path), codes, None)
    samples = samples.take(np.array([3, 0, 9, 14]))
    rows, k = X[[3, 0, 9, 14]], codes[[3, 0, 9, 14]]
    assert len(samples) == 4
    np.testing.assert_array_equal(samples.number, [3, 0, 9, 14])
    means, scale = rng.normal(size=(3, 11)), rng.uniform(1, 2, 11)
    got = np.hstack([R for _, R in samples.residuals(means, scale)])
    np.testing.assert_allclose(got, (rows - means[k]) / scale, rtol=1e-12)
    np.testing.assert_allclose(
        samples.fingerprint(means, scale), (got * abs(got)).sum(axis=1), atol=1e-12
    )
    coef = rng.normal(size=(2, 11))
    np.testing.assert_allclose(samples.scores(coef), rows @ coef.T, atol=1e-12)
    want = class_moments(rows, k, 3)
    for moments in (samples.moments(3), samples.copy().moments(3)):
        np.testing.assert_array_equal(moments.counts, want.counts)
        np.testing.assert_allclose(moments.means, want.means, atol=1e-12)
        np.testing.assert_allclose(
            moments.centred_squares, want.centred_squares, atol=1e-11
        )


def test_without_features_there_are_no_neighbours() -> None:
    samples = RowSamples.of(np.ones((3, 2)), np.zeros(3, dtype=int), None)
    sums = samples.neighbour_sums(np.zeros((1, 2)), np.ones(2), np.array([-1, -1]))
    np.testing.assert_array_equal(sums.near, 0.0)
    assert sums.first.shape == sums.last.shape == (3, 0)


def test_a_copy_has_rows_of_its_own() -> None:
    X, codes = sample(6, 3)
    want = X[[1, 4]].copy()
    copied = RowSamples.of(X, codes, None).take(np.array([1, 4])).copy()
    X[:] = np.nan
    np.testing.assert_array_equal(copied.X, want)
    np.testing.assert_array_equal(next(copied.tiles())[1], want)


def stream(
    X: Any, codes: np.ndarray, weight: np.ndarray, cuts: list[int]
) -> RowSamples:
    edges = [0, *sorted(cuts), len(codes)]
    kept: RowSamples | None = None
    for a, b in pairwise(edges):
        batch = RowSamples.of(X[a:b], codes[a:b], weight[a:b], a).kept()
        kept = batch.copy() if kept is None else kept.append(batch)
    assert kept is not None
    return kept


@given(
    n=st.integers(1, 6000),
    cuts=st.lists(st.integers(0, 6000), max_size=5),
    layout=st.sampled_from(["C", "csr", "csc"]),
)
def test_batches_keep_the_rows_of_one_call(
    n: int, cuts: list[int], layout: str
) -> None:
    # The row's number is its value.
    X = laid_out(np.arange(n, dtype=float)[:, None] + [[0.0, 0.5]], layout, Path())
    codes, weight = np.arange(n) % 3, (np.arange(n) % 5).astype(float)
    want = RowSamples.of(X, codes, weight).kept()
    got = stream(X, codes, weight, [cut for cut in cuts if cut <= n])
    assert len(got) == len(want) == min(np.count_nonzero(weight), sizes.kept(2))
    for field in ("codes", "weight", "number"):
        np.testing.assert_array_equal(getattr(got, field), getattr(want, field))
    tiles = [np.hstack([t for _, t in s.tiles()]) for s in (got, want)]
    np.testing.assert_array_equal(*tiles)
    np.testing.assert_array_equal(tiles[0][:, 0], want.number)


@pytest.mark.parametrize("first", ["C", "csr", "csc"])
@pytest.mark.parametrize("second", ["C", "csr", "csc"])
def test_batches_may_come_in_different_layouts(first: str, second: str) -> None:
    X, codes = sample(10, 4)
    batches = [
        RowSamples.of(laid_out(X[part], layout, Path()), codes[part], None, part.start)
        for part, layout in [(slice(0, 6), first), (slice(6, 10), second)]
    ]
    both = batches[0].append(batches[1])
    np.testing.assert_array_equal(np.hstack([t for _, t in both.tiles()]), X)
    np.testing.assert_array_equal(both.codes, codes)
    got, want = both.moments(3), class_moments(X, codes, 3)
    np.testing.assert_allclose(got.means, want.means, atol=1e-12)


def test_thinning_is_even_over_the_stream() -> None:
    n = 20 * sizes.kept(1)
    X = np.arange(n)[:, None]
    samples = RowSamples.of(X, np.zeros(n, dtype=int), None).kept()
    assert len(samples) == sizes.kept(1)
    assert (np.diff(samples.rows) > 0).all()
    for parts in (16, 2):  # as even by place, and by odd and even, as chance
        for share in (samples.rows * parts // n, samples.rows % parts):
            expected = sizes.kept(1) / parts
            counts = np.bincount(share, minlength=parts)
            assert np.sum((counts - expected) ** 2 / expected) < 40


@override(kept_samples=40, most_kept=40, kept_per_class=5)
def test_some_samples_of_each_class_are_kept() -> None:
    codes = np.repeat([0, 1, 2], [500, 9, 3])
    kept = RowSamples.of(np.arange(512)[:, None], codes, None).kept()
    counts = np.bincount(kept.codes)
    assert counts[0] >= 30
    assert counts[1] >= 5
    assert counts[2] == 3
    assert 40 <= len(kept) <= 40 + 8
    assert (np.diff(kept.rows) > 0).all()


def test_few_samples_are_all_kept() -> None:
    n = sizes.kept(0)
    samples = RowSamples.of(np.empty((n, 0)), np.zeros(n, dtype=int), None, 10).kept()
    np.testing.assert_array_equal(samples.rows, np.arange(n))
    np.testing.assert_array_equal(samples.number, np.arange(n) + 10)


@override(tile_elements=1000)
@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
def test_equal_rows_have_equal_fingerprints_to_the_bit(layout: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 301))
    which = rng.integers(7, size=40)
    X = laid_out(rows[which], layout, Path())
    means, scale = rng.normal(size=(2, 301)), rng.uniform(1, 3, 301)
    samples = RowSamples.of(X, which % 2, None)
    got = samples.fingerprint(means, scale)
    assert len(np.unique(got)) == len(np.unique(which))
    for row in np.unique(which):
        assert len(np.unique(got[which == row])) == 1
    # It belongs to the row, not to its place.
    order = rng.permutation(40)
    shuffled = samples.take(order).fingerprint(means, scale)
    np.testing.assert_array_equal(shuffled, got[order])


def test_no_features_and_no_samples_have_no_tiles() -> None:
    empty = RowSamples.of(np.empty((3, 0)), np.zeros(3, dtype=int), None)
    assert list(empty.tiles()) == []
    np.testing.assert_array_equal(empty.fingerprint(np.empty((1, 0)), np.empty(0)), 0.0)
    nobody = RowSamples.of(np.ones((3, 2)), np.zeros(3, dtype=int), np.zeros(3))
    assert len(nobody) == 0
    np.testing.assert_array_equal(nobody.moments(1).counts, [0.0])


# Of many samples the same are kept, wherever they stand


def contents(samples: RowSamples) -> np.ndarray:
    """Rows, classes and weights of samples, in an order that says nothing."""
    tiles = [tile for _, tile in samples.tiles()]
    table = np.column_stack([samples.codes, samples.weight, *tiles])
    return table[np.lexsort(table.T)]


@override(kept_samples=50, most_kept=50, kept_per_class=8)
@given(seed=st.integers(0, 2**32 - 1), layout=st.sampled_from(LAYOUTS[:-1]))
def test_the_place_of_a_sample_does_not_matter(seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    X, codes = sample(200, int(rng.integers(1, 9)))
    codes = np.where(rng.random(200) < 0.9, codes, 3)
    weight = rng.integers(0, 4, 200) / 2
    order = rng.permutation(200)
    want = contents(RowSamples.of(X, codes, weight).kept())
    permuted = laid_out(X[order], layout, Path())
    got = RowSamples.of(permuted, codes[order], weight[order]).kept()
    np.testing.assert_array_equal(contents(got), want)
    assert len({tuple(row) for row in np.delete(want, 1, axis=1)}) == len(want)


@override(kept_samples=50, most_kept=50, kept_per_class=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_weight_is_a_number_of_equal_samples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, codes = sample(120, 3)
    times = rng.integers(0, 4, 120)
    times[:60] += 1
    repeated = np.repeat(np.arange(120), times)
    want = RowSamples.of(X[repeated], codes[repeated], None).kept()
    got = RowSamples.of(X, codes, times.astype(float)).kept()
    np.testing.assert_array_equal(contents(got), contents(want))


def hashes(samples: RowSamples) -> np.ndarray:
    return samples.hashes(column_keys(samples.X.shape[1]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("elements", [1, 40, 1 << 19])
def test_a_hash_belongs_to_the_values(
    layout: str, elements: int, tmp_path: Path
) -> None:
    X, codes = sample(30, 11)
    X[3], X[4, X[4] == 0] = X[7], -0.0
    want = hashes(RowSamples.of(X, codes, None))
    assert want[3] == want[7]
    assert len(np.unique(want)) == 29
    with override(tile_elements=elements, sparse_elements=elements):
        stored = RowSamples.of(laid_out(X, layout, tmp_path), codes, None)
        np.testing.assert_array_equal(hashes(stored), want)
    # Those of parts of a row add up to that of the row.
    keys = column_keys(11)
    parts = hash_rows(X[:, :4], keys[:4]) + hash_rows(X[:, 4:], keys[4:])
    np.testing.assert_array_equal(parts, want)


def test_values_stored_in_parts_have_the_hash_of_their_sum() -> None:
    parts = sparse.csr_array(([1.0, 2.0, 3.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    want = hash_rows(np.array([[0.0, 3.0], [3.0, 0.0]]), column_keys(2))
    for stored in (parts, parts.tocsc()):
        np.testing.assert_array_equal(hash_rows(stored, column_keys(2)), want)


@override(compiled_elements=1)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_compiled_loop_has_the_same_hashes(kind: type) -> None:
    X = np.random.default_rng(0).normal(size=(9, 2500)).astype(kind)
    X[2] = -0.0
    keys = column_keys(2500)
    np.testing.assert_array_equal(
        hash_rows(X, keys), hash_rows(sparse.csr_array(X), keys)
    )


def test_hashes_of_different_samples_differ() -> None:
    """Also where the values are few: all rows of 16 zeros and ones."""
    X = (np.arange(1 << 16)[:, None] >> np.arange(16)) & 1
    assert len(np.unique(hash_rows(X, column_keys(16)))) == 1 << 16
    assert len(np.unique(hash_rows(np.eye(3000), column_keys(3000)))) == 3000
