"""Running graphs, adding up their results in trees, and saying so when that fails."""

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

# Results that are added up by one task.
_FAN_IN = 8
# Share of the free memory of the workers, and bytes of a local scheduler, that rows
# may take up between steps; and bytes that they may take up in any case.
_SHARE, _LOCAL, _LEAST = 0.25, 1 << 28, 1 << 26


@dataclass(frozen=True)
class Runner:
    """The scheduler that Dask had when a fit began, for all of that fit.

    Where the connection to a cluster is lost Dask would go on in this process, and
    bring X into its memory: the client is held on to instead.

    Parameters
    ----------
    client : distributed.Client, optional
        None for the schedulers of Dask itself.
    synchronous : bool
        Whether it is the one without threads.
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
        """The same tasks with results that stay where they are made."""
        with self.ready():
            return list(dask.persist(*tasks, **self._where))

    def call(
        self, function: Callable[[list[Any]], list[Any]], shares: list[list[Any]]
    ) -> list[list[Any]]:
        """A function of each share, as a task of its own."""
        task = delayed(function, pure=False)
        return self.run([task(delayed(share, traverse=False)) for share in shares])

    def job_context(self) -> AbstractContextManager[Any]:
        """Inside of this block jobs run on the cluster, if there is one.

        Of a local scheduler joblib knows as much as Dask. The synchronous one stands
        for a single thread: two of them, each running graphs by itself, wait for the
        interpreter's lock most of the time.
        """
        if self.client is not None:
            return jobs_run_by(self.call)
        return one_at_a_time() if self.synchronous else nullcontext()

    def budget(self) -> float:
        """Bytes that may be held between steps, over all workers."""
        if self.client is None:
            return _LOCAL
        with self.ready():
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(sum(map(_spare, workers)), _LEAST)

    @property
    def _where(self) -> dict[str, Any]:
        return {} if self.client is None else {"scheduler": self.client}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Turn what is raised when the scheduler is lost into one clear error."""
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
    """Lets Dask not warn of large graphs, while any thread is inside.

    The vectors that a step needs travel with its graph: tasks of a worker that was
    lost can then be run again by any other. Dask's configuration belongs to the
    process: threads that set and reset it each for itself would leave it wrong.
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
    """Bytes that a worker may hold; one without a limit says 0 or None."""
    limit = worker["memory_limit"]
    if not limit:
        return _LOCAL
    return _SHARE * float(max(limit - worker["metrics"]["memory"], 0))


def tree(function: Callable[[list[Any]], Any], parts: list[Delayed]) -> Delayed:
    """One task whose result is that of all parts, added up in their order.

    >>> tree(sum, [delayed(k) for k in range(100)]).compute(scheduler="synchronous")
    4950
    """
    node = delayed(function, pure=False)
    while len(parts) > 1:
        parts = [node(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]
