"""Sharing the rows of a batch among threads; compiled code runs without Python's global lock."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from montecristo_env.core._jit import INTERPRETED

ALL_CORES = os.cpu_count() or 1
PARTS_PER_THREAD = 4  # so that a thread that wakes late, or has a slow core, leaves more to the others


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
