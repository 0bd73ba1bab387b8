"""Batches of a prior as tasks of a cluster, and how a fit uses threads beside Dask."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_task_stream

from ebda import EBClassifier, jobs
from ebda.baselines import IndependenceRule
from ebda.data.dask import running
from ebda.priors import DirichletProcess
from ebda.priors.dp import dirichlet_process

# A cluster takes seconds to start.
pytestmark = pytest.mark.slow

N, P, BATCHES = 40, 6000, 4
NAME = "distributed.admin.large-graph-warning-threshold"


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    codes = np.arange(N) % 2
    X = rng.normal(size=(N, P))
    X[:, :300] += codes[:, None] * rng.choice([-1.5, 1.5], 300)
    return X, np.array(["no", "yes"])[codes]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as local,
        Client(local) as client,
    ):
        yield client


def rule(**kwargs: Any) -> EBClassifier:
    prior = DirichletProcess(n_batches=BATCHES, random_state=3, **kwargs)
    return EBClassifier(prior, covariance="diagonal", shrinkage="mean")


def batches_in(stream: Any) -> list[dict[str, Any]]:
    return [entry for entry in stream.data if "_fit_batches" in str(entry["key"])]


@pytest.mark.parametrize("inference", ["converged", "paper"])
def test_batches_are_tasks_of_the_workers(
    cluster: Client, data: Any, inference: str
) -> None:
    X, y = data
    want = rule(inference=inference).fit(X, y)
    chunked = da.from_array(X, (20, 2000))
    with get_task_stream(cluster) as stream:
        got = rule(inference=inference).fit(chunked, y)
    found = batches_in(stream)
    assert len(found) == BATCHES
    workers = set(cluster.scheduler_info(n_workers=-1)["workers"])
    assert {entry["worker"] for entry in found} <= workers
    # The same bits, given the same z: those of the chunks differ in the last ones.
    again = rule(inference=inference).prior.fit(got.z_)
    np.testing.assert_array_equal(got.prior_.atoms, again.prior_.atoms)
    np.testing.assert_array_equal(got.prior_.weights, again.prior_.weights)
    np.testing.assert_allclose(got.prior_.atoms, want.prior_.atoms, atol=1e-10)
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=0, atol=1e-10)
    estimator = got.prior_estimator_
    assert len(estimator.batches_) == BATCHES
    assert estimator.n_iter_ == want.prior_estimator_.n_iter_


def test_what_is_sent_are_cells(
    cluster: Client, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    call = running.Runner.call

    def weigh(self: Any, function: Any, shares: Any) -> Any:
        sent.extend(len(share[0].value) for share in shares)
        return call(self, function, shares)

    monkeypatch.setattr(running.Runner, "call", weigh)
    X, y = data
    wide = np.tile(X, 4) + np.random.default_rng(1).normal(size=(N, 4 * P))
    rule().fit(da.from_array(wide, (N, P)), y)
    assert len(sent) == BATCHES
    assert max(sent) < 4 * P / BATCHES / 5  # 6,000 values each


def test_one_batch_stays_here(cluster: Client, data: Any) -> None:
    X, y = data
    with get_task_stream(cluster) as stream:
        EBClassifier(covariance="diagonal").fit(da.from_array(X, (N, 2000)), y)
        with joblib.parallel_backend("dask"):
            DirichletProcess().fit(X[0])
    assert stream.data
    assert not batches_in(stream)
    assert not [entry for entry in stream.data if "batch_of" in str(entry["key"])]


def test_batches_of_the_client_that_was_there_first(cluster: Client, data: Any) -> None:
    """Not of whichever client is the default by then."""
    X, y = data
    with (
        get_task_stream(cluster) as stream,
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as other,
        Client(other, set_as_default=True),
        dask.config.set(scheduler=cluster),
    ):
        got = rule().fit(da.from_array(X, (N, 2000)), y)
    assert len(batches_in(stream)) == BATCHES
    np.testing.assert_allclose(got.coef_, rule().fit(X, y).coef_, rtol=0, atol=1e-10)


def install_killer(marker: str) -> None:
    """On a worker: its first batch kills it."""
    iteration = dirichlet_process.INFERENCES["converged"]

    def kill_once(*args: Any) -> Any:
        if not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return iteration[1](*args)

    dirichlet_process.INFERENCES["converged"] = (
        iteration[0],
        kill_once,
        *iteration[2:],
    )


def test_a_worker_that_is_killed_at_a_batch(
    cluster: Client, data: Any, tmp_path: Path
) -> None:
    X, y = data
    before = set(cluster.run(os.getpid).values())
    cluster.run(install_killer, str(tmp_path / "killed"))
    got = rule().fit(da.from_array(X, (20, 2000)), y)
    assert (tmp_path / "killed").exists()
    np.testing.assert_allclose(got.coef_, rule().fit(X, y).coef_, rtol=0, atol=1e-10)
    cluster.wait_for_workers(2, timeout=30)
    assert set(cluster.run(os.getpid).values()) != before


def test_a_scheduler_that_goes_away_at_a_batch(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    address = tmp_path / "scheduler.json"
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    }
    command = [sys.executable, "-m", "dask"]
    where = ["--no-dashboard", "--scheduler-file", str(address)]
    processes = [
        subprocess.Popen([*command, "scheduler", "--port", "0", *where], **quiet),
        subprocess.Popen([*command, "worker", "--no-nanny", *where], **quiet),
    ]
    call = running.Runner.call

    def without_scheduler(self: Any, *args: Any) -> Any:
        processes[0].kill()
        return call(self, *args)

    monkeypatch.setattr(running.Runner, "call", without_scheduler)
    try:
        with Client(scheduler_file=str(address), timeout="60s") as client:
            client.wait_for_workers(1, timeout=60)
            with pytest.raises(ConnectionError, match="went away during the fit"):
                rule().fit(da.from_array(X, (20, 2000)), y)
    finally:
        for process in processes:
            process.kill()
            process.wait()


class Watched(DirichletProcess):
    """A prior that tells which threads it is fitted on, in the folds too."""

    threads: ClassVar[list[int]] = []

    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.threads.append(threading.get_ident())
        return super().fit(z, scale)


def test_the_synchronous_scheduler_stands_for_one_thread(data: Any) -> None:
    X, y = data
    seen: set[int] = set()

    def load(block: Any) -> Any:
        seen.add(threading.get_ident())
        return block

    X = X[:, :200]
    Watched.threads.clear()
    lazy = da.from_array(X, (20, 50)).map_blocks(load, meta=np.empty((0, 0)))
    want = EBClassifier().fit(X, y)
    with dask.config.set(scheduler="synchronous"):
        assert running.Runner.current().synchronous
        with running.Runner.current().job_context():
            assert joblib.effective_n_jobs(2) == 1
        got = EBClassifier(prior=Watched(), n_jobs=2).fit(lazy, y)
    assert seen | set(Watched.threads) == {threading.get_ident()}
    assert len(Watched.threads) > got.selection_.n_folds > 1
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=0, atol=1e-10)
    assert joblib.effective_n_jobs(2) == 2


def test_steps_in_several_threads_leave_the_settings_as_they_were(data: Any) -> None:
    before = dask.config.get(NAME)
    runner = running.Runner(None)
    inside: list[str] = []

    def step(k: int) -> None:
        with runner.ready():
            time.sleep(0.01 * (k % 3))
            inside.append(dask.config.get(NAME))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(step, range(20)))
    assert set(inside) == {"1 TB"}
    assert dask.config.get(NAME) == before
    with pytest.raises(KeyError), runner.ready():
        raise KeyError
    assert dask.config.get(NAME) == before


def test_shares_come_back_in_order() -> None:
    items = list(range(7))

    def squares(share: list[int]) -> list[int]:
        return [k * k for k in share]

    want = [k * k for k in items]
    for n_jobs in (None, 2, 3, 20):
        with joblib.parallel_config(backend="threading"):
            assert jobs.map_batches(squares, items, n_jobs) == want
    shares_seen: list[list[int]] = []

    def run(function: Any, shares: list[list[int]]) -> Any:
        shares_seen.extend(shares)
        return [function(share) for share in shares]

    with jobs.jobs_run_by(run):
        assert jobs.map_batches(squares, items, 2) == want
        assert jobs.map_batches(squares, [5], 2) == [25]
        with jobs.jobs_run_by(None):
            assert jobs.map_batches(squares, items, 2) == want
    assert shares_seen == [[k] for k in items]
    assert jobs.map_batches(squares, items, None) == want
    assert len(shares_seen) == len(items)


def test_partial_fit_uses_the_cluster_too(cluster: Client, data: Any) -> None:
    X, y = data
    chunked, classes = da.from_array(X, (20, 2000)), ["no", "yes"]
    with pytest.raises(ValueError, match="with calibrate=False, which need none"):
        rule().partial_fit(chunked, y, classes)
    plain = rule().set_params(calibrate=False)
    with get_task_stream(cluster) as stream:
        got = plain.partial_fit(chunked, y, classes)
    assert len(batches_in(stream)) == BATCHES
    want = rule().set_params(calibrate=False).fit(X, y)
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=0, atol=1e-10)
    # A rule without a prior has no jobs at all.
    with get_task_stream(cluster) as stream:
        IndependenceRule().fit(da.from_array(X, (20, 2000)), y)
    assert not batches_in(stream)
