"""Threads share the rows of a batch: whoever is late, busy, interrupted or gone with a fork, every row is done once."""

import ctypes
import itertools
import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import montecristo_env.games
from helpers import INTERPRETED
from montecristo_env import GameBatch, IllegalAction, actions, observation
from montecristo_env.core.jit import Bound
from montecristo_env.util.threads import parallel_for, parallel_map

pytestmark = pytest.mark.engine
threaded = pytest.mark.skipif(INTERPRETED, reason="plain Python uses no threads")
GAMES = 2048


def play(threads: int, steps: int = 30, pause: float = 0.0) -> GameBatch:
    games = GameBatch(GAMES, 3, seed=0, threads=threads)
    seen = np.zeros((GAMES, observation.SIZE), np.int8)
    masks = np.zeros((GAMES, actions.COUNT), np.int8)
    for _ in range(steps):
        games.step(games.sample_actions(), autoreset=True, observations=seen, masks=masks)
        assert (seen == games.observe()).all() and (masks == games.action_mask()).all()
        time.sleep(pause)
    games.play_random(7)
    return games


def same(a: GameBatch, b: GameBatch) -> bool:
    return a.states.tobytes() == b.states.tobytes() and (a.rewards == b.rewards).all()


@threaded
@pytest.mark.parametrize("threads", [2, 3, 40])
def test_any_number_of_threads_plays_the_same_games(threads: int) -> None:
    assert same(play(threads), play(1))


@threaded
def test_threads_that_have_waited_long_go_on() -> None:
    assert same(play(2, steps=5, pause=0.02), play(1, steps=5))


@threaded
def test_several_threads_may_step_batches_of_their_own() -> None:
    games = [GameBatch(GAMES, 2, seed=seed, threads=2) for seed in range(4)]

    def play_one(one: GameBatch) -> None:
        for _ in range(50):
            one.step(one.sample_actions(), autoreset=True)

    players = [threading.Thread(target=play_one, args=(one,)) for one in games]
    for player in players:
        player.start()
    for player in players:
        player.join()
    for seed, one in enumerate(games):
        alone = GameBatch(GAMES, 2, seed=seed, threads=1)
        play_one(alone)
        assert same(one, alone)


def _play_in_child(queue: Any) -> None:
    queue.put(play(2, steps=5).states.tobytes())


@threaded
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    here = play(2, steps=5)  # this process has threads now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_play_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == here.states.tobytes()
    child.join()


@threaded
def test_an_illegal_action_in_any_part_changes_nothing_in_all() -> None:
    games = GameBatch(GAMES, 2, seed=0, threads=2)
    codes = games.sample_actions()
    before = games.states.tobytes()
    for game in (0, GAMES // 2, GAMES - 1):
        wrong = codes.copy()
        wrong[game] = np.flatnonzero(games.action_mask()[game] == 0)[0]
        with pytest.raises(IllegalAction, match=f"^game {game}: "):
            games.step(wrong)
        assert games.states.tobytes() == before


class Part(Bound[int]):
    """Stands for an entry point, with all of its arguments; the library's threads call it back."""

    def __init__(self, function: Callable[[int, int], int]) -> None:
        def called(arguments: Any) -> int:
            return function(arguments[0], arguments[1])

        self.words, self.result = b"", int
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))(called)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value


def share(function: Callable[[int, int], int], size: int, threads: int = 2) -> list[int]:
    return parallel_for(Part(function), size=size, threads=threads)


@threaded
def test_every_row_is_done_once_and_by_several_threads() -> None:
    done, threads, both = np.zeros(1000, np.int64), set(), threading.Barrier(2, timeout=60)

    def part(begin: int, end: int) -> int:
        done[begin:end] += 1
        if threading.get_ident() not in threads:
            threads.add(threading.get_ident())
            both.wait()  # nobody goes on before the other thread has begun
        return begin

    for _ in range(20):
        threads.clear()
        done[:] = 0
        found = share(part, 1000)
        assert (done == 1).all() and len(threads) == 2
        assert found == sorted(found) and len(found) > 2


@threaded
def test_there_are_as_many_threads_as_wanted_and_no_more() -> None:
    for wanted in (2, 5, 3):
        threads, all_of_them = set(), threading.Barrier(wanted, timeout=60)

        def part(begin: int, end: int, threads: set[int] = threads, barrier: Any = all_of_them) -> int:
            if threading.get_ident() not in threads:
                threads.add(threading.get_ident())
                barrier.wait()
            return 0

        share(part, 1000, wanted)
        assert len(threads) == wanted


