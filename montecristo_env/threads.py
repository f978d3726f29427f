"""Sharing the rows of a batch among threads; compiled code runs without Python's global lock."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from montecristo_env.core import crew
from montecristo_env.core._jit import INTERPRETED
from montecristo_env.core.constants import NONE

ALL_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""The cores that this process may use."""
PARTS_PER_THREAD = 4  # so that a thread that wakes late, or has a slow core, leaves more to the others
PATIENCE = 4000  # looks for more work, which take about 0.1 ms


def share(function: Callable[..., Any], *args: Any, size: int, threads: int, least: int = 1) -> list[Any]:
    """Calls `function(*args, begin, end)` for parts of range(size); returns what each call returned, in order.

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
    parts = min(threads * PARTS_PER_THREAD, size)
    bounds = [size * part // parts for part in range(parts + 1)]
    results: list[Any] = [None] * parts
    left = iter(range(parts))

    def work() -> None:
        for part in left:  # whoever is free takes the next one
            results[part] = function(*args, bounds[part], bounds[part + 1])

    pool = _pool(os.getpid(), threads)
    others = [pool.submit(work) for _ in range(threads - 1)]
    work()
    for other in others:
        if not other.cancel():  # it has begun
            other.result()
    return results


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
        self._own = [after - before for before, after in pairwise(bounds)]  # a bit for each part
        self._job = crew.new_job(parts, threads)
        self._awake = self._job[crew.Word.AWAKE :]
        self._busy = threading.Lock()
        self._failures: list[BaseException] = []
        self._bells = {thread: threading.Lock() for thread in range(threads) if thread != crew.LEADER}
        for thread, bell in self._bells.items():
            bell.acquire()
            threading.Thread(target=self._help, args=(thread,), name="montecristo", daemon=True).start()

    def run(self, task: crew.Task, *args: Any) -> int | None:
        """Does a job (see `core.crew.work`) with the helpers.

        Returns: what the first part that has found something has found, or NONE; or None, with nothing done, if the
        crew is busy with the job of another thread.
        """
        if not self._busy.acquire(blocking=False):
            return None
        try:
            found = crew.work(self._job, crew.LEADER, self._own[crew.LEADER], PATIENCE, int(task), *args)
            return found if found >= NONE else self._finish(found)
        except BaseException:
            if not self._failures:  # Ctrl-C: the helpers must be through with the arrays
                self._finish(crew.ASLEEP)
            call_crew.cache_clear()  # the job of a helper who has failed is never over
            raise
        finally:
            self._busy.release()

    def _finish(self, found: int) -> int:
        """Wakes who sleeps, and goes on until the job is done."""
        while found < NONE:
            if found == crew.ASLEEP:
                for thread, bell in self._bells.items():
                    if not self._awake[thread]:
                        self._awake[thread] = 1
                        bell.release()
            elif self._failures:
                raise self._failures[0]
            else:
                time.sleep(0)
            found = crew.work(self._job, crew.LEADER, self._own[crew.LEADER], PATIENCE, *crew.NOTHING_NEW)
        return found

    def _help(self, thread: int) -> None:
        try:
            while self._bells[thread].acquire():
                crew.work(self._job, thread, self._own[thread], PATIENCE, *crew.NOTHING_NEW)
        except BaseException as failure:
            self._failures.append(failure)


@cache
def call_crew(process: int, threads: int) -> Crew:
    """The crew of this process; a forked child has none of its parent's threads and makes its own."""
    return Crew(threads)
