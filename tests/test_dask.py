"""Dask arrays: the fit of memory for any chunks, on real worker processes, and faults.

Worker processes are started, killed and starved of memory here; X is never computed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.data import as_data
from ebda.data.dask import open_dask, pieces, running
from ebda.data.dask.samples import ClusterSamples
from ebda.sizes import override, sizes
from profiles import examples

# A cluster takes seconds to start.
pytestmark = pytest.mark.slow

N, P = 44, 260
TOLERANCE = 1e-10


def with_factors(n_classes: int, p: int = P) -> tuple[Any, Any]:
    """Classes that differ in some features, with two factors common to all."""
    rng = np.random.default_rng(n_classes)
    codes = np.arange(N) % n_classes
    X = rng.normal(size=(N, p))
    X += rng.normal(size=(N, 2)) @ rng.normal(size=(2, p))
    X[:, : p // 10] += 1.2 * codes[:, None] * rng.choice([-1.0, 1.0], p // 10)
    X[:, 3] = 7.0  # constant
    return X, np.array(["ctrl", "mild", "severe"])[codes]


@pytest.fixture(scope="module")
def references() -> dict[int, EBClassifier]:
    found = {k: EBClassifier().fit(*with_factors(k)) for k in (2, 3)}
    assert found[2].n_factors_ == found[3].n_factors_ == 2
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="1 GiB",
        ) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture
def one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def assert_same_fit(got: Any, want: Any) -> None:
    assert np.abs(want.coef_).max() > 0.01
    for name in ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_"):
        assert isinstance(getattr(got, name), np.ndarray)
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=0, atol=TOLERANCE
        )
    np.testing.assert_array_equal(got.selected_, want.selected_)
    np.testing.assert_allclose(
        got.selection_.weight, want.selection_.weight, atol=TOLERANCE
    )


def cuts(total: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Sizes of chunks that add up."""
    return st.lists(st.integers(1, total - 1), max_size=4, unique=True).map(
        lambda at: tuple(int(k) for k in np.diff([0, *sorted(at), total]))
    )


@examples(5)
@given(rows=cuts(N), cols=cuts(P), n_classes=st.sampled_from([2, 3]))
def test_any_chunks_give_the_fit_of_memory(
    cluster: Client,
    references: Any,
    rows: tuple[int, ...],
    cols: tuple[int, ...],
    n_classes: int,
) -> None:
    X, y = with_factors(n_classes)
    got = EBClassifier().fit(da.from_array(X, chunks=(rows, cols)), y)
    assert_same_fit(got, references[n_classes])


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_without_a_cluster_dask_has_schedulers(scheduler: str, references: Any) -> None:
    X, y = with_factors(2)
    with dask.config.set(scheduler=scheduler):
        assert running.Runner.current().client is None
        jobs = 2 if scheduler == "threads" else None
        model = EBClassifier(n_jobs=jobs).fit(da.from_array(X, chunks=(20, 100)), y)
    assert_same_fit(model, references[2])


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("kwargs", [{}, {"covariance": "neighbours"}])
@pytest.mark.parametrize("residual_elements", [sizes.residual_elements, 0])
def test_rows_that_do_not_fit_are_read_again(
    kwargs: dict[str, Any],
    residual_elements: int,
    references: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ClusterSamples, "persist")  # it is not called
    X, y = with_factors(2)
    want = references[2] if not kwargs else EBClassifier(**kwargs).fit(X, y)
    with override(
        local_bytes=8 * N * 100,
        piece_bytes=8 * N * 30,
        persisted_features=100,
        persisted_values=100 * N,
        residual_elements=residual_elements,
    ):
        got = EBClassifier(**kwargs).fit(da.from_array(X, (9, 70)), y)
    assert_same_fit(got, want)


def test_features_in_an_order_are_seen_across_chunks(cluster: Client) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, P))
    for j in range(1, P):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    codes = np.arange(N) % 2
    X[:, 100:140] += 2.0 * codes[:, None]
    kwargs = {"covariance": "neighbours", "shrinkage": "mean"}
    want = EBClassifier(**kwargs).fit(X, codes)
    assert want.selection_.candidates == [("neighbours", "mean")]  # they were found
    got = EBClassifier(**kwargs).fit(da.from_array(X, (N, 7)), codes)
    np.testing.assert_allclose(got.coef_, want.coef_, atol=TOLERANCE)


