"""Running graphs, adding up their results in trees, and saying so when that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed

# Results that are added up by one task.
_FAN_IN = 8
# Share of the free memory of the workers, and bytes of a local scheduler, that rows
# may take up between steps.
_SHARE, _LOCAL = 0.25, 1 << 28


@dataclass(frozen=True)
class Runner:
    """The scheduler that Dask had when a fit began, for all of that fit.

    Where the connection to a cluster is lost Dask would go on in this process, and
    bring X into its memory: the client is held on to instead.

    Parameters
    ----------
    client : distributed.Client, optional
        None for the schedulers of Dask itself.
    """

    client: Any | None

    @classmethod
    def current(cls) -> Runner:
        """The scheduler that ``dask.compute`` would use now."""
        owner = getattr(get_scheduler(), "__self__", None)
        return cls(owner if hasattr(owner, "scheduler_info") else None)

    def run(self, tasks: list[Delayed]) -> list[Any]:
        """Results of these tasks."""
        with self._ready():
            return list(dask.compute(*tasks, **self._where))

    def persist(self, tasks: list[Delayed]) -> list[Delayed]:
        """The same tasks with results that stay where they are made."""
        with self._ready():
            return list(dask.persist(*tasks, **self._where))

    def budget(self) -> float:
        """Bytes that may be held between steps, over all workers."""
        if self.client is None:
            return _LOCAL
        with self._ready():
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(map(_spare, workers))

    @property
    def _where(self) -> dict[str, Any]:
        return {} if self.client is None else {"scheduler": self.client}

    @contextmanager
    def _ready(self) -> Iterator[None]:
        # The vectors that a step needs travel with its graph: tasks of a worker that
        # was lost can then be run again by any other.
        quiet = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
        try:
            with dask.config.set(quiet):
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
