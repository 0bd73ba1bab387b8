"""Moments by class: right, in one pass, in any layout, and mergeable."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ebda.kernels.threads import allow_threads
from ebda.moments.classwise import ClassMoments, class_moments, merge_all
from ebda.sizes import override, sizes
from profiles import examples

MIB = 2**20
LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
}


def naive_moments(X: np.ndarray, codes: np.ndarray, n_classes: int) -> ClassMoments:
    X = np.asarray(X, dtype=np.float64)
    result = ClassMoments.empty(n_classes, X.shape[1])
    for k in range(n_classes):
        rows = X[codes == k]
        result.counts[k] = len(rows)
        if len(rows):
            result.means[k] = rows.mean(axis=0)
            result.centred_squares[k] = rows.var(axis=0) * len(rows)
    return result


def assert_same(got: ClassMoments, want: ClassMoments, rtol: float = 1e-11) -> None:
    np.testing.assert_array_equal(got.counts, want.counts)
    np.testing.assert_allclose(got.means, want.means, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(
        got.centred_squares, want.centred_squares, rtol=rtol, atol=rtol
    )


def sample(n: int, p: int, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Rows with many zeros, classes in no order."""
    rng = np.random.default_rng(n + p)
    X = rng.normal(1.0, 2.0, size=(n, p))
    X[rng.random((n, p)) < 0.4] = 0.0
    return X, rng.integers(n_classes, size=n)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_agrees_with_the_naive_reference(layout: str) -> None:
    X, codes = sample(37, 11)
    assert_same(class_moments(LAYOUTS[layout](X), codes, 3), naive_moments(X, codes, 3))