def test_predictions_are_lazy(references: Any) -> None:
    X, _ = with_factors(3)
    model, calls = references[3], []

    def load(block: Any) -> Any:
        calls.append(block.shape)
        return block

    lazy = da.from_array(X, (20, 100)).map_blocks(load, meta=np.empty((0, 0)))
    methods = ("decision_function", "transform", "predict", "predict_proba")
    results = {m: getattr(model, m)(lazy) for m in (*methods, "predict_log_proba")}
    assert not calls
    for method, result in results.items():
        assert isinstance(result, da.Array)
        want = getattr(model, method)(X)
        assert result.shape == want.shape
        assert result.dtype == want.dtype
        assert result.chunks[0] == (20, 20, 4)
        got = result.compute(scheduler="synchronous")
        if method == "predict":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    assert len(calls) == 9 * len(results)
    two = IndependenceRule().fit(X, np.arange(N) % 2)
    np.testing.assert_allclose(
        two.decision_function(lazy).compute(scheduler="synchronous"),
        two.decision_function(X),
        rtol=1e-9,
    )


def make_block(block_info: Any = None) -> Any:
    """Numbers that exist where they are needed only."""
    (r0, r1), (c0, c1) = block_info[None]["array-location"]
    X = np.random.default_rng([r0, c0]).random((r1 - r0, c1 - c0))
    if c0 == 0:
        X[:, :50] += (np.arange(r0, r1) % 2)[:, None]
    return X


# The graph holds the weights of all features, and what missing values are replaced by.
@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_data_larger_than_the_memory_of_the_workers() -> None:
    n, p = 100, 750_000  # 600 MB, and each of the two has less
    X = da.map_blocks(
        make_block, chunks=((50, 50), (25_000,) * 30), meta=np.empty((0, 0))
    )
    assert X.nbytes == 8 * n * p > 560 * 2**20
    y = np.arange(n) % 2
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="560 MiB",
        ) as local,
        Client(local) as client,
    ):
        before = client.run(os.getpid)
        # All features are looked at again, not only those that rules are compared on.
        model = EBClassifier(
            covariance="factor", shrinkage="mean", variance="pooled", calibrate=False
        ).fit(X, y)
        labels = model.predict(X).compute()
        assert client.run(os.getpid) == before  # none ran out of memory
    assert (labels == y).all()
    first = np.hstack([X.blocks[i, 0].compute()[:, :9].T for i in (0, 1)])
    alone = IndependenceRule().fit(first.T, y)
    np.testing.assert_allclose(model.contrasts_.z[0, :9], alone.z_, rtol=1e-10)


def killing(block: Any, marker: str) -> Any:
    """Kills the worker that comes first."""
    if block[0, 0] == np.float64(12345.0):
        try:
            Path(marker).touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.parametrize("when", ["moments", "residual_rows", "gram", "loadings"])
def test_a_worker_is_killed_and_the_fit_is_right(
    cluster: Client, references: Any, tmp_path: Path, when: str
) -> None:
    X, y = with_factors(2)
    X[20, 100] = 12345.0
    rule = EBClassifier(wild_values="keep")
    want = clone(rule).fit(X, y)
    before = set(cluster.run(os.getpid).values())
    chunked = da.from_array(X, (20, 100))
    if when == "moments":
        marker = str(tmp_path / "killed")
        chunked = chunked.map_blocks(killing, marker, meta=np.empty((0, 0)))
        model = clone(rule).fit(chunked, y)
    else:
        # Between two steps, with the rows that were kept on its memory.
        victim = next(iter(before))
        step = getattr(ClusterSamples, when)

        def kill_first(self: Any, *args: Any) -> Any:
            if not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                os.kill(victim, signal.SIGKILL)
            return step(self, *args)

        # The others are for more residuals than are kept in memory.
        here = {} if when == "residual_rows" else {"residual_elements": 0}
        with pytest.MonkeyPatch.context() as patch, override(**here):
            patch.setattr(ClusterSamples, when, kill_first)
            model = clone(rule).fit(chunked, y)
    assert (tmp_path / "killed").exists()
    assert_same_fit(model, want)
    cluster.wait_for_workers(2, timeout=30)
    assert set(cluster.run(os.getpid).values()) != before


