"""Kernels: NumPy and compiled loops agree, and each gives the same bits every time."""

from __future__ import annotations

import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ebda
from ebda import EBClassifier
from ebda.kernels import compiled, loops, threads
from ebda.kernels.cells import cell_sums
from ebda.kernels.class_sums import class_sums, missing_class_sums
from ebda.kernels.contrasts import contrast_z
from ebda.kernels.hashing import column_keys, hash_rows
from ebda.kernels.hermite import Table
from ebda.kernels.rows import divide_by_root
from ebda.kernels.threads import allow_threads
from ebda.kernels.variances import group_positive
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.priors import DiscretePrior
from ebda.sizes import override, sizes

assert importlib.util.find_spec("numba"), "these tests need the extra ebda[fast]"

EXACT = 1e-12
# Larger than any array here, and than none.
NEVER, ALWAYS = 1 << 40, 1


def versions(compiled_from: int) -> AbstractContextManager[None]:
    """Loops for arrays from this size, and the paths of large data for any data."""
    return override(
        compiled_elements=compiled_from,
        compiled_features=compiled_from,
        tabulated_values=1,
        grouped_variances=1,
        binned_values=1,
    )


def with_loops() -> AbstractContextManager[None]:
    return versions(ALWAYS)


def with_numpy() -> AbstractContextManager[None]:
    return versions(NEVER)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the loops that are asked for."""
    names: list[str] = []
    compile_loop = compiled.compile_loop

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        names.append(function.__name__)
        return compile_loop(function)

    monkeypatch.setattr(compiled, "compile_loop", counted)
    return names


def sample(n: int, p: int, k: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + p)
    X = rng.normal(rng.normal(scale=50, size=p), rng.exponential(size=p), size=(n, p))
    return X.astype(dtype), rng.integers(k, size=n)


# Every kernel that has two versions


def on_class_sums(p: int) -> Any:
    X, codes = sample(30, p, 3, np.float32)
    rows, bounds = np.argsort(codes), np.append(0, np.bincount(codes).cumsum())
    return class_sums(X, rows, bounds, None)


def on_missing_class_sums(p: int) -> Any:
    X, codes = sample(30, p, 3, np.float32)
    X[np.random.default_rng(5).random(X.shape) < 0.3] = np.nan
    X[:, 2] = np.nan
    rows, bounds = np.argsort(codes), np.append(0, np.bincount(codes).cumsum())
    totals = np.diff(bounds).astype(float)
    return missing_class_sums(X, rows, bounds, None, np.arange(0, p, 2), totals)


def moments_of(p: int, k: int = 2) -> ClassMoments:
    X, codes = sample(30, p, k, np.float64)
    with with_numpy():
        return class_moments(X, codes, k)


def on_hash_rows(p: int) -> Any:
    X, _ = sample(30, p, 3, np.float32)
    X[X > 50] = -0.0
    return hash_rows(X, column_keys(p))


def on_leading_bits(p: int) -> Any:
    x = np.random.default_rng(0).gamma(0.3, size=p)
    x[::7] = 0.0
    return group_positive(x)


def on_two_class_z(p: int) -> Any:
    moments = moments_of(p)
    squares = moments.centred_squares.copy()
    squares[:, 5] = 0.0  # what has no variance is told apart
    variance = squares.sum(axis=0) / 28
    weights, factor = np.array([[-1.0, 1.0]]), np.array([[2 / 15]])
    return contrast_z(moments.means, squares, variance, weights, factor, 15.0)


def on_divide_by_root(p: int) -> Any:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(3, p))
    divide_by_root(rows, rng.gamma(1.0, size=p))
    return rows


def on_cell_sums(p: int) -> Any:
    z = np.random.default_rng(3).normal(scale=4.0, size=p)
    return cell_sums(z, 2.0**-24, 0.02, 10.0, 1003)


def on_cubics(p: int) -> Any:
    table = Table.of(lambda x: (np.sin(x), np.cos(x)), 1.0, -3.0, 3.0)
    return table.at(np.random.default_rng(4).uniform(-4, 4, size=p))


KERNELS = {
    "class_sums": on_class_sums,
    "missing_class_sums": on_missing_class_sums,
    "hash_rows": on_hash_rows,
    "leading_bits": on_leading_bits,
    "two_class_z": on_two_class_z,
    "divide_by_root": on_divide_by_root,
    "cell_sums": on_cell_sums,
    "cubics": on_cubics,
}
# What is called where all samples are kept.
FIT_OF_FEW = set(KERNELS) - {"hash_rows", "missing_class_sums"}
each_kernel = pytest.mark.parametrize("name", KERNELS)


def parts_of(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(part) for part in parts]


def assert_close(got: Any, want: Any) -> None:
    for a, b in zip(parts_of(got), parts_of(want), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=EXACT, atol=0)


def assert_same_bits(got: Any, want: Any) -> None:
    for a, b in zip(parts_of(got), parts_of(want), strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


def test_every_loop_is_tested_here() -> None:
    functions = inspect.getmembers(loops, inspect.isfunction)
    assert {f for f, g in functions if g.__module__ == loops.__name__} == set(KERNELS)


@each_kernel
@pytest.mark.parametrize("p", [7, 1024, 5000])
def test_loops_and_numpy_agree(name: str, p: int, called: list[str]) -> None:
    with with_loops():
        got = KERNELS[name](p)
    assert called.pop() == name
    called.clear()  # values are grouped between their ends
    with with_numpy():
        want = KERNELS[name](p)
    assert not called
    assert_close(got, want)


@each_kernel
def test_the_plain_functions_are_the_loops(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled, run by the interpreter: every line of it."""
    with with_numpy():
        want = KERNELS[name](300)
    asked: list[str] = []

    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        asked.append(function.__name__)
        return function

    monkeypatch.setattr(compiled, "compile_loop", plain)
    with with_loops(), np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        got = KERNELS[name](300)
    assert asked[-1] == name
    assert_close(got, want)


