"""Sharing the rows of a batch among threads: those of the library for entry points, Python's for all else."""

import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np

from montecristo_env.core import library
from montecristo_env.core.jit import INTERPRETED, Bound, address, bind

T = TypeVar("T")

ALL_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""The cores that this process may use."""
PARTS_PER_THREAD = 4  # so that a thread that wakes late, or has a slow core, leaves more to the others
_CALL = struct.Struct("=6q")


def parallel_for(function: Callable[..., Any], *args: Any, size: int, threads: int, least: int = 1) -> list[Any]:
    """Calls `function(*args, begin, end)` for parts of range(size); returns what each call returned, in order.

    Python hears of Ctrl-C afterwards.

    Args:
        function: an entry point, which works on its part alone, or what `bind` has made of one; any other function is
            called once.
        args: what every call gets.
        size: how many rows there are.
        threads: how many threads may share them.
        least: rows that are worth a thread.
    """
    threads = 1 if INTERPRETED else min(threads, size // least)
    bound = bind(function, *args) if args and threads > 1 else function
    if threads < 2 or not isinstance(bound, Bound):
        return [function(*args, 0, size)]
    parts = min(threads * PARTS_PER_THREAD, size)
    results = np.empty(parts, np.int64)
    words = bound.words
    call = _CALL.pack(threads, size, parts, address(results), bound.address, len(words) // 8)
    if _share_rows()(call + words):
        raise ValueError(f"{function} has too many arguments for threads")
    return [bound.result(found) for found in results.tolist()]


def parallel_map(function: Callable[[int], T], size: int) -> list[T]:
    """Calls a Python function for each of range(size), in threads; it should mostly run compiled code, or NumPy's."""
    if size < 2 or INTERPRETED:
        return [function(number) for number in range(size)]
    with ThreadPoolExecutor(min(size, ALL_CORES)) as pool:
        return list(pool.map(function, range(size)))


@cache
def _share_rows() -> Callable[[bytes], int]:
    return library.function("share_rows")
