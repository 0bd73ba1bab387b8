"""Running the tasks of a fit on the scheduler of Dask, or on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed
from dask.local import get_sync

from ebda.jobs import jobs_run_by, one_at_a_time
from ebda.sizes import sizes

# Results that one task of a tree adds up.
_FAN_IN = 8
# Share of the free memory of the workers that samples may take up between steps.
_SHARE = 0.25


@dataclass(frozen=True)
class Runner:
    """The scheduler that Dask had at the start of a fit, for the whole fit.

    When Dask loses the connection to a cluster it falls back to a local scheduler,
    which would load X into the memory of this process. So the client is given
    explicitly each time.

    Parameters
    ----------
    client : distributed.Client, optional
        Client of a cluster; None for a local scheduler.
    synchronous : bool
        Whether the local scheduler is the one without threads.
    """

    client: Any | None
    synchronous: bool = False

    @classmethod
    def current(cls) -> Runner:
        """The scheduler that ``dask.compute`` would use now."""
        get = get_scheduler()
        owner = getattr(get, "__self__", None)
        client = owner if hasattr(owner, "scheduler_info") else None
        return cls(client, get is get_sync)

    def run(self, tasks: list[Delayed]) -> list[Any]:
        """Results of these tasks."""
        with self.ready():
            return list(dask.compute(*tasks, **self._where))

    def persist(self, tasks: list[Delayed]) -> list[Delayed]:
        """The same tasks, started; their results stay on the workers."""
        with self.ready():
            return list(dask.persist(*tasks, **self._where))

    def call(
        self, function: Callable[[list[Any]], list[Any]], shares: list[list[Any]]
    ) -> list[list[Any]]:
        """A function of each share, one task per share."""
        task = delayed(function, pure=False)
        return self.run([task(delayed(share, traverse=False)) for share in shares])

    def job_context(self) -> AbstractContextManager[Any]:
        """Inside this block, jobs run on the cluster, if there is one.

        Beside a local scheduler, joblib runs them as usual. With the synchronous one
        they run one after the other: two threads that both run graphs would spend
        most of their time waiting for the interpreter's lock.
        """
        if self.client is not None:
            return jobs_run_by(self.call)
        return one_at_a_time() if self.synchronous else nullcontext()

    def budget(self) -> float:
        """Bytes that samples may take up between steps, on all workers together."""
        if self.client is None:
            return sizes.local_bytes
        with self.ready():
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(sum(map(_spare, workers)), sizes.least_cluster_bytes)

    @property
    def _where(self) -> dict[str, Any]:
        return {} if self.client is None else {"scheduler": self.client}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Raise a ConnectionError if the scheduler is lost inside this block."""
        try:
            with _large_graphs:
                yield
        except Exception as error:
            if self.client is None or not self._is_lost(error):
                raise
            raise ConnectionError(
                f"the Dask scheduler at {self._address} went away during the fit; "
                "connect to a running one and fit again"
            ) from error

    @property
    def _address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return getattr(scheduler, "address", "an address that is no longer known")

    def _is_lost(self, error: Exception) -> bool:
        from distributed.comm import CommClosedError

        lost = isinstance(error, CommClosedError | CancelledError)
        return lost or getattr(self.client, "status", "") != "running"


class _LargeGraphs:
    """Turns off Dask's warning about large graphs, while any thread is inside.

    The vectors that a step needs are sent with its graph, so that tasks of a worker
    that was lost can be run by any other. Dask's configuration belongs to the process:
    if each thread set and reset it by itself, the last one could leave it wrong.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.setting: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                name = "distributed.admin.large-graph-warning-threshold"
                self.setting = dask.config.set({name: "1 TB"})
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.setting.__exit__(None, None, None)


_large_graphs = _LargeGraphs()


def _spare(worker: dict[str, Any]) -> float:
    """Bytes that samples may take up on a worker; 0 or None means no limit."""
    limit = worker["memory_limit"]
    if not limit:
        return sizes.local_bytes
    return _SHARE * float(max(limit - worker["metrics"]["memory"], 0))


def tree(function: Callable[[list[Any]], Any], parts: list[Delayed]) -> Delayed:
    """One task that adds up all parts, in their order, over tasks of some of them.

    >>> tree(sum, [delayed(k) for k in range(100)]).compute(scheduler="synchronous")
    4950
    """
    node = delayed(function, pure=False)
    while len(parts) > 1:
        parts = [node(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]