@each_kernel
@pytest.mark.parametrize("version", [with_loops, with_numpy])
def test_threads_and_earlier_calls_change_no_bit(
    name: str,
    version: Callable[[], AbstractContextManager[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "cpu_count", lambda: 8)
    blocks = {"block_features": 700, "threaded_features": 300, "tile_elements": 9000}
    with version(), override(**blocks):
        want = KERNELS[name](5000)
        assert_same_bits(KERNELS[name](5000), want)
        for n_jobs in (1, 2, 3, 8):
            with allow_threads(n_jobs):
                assert_same_bits(KERNELS[name](5000), want)
                assert_same_bits(KERNELS[name](5000), want)


# What the choice depends on


def test_the_choice_depends_on_the_size_alone() -> None:
    X = np.empty((1, sizes.compiled_elements), np.float32)
    for _ in range(3):
        assert not compiled.suits_matrix(X[:, :-1])
        assert compiled.suits_matrix(X)
        assert not compiled.suits_vectors(sizes.compiled_features - 1)
        assert compiled.suits_vectors(sizes.compiled_features)


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
def test_other_layouts_and_types_are_summed_in_tiles(
    lay_out: Callable[[np.ndarray], np.ndarray], called: list[str]
) -> None:
    X, codes = sample(20, 30, 2, np.float64)
    other = lay_out(X)
    with with_loops():
        got = class_moments(other, codes, 2)
    assert not called
    assert_same_moments(got, by_tiles(np.array(other, np.float64), codes, 2))


def test_weighted_sums_are_taken_in_tiles(called: list[str]) -> None:
    X, codes = sample(20, 30, 2, np.float64)
    times = np.random.default_rng(0).integers(1, 4, 20)
    with with_loops():
        got = class_moments(X, codes, 2, times.astype(float))
        assert not called
        want = class_moments(np.repeat(X, times, axis=0), np.repeat(codes, times), 2)
    assert called == ["class_sums"]
    assert_same_moments(got, want)


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    compiled.available.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    yield
    compiled.available.cache_clear()


@pytest.mark.usefixtures("without_numba")
def test_without_numba_there_are_no_loops() -> None:
    assert not compiled.available()
    assert not compiled.suits_matrix(np.empty((1, sizes.compiled_elements), np.float32))
    assert not compiled.suits_vectors(1 << 40)


@each_kernel
def test_without_numba_kernels_are_those_of_numpy(
    name: str, request: pytest.FixtureRequest
) -> None:
    with with_numpy():
        want = KERNELS[name](500)
    request.getfixturevalue("without_numba")
    with with_loops():
        assert_same_bits(KERNELS[name](500), want)


# Where compiled loops are kept

CHILD = """
import numpy as np
from ebda.kernels import compiled, loops
from ebda.kernels.rows import divide_by_root
from ebda.sizes import override
rows = np.array([[3.0, -1.0]])
with override(compiled_features=1):
    divide_by_root(rows, np.array([1.0, 4.0]))
print(rows.tolist())
print(loops.__file__)
print(compiled.compile_loop(loops.divide_by_root).stats.cache_path)
"""


def run_child(root: Path, **environment: str) -> list[str]:
    """What a process prints that has the package from a folder of its own."""
    kept = {k: v for k, v in os.environ.items() if k not in ("HOME", "PYTHONPATH")}
    kept = {k: v for k, v in kept.items() if not k.startswith(("NUMBA", "XDG"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD],
        env={**kept, "PYTHONPATH": str(root), **environment},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    result, file, cache = done.stdout.split("\n", 2)
    assert file == str(root / "ebda" / "kernels" / "loops.py")
    return [result, cache.strip()]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package where nothing can be written beside its files, even by root."""
    source, root = Path(ebda.__file__).parent, tmp_path / "site-packages"
    shutil.copytree(source, root / "ebda", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "ebda" / "kernels" / "__pycache__").touch()
    return root


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["unset", "read-only", "no folder for Numba"])
def test_a_home_that_cannot_be_written_to_is_no_error(
    environment: str, installed: Path, tmp_path: Path
) -> None:
    barred = tmp_path / "barred"
    barred.touch()  # a file, which no folder can be made in
    places = {
        # Then the home of the account is used.
        "unset": {"XDG_CACHE_HOME": str(barred)},
        "read-only": {"HOME": str(barred)},
        "no folder for Numba": {"HOME": str(barred), "NUMBA_CACHE_DIR": str(barred)},
    }
    assert run_child(installed, **places[environment]) == ["[[3.0, -0.5]]", "None"]


@pytest.mark.slow
def test_compiled_loops_are_kept_on_disk(installed: Path, tmp_path: Path) -> None:
    kept = tmp_path / "cache"
    first = run_child(installed, NUMBA_CACHE_DIR=str(kept))
    assert first[0] == "[[3.0, -0.5]]"
    assert Path(first[1]).is_relative_to(kept)
    written = {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb*")}
    assert {path.suffix for path in written} == {".nbi", ".nbc"}
    assert run_child(installed, NUMBA_CACHE_DIR=str(kept)) == first
    # The second run read them, and wrote nothing.
    again = {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb*")}
    assert again == written


def test_loops_that_cannot_be_kept_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def njit(cache: bool = False, **options: Any) -> Callable[..., Any]:
        if cache:
            raise RuntimeError("no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", njit)
    compiled.compile_loop.cache_clear()
    try:
        assert compiled.compile_loop(loops.cubics) is loops.cubics
    finally:
        compiled.compile_loop.cache_clear()


# Sums by class


def by_tiles(X: Any, codes: np.ndarray, k: int) -> ClassMoments:
    with with_numpy():
        return class_moments(X, codes, k)


def assert_same_moments(got: ClassMoments, want: ClassMoments) -> None:
    np.testing.assert_array_equal(got.counts, want.counts)
    np.testing.assert_allclose(got.means, want.means, rtol=EXACT, atol=1e-300)
    np.testing.assert_allclose(
        got.centred_squares, want.centred_squares, rtol=EXACT, atol=1e-300
    )


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
def test_the_loop_gives_the_moments_of_the_tiles(
    n: int, p: int, k: int, dtype: Any, called: list[str]
) -> None:
    X, codes = sample(n, p, k, dtype)
    with allow_threads(2), with_loops():
        got = class_moments(X, codes, k)
    assert set(called) == {"class_sums"}
    assert_same_moments(got, by_tiles(X, codes, k))
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
def test_any_numbers_give_the_same_moments(X: np.ndarray, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(3, size=len(X))
    with with_loops():
        got = class_moments(X, codes, 3)
    want = by_tiles(X, codes, 3)
    # Means may cancel: their error is relative to the values that were added up.
    largest = np.abs(X).max(axis=0).astype(float)
    assert (np.abs(got.means - want.means) <= EXACT * largest).all()
    apart = np.abs(got.centred_squares - want.centred_squares)
    assert (apart <= EXACT * want.centred_squares + (1e-15 * largest) ** 2).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes_without_rows_stay_zero(dtype: Any, called: list[str]) -> None:
    X, codes = sample(12, 100, 2, dtype)
    with with_loops():
        got = class_moments(X, codes * 3, 5)
    assert called
    assert_same_moments(got, by_tiles(X, codes * 3, 5))
    for empty in (1, 2, 4):
        assert not got.means[empty].any()
        assert not got.centred_squares[empty].any()


@pytest.mark.parametrize("version", [with_loops, with_numpy])
def test_no_rows_at_all(version: Callable[[], AbstractContextManager[None]]) -> None:
    X, _ = sample(5, 70, 2, np.float64)
    none, bounds = np.empty(0, dtype=np.intp), np.zeros(3, dtype=np.intp)
    with version():
        counts, means, squares = class_sums(X, none, bounds, None)
    assert not counts.any()
    assert means.shape == squares.shape == (2, 70)
    assert not means.any()
    assert not squares.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinity_stay_in_their_column(dtype: Any, called: list[str]) -> None:
    X, codes = sample(20, 50, 2, dtype)
    bad = {3: np.nan, 7: np.inf, 11: -np.inf, 13: np.finfo(dtype).max}
    for column, value in bad.items():
        X[5, column] = value
    X[6, 11] = np.inf  # one of each sign
    with with_loops():
        got = class_moments(X, codes, 2)
    assert called
    want = by_tiles(X, codes, 2)
    k = codes[5]
    for a, b in ((got.means, want.means), (got.centred_squares, want.centred_squares)):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_allclose(a[np.isfinite(b)], b[np.isfinite(b)], rtol=EXACT)
    assert not np.isfinite(got.centred_squares[k, [7, 11]]).any()
    assert got.observed is not None
    assert got.observed[k, 3] == got.counts[k] - 1
    others = np.setdiff1d(np.arange(50), [7, 11, 13])
    assert np.isfinite(got.means[:, others]).all()


# Whole fits


def awkward(k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Constants, perfect separators, outliers, ties and strong effects too."""
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


ATTRIBUTES = ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_")
COLUMNS = {
    "awkward": np.s_[:],
    "sound": np.r_[:60, 100:900],
    "no difference": np.s_[100:],
}


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
@pytest.mark.parametrize("columns", COLUMNS)
def test_a_fit_with_loops_is_one_without(
    k: int, columns: str, arguments: dict[str, Any], called: list[str]
) -> None:
    X, y = awkward(k)
    X = np.ascontiguousarray(X[:, COLUMNS[columns]])
    with with_loops():
        got = EBClassifier(**arguments).fit(X, y)
        again = EBClassifier(**arguments).fit(X, y)
        proba = got.predict_proba(X)
        for name in ATTRIBUTES:
            assert_same_bits(getattr(again, name), getattr(got, name))
    used = set(called)
    called.clear()
    with with_numpy():
        want = EBClassifier(**arguments).fit(X, y)
        for name in ATTRIBUTES:
            expected = getattr(want, name)
            np.testing.assert_allclose(
                getattr(got, name),
                expected,
                rtol=EXACT,
                atol=EXACT * np.abs(expected).max(),
                err_msg=name,
            )
        np.testing.assert_allclose(proba, want.predict_proba(X), rtol=1e-10)
    assert not called
    if "variance" not in arguments:
        assert used >= FIT_OF_FEW - {"two_class_z", "cubics"}
        assert ("two_class_z" in used) == (k == 2)
        # Only posteriors of discrete priors are tabulated.
        assert ("cubics" in used) == isinstance(want.prior_, DiscretePrior)
        assert isinstance(want.prior_, DiscretePrior) == (columns != "no difference")


@pytest.mark.slow
def test_a_fit_with_the_plain_functions_is_one_with_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = awkward(2)
    X = np.ascontiguousarray(X[:, :300])
    rule = {"covariance": "diagonal", "shrinkage": "mean"}
    ungrouped = EBClassifier(**rule).fit(X, y)
    with with_numpy():
        want = EBClassifier(**rule).fit(X, y)
    asked = []

    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        asked.append(function.__name__)
        return function

    monkeypatch.setattr(compiled, "compile_loop", plain)
    with with_loops(), np.errstate(divide="ignore", invalid="ignore"):
        got = EBClassifier(**rule).fit(X, y)
    assert set(asked) == FIT_OF_FEW
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=EXACT)
    np.testing.assert_allclose(got.z_, ungrouped.z_, rtol=1e-3)
