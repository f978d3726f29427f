"""Sharing the rows of a batch among threads; compiled code runs without Python's global lock."""

import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from types import FrameType
from typing import Any

import numpy as np

from montecristo_env.core import crew
from montecristo_env.core._jit import INTERPRETED

ALL_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""The cores that this process may use."""
PARTS_PER_THREAD = 4  # so that a thread that wakes late, or has a slow core, leaves more to the others
MOST_ROWS = 2**16  # in a part: Ctrl-C waits until the parts that have begun are done
PATIENCE = 4000  # looks for more work, which take about 0.1 ms


def share(function: Callable[..., Any], *args: Any, size: int, threads: int, least: int = 1) -> list[Any]:
    """Calls `function(*args, begin, end)` for parts of range(size); returns what each call returned, in order.

    When it returns or raises, nobody works on the rows any more. Ctrl-C lets no new part begin.

    Args:
        function: an entry point, which works on its part alone.
        args: what every call gets.
        size: how many rows there are.
        threads: how many threads may share them.
        least: rows that are worth a thread: waking one takes 0.1 ms or more.
    """
    threads = 1 if INTERPRETED else min(threads, size // least)
    if threads < 2:
        return [function(*args, 0, size)]
    parts = min(max(threads * PARTS_PER_THREAD, size // MOST_ROWS), size)
    bounds = [size * part // parts for part in range(parts + 1)]
    results: list[Any] = [None] * parts
    left = iter(range(parts))
    others: list[Future[None]] = []
    with _interrupts_put_off() as interrupts:

        def work() -> None:
            for part in left:  # whoever is free takes the next one
                if interrupts:
                    return
                results[part] = function(*args, bounds[part], bounds[part + 1])

        try:
            pool = _pool(os.getpid(), threads)
            for _ in range(threads - 1):
                others.append(pool.submit(work))
            work()
        finally:
            begun = [other for other in others if not other.cancel()]
            wait(begun)
    for other in begun:
        other.result()
    return results


@contextmanager
def _interrupts_put_off() -> Iterator[list[FrameType | None]]:
    """Ctrl-C interrupts at the end of the block, not in it; the list is not empty if one waits for that.

    Otherwise it could come at any place, and again where the first is seen to.
    """
    waiting: list[FrameType | None] = []
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield waiting  # only the main thread is ever interrupted
        return
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(frame))
    try:
        yield waiting
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            handler(signal.SIGINT, waiting[0])


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has none of its parent's and makes its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="montecristo")


class Crew:
    """Helpers for short jobs, which they wait for a moment in compiled code before they sleep (see `core.crew`)."""

    def __init__(self, threads: int) -> None:
        crew.compile_all()
        threads = min(threads, crew.MOST_THREADS)
        parts = min(threads * PARTS_PER_THREAD, crew.MOST_PARTS)
        bounds = [1 << parts * thread // threads for thread in range(threads + 1)]
        self._own, *others = [after - before for before, after in pairwise(bounds)]  # a bit for each part
        self._job = crew.new_job(parts)
        self._bells = {thread: threading.Lock() for thread in range(crew.LEADER + 1, threads)}
        weakref.finalize(self, _dismiss, self._job, self._bells).atexit = False
        for (thread, bell), own in zip(self._bells.items(), others, strict=True):
            bell.acquire()
            helper = threading.Thread(
                target=_help, args=(self._job, thread, own, bell), name="montecristo", daemon=True
            )
            helper.start()

    def run(self, task: crew.Task, *args: Any) -> int | None:
        """Does a job (see `core.crew.work`) with the helpers; nobody works on its arrays when it returns or raises.

        Returns: what the first part that has found something has found, or NONE; or None, with nothing done, if the
        crew is busy with the job of another thread.
        """
        for thread, bell in self._bells.items():
            if not self._job[crew.Word.AWAKE + thread]:
                _ring(bell)
        found = crew.work(self._job, crew.LEADER, self._own, PATIENCE, int(task), *args)
        if found == crew.BROKEN:  # only where every array index is checked can a helper fail in the middle of a part
            call_crew.cache_clear()
            raise RuntimeError("a helper thread has failed; its own error says why")
        return None if found == crew.BUSY else found


def _help(job: np.ndarray, thread: int, own: int, bell: threading.Lock) -> None:
    """The life of a helper, which does not keep its crew alive."""
    try:
        while bell.acquire() and not job[crew.Word.DISMISSED]:
            crew.work(job, thread, own, PATIENCE, *crew.NOTHING_NEW)
    finally:
        job[crew.Word.DISMISSED] = 1


def _dismiss(job: np.ndarray, bells: dict[int, threading.Lock]) -> None:
    job[crew.Word.DISMISSED] = 1
    for bell in bells.values():
        _ring(bell)


def _ring(bell: threading.Lock) -> None:
    with suppress(RuntimeError):  # it has been rung, but the helper has not come yet
        bell.release()


@cache
def call_crew(process: int, threads: int) -> Crew:
    """The crew of this process; a forked child has none of its parent's threads and makes its own."""
    return Crew(threads)
