"""Blocks of features, and the threads that work on them.

Compiled loops and NumPy operations on large tiles release the interpreter's lock, so
that threads can work in parallel. Everything else is done by one thread, in blocks that
stay in the cache. Results do not depend on the number of threads: floating-point sums
are taken over blocks of a fixed size, and put together in order.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Condition, Lock, RLock, get_ident
from typing import Any, TypeVar

import scipy.linalg  # noqa: F401  # its BLAS is to be found too
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from ebda.jobs import jobs_run_by
from ebda.sizes import sizes

Result = TypeVar("Result")

# Sums of integers over more features than this might not fit in 64 bits.
_LONGEST_BLOCK = 1 << 26

_allowed: ContextVar[int] = ContextVar("threads", default=1)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work: to start them takes longer than a pass."""
    return ThreadPoolExecutor(threads, thread_name_prefix="ebda")


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes milliseconds; they stay where they are.
    return ThreadpoolController()


class _OneBlasThread:
    """The limit belongs to the process: the first in sets it, the last out lifts it.

    Were it set and reset by each for itself, threads that overlap would leave it wrong.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Nobody is inside."""
        self._lock = Lock()
        self._inside = 0
        self._limit: AbstractContextManager[object] = nullcontext()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Hold BLAS to one thread: several add in another order.

        >>> with one_blas_thread():
        ...     pass
        """
        lock = self._lock
        with lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _libraries().limit(limits=1, user_api="blas")
                self._limit.__enter__()
        try:
            yield
        finally:
            with lock:
                if lock is self._lock:  # else this process was forked off inside
                    self._inside -= 1
                    if not self._inside:
                        self._limit.__exit__(None, None, None)


one_blas_thread = _OneBlasThread()


class _NoFork:
    """Forks wait until no other thread is inside, and threads until a fork is over.

    A process cannot be forked while OpenBLAS multiplies with several threads: its
    handler, or the first product in the child, waits for ever. The same is true of the
    lock that the interpreter holds while a module is imported.
    """

    def __init__(self) -> None:
        self._inside: Counter[int] = Counter()
        self.begin()

    def begin(self) -> None:
        """No other thread is inside."""
        self._changed = Condition(RLock())
        self._inside = Counter({get_ident(): self._inside[get_ident()]})

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep other threads from forking: for milliseconds, such as one product.

        >>> with no_fork():
        ...     pass
        """
        me = get_ident()
        with self._changed:
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                self._inside += Counter()  # without the zeros
                self._changed.notify_all()

    def before(self) -> None:
        """Wait for the others, and let none begin."""
        self._changed.acquire()
        while self._inside.total() > self._inside[get_ident()]:
            self._changed.wait()

    def after(self) -> None:
        """Let the others go on."""
        self._changed.release()


no_fork = _NoFork()

# A process that was forked off has no other threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=no_fork.before,
        after_in_parent=no_fork.after,
        after_in_child=no_fork.begin,
    )
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=one_blas_thread.begin)


def available(n_jobs: int | None) -> int:
    """Threads that a pass may use.

    Those of `n_jobs`, as joblib counts, and no more than there are cores; for None all
    cores, unless a ``joblib.parallel_config``, ``OMP_NUM_THREADS`` or threadpoolctl
    says less, and one inside of somebody else's parallel loop.
    """
    backend, configured = get_active_backend()
    if n_jobs is not None or configured is not None:
        # The workers of a cluster are no threads of this machine.
        return min(int(effective_n_jobs(n_jobs)), max(1, int(cpu_count())))
    if getattr(backend, "nesting_level", 0):
        return 1
    # What OpenMP may use says what the user and threadpoolctl allow.
    limits = [
        library["num_threads"]
        for library in _libraries().select(user_api="openmp").info()
    ]
    return max(1, int(min([cpu_count(), *limits])))


@contextmanager
def allow_threads(n_jobs: int | None) -> Iterator[None]:
    """Let passes over the features use threads inside of this block.

    >>> with allow_threads(2):
    ...     over_blocks(lambda cols: cols.stop - cols.start, 5, 2, releases_lock=True)
    [2, 2, 1]
    """
    token = _allowed.set(available(n_jobs))
    try:
        yield
    finally:
        _allowed.reset(token)


def over_blocks(
    function: Callable[[slice], Result],
    size: int,
    block: int | None = None,
    releases_lock: bool = False,
) -> list[Result]:
    """Call a function for each block of ``range(size)``.

    Parameters
    ----------
    function : callable
        Takes a slice.
    size : int
        Where the last block ends.
    block : int, optional
        Length of a block; by default `sizes.block_features`, or two blocks for each
        thread where the function releases the lock.
    releases_lock : bool
        Whether the function mostly runs without the interpreter's lock, so that threads
        are worth it. A few NumPy operations on one block are over before the lock has
        changed hands: with two threads they took longer than with one.

    Returns
    -------
    list
        The results, in order.
    """
    threads = _allowed.get() if releases_lock else 1
    if block is None and releases_lock:
        # A thread that comes back for the interpreter's lock may wait long for it.
        share = max(sizes.threaded_features, -(-size // (2 * threads)))
        block = min(share, _LONGEST_BLOCK)
    step = block or sizes.block_features
    blocks = [slice(a, min(a + step, size)) for a in range(0, size, step)]
    threads = min(threads, len(blocks))
    if threads <= 1:
        return [function(cols) for cols in blocks]
    return _side_by_side(function, blocks, threads)


def _side_by_side(
    function: Callable[[slice], Result], blocks: list[slice], threads: int
) -> list[Result]:
    """Take one block after the other in several threads, until none is left.

    The calling thread takes part: a fit of 60 x 2,000,000 took 0.075 s so, and 0.079 s
    where it waited for the others.
    """
    left, lock = list(range(len(blocks)))[::-1], Lock()
    found: dict[int, Result] = {}
    failed: dict[int, BaseException] = {}

    def work() -> None:
        while not failed:
            with lock:
                if not left:
                    return
                place = left.pop()
            try:
                found[place] = function(blocks[place])
            except BaseException as error:
                failed[place] = error

    others = []
    for _ in range(threads - 1):
        try:
            others.append(_pool(threads - 1).submit(work))
        except RuntimeError:  # the interpreter is on its way out: no new ones
            break
    token = _allowed.set(1)  # what a block does is done by its thread
    try:
        work()
    finally:
        _allowed.reset(token)
        wait(others)
    if failed:
        raise failed[min(failed)]
    return [found[place] for place in range(len(blocks))]


def run_on_threads(
    function: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[Result]:
    """Call a function for each job, on threads: most of it runs without the GIL.

    Never on other processes, whatever the backend around a fit: all jobs share the
    samples, which may be as large as X. Nor does a cluster run the batches of a
    prior in them: these are small, and start at the prior of all samples.

    One limit of BLAS threads for all of them: it belongs to the process, and jobs
    that set and reset it by themselves would leave it wrong.

    Parameters
    ----------
    function : callable
        Does a job.
    jobs : iterable of tuple
        Its arguments.
    n_jobs : int, optional
        Number of threads, as joblib counts.

    >>> run_on_threads(pow, [(2, 3), (3, 2)], None)
    [8, 9]
    """
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem")
    with one_blas_thread(), jobs_run_by(None):
        return list(parallel(delayed(function)(*job) for job in jobs))
