"""Threads: blocks in order, limits respected, and not a bit of difference."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.utils  # noqa: F401  # its OpenMP is what limits are read from
from hypothesis import given
from hypothesis import strategies as st
from joblib import (
    Parallel,
    delayed,
    effective_n_jobs,
    parallel_config,
    register_parallel_backend,
)
from joblib.parallel import ParallelBackendBase
from threadpoolctl import threadpool_info, threadpool_limits

import faults
from ebda import EBClassifier
from ebda.cached import cached_property
from ebda.kernels import threads
from ebda.kernels.threads import allow_threads, available, one_blas_thread, over_blocks
from ebda.sizes import override

CORES = 6


@pytest.fixture
def six_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of six cores on which nothing limits OpenMP."""
    monkeypatch.setattr(threads, "cpu_count", lambda: CORES)
    with threadpool_limits(CORES, user_api="openmp"):
        yield


def thread_of(cols: slice) -> int:
    return threading.get_ident()


def test_short_work_stays_in_one_thread() -> None:
    with allow_threads(2):
        assert set(over_blocks(thread_of, 8, 2)) == {threading.get_ident()}


def bounds(cols: slice) -> tuple[int, int]:
    return cols.start, cols.stop


@given(
    size=st.integers(0, 60), block=st.integers(1, 70), n_jobs=st.sampled_from([1, 2, 5])
)
def test_blocks_of_any_size_cover_the_range_in_order(
    size: int, block: int, n_jobs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "cpu_count", lambda: CORES)
        with allow_threads(n_jobs):
            got = over_blocks(bounds, size, block, releases_lock=True)
    covered = [i for start, stop in got for i in range(start, stop)]
    assert covered == list(range(size))
    assert all(stop - start == block for start, stop in got[:-1])


@pytest.mark.usefixtures("six_cores")
def test_by_default_blocks_have_the_documented_sizes() -> None:
    with override(block_features=4, threaded_features=10), allow_threads(2):
        assert over_blocks(bounds, 10) == [(0, 4), (4, 8), (8, 10)]
        # Two for each thread, but none shorter than is worth it.
        assert over_blocks(bounds, 25, releases_lock=True) == [
            (0, 10),
            (10, 20),
            (20, 25),
        ]
        found = over_blocks(bounds, 80, releases_lock=True)
        assert found == [(0, 20), (20, 40), (40, 60), (60, 80)]


@pytest.mark.usefixtures("six_cores")
def test_blocks_run_side_by_side_and_come_back_in_order() -> None:
    together = threading.Barrier(3)

    def part(cols: slice) -> int:
        together.wait(timeout=10)  # nobody gets past it alone
        time.sleep(0.02 * (3 - cols.start))  # the first is the last to be done
        return cols.start

    with allow_threads(3):
        assert over_blocks(part, 3, 1, releases_lock=True) == [0, 1, 2]


def test_without_leave_there_is_one_thread() -> None:
    here = threading.get_ident()
    assert set(over_blocks(thread_of, 8, 2, releases_lock=True)) == {here}
    with allow_threads(1):
        assert set(over_blocks(thread_of, 8, 2, releases_lock=True)) == {here}


@pytest.mark.usefixtures("six_cores")
def test_leave_ends_with_its_block() -> None:
    here = threading.get_ident()
    with pytest.raises(KeyError), allow_threads(4):
        raise KeyError
    assert set(over_blocks(thread_of, 8, 2, releases_lock=True)) == {here}


@pytest.mark.usefixtures("six_cores")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_exceptions_come_through(n_jobs: int) -> None:
    def part(cols: slice) -> None:
        if cols.start == 4:
            raise ZeroDivisionError("block 4")

    with allow_threads(n_jobs), pytest.raises(ZeroDivisionError, match="block 4"):
        over_blocks(part, 10, 2, releases_lock=True)


# How many


@pytest.mark.usefixtures("six_cores")
def test_n_jobs_counts_as_joblib_does() -> None:
    assert [available(n) for n in (None, 1, 3, 100)] == [CORES, 1, 3, CORES]
    # joblib counts the cores itself; all but none is no more than there are.
    assert 1 <= available(-1) <= CORES
    with pytest.raises(ValueError, match="n_jobs"):
        available(0)


@pytest.mark.usefixtures("six_cores")
@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_the_configuration_of_joblib_is_respected(n_jobs: int) -> None:
    with parallel_config(n_jobs=n_jobs):
        assert available(None) == n_jobs
        assert available(3) == 3  # said last, and closer to the fit
    with parallel_config("threading", n_jobs=n_jobs):
        assert available(None) == n_jobs
    assert available(None) == CORES


@pytest.mark.usefixtures("six_cores")
def test_limits_of_threadpoolctl_are_respected() -> None:
    with threadpool_limits(2):
        assert available(None) == 2
        assert available(3) == 3
    with threadpool_limits(1, user_api="openmp"):
        assert available(None) == 1
    with threadpool_limits(1, user_api="blas"):  # says nothing about other work
        assert available(None) == CORES


@pytest.mark.usefixtures("six_cores")
def test_inside_of_a_parallel_loop_there_is_one_thread() -> None:
    jobs = Parallel(n_jobs=2, prefer="threads")(
        delayed(available)(None) for _ in range(4)
    )
    assert jobs == [1] * 4
    # A loop of one job at a time leaves the cores to it.
    assert Parallel(n_jobs=1)(delayed(available)(None) for _ in range(2)) == [CORES] * 2