@threaded
def test_who_finds_the_threads_in_use_works_alone() -> None:
    rows: list[tuple[int, int]] = []
    inner: set[int] = set()

    def part(begin: int, end: int) -> int:
        if begin == 0:
            share(inner_part, 50)
        return 0

    def inner_part(begin: int, end: int) -> int:
        inner.add(threading.get_ident())
        rows.append((begin, end))
        return 0

    share(part, 10)
    assert len(inner) == 1
    assert rows[0][0] == 0 and rows[-1][1] == 50
    assert all(one[1] == other[0] for one, other in itertools.pairwise(rows))


@threaded
def test_nobody_is_at_work_any_more_when_the_call_returns() -> None:
    for _ in range(200):
        begun, ended = [], []

        def part(begin: int, end: int, begun: list[int] = begun, ended: list[int] = ended) -> int:
            begun.append(begin)
            if threading.current_thread() is not threading.main_thread():
                time.sleep(0.001)  # the main thread could be gone before this one
            ended.append(begin)
            return 0

        share(part, 8)
        assert len(begun) == len(ended) == 8


def test_python_functions_share_threads_and_give_their_results_in_order() -> None:
    assert parallel_map(lambda number: number**2, 50) == [number**2 for number in range(50)]
    assert parallel_map(lambda number: number**2, 0) == []


def test_an_error_of_a_python_function_is_raised_when_nobody_works_any_more() -> None:
    at_work: set[int] = set()

    def fail(number: int) -> None:
        at_work.add(number)
        time.sleep(0.01)
        at_work.discard(number)
        if number == 3:
            raise ValueError("a part has failed")

    with pytest.raises(ValueError, match="a part has failed"):
        parallel_map(fail, 20)
    assert not at_work


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------

IMPATIENT = """
import signal, sys, threading, time
import numpy as np
from montecristo_env import GameBatch

def interrupt(number, frame):
    if playing:
        raise KeyboardInterrupt

def press_keys():
    time.sleep(0.01)
    for _ in range(4):
        signal.raise_signal(signal.SIGINT)  # on Windows, os.kill would end the process
        time.sleep(0.001)

playing = False
signal.signal(signal.SIGINT, interrupt)
for _ in range(10):
    games = GameBatch(20_000, 2, seed=0, threads=2)
    keys = threading.Thread(target=press_keys)
    playing = True
    try:
        keys.start()
        while True:
            games.play_random(10**6)
            games.reset(seed=0)
    except KeyboardInterrupt:
        playing = False
    seen = games.states.tobytes()
    keys.join()
    time.sleep(0.01)
    assert games.states.tobytes() == seen, "somebody has gone on"
    assert games.violations() == {}
    print(threading.active_count())
"""


@threaded
def test_several_interrupts_leave_nobody_at_work_and_no_more_threads() -> None:
    done = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    counts = done.stdout.split()
    assert len(counts) == 10 and len(set(counts)) == 1


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C does what it does in any program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("rows", [1, 3])
def test_random_play_of_many_games_can_be_interrupted_on_the_way(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    play_random = montecristo_env.games.batch.play_random

    def interrupted(*args: Any) -> None:
        play_random(*args)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(montecristo_env.games.batch, "play_random", interrupted)
    monkeypatch.setattr(montecristo_env.games, "ROWS_PER_CALL", rows)
    monkeypatch.setattr(montecristo_env.games, "STEPS_PER_CALL", 2)
    games = GameBatch(5, 2, seed=0, threads=1)
    with pytest.raises(KeyboardInterrupt):
        games.play_random(10**6)
    assert games.states["decisions"].tolist() == [2] * rows + [0] * (5 - rows)


@pytest.mark.interpreted
def test_random_play_in_pieces_is_the_same_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = GameBatch(20, 3, seed=0, threads=1)
    pieces = whole.copy()
    until = np.arange(20) % 3
    whole.play_random(10**6, until=until)
    expected = [whole.copy()]
    whole.play_random(40)
    whole.play_random(10**6)
    monkeypatch.setattr(montecristo_env.games, "ROWS_PER_CALL", 6)
    monkeypatch.setattr(montecristo_env.games, "STEPS_PER_CALL", 3)
    pieces.play_random(10**6, until=until)
    assert same(pieces, expected[0])
    pieces.play_random(40)
    pieces.play_random(10**6)
    assert same(pieces, whole) and whole.rewards.any(axis=1).all()
