"""Compiled loops: the numbers of NumPy to the bit, or not used at all."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import ebda.kernels.tabulated
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ebda.kernels.loops
import ebda.moments.variance
import ebda.priors.cells
from ebda import EBClassifier
from ebda.kernels import compiled
from ebda.kernels.threads import allow_threads
from ebda.moments.classwise import ClassMoments, class_moments

assert importlib.util.find_spec("numba"), "these tests need the extra ebda[fast]"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Use the loops for data of any size; the names of those that were called."""
    called: list[str] = []
    compile_loop = compiled.loop

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            called.append(function.__name__)
            return compile_loop(function)(*arguments)

        return call

    use_for_any_size(monkeypatch)
    monkeypatch.setattr(compiled, "loop", counted)
    return called


def use_for_any_size(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiled, "LARGE", 1)
    patch.setattr(compiled, "LONG", 1)
    patch.setattr(compiled._use, "loaded", True)
    patch.setattr(ebda.kernels.tabulated, "LARGE", 1)
    patch.setattr(ebda.moments.variance, "_MIN_GROUPED", 1)
    patch.setattr(ebda.priors.cells, "_MIN_BINNED", 1)


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


@pytest.mark.slow
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
    n: int, p: int, k: int, dtype: Any, small: list[str]
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


@pytest.mark.slow
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
        use_for_any_size(patch)
        got = class_moments(X, codes, 3)
    assert_same_bits(got, without_loop(X, codes, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes_without_rows_stay_zero(dtype: Any, small: list[str]) -> None:
    X, codes = sample(12, 100, 2, dtype)
    got = class_moments(X, codes * 3, 5)
    assert small
    assert_same_bits(got, without_loop(X, codes * 3, 5))
    for empty in (1, 2, 4):
        assert not got.means[empty].any()
        assert not got.centred_squares[empty].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_none_stay_in_their_column(
    dtype: Any, small: list[str]
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
    lay_out: Callable[[np.ndarray], np.ndarray], small: list[str]
) -> None:
    X, codes = sample(20, 30, 2, np.float64)
    other = lay_out(X)
    got = class_moments(other, codes, 2)
    assert not small
    assert_same_bits(got, without_loop(np.array(other, np.float64), codes, 2))


def test_weights_go_by_the_tiles(small: list[str]) -> None:
    X, codes = sample(20, 30, 2, np.float64)
    times = np.random.default_rng(0).integers(1, 4, 20)
    got = class_moments(X, codes, 2, times.astype(float))
    assert not small
    want = class_moments(np.repeat(X, times, axis=0), np.repeat(codes, times), 2)
    assert small
    np.testing.assert_allclose(got.means, want.means, rtol=1e-12)
    np.testing.assert_allclose(got.centred_squares, want.centred_squares, rtol=1e-10)


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has done nothing yet."""
    monkeypatch.setattr(compiled, "_use", compiled._Use())


@pytest.mark.usefixtures("unused")
def test_small_data_go_without_loops() -> None:
    compiled.load()
    assert not compiled.suits(np.empty((1, compiled.LARGE - 1), np.float32))
    assert compiled.suits(np.empty((1, compiled.LARGE), np.float32))
    assert not compiled.suit_vectors(compiled.LONG - 1)
    assert compiled.suit_vectors(compiled.LONG)


@pytest.mark.usefixtures("unused")
def test_loops_begin_when_they_would_have_been_worth_it() -> None:
    X = np.empty((1, compiled.LARGE), np.float32)
    times = compiled.WORTH // X.size
    assert times > 10
    for _ in range(times - 2):
        assert not compiled.suits(X)
    assert not compiled.suit_vectors(X.size)
    assert compiled.suits(X)
    assert compiled.suit_vectors(X.size)


@pytest.mark.usefixtures("unused")
def test_without_numba_there_are_no_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not compiled.suit_vectors(2 * compiled.WORTH)
    with pytest.raises(ImportError, match=r"ebda\[fast\]"):
        compiled.load()
    assert not compiled.suit_vectors(2 * compiled.WORTH)


def test_tiles_of_the_loop_stay_in_the_cache() -> None:
    assert compiled.tile_columns(60) * 60 * 8 <= 2**18
    assert compiled.tile_columns(10**6) == 64
    assert compiled.tile_columns(0) >= 64


VECTOR_LOOPS = {"pooled", "leading_bits", "shrink", "cell_sums", "cubics"}
VECTOR_LOOPS |= {"scale_and_divide", "ends"}


def awkward(k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Constants, perfect separators, wild variances, ties and strong effects too."""
    rng = np.random.default_rng(seed)
    y = np.arange(40) % k
    X = rng.normal(rng.normal(scale=50, size=900), rng.gamma(3.0, size=900), (40, 900))
    X[:, :60] += 2 * y[:, None]
    X[:, 60] += 400 * y
    X[:, 61] = 1 / 3
    X[:, 62] = y
    X[:, 63:66] *= 1e6
    X[:, 66:90] = rng.integers(2, size=(40, 24))
    X[:, 90] = 0.0
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {"covariance": "diagonal", "shrinkage": "mean"},
        {"covariance": "diagonal", "shrinkage": "sparse", "variance": "pooled"},
        {"variance": "separate"},
        {},
    ],
    ids=["diagonal", "pooled", "separate", "default"],
)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("sound", [True, False])
def test_a_fit_with_loops_has_the_bits_of_one_without(
    k: int, sound: bool, arguments: dict[str, Any], small: list[str]
) -> None:
    X, y = awkward(k)
    X = np.ascontiguousarray(X[:, 100:] if sound else X)
    got = EBClassifier(**arguments).fit(X, y)
    called = set(small)
    small.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled._use, "loaded", False)
        patch.setattr(compiled._use, "refused", True)
        want = EBClassifier(**arguments).fit(X, y)
    assert not small
    if "variance" not in arguments:
        assert called >= VECTOR_LOOPS | {"class_sums"}
        assert ("two_classes" in called) == (k == 2)
    for name in ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_"):
        np.testing.assert_array_equal(
            getattr(got, name), getattr(want, name), err_msg=name
        )
    np.testing.assert_array_equal(got.predict_proba(X), want.predict_proba(X))


@pytest.mark.slow
def test_the_plain_functions_are_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled, run by the interpreter: every line of it."""
    X, y = awkward(2)
    X = np.ascontiguousarray(X[:, :300])
    with_numpy = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    use_for_any_size(monkeypatch)
    grouped = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    called = []

    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        called.append(function.__name__)
        return function

    monkeypatch.setattr(compiled, "loop", plain)
    with np.errstate(divide="ignore", invalid="ignore"):
        got = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    assert set(called) == VECTOR_LOOPS | {"class_sums", "two_classes"}
    np.testing.assert_array_equal(got.coef_, grouped.coef_)
    np.testing.assert_allclose(got.z_, with_numpy.z_, rtol=1e-3)


def test_loops_that_cannot_be_kept_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def njit(cache: bool = False, **options: Any) -> Callable[..., Any]:
        if cache:
            raise RuntimeError("no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", njit)
    compiled.loop.cache_clear()
    try:
        assert compiled.loop(ebda.kernels.loops.shrink) is ebda.kernels.loops.shrink
    finally:
        compiled.loop.cache_clear()
