"""Jobs that know nothing of each other: where they are run.

joblib runs them, in this process or as its backend has it. While data on a cluster is
fitted, its workers do (:mod:`ebda.data.dask`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

Item = TypeVar("Item")
Result = TypeVar("Result")
# Calls a function for each of some shares; results in their order.
Run = Callable[[Callable[[list[Any]], list[Any]], list[list[Any]]], list[list[Any]]]

_elsewhere: ContextVar[Run | None] = ContextVar("elsewhere", default=None)


@contextmanager
def jobs_run_by(run: Run) -> Iterator[None]:
    """Have jobs run elsewhere inside of this block.

    Threads that are started inside of it know nothing of that: what is one job of many
    already runs where it is.
    """
    token = _elsewhere.set(run)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def one_at_a_time() -> AbstractContextManager[Any]:
    """Have jobs run one after the other inside of this block, whatever `n_jobs` is."""
    context: AbstractContextManager[Any] = parallel_config(backend="sequential")
    return context


def map_batches(
    function: Callable[[list[Item]], list[Result]],
    items: list[Item],
    n_jobs: int | None,
) -> list[Result]:
    """A result for each item, in their order.

    Parameters
    ----------
    function : callable
        From a share of the items to a result for each; what it returns for an item
        must not depend on the others.
    items : list
        A single one is done here: to send it would take longer.
    n_jobs : int, optional
        Shares at a time, as joblib counts. A cluster gets each item by itself.

    >>> map_batches(lambda share: [x * x for x in share], [1, 2, 3], None)
    [1, 4, 9]
    """
    if len(items) == 1:
        return function(items)
    run = _elsewhere.get()
    if run is not None:
        return [r for part in run(function, [[item] for item in items]) for r in part]
    workers = min(effective_n_jobs(n_jobs), len(items))
    parts = Parallel(n_jobs=n_jobs)(
        delayed(function)(items[i::workers]) for i in range(workers)
    )
    # Shares were dealt out in turn; the results go back into the order of the items.
    return [parts[i % workers][i // workers] for i in range(len(items))]