@pytest.mark.parametrize(
    "view",
    [np.s_[::2, ::-1], np.s_[::-1, 1::3], np.s_[5:20, 2:9]],
    ids=["reversed columns", "every third column", "window"],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_views_agree_and_the_base_is_left_alone(
    view: tuple[slice, slice], order: Any
) -> None:
    X, codes = sample(40, 13)
    X = np.array(X, order=order)
    X.flags.writeable = False
    codes = codes[view[0]]
    assert_same(class_moments(X[view], codes, 3), naive_moments(X[view], codes, 3))


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_input_is_left_alone(layout: str) -> None:
    X, codes = sample(30, 7)
    S = LAYOUTS[layout](X)
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    class_moments(S, codes, 3)
    np.testing.assert_array_equal(S.toarray(), X)


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        *product(
            ["C", "F", "csr", "csc"],
            ["float64", "float32", "int64", "int8", "uint8", "bool"],
        ),
        ("C", "float16"),  # SciPy has no sparse matrices of it
    ],
)
def test_every_dtype_is_summed_in_double_precision(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    # Sums of 127s overflow int8, squares overflow float16 as well.
    X = rng.integers(0, 128, size=(600, 5)) * rng.integers(0, 2, size=(600, 5))
    X = X.astype(dtype)
    codes = rng.integers(2, size=600)
    got = class_moments(LAYOUTS[layout](X), codes, 2)
    assert got.means.dtype == got.centred_squares.dtype == np.float64
    assert_same(got, naive_moments(X, codes, 2))


def test_float32_values_lose_nothing_on_the_way() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(1e4, 1e-2, size=(50, 4)).astype(np.float32)
    codes = np.arange(50) % 2
    assert_same(class_moments(X, codes, 2), naive_moments(X, codes, 2), rtol=1e-10)


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_duplicates_add_up_whatever_their_order(layout: str) -> None:
    rng = np.random.default_rng(7)
    n, p, nnz = 12, 9, 200
    outer, inner = (n, p) if layout == "csr" else (p, n)
    indptr = np.concatenate([[0], np.sort(rng.integers(nnz, size=outer - 1)), [nnz]])
    parts = (rng.normal(size=nnz), rng.integers(inner, size=nnz), indptr)
    kind = sparse.csr_array if layout == "csr" else sparse.csc_array
    S = kind(parts, shape=(n, p))
    assert not S.has_canonical_format
    codes = np.arange(n) % 2
    assert_same(class_moments(S, codes, 2), naive_moments(S.toarray(), codes, 2))
    assert S.nnz == nnz


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_unsorted_indices_without_duplicates(layout: str) -> None:
    X, codes = sample(20, 10)
    S = LAYOUTS[layout](X)
    for a, b in pairwise(S.indptr):
        S.indices[a:b] = S.indices[a:b][::-1].copy()
        S.data[a:b] = S.data[a:b][::-1].copy()
    S.has_sorted_indices = False
    assert_same(class_moments(S, codes, 3), naive_moments(X, codes, 3))


def test_other_sparse_formats_are_refused() -> None:
    with pytest.raises(ValueError, match="CSR or CSC, not coo"):
        class_moments(sparse.coo_array(np.eye(3)), [0, 0, 1], 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_equal_repeated_rows(layout: str) -> None:
    X, codes = sample(25, 6)
    times = np.arange(25) % 4  # some rows count for nothing
    got = class_moments(LAYOUTS[layout](X), codes, 3, times.astype(np.float64))
    repeated = np.repeat(np.arange(25), times)
    assert_same(got, naive_moments(X[repeated], codes[repeated], 3))


@pytest.mark.parametrize("layout", ["C", "csr", "csc"])
def test_fractional_weights_follow_the_weighted_formulas(layout: str) -> None:
    X, codes = sample(30, 4, n_classes=1)
    w = np.random.default_rng(8).uniform(0.1, 3.0, size=30)
    mean = np.average(X, axis=0, weights=w)
    got = class_moments(LAYOUTS[layout](X), codes, 1, w)
    np.testing.assert_allclose(got.counts, [w.sum()])
    np.testing.assert_allclose(got.means[0], mean)
    np.testing.assert_allclose(got.centred_squares[0], w @ (X - mean) ** 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_and_columns_than_a_tile(layout: str, weighted: bool) -> None:
    n, p = sizes.tile_rows + 77, 300
    assert p > sizes.tile_elements // sizes.tile_rows
    X, codes = sample(n, p)
    codes[:2000] = 0  # a tile with rows of one class, and classes that start late
    weight = np.ones(n) if weighted else None
    got = class_moments(LAYOUTS[layout](X), codes, 3, weight)
    assert_same(got, naive_moments(X, codes, 3))


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_blocks_of_any_size_agree(layout: str) -> None:
    X, codes = sample(41, 8)
    X[10:15] = 0.0  # rows and a column without a stored value
    X[:, 3] = 0.0
    for size in (1, 7, 50):
        with override(sparse_elements=size):
            got = class_moments(LAYOUTS[layout](X), codes, 3)
        assert_same(got, naive_moments(X, codes, 3))


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("rows", "elements"), [(1, 1), (7, 7), (7, 40), (100, 1), (100, 1000)]
)
def test_tiles_of_any_size_agree(
    rows: int, elements: int, weighted: bool, layout: str
) -> None:
    X, codes = sample(41, 8)
    times = np.arange(41) % 4 if weighted else np.ones(41, dtype=int)
    with override(tile_rows=rows, tile_elements=elements):
        got = class_moments(
            LAYOUTS[layout](X), codes, 3, times.astype(float) if weighted else None
        )
    repeated = np.repeat(np.arange(41), times)
    assert_same(got, naive_moments(X[repeated], codes[repeated], 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_compiled_loops_agree(n_classes: int, dtype: str) -> None:
    X, codes = sample(41, 300, n_classes)
    X = (X + 1e3).astype(dtype)
    want = class_moments(X, codes, n_classes)
    assert_same(want, naive_moments(X, codes, n_classes), rtol=1e-10)
    found = []
    for n_jobs in (1, 3):
        with (
            override(compiled_elements=1, threaded_features=64, tile_rows=17),
            allow_threads(n_jobs),
        ):
            found.append(class_moments(X, codes, n_classes))
    assert_same(found[0], want, rtol=1e-12)
    assert_same(found[1], found[0], rtol=0)  # threads do not matter at all


@examples(50)
@given(data=st.data(), centre=st.sampled_from([0.0, 1e5]))
def test_blocks_of_rows_merge_in_any_order_and_grouping(
    data: st.DataObject, centre: float
) -> None:
    X, codes = sample(24, 3)
    X += centre
    block_of = np.array(
        data.draw(st.lists(st.integers(0, 5), min_size=24, max_size=24), "block_of")
    )
    parts = [
        class_moments(X[block_of == b], codes[block_of == b], 3)
        for b in data.draw(st.permutations(range(6)), "order")
    ]
    while len(parts) > 1:
        first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        second = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts.append(first.merge(second))
    assert_same(parts[0], naive_moments(X, codes, 3), rtol=1e-9)


def test_merge_all_equals_the_whole() -> None:
    X, codes = sample(30, 4)
    parts = [class_moments(X[i : i + 7], codes[i : i + 7], 3) for i in range(0, 30, 7)]
    assert_same(merge_all(parts), naive_moments(X, codes, 3))


def test_the_empty_moments_change_nothing() -> None:
    X, codes = sample(9, 4)
    whole = class_moments(X, codes, 3)
    empty = ClassMoments.empty(3, 4)
    for merged in (whole.merge(empty), empty.merge(whole)):
        assert_same(merged, whole, rtol=0)


@examples(30)
@given(cuts=st.lists(st.integers(0, 10), max_size=4))
def test_blocks_of_columns_join(cuts: list[int]) -> None:
    X, codes = sample(15, 10)
    bounds = [0, *sorted(cuts), 10]
    joined = ClassMoments.join_features(
        class_moments(X[:, a:b], codes, 3) for a, b in pairwise(bounds)
    )
    assert_same(joined, naive_moments(X, codes, 3))


def test_columns_of_other_samples_do_not_join() -> None:
    X, codes = sample(12, 4)
    one, other = class_moments(X, codes, 3), class_moments(X[:-1], codes[:-1], 3)
    with pytest.raises(ValueError, match="same samples"):
        ClassMoments.join_features([one, other])


@pytest.mark.parametrize("shape", [(3, 4), (2, 5)])
def test_merge_refuses_other_shapes(shape: tuple[int, int]) -> None:
    want = rf"2 classes x 4 features with {shape[0]} x {shape[1]}"
    with pytest.raises(ValueError, match=want):
        ClassMoments.empty(2, 4).merge(ClassMoments.empty(*shape))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_classes_without_rows_have_zero_moments(layout: str) -> None:
    X, codes = sample(14, 5)
    got = class_moments(LAYOUTS[layout](X), codes * 2, 6)
    want = naive_moments(X, codes, 3)
    np.testing.assert_array_equal(got.counts[1::2], 0.0)
    np.testing.assert_array_equal(got.means[1::2], 0.0)
    np.testing.assert_array_equal(got.centred_squares[1::2], 0.0)
    np.testing.assert_allclose(got.means[::2], want.means)
    np.testing.assert_allclose(got.centred_squares[::2], want.centred_squares)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
def test_no_rows_are_no_moments(layout: str) -> None:
    got = class_moments(LAYOUTS[layout](np.empty((0, 4))), [], 2)
    assert_same(got, ClassMoments.empty(2, 4), rtol=0)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
def test_no_columns_still_count(layout: str) -> None:
    got = class_moments(LAYOUTS[layout](np.empty((3, 0))), [0, 1, 1], 2)
    assert got.means.shape == got.centred_squares.shape == (2, 0)
    np.testing.assert_array_equal(got.counts, [1.0, 2.0])


@pytest.mark.parametrize("n", [40, 5000], ids=["one tile", "three tiles"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_1e8_and_variance_1_keep_eight_digits(
    n: int, layout: str, weighted: bool
) -> None:
    rng = np.random.default_rng(n)
    steps = rng.normal(0.0, 64.0, size=(n, 3)).round().astype(int)
    X = 1e8 + steps / 64  # exact in binary
    codes = rng.integers(2, size=n)
    weight = np.ones(n) if weighted else None
    got = class_moments(LAYOUTS[layout](X), codes, 2, weight)
    for k in range(2):
        for j, column in enumerate(steps[codes == k].T.tolist()):
            mean = Fraction(sum(column), len(column))
            squares = sum(i * i for i in column) - len(column) * mean**2
            assert got.means[k, j] == pytest.approx(float(10**8 + mean / 64), rel=1e-15)
            assert got.centred_squares[k, j] == pytest.approx(
                float(squares / 64**2), rel=1e-8
            )


@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -7e-5])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_repeated_value_has_next_to_no_variance(value: float, weighted: bool) -> None:
    X = np.full((5000, 2), value)
    weight = np.linspace(0.1, 3.0, 5000) if weighted else None
    got = class_moments(X, np.arange(5000) % 3, 3, weight)
    np.testing.assert_allclose(got.means, value, rtol=1e-15)
    np.testing.assert_array_less(got.centred_squares, 5000 * (4e-16 * value) ** 2)
    assert (got.centred_squares >= 0).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [20, 2500], ids=["one tile", "two tiles"])
def test_a_bad_value_spoils_its_own_cell_only(bad: float, layout: str, n: int) -> None:
    X, codes = sample(n, 6)
    clean = class_moments(LAYOUTS[layout](X), codes, 3)
    X[4, 2] = bad
    got = class_moments(LAYOUTS[layout](X), codes, 3)
    spoilt = np.zeros((3, 6), dtype=bool)
    spoilt[codes[4], 2] = True
    np.testing.assert_array_equal(~np.isfinite(got.means), spoilt)
    np.testing.assert_array_equal(~np.isfinite(got.centred_squares), spoilt)
    np.testing.assert_allclose(got.means[~spoilt], clean.means[~spoilt], rtol=1e-12)


def test_squares_that_overflow_show_up_as_infinity() -> None:
    got = class_moments(np.array([[1e200, 1.0], [-1e200, 3.0]]), [0, 0], 1)
    np.testing.assert_array_equal(got.means, [[0.0, 2.0]])
    np.testing.assert_array_equal(got.centred_squares, [[np.inf, 2.0]])


def traced_peak(function: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_dense_array_is_never_copied_as_a_whole(order: Any) -> None:
    n, p = 200, 200_000
    X = np.zeros((n, p), dtype=np.float32, order=order)
    codes = np.arange(n) % 2
    peak = traced_peak(lambda: class_moments(X, codes, 2))
    assert peak < 64 * MIB + 8 * p * 8


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_a_sparse_matrix_is_never_copied_as_a_whole(layout: str) -> None:
    n, p = 200, 200_000
    every = 4  # ten million values: 120 MiB with their indices
    columns = np.arange(0, p, every, dtype=np.int32)
    S = sparse.csr_array(
        (
            np.ones(n * columns.size),
            np.tile(columns, n),
            np.arange(n + 1, dtype=np.int32) * columns.size,
        ),
        shape=(n, p),
    ).asformat(layout)
    codes = np.arange(n) % 2
    peak = traced_peak(lambda: class_moments(S, codes, 2))
    assert peak < 64 * MIB + 8 * p * 8


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_a_vast_sparse_matrix_is_never_densified(layout: str) -> None:
    n, p = 1000, 2_000_000  # 15 GiB if dense
    row, col = [0, 2, 1, 999], [5, 5, 5, p - 1]
    S = sparse.coo_array(([1.0, 3.0, 8.0, 2.0], (row, col)), shape=(n, p))
    got = class_moments(S.asformat(layout), np.arange(n) % 2, 2)
    np.testing.assert_allclose(got.means[:, 5], [4 / 500, 8 / 500])
    np.testing.assert_allclose(got.means[:, -1], [0.0, 2 / 500])
    np.testing.assert_allclose(
        got.centred_squares[:, 5], [10 - 16 / 500, 64 - 64 / 500]
    )
    assert np.count_nonzero(got.means) == np.count_nonzero(got.centred_squares) == 3


def test_a_class_that_was_empty_takes_values_of_any_size() -> None:
    X = np.array([[1.0, 1e200], [3.0, 1e200]])
    first = class_moments(X[:1], np.array([0]), 2)
    both = first.merge(class_moments(X[1:], np.array([1]), 2))
    np.testing.assert_array_equal(both.means, X)
    np.testing.assert_array_equal(both.centred_squares, 0.0)
