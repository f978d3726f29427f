"""Rows shared with helpers: threads that wait for work without Python's global lock, ready within a microsecond.

There is one job at a time. The leader posts it, and everybody takes parts of it until none is left: first his own, the
same in every job, because his processor's cache holds those rows, and after a while those of others who are late. The
ticket says in one word which job it is and which parts are left, so that nobody can take a part of a job that is over.

A job is one compiled call for its leader, which ends when everybody is through with the arrays: no exception in Python,
such as that of Ctrl-C, can come in between.
"""

from enum import IntEnum
from typing import Any

import numpy as np

from montecristo_env.core._jit import (
    Library,
    add_shared,
    array_at,
    kernel,
    load_shared,
    relax,
    store_shared,
    swap_shared,
)
from montecristo_env.core.actions import COUNT
from montecristo_env.core.batch import first_illegal, play_random, sample_actions, step_games
from montecristo_env.core.constants import MAX_PLAYERS, NONE
from montecristo_env.core.layout import STATE, States, aligned_zeros
from montecristo_env.core.observation import SIZE

LEADER = 0  # helpers have the numbers from 1
BUSY, BROKEN = -2, -3  # instead of what was found: another leader's job is not over; this one will never be
MOST_PARTS = MOST_THREADS = 32
_GRACE = 300  # looks before somebody else's part is taken: about 10 microseconds
_NEXT_JOB = 1 << MOST_PARTS  # in a ticket; below that are the parts that are left, one bit each

library = Library("the rules for several threads")  # which hold most of the rules again: not everybody needs them


class Task(IntEnum):
    """What is to be done with the rows."""

    STEP = 0  # first look for illegal actions in all rows, then, if there is none, PLAY
    PLAY = 1
    SAMPLE = 2
    PLAY_RANDOM = 3


class Word(IntEnum):
    """A job is an array of these; addresses are those of arrays that the leader keeps."""

    TICKET = 0
    DONE = 8  # parts that are finished; on a cache line of its own, as the ticket is
    PARTS = 16
    TASK = 17
    STATES = 18
    NUM_STATES = 19
    ROWS = 20
    NUM_ROWS = 21
    ACTIONS = 22
    STEPS = 23
    SEATS = 24
    NUM_SEATS = 25
    REWARDS = 26
    REWARD = 27
    ENDINGS = 28
    RESTART = 29
    COUNTS = 30
    NUM_COUNTS = 31
    SHARES = 32
    NUM_SHARES = 33
    MASKS = 34
    NUM_MASKS = 35
    SAMPLES = 36
    NUM_SAMPLES = 37
    BUSY = 38  # whether there is a leader
    DISMISSED = 39  # whether helpers shall go
    AWAKE = 40  # whether each helper waits for work; else the leader should wake it
    FOUND = AWAKE + MOST_THREADS  # what each part returned
    LENGTH = FOUND + MOST_PARTS


@kernel
def _open(job: np.ndarray) -> None:
    store_shared(job, Word.DONE, 0)
    store_shared(job, Word.TICKET, load_shared(job, Word.TICKET) + _NEXT_JOB + (1 << job[Word.PARTS]) - 1)


@library.entry_point
def work(
    job: np.ndarray,
    thread: int,
    own: int,
    patience: int,
    task: int,
    states: States,
    rows: np.ndarray,
    actions: np.ndarray,
    steps: int,
    seats: np.ndarray,
    rewards: np.ndarray,
    reward: int,
    endings: np.ndarray,
    restart: bool,
    samples: np.ndarray,
    counts: np.ndarray,
    shares: np.ndarray,
    masks: np.ndarray,
) -> int:
    """The leader posts a job and does parts of it until it is over; a helper, until there was none for so many looks.

    Returns what a part has found, or NONE; or BUSY, with nothing done, if there is another leader; or BROKEN, if a
    helper has failed and parts are missing.

    `thread` is LEADER or the number of a helper, `own` has a bit for each of its own parts. The rest is for the leader:
    the task and what it needs, see `batch`.
    """
    if thread == LEADER:
        if not swap_shared(job, Word.BUSY, 0, 1):
            return BUSY
        job[Word.TASK] = task
        job[Word.STATES], job[Word.NUM_STATES] = states.ctypes.data, states.size
        job[Word.ROWS], job[Word.NUM_ROWS] = rows.ctypes.data, rows.size
        job[Word.ACTIONS] = actions.ctypes.data
        job[Word.STEPS] = steps
        job[Word.SEATS], job[Word.NUM_SEATS] = seats.ctypes.data, seats.size
        job[Word.REWARDS], job[Word.REWARD] = rewards.ctypes.data, reward
        job[Word.ENDINGS] = endings.ctypes.data
        job[Word.RESTART] = restart
        job[Word.SAMPLES], job[Word.NUM_SAMPLES] = samples.ctypes.data, samples.size
        job[Word.COUNTS], job[Word.NUM_COUNTS] = counts.ctypes.data, counts.shape[0]
        job[Word.SHARES], job[Word.NUM_SHARES] = shares.ctypes.data, shares.shape[0]
        job[Word.MASKS], job[Word.NUM_MASKS] = masks.ctypes.data, masks.shape[0]
        _open(job)
    else:
        store_shared(job, Word.AWAKE + thread, 1)
    looks = 0
    while thread == LEADER or looks < patience:
        ticket = load_shared(job, Word.TICKET)
        left = ticket % _NEXT_JOB
        wanted = left & own if looks < _GRACE else left
        if wanted != 0:
            bit = wanted & -wanted
            if swap_shared(job, Word.TICKET, ticket, ticket - bit):
                part = _place(bit)
                job[Word.FOUND + part] = _do(job, part)
                add_shared(job, Word.DONE, 1)
            looks = 0
        elif left == 0 and thread == LEADER and load_shared(job, Word.DONE) == job[Word.PARTS]:
            found = _found(job)
            if job[Word.TASK] != Task.STEP or found != NONE:
                store_shared(job, Word.BUSY, 0)
                return found
            job[Word.TASK] = Task.PLAY
            _open(job)
        elif left == 0 and thread == LEADER and load_shared(job, Word.DISMISSED):
            return BROKEN
        else:
            relax()
            looks += 1
    store_shared(job, Word.AWAKE + thread, 0)
    return NONE