def waiting(block: Any, marker: str) -> Any:
    Path(marker).touch()
    time.sleep(60)
    return block


def test_a_scheduler_that_goes_away_is_one_clear_error(tmp_path: Path) -> None:
    X, y = with_factors(2)
    marker, address = tmp_path / "started", tmp_path / "scheduler.json"
    # They are to find this module, which the tasks come from.
    places = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": {**os.environ, "PYTHONPATH": places},
    }
    scheduler = subprocess.Popen(
        [
            *(sys.executable, "-m", "dask", "scheduler", "--port", "0"),
            *("--no-dashboard", "--scheduler-file", str(address)),
        ],
        **quiet,
    )
    lazy = da.from_array(X, (20, 100)).map_blocks(
        waiting, str(marker), meta=np.empty((0, 0))
    )
    processes = [scheduler]
    try:
        with Client(scheduler_file=str(address), timeout="60s") as client:
            processes.append(
                subprocess.Popen(
                    [
                        *(sys.executable, "-m", "dask", "worker", "--no-nanny"),
                        *("--no-dashboard", "--scheduler-file", str(address)),
                    ],
                    **quiet,
                )
            )
            client.wait_for_workers(1, timeout=60)
            where = client.scheduler.address

            def kill_once_started() -> None:
                while not marker.exists():
                    time.sleep(0.05)
                scheduler.kill()

            thread = threading.Thread(target=kill_once_started, daemon=True)
            thread.start()
            with pytest.raises(ConnectionError, match="went away during the fit") as e:
                EBClassifier().fit(lazy, y)
            assert where in str(e.value)
            thread.join()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_missing_values_in_chunks(cluster: Client) -> None:
    X, y = with_factors(2)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = EBClassifier().fit(da.from_array(X, (20, 100)), y)
    want = EBClassifier().fit(X, y)
    assert_same_fit(model, want)
    lazy = model.predict_proba(da.from_array(X, (17, 90)))
    np.testing.assert_allclose(lazy.compute(), want.predict_proba(X), atol=1e-6)


def test_infinity_in_a_chunk_names_the_column(cluster: Client) -> None:
    X, y = with_factors(2)
    rule = IndependenceRule().fit(X, y)
    X[37, 191] = np.inf
    chunked = da.from_array(X, (20, 100))
    expected = r"infinity in column 191 \(the first in row 37\)"
    with pytest.raises(ValueError, match=expected):
        EBClassifier().fit(chunked, y)
    labels = rule.predict(chunked)
    with pytest.raises(ValueError, match=expected):
        labels.compute()
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("gene"), npartitions=3)
    with pytest.raises(ValueError, match=r"column 191 \('gene191'\)"):
        EBClassifier().fit(frame, y)


def test_an_error_of_a_task_stays_what_it_is(cluster: Client) -> None:
    def fails(block: Any) -> Any:
        raise FileNotFoundError("part7.npy")

    X, y = with_factors(2)
    lazy = da.from_array(X, (20, 100)).map_blocks(fails, meta=np.empty((0, 0)))
    with pytest.raises(FileNotFoundError, match=r"part7\.npy"):
        EBClassifier().fit(lazy, y)


def test_the_joblib_backend_of_dask(cluster: Client) -> None:
    X, y = with_factors(2)
    want = EBClassifier().fit(X, y)
    with joblib.parallel_backend("dask"):
        assert_same_fit(EBClassifier(n_jobs=2).fit(X, y), want)
        search = GridSearchCV(
            EBClassifier(covariance="factor"), {"shrinkage": ["mean", "sparse"]}, cv=2
        ).fit(X, y)
    local = GridSearchCV(
        EBClassifier(covariance="factor"), {"shrinkage": ["mean", "sparse"]}, cv=2
    ).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )
    assert_same_fit(search.best_estimator_, local.best_estimator_)