class Cluster(ParallelBackendBase):  # type: ignore[misc]
    """A backend of joblib with many workers elsewhere."""

    supports_sharedmem = False

    def effective_n_jobs(self, n_jobs: int) -> int:
        return 400

    def submit(self, *arguments: Any) -> None:
        raise NotImplementedError

    apply_async = submit  # as joblib before 1.5 calls it


@pytest.mark.usefixtures("six_cores")
def test_the_workers_of_a_cluster_are_no_threads_here() -> None:
    register_parallel_backend("cluster", Cluster)
    with parallel_config("cluster", n_jobs=-1):
        assert effective_n_jobs(-1) == 400
        assert available(None) == CORES


def test_one_blas_thread_is_for_the_time_of_the_block_only() -> None:
    def blas() -> list[int]:
        return [x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        assert before
        with one_blas_thread():
            assert set(blas()) == {1}
        assert blas() == before


def test_overlapping_blocks_leave_the_limit_as_it_was() -> None:
    def blas() -> list[int]:
        return [x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"]

    first, second = one_blas_thread(), one_blas_thread()
    with threadpool_limits(2, user_api="blas"):
        before = blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas()) == {1}  # the second is still inside
        second.__exit__(None, None, None)
        assert blas() == before


# Whole fits


ATTRIBUTES = ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_")


def data(n: tuple[int, ...], factors: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(len(n)), n)
    X = rng.normal(size=(len(y), 1200)).astype(np.float32)
    if factors:
        X += (rng.normal(size=(len(y), 2)) @ rng.normal(size=(2, 1200))).astype("f4")
    X[y == 1, :60] += 1.0
    return X, y


@pytest.mark.slow
@pytest.mark.usefixtures("six_cores")
@pytest.mark.parametrize("version", ["loops", "numpy"])
@pytest.mark.parametrize(
    ("n", "factors", "arguments"),
    [
        ((16, 14), False, {"covariance": "diagonal", "shrinkage": "mean"}),
        ((16, 14), False, {}),
        ((12, 14), True, {}),
        ((9, 12, 10), False, {"variance": "pooled"}),
    ],
    ids=["diagonal", "default", "factors", "three classes"],
)
def test_n_jobs_changes_no_bit_of_a_fit(
    n: tuple[int, ...],
    factors: bool,
    arguments: dict[str, Any],
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small data in many blocks, with either version of the kernels."""
    X, y = data(n, factors)
    submitted: list[int] = []
    submit = ThreadPoolExecutor.submit

    def counted(pool: ThreadPoolExecutor, *arguments: Any) -> Any:
        submitted[-1] += 1
        return submit(pool, *arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    blocks = {"block_features": 200, "threaded_features": 200, "summed_features": 200}
    blocks |= {"tile_elements": 3000, "tabulated_values": 300}
    parts = {"least_compared": 500, "most_compared": 500}
    compiled = {} if version == "numpy" else {"compiled_elements": 1}
    compiled |= {} if version == "numpy" else {"compiled_features": 1}
    models = []
    with override(**blocks, **parts, **compiled):
        for n_jobs in (1, 2, None):
            submitted.append(0)
            models.append(EBClassifier(n_jobs=n_jobs, **arguments).fit(X, y))
    alone, with_another, with_five = submitted
    assert alone == 0
    assert 0 < with_another < with_five  # as many as there are threads, but for one
    for model in models[1:]:
        for name in ATTRIBUTES:
            np.testing.assert_array_equal(
                getattr(model, name), getattr(models[0], name), err_msg=name
            )
        np.testing.assert_array_equal(
            model.predict_proba(X), models[0].predict_proba(X)
        )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = """
import os, warnings
from ebda.kernels.threads import allow_threads, over_blocks
warnings.simplefilter("ignore")
def length(cols):
    return cols.stop - cols.start
def total():
    with allow_threads(2):
        return sum(over_blocks(length, 9, 2, releases_lock=True))
assert total() == 9
child = os.fork()
if child == 0:
    os._exit(0 if total() == 9 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


FORKING = """
import os, signal, threading, time, warnings
import numpy as np
from ebda import EBClassifier
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3000)), np.repeat([0, 1], 30)
X[:30, :5] += 1
def fit():
    return EBClassifier(n_jobs=2).fit(X, y).coef_
expected = fit()
def again():
    while True:
        fit()
threading.Thread(target=again, daemon=True).start()
for _ in range(4):
    time.sleep(float(rng.uniform(0, 0.3)))
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # where it hangs, this ends it
        os._exit(0 if np.allclose(fit(), expected, rtol=1e-9) else 1)
    assert os.waitpid(child, 0)[1] == 0
print("none hung", flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_process_can_be_forked_while_another_thread_fits(tmp_path: Path) -> None:
    done = faults.run(FORKING, tmp_path, timeout=120)
    assert done.out == "none hung\n", done.err


def test_a_cached_attribute_holds_no_lock() -> None:
    """While one thread computes it, another can compute that of another object."""
    started, go_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool) -> None:
            self.waits, self.calls = waits, 0

        @cached_property
        def value(self) -> int:
            self.calls += 1
            if self.waits:
                started.set()
                assert go_on.wait(10)
            return 3

    first, second = Slow(waits=True), Slow(waits=False)
    thread = threading.Thread(target=lambda: first.value)
    thread.start()
    assert started.wait(10)
    other = threading.Thread(target=lambda: second.value)
    other.start()
    other.join(5)
    assert not other.is_alive()
    go_on.set()
    thread.join(10)
    assert (first.value, second.value, first.calls, second.calls) == (3, 3, 1, 1)