@kernel
def _found(job: np.ndarray) -> int:
    """What the first part that has found something has found."""
    for part in range(job[Word.PARTS]):
        if job[Word.FOUND + part] != NONE:
            return int(job[Word.FOUND + part])
    return NONE


@kernel
def _place(bit: int) -> int:
    place = 0
    while bit > 1:
        bit >>= 1
        place += 1
    return place


@kernel
def _do(job: np.ndarray, part: int) -> int:
    task, parts, num_rows = job[Word.TASK], job[Word.PARTS], job[Word.NUM_ROWS]
    begin, end = num_rows * part // parts, num_rows * (part + 1) // parts
    num_states = job[Word.NUM_STATES]
    states = array_at(job[Word.STATES], (num_states,), STATE)
    rows = array_at(job[Word.ROWS], (num_rows,), np.int64)
    actions = array_at(job[Word.ACTIONS], (num_rows,), np.int64)
    if task == Task.STEP:
        return first_illegal(states, rows, actions, begin, end)
    if task == Task.SAMPLE:
        sample_actions(states, rows, actions, begin, end)
        return NONE
    rewards = array_at(job[Word.REWARDS], (num_states, MAX_PLAYERS), np.float32)
    if task == Task.PLAY_RANDOM:
        seats = array_at(job[Word.SEATS], (job[Word.NUM_SEATS],), np.int64)
        play_random(states, rows, job[Word.STEPS], seats, rewards, job[Word.REWARD], begin, end)
        return NONE
    endings = array_at(job[Word.ENDINGS], (num_states,), np.int8)
    counts = array_at(job[Word.COUNTS], (job[Word.NUM_COUNTS], SIZE), np.int8)
    shares = array_at(job[Word.SHARES], (job[Word.NUM_SHARES], SIZE), np.float32)
    masks = array_at(job[Word.MASKS], (job[Word.NUM_MASKS], COUNT), np.int8)
    return step_games(
        states,
        rows,
        actions,
        True,
        rewards,
        job[Word.REWARD],
        endings,
        job[Word.RESTART] != 0,
        array_at(job[Word.SAMPLES], (job[Word.NUM_SAMPLES],), np.int64),
        counts,
        shares,
        masks,
        begin,
        end,
    )


def new_job(parts: int) -> np.ndarray:
    """A job that is over, in so many parts."""
    job = aligned_zeros((Word.LENGTH,), np.int64)
    job[Word.PARTS] = job[Word.DONE] = parts
    return job


_NO_ROWS, _NO_NUMBERS = np.zeros(0, STATE), np.zeros(0, np.int64)
_NO_COUNTS, _NO_SHARES = np.zeros((0, 0), np.int8), np.zeros((0, 0), np.float32)
NOTHING_NEW: tuple[Any, ...] = (
    NONE,
    _NO_ROWS,
    _NO_NUMBERS,
    _NO_NUMBERS,
    0,
    _NO_NUMBERS,
    _NO_SHARES,
    0,
    _NO_COUNTS.ravel(),
    False,
    _NO_NUMBERS,
    _NO_COUNTS,
    _NO_SHARES,
    _NO_COUNTS,
)
"""What `work` gets from helpers, who have no task for others."""


def compile_all() -> None:
    """Compiles, or loads, `work`: for the first crew in a process, after the rules."""
    library.compile_once(_call_every_entry_point)


def _call_every_entry_point() -> None:
    work(new_job(1), LEADER + 1, 0, 1, *NOTHING_NEW)
