"""Sharing the rows of a batch among threads; compiled code runs without Python's global lock."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from montecristo_env.core._jit import INTERPRETED

ALL_CORES = os.cpu_count() or 1


def share(function: Callable[..., Any], *args: Any, size: int, threads: int, least: int = 1) -> list[Any]:
    """Calls `function(*args, begin, end)` for parts of range(size); returns what each call returned, in order.

    Args:
        function: an entry point, which works on its part alone.
        args: what every call gets.
        size: how many rows there are.
        threads: how many threads may share them.
        least: rows that are worth a thread: waking one takes 0.1 ms or more.
    """
    parts = 1 if INTERPRETED else max(1, min(threads, size // least))
    if parts == 1:
        return [function(*args, 0, size)]
    bounds = [size * part // parts for part in range(parts + 1)]
    pool = _pool(os.getpid(), threads)
    others = [pool.submit(function, *args, *bounds[part : part + 2]) for part in range(1, parts)]
    return [function(*args, *bounds[:2]), *(other.result() for other in others)]


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has none of its parent's and makes its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="montecristo")
