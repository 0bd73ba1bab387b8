"""Independent jobs, run by joblib or by a cluster.

joblib runs them, with whatever backend is configured. While data on a cluster are
fitted, the workers of the cluster do (:mod:`ebda.data.dask`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

Item = TypeVar("Item")
Result = TypeVar("Result")
# Calls a function for each of several shares; returns the results in their order.
Run = Callable[[Callable[[list[Any]], list[Any]], list[list[Any]]], list[list[Any]]]

_cluster: ContextVar[Run | None] = ContextVar("cluster", default=None)


@contextmanager
def jobs_run_by(run: Run | None) -> Iterator[None]:
    """Let a cluster run the jobs inside this block.

    This does not extend to threads that are started inside the block: each of them is
    one of several jobs already.

    Parameters
    ----------
    run : callable or None
        Calls a function for each of several shares; None leaves the jobs to joblib.
    """
    token = _cluster.set(run)
    try:
        yield
    finally:
        _cluster.reset(token)


def one_at_a_time() -> AbstractContextManager[Any]:
    """Run jobs one after the other inside this block, whatever `n_jobs` is."""
    context: AbstractContextManager[Any] = parallel_config(backend="sequential")
    return context


def map_batches(
    function: Callable[[list[Item]], list[Result]],
    items: list[Item],
    n_jobs: int | None,
) -> list[Result]:
    """One result for each item, in their order.

    Parameters
    ----------
    function : callable
        From a share of the items to one result for each; the result for an item must
        not depend on the others.
    items : list
        A single item is done here: to send it would take longer.
    n_jobs : int, optional
        Number of shares, as joblib counts. On a cluster each item is a share.

    >>> map_batches(lambda share: [x * x for x in share], [1, 2, 3], None)
    [1, 4, 9]
    """
    if len(items) == 1:
        return function(items)
    run = _cluster.get()
    if run is not None:
        return [r for part in run(function, [[item] for item in items]) for r in part]
    workers = min(effective_n_jobs(n_jobs), len(items))
    parts = Parallel(n_jobs=n_jobs)(
        delayed(function)(items[i::workers]) for i in range(workers)
    )
    # Share i has items i, i + workers, ...
    return [parts[i % workers][i // workers] for i in range(len(items))]
