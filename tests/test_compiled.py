"""The compiled loop: the numbers of the NumPy tiles, to the bit, or not used at all."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ebda.moments
from ebda import EBClassifier, compiled
from ebda.moments import ClassMoments, class_moments
from ebda.threads import allow_threads

assert importlib.util.find_spec("numba"), "these tests need the extra ebda[fast]"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Use the loop for matrices of any size; the columns of each call of it."""
    monkeypatch.setattr(compiled, "LARGE", 1)
    kernel = compiled.class_sums()
    calls: list[tuple[int, int]] = []

    def counted(*arguments: Any) -> None:
        calls.append((arguments[3], arguments[4]))
        kernel(*arguments)

    monkeypatch.setattr(compiled, "class_sums", lambda: counted)
    return calls


def without_loop(X: Any, codes: np.ndarray, k: int, **more: Any) -> ClassMoments:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "suits", lambda X: False)
        return class_moments(X, codes, k, **more)


def assert_same_bits(got: ClassMoments, want: ClassMoments) -> None:
    for name in ("counts", "means", "centred_squares"):
        a, b = getattr(got, name), getattr(want, name)
        np.testing.assert_array_equal(a, b, err_msg=name)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=name)


def sample(n: int, p: int, k: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + p)
    X = rng.normal(rng.normal(scale=50, size=p), rng.exponential(size=p), size=(n, p))
    return X.astype(dtype), rng.integers(k, size=n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "p", "k"),
    [
        (40, 1000, 2),
        (37, 65, 7),
        (1, 5, 2),
        (3000, 70, 2),
        (9, 33_000, 3),
        (60, 8739, 2),
        (40, 1, 2),
    ],
    ids=[
        "two",
        "seven",
        "one row",
        "row tiles",
        "several blocks",
        "narrow tile",
        "column",
    ],
)
def test_the_loop_gives_the_bits_of_the_tiles(
    n: int, p: int, k: int, dtype: Any, small: list[tuple[int, int]]
) -> None:
    X, codes = sample(n, p, k, dtype)
    with allow_threads(2):
        got = class_moments(X, codes, k)
    assert small  # it was the loop
    assert_same_bits(got, without_loop(X, codes, k))
    if n == 40:  # and right, beyond being equal
        for j in range(k):
            np.testing.assert_allclose(
                got.means[j], X[codes == j].mean(axis=0, dtype=float), rtol=1e-12
            )


@given(
    X=hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
        elements=st.floats(-(2.0**126), 2.0**126, width=32),
    ),
    seed=st.integers(0, 9),
)
def test_any_numbers_give_the_same_bits(X: np.ndarray, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(3, size=len(X))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "LARGE", 1)
        got = class_moments(X, codes, 3)
    assert_same_bits(got, without_loop(X, codes, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes_without_rows_stay_zero(
    dtype: Any, small: list[tuple[int, int]]
) -> None:
    X, codes = sample(12, 100, 2, dtype)
    got = class_moments(X, codes * 3, 5)
    assert small
    assert_same_bits(got, without_loop(X, codes * 3, 5))
    for empty in (1, 2, 4):
        assert not got.means[empty].any()
        assert not got.centred_squares[empty].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_none_stay_in_their_column(
    dtype: Any, small: list[tuple[int, int]]
) -> None:
    X, codes = sample(20, 50, 2, dtype)
    bad = {3: np.nan, 7: np.inf, 11: -np.inf, 13: np.finfo(dtype).max}
    for column, value in bad.items():
        X[5, column] = value
    X[6, 11] = np.inf  # one of each sign
    got = class_moments(X, codes, 2)
    assert small
    want = without_loop(X, codes, 2)
    k = codes[5]
    for a, b in ((got.means, want.means), (got.centred_squares, want.centred_squares)):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_array_equal(a[np.isfinite(b)], b[np.isfinite(b)])
    assert not np.isfinite(got.centred_squares[k, [3, 7, 11]]).any()
    others = np.setdiff1d(np.arange(50), list(bad))
    assert np.isfinite(got.means[:, others]).all()


@pytest.mark.parametrize(
    "lay_out",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: np.vstack([X, X])[: len(X)][::-1],
        lambda X: X.astype(np.int32),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(X.dtype.newbyteorder()),
    ],
    ids=["fortran", "columns", "rows", "integers", "half", "foreign bytes"],
)
def test_other_layouts_and_types_go_by_the_tiles(
    lay_out: Callable[[np.ndarray], np.ndarray], small: list[tuple[int, int]]
) -> None:
    X, codes = sample(20, 30, 2, np.float64)
    other = lay_out(X)
    got = class_moments(other, codes, 2)
    assert not small
    assert_same_bits(got, without_loop(np.array(other, np.float64), codes, 2))


def test_weights_go_by_the_tiles(small: list[tuple[int, int]]) -> None:
    X, codes = sample(20, 30, 2, np.float64)
    times = np.random.default_rng(0).integers(1, 4, 20)
    got = class_moments(X, codes, 2, times.astype(float))
    assert not small
    want = class_moments(np.repeat(X, times, axis=0), np.repeat(codes, times), 2)
    assert small
    np.testing.assert_allclose(got.means, want.means, rtol=1e-12)
    np.testing.assert_allclose(got.centred_squares, want.centred_squares, rtol=1e-10)


def test_small_matrices_do_not_wait_for_the_loop() -> None:
    few = np.empty((1, compiled.LARGE - 1), np.float32)
    assert not compiled.suits(few)
    assert compiled.suits(np.empty((1, compiled.LARGE), np.float32))


def test_tiles_of_the_loop_stay_in_the_cache() -> None:
    assert compiled.tile_columns(60) * 60 * 8 <= 2**18
    assert compiled.tile_columns(10**6) == 64
    assert compiled.tile_columns(0) >= 64


def test_without_numba_all_is_the_same(
    monkeypatch: pytest.MonkeyPatch, small: list[tuple[int, int]]
) -> None:
    X, y = sample(30, 400, 2, np.float32)
    with_it = EBClassifier().fit(X, y)
    assert small
    small.clear()
    monkeypatch.setattr(compiled, "find_spec", lambda name: None)
    monkeypatch.setattr(compiled, "class_sums", lambda: pytest.fail("not installed"))
    model = EBClassifier().fit(X, y)
    assert not small
    np.testing.assert_array_equal(model.coef_, with_it.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), with_it.predict_proba(X))


def test_the_plain_function_is_the_loop() -> None:
    """What is compiled, run by the interpreter: every line of it."""
    X, codes = sample(10, 70, 2, np.float64)
    rows = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[rows], np.arange(4))  # the third class is empty
    got = ClassMoments.empty(3, 70)
    compiled._class_sums(X, rows, bounds, 0, 70, 64, got.means, got.centred_squares)
    got.counts[:] = np.diff(bounds)
    assert_same_bits(got, without_loop(X, codes, 3))
    assert ebda.moments.compiled is compiled
