"""Files through worker processes: all cores, results in order, bounded memory, safe to break off.

What is done with a file is a :class:`Work`, which goes to each process once. Files travel in small groups and results
come back in the order of the files, with only a few groups on the way, so that neither many files nor a slow reader of
the results make memory grow. Processes are spawned anew, since a fork of a process that draws a progress bar (a thread)
may hang.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from gstack.errors import GstackError

#: Up to so many bytes are replayed in this process: starting others takes longer.
SMALL = 16 << 20
#: A group of files has about so many bytes, and at most so many files.
_GROUP_BYTES, _GROUP_FILES = 4 << 20, 64
#: How many groups are on the way for each process.
_AHEAD = 3
#: How many groups may bring a process down before it isn't the files' fault.
_BROKEN = 8


class Job(NamedTuple):
    """One file, with its size in bytes and its mtime in ns."""

    path: str
    size: int
    mtime_ns: int


class Work(Protocol):
    """What is done with each file. It is pickled once for each process, before :meth:`open`."""

    def open(self) -> None:
        """Get ready, once a process. Raises GstackError, which ends everything."""

    def do(self, job: Job) -> Any:
        """The result of one file: small plain data."""

    def failed(self, job: Job, why: str) -> Any:
        """The result of a file whose :meth:`do` raised, or that brought its process down."""


def cores() -> int:
    """How many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def stream(jobs: Iterable[Job], work: Work, *, processes: int | None = None) -> Generator[tuple[Job, Any], None, None]:
    """Each job with its result, in the order of ``jobs``.

    ``processes`` is their number (None: all cores; 1: this process alone). Close the iterator to break off.
    """
    jobs = list(jobs)
    count = cores() if processes is None else processes
    if count < 2 or (processes is None and sum(job.size for job in jobs) < SMALL):
        work.open()
        for job in jobs:
            yield job, _guarded(work, job)
        return
    groups = list(_groups(jobs))
    done = broken = 0
    while done < len(groups):
        try:
            for group, results in _pooled(groups[done:], work, min(count, len(groups) - done)):
                done += 1
                yield from zip(group, results, strict=True)
        except BrokenProcessPool:
            broken += 1
            if broken > _BROKEN:
                raise GstackError("the processes that replay end again and again: is there enough memory?") from None
            # a file has brought its process down; which of the group it was, one by one tells
            yield from _one_by_one(groups[done], work)
            done += 1


def _groups(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    group: list[Job] = []
    size = 0
    for job in jobs:
        if group and (size + job.size > _GROUP_BYTES or len(group) >= _GROUP_FILES):
            yield group
            group, size = [], 0
        group.append(job)
        size += job.size
    if group:
        yield group


def _pooled(groups: Sequence[list[Job]], work: Work, count: int) -> Iterator[tuple[list[Job], list[Any]]]:
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _start, (work,))
    waiting: deque[tuple[list[Job], Future[list[Any]]]] = deque()
    left = iter(groups)
    try:
        while True:
            while len(waiting) < count * _AHEAD and (group := next(left, None)) is not None:
                with _interrupts_held():  # this may start a process
                    waiting.append((group, pool.submit(_group, group)))
            if not waiting:
                return
            group, future = waiting[0]
            results = future.result()
            waiting.popleft()
            yield group, results
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until afterwards, and never reaches a process that is started meanwhile: it inherits the mask. The
    terminal sends it to all, but only this process has something to say."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _one_by_one(group: Sequence[Job], work: Work) -> Iterator[tuple[Job, Any]]:
    for job in group:
        try:
            for _, results in _pooled([[job]], work, 1):
                yield job, results[0]
        except BrokenProcessPool:
            yield job, work.failed(job, f"{job.path}: the process that replayed it was ended (out of memory?)")


def _guarded(work: Work, job: Job) -> Any:
    try:
        return work.do(job)
    except Exception as error:
        what = " ".join(str(error).split())[:200]
        return work.failed(job, f"{job.path}: unexpected {type(error).__name__}: {what}")


# ---------------------------------------------------------------------------------------- in the process

_work: Work | None = None


def _start(work: Work) -> None:
    """Get a worker process ready. Ctrl-C is for the process that started it; this one then finishes its group."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where no mask is inherited
    work.open()
    _work = work


def _group(group: Sequence[Job]) -> list[Any]:
    assert _work is not None
    return [_guarded(_work, job) for job in group]
