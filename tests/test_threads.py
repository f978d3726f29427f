"""Threads share the rows of a batch: whoever is late, busy, interrupted or gone with a fork, every row is done once."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import montecristo_env.util.threads
from helpers import INTERPRETED
from montecristo_env import GameBatch, IllegalAction, actions, observation

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


@threaded
def test_every_row_is_done_once_and_by_several_threads() -> None:
    done, threads, both = np.zeros(1000, np.int64), set(), threading.Barrier(2, timeout=60)

    def part(begin: int, end: int) -> int:
        done[begin:end] += 1
        if threading.current_thread() not in threads:
            threads.add(threading.current_thread())
            both.wait()  # nobody goes on before the other thread has begun
        return begin

    found = montecristo_env.util.threads.parallel_for(part, size=1000, threads=2)
    assert (done == 1).all() and len(threads) == 2
    assert found == sorted(found) and len(found) > 2


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------

IMPATIENT = """
import os, signal, sys, threading, time
import numpy as np
from montecristo_env import GameBatch

def interrupt(number, frame):
    if playing:
        raise KeyboardInterrupt

def press_keys():
    time.sleep(0.01)
    for _ in range(4):
        os.kill(os.getpid(), signal.SIGINT)
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


@threaded
@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_waits_for_the_threads_of_the_pool_and_stops_what_has_not_begun() -> None:
    main = threading.main_thread()
    begun, ended = [], []
    at_work, pressed = threading.Event(), threading.Event()

    def part(begin: int, end: int) -> None:
        begun.append(begin)
        if threading.current_thread() is main:
            at_work.set()
            pressed.wait(60)
        else:
            at_work.wait(60)
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
            pressed.set()
            time.sleep(0.1)  # the main thread could be gone before this one
        ended.append(begin)

    with pytest.raises(KeyboardInterrupt):
        montecristo_env.util.threads.parallel_for(part, size=100, threads=2)
    assert sorted(begun) == sorted(ended) and len(begun) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@threaded
def test_an_error_in_one_part_waits_for_the_others() -> None:
    main = threading.main_thread()
    ended = []
    at_work, others_at_work = threading.Event(), threading.Event()

    def part(begin: int, end: int) -> None:
        if threading.current_thread() is main:
            at_work.set()
            others_at_work.wait(60)
            raise ValueError("a part has failed")
        at_work.wait(60)
        others_at_work.set()
        time.sleep(0.1)  # the main thread could be gone before this one
        ended.append(begin)

    with pytest.raises(ValueError, match="a part has failed"):
        montecristo_env.util.threads.parallel_for(part, size=2, threads=2)
    assert len(ended) == 1


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
