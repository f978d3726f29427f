"""Sharing the rows of a batch among threads; compiled code runs without Python's global lock."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

from montecristo_env.core.jit import INTERPRETED, bind

ALL_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""The cores that this process may use."""
PARTS_PER_THREAD = 4  # so that a thread that wakes late, or has a slow core, leaves more to the others
MOST_ROWS = 2**16  # in a part: Ctrl-C waits until the parts that have begun are done


def parallel_for(function: Callable[..., Any], *args: Any, size: int, threads: int, least: int = 1) -> list[Any]:
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
    parts = max(threads, min(threads * PARTS_PER_THREAD, size // least), size // MOST_ROWS)
    bounds = [size * part // parts for part in range(parts + 1)]
    call = bind(function, *args)
    results: list[Any] = [None] * parts
    left = iter(range(parts))
    with _interrupts_put_off() as interrupts:

        def work() -> None:
            for part in left:  # whoever is free takes the next one
                if interrupts:
                    return
                results[part] = call(bounds[part], bounds[part + 1])

        _pool(os.getpid(), threads).run(work)
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


class _Pool:
    """Threads that sleep until there is work; it takes less to wake them than those of `concurrent.futures`."""

    def __init__(self, threads: int) -> None:
        self._work: Callable[[], None] = lambda: None
        self._errors: list[BaseException] = []
        self._in_use = threading.Lock()
        self._wake, self._done = ([threading.Lock() for _ in range(threads - 1)] for _ in range(2))
        for wake, done in zip(self._wake, self._done, strict=True):
            wake.acquire()
            done.acquire()
            threading.Thread(target=self._help, args=(wake, done), name="montecristo", daemon=True).start()

    def run(self, work: Callable[[], None]) -> None:
        """Calls this in all threads at once, and in this one; nobody is at work when it returns or raises.

        If another thread uses the pool, only in this one.
        """
        if not self._in_use.acquire(blocking=False):
            work()
            return
        try:
            self._work = work
            for wake in self._wake:
                wake.release()
            try:
                work()
            finally:
                for done in self._done:
                    done.acquire()
                errors, self._errors = self._errors, []
            if errors:
                raise errors[0]
        finally:
            self._in_use.release()

    def _help(self, wake: threading.Lock, done: threading.Lock) -> None:
        while wake.acquire():
            try:
                self._work()
            except BaseException as error:
                self._errors.append(error)
            done.release()


@cache
def _pool(process: int, threads: int) -> _Pool:
    """The threads of this process; a forked child has none of its parent's and makes its own."""
    return _Pool(threads)