def test_the_search_of_dask(cluster: Client) -> None:
    search = pytest.importorskip(
        "dask_ml.model_selection", reason="dask-ml is not installed"
    )
    X, y = with_factors(2)
    grid = {"shrinkage": ["mean", "sparse"]}
    rule = EBClassifier(covariance="factor")
    want = GridSearchCV(rule, grid, cv=2).fit(X, y)
    for data in (X, y), (da.from_array(X, (22, 100)), da.from_array(y, 22)):
        got = search.GridSearchCV(rule, grid, cv=2).fit(*data)
        np.testing.assert_allclose(
            got.cv_results_["mean_test_score"], want.cv_results_["mean_test_score"]
        )
        assert got.best_params_ == want.best_params_
        assert_same_fit(got.best_estimator_, want.best_estimator_)


def test_a_model_of_a_cluster_is_an_ordinary_model(
    cluster: Client, tmp_path: Path
) -> None:
    X, y = with_factors(2)
    model = EBClassifier().fit(da.from_array(X, (20, 100)), y)
    joblib.dump(model, tmp_path / "model")
    again = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.usefixtures("one_thread")
def test_arrays_of_other_kinds(references: Any) -> None:
    X, y = with_factors(2)
    want = references[2]
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("gene"), npartitions=3)
    model = EBClassifier().fit(frame, da.from_array(y, chunks=10))
    assert model.feature_names_in_[5] == "gene5"
    assert_same_fit(model, want)
    np.testing.assert_array_equal(model.predict(frame).compute(), want.predict(X))
    # Sizes that Dask does not know.
    unknown = frame.to_dask_array()
    assert np.isnan(unknown.shape[0])
    assert_same_fit(EBClassifier().fit(unknown, y), want)
    assert np.isnan(unknown.shape[0])  # the caller's array is as it was
    # Sparse chunks, in formats that are converted or not.
    for kind in (sparse.csr_array, sparse.coo_array, sparse.csc_matrix):
        chunked = da.from_array(X, (20, 100)).map_blocks(kind, meta=np.empty((0, 0)))
        got = EBClassifier().fit(chunked, y)
        np.testing.assert_allclose(got.coef_, want.coef_, atol=TOLERANCE)
        np.testing.assert_array_equal(got.predict(chunked).compute(), want.predict(X))
    weight = np.arange(N) % 3 / 1.0
    got = EBClassifier().fit(da.from_array(X, (20, 100)), y, weight)
    assert_same_fit(got, EBClassifier().fit(X, y, weight))
    # Whole numbers.
    whole = np.round(10 * X).astype(np.int16)
    got = IndependenceRule().fit(da.from_array(whole, (20, 100)), y)
    np.testing.assert_allclose(got.coef_, IndependenceRule().fit(whole, y).coef_)


@pytest.mark.usefixtures("one_thread")
def test_chunks_without_rows_or_columns(references: Any) -> None:
    X, y = with_factors(2)
    empty = da.from_array(X, ((0, 20, 0, 24), (100, 0, 160, 0)))
    model = EBClassifier().fit(empty, y)
    assert_same_fit(model, references[2])
    np.testing.assert_array_equal(model.predict(empty).compute(), model.predict(X))
    # What is left of a chunk by a condition.
    some = (np.arange(N) < 20) | (np.arange(N) >= 40)
    left = da.from_array(X, (20, 100))[da.from_array(some, 20)]
    labels = da.from_array(y, 20)[da.from_array(some, 20)]
    assert_same_fit(
        EBClassifier().fit(left, labels), EBClassifier().fit(X[some], y[some])
    )
    # Chunks whose samples have no weight.
    weight = (np.arange(N) >= 20) / 1.0
    got = EBClassifier().fit(da.from_array(X, (20, 100)), y, da.from_array(weight, 9))
    assert_same_fit(got, EBClassifier().fit(X, y, weight))


@pytest.mark.usefixtures("one_thread")
def test_frames_of_types_that_numpy_does_not_have(references: Any) -> None:
    X, y = with_factors(2)
    table = pd.DataFrame(X).add_prefix("gene")
    for kind in ("Float64", "double[pyarrow]"):
        frame = dd.from_pandas(table.astype({"gene7": kind}), npartitions=3)
        labels = dd.from_pandas(pd.Series(y), npartitions=3)
        assert_same_fit(EBClassifier().fit(frame, labels), references[2])
    missing = table.astype({"gene7": "Float64"})
    missing.loc[30, "gene7"] = pd.NA
    X[30, 7] = np.nan
    model = EBClassifier().fit(dd.from_pandas(missing, npartitions=3), y)
    assert_same_fit(model, EBClassifier().fit(X, y))
    named = dd.from_pandas(table.assign(patient="p", when=pd.Timestamp(0)), 3)
    with pytest.raises(ValueError, match=r"'patient' \(str.*'when' \(datetime64"):
        EBClassifier().fit(named, y)
    more = dd.from_pandas(table.assign(**{f"note{k}": "n" for k in range(7)}), 3)
    with pytest.raises(ValueError, match=r"'note4'.* and 2 more; leave them out"):
        EBClassifier().fit(more, y)


