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

ALL_CORES = os.cpu_count() or 1
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
        threads = min(threads, crew.MOST_THREADS)
        self._parts = min(threads * PARTS_PER_THREAD, crew.MOST_PARTS)
        self._job = crew.new_job()
        self._awake = self._job[crew.Word.AWAKE :]
        self._found = self._job[crew.Word.FOUND :][: self._parts]
        self._busy = threading.Lock()
        self._failures: list[BaseException] = []
        self._bells = {thread: threading.Lock() for thread in range(threads) if thread != crew.LEADER}
        bounds = [1 << self._parts * thread // threads for thread in range(threads + 1)]
        self._own = [after - before for before, after in pairwise(bounds)]  # a bit for each part
        for thread, bell in self._bells.items():
            bell.acquire()
            threading.Thread(target=self._help, args=(thread,), name="montecristo", daemon=True).start()

    def run(self, task: crew.Task, *args: Any) -> int | None:
        """Does a job (see `core.crew.post`) with the helpers.

        Returns: the least number that a part returned, NONE apart, or NONE; or None, with nothing done, if the crew is
        busy with the job of another thread.
        """
        if not self._busy.acquire(blocking=False):
            return None
        try:
            crew.post(self._job, int(task), self._parts, *args)
            try:
                for thread, bell in self._bells.items():
                    if not self._awake[thread]:
                        self._awake[thread] = 1
                        bell.release()
            finally:  # whatever happens here, the helpers must be through with the arrays
                while not crew.work(self._job, crew.LEADER, self._own[crew.LEADER], PATIENCE):
                    time.sleep(0)
                    if self._failures:
                        raise self._failures[0]
            return min((number for number in self._found.tolist() if number != NONE), default=NONE)
        except BaseException:
            call_crew.cache_clear()  # its job may never be over
            raise
        finally:
            self._busy.release()

    def _help(self, thread: int) -> None:
        try:
            while self._bells[thread].acquire():
                crew.work(self._job, thread, self._own[thread], PATIENCE)
        except BaseException as failure:
            self._failures.append(failure)


@cache
def call_crew(process: int, threads: int) -> Crew:
    """The crew of this process; a forked child has none of its parent's threads and makes its own."""
    return Crew(threads)