@pytest.mark.usefixtures("one_thread")
def test_masked_values_are_missing(references: Any) -> None:
    X, y = with_factors(2)
    where = np.zeros((N, P), bool)
    where[25, 120] = True
    masked = da.ma.masked_where(where, da.from_array(X, (20, 100)))
    whole = da.ma.masked_where(where, da.from_array(X.astype(int), (20, 100)))
    for lazy, values in ((masked, X), (whole, X.astype(int))):
        gap = np.where(where, np.nan, values)
        assert_same_fit(EBClassifier().fit(lazy, y), EBClassifier().fit(gap, y))
    got = references[2].predict_proba(masked).compute()
    want = references[2].predict_proba(np.where(where, np.nan, X))
    np.testing.assert_allclose(got, want, rtol=1e-7)
    none = da.ma.masked_greater(da.from_array(X, (20, 100)), 1e9)
    assert_same_fit(EBClassifier().fit(none, y), references[2])


class Coordinates:
    """As an array of the package "sparse", which need not be there."""

    ndim, shape, dtype = 2, (1, 1), np.dtype(float)

    def to_scipy_sparse(self) -> Any:
        return sparse.coo_array(np.eye(2))


def test_sparse_chunks_that_are_not_of_scipy() -> None:
    values = pieces.as_values(Coordinates())
    assert values.format == "csr"
    np.testing.assert_array_equal(values.toarray(), np.eye(2))


@pytest.mark.usefixtures("one_thread")
def test_batches_of_dask_arrays_are_summed_but_not_kept() -> None:
    X, y = with_factors(2)
    batches = [(da.from_array(X[a], (9, 100)), y[a]) for a in (slice(20), slice(20, N))]
    model = IndependenceRule()
    for batch, labels in batches:
        model.partial_fit(batch, labels, classes=["ctrl", "mild"])
    want = IndependenceRule().fit(X, y)
    np.testing.assert_allclose(model.coef_, want.coef_, atol=TOLERANCE)
    with pytest.raises(ValueError, match="partial_fit cannot keep the samples"):
        EBClassifier().partial_fit(*batches[0], classes=["ctrl", "mild"])
    model = EBClassifier().partial_fit(X[:20], y[:20], classes=["ctrl", "mild"])
    with pytest.raises(ValueError, match="partial_fit cannot keep the samples"):
        model.partial_fit(*batches[1])
    assert model.n_seen_ == 20


def test_samples_may_take_up_a_quarter_of_the_free_memory() -> None:
    class Cluster:
        status = "running"

        def __init__(self, *limits: int, used: int = 200) -> None:
            self.limits, self.used = limits, used

        def scheduler_info(self, n_workers: int) -> Any:
            assert n_workers == -1  # all of them, not the first five
            found = [
                {"memory_limit": limit, "metrics": {"memory": self.used}}
                for limit in self.limits
            ]
            return {"workers": dict(enumerate(found))}

    def budget(*limits: int, used: int = 200) -> float:
        return running.Runner(Cluster(*limits, used=used)).budget()

    assert budget(2**30 + 200, 2**32 + 200) == 5 * 2**28
    assert budget(100, 100) == sizes.least_cluster_bytes
    with override(least_cluster_bytes=0):
        assert budget(1000) == 200
        assert budget(1000, used=2000) == 0
        assert budget(0) == sizes.local_bytes  # no limit
        assert budget(0, 1000) == sizes.local_bytes + 200


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ValueError, match="Dask array has 1 dimension;"):
        EBClassifier().fit(da.ones(5, chunks=2), np.arange(5) % 2)
    assert open_dask(delayed(3)) is None
    assert as_data(delayed(3)) is None
