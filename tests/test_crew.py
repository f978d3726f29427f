"""Helpers share short jobs: whoever is late, asleep, busy, broken or gone with a fork, every row is done once."""

import multiprocessing
import threading
import time
from typing import Any

import numpy as np
import pytest

import montecristo_env.threads
from helpers import INTERPRETED
from montecristo_env import GameBatch, actions, observation
from montecristo_env.core import crew

pytestmark = pytest.mark.engine
threaded = pytest.mark.skipif(INTERPRETED, reason="plain Python uses no threads")
GAMES = 2048


def play(threads: int, steps: int = 30, pause: float = 0.0) -> GameBatch:
    games = GameBatch(GAMES, 3, seed=0, threads=threads)
    seen = np.zeros((GAMES, observation.SIZE), np.int8)
    masks = np.zeros((GAMES, actions.COUNT), np.int8)
    for _ in range(steps):
        games.step(games.sample_actions(), restart=True, observations=seen, masks=masks)
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
def test_helpers_who_have_fallen_asleep_are_woken() -> None:
    assert same(play(2, steps=5, pause=0.02), play(1, steps=5))


@threaded
def test_helpers_do_their_share() -> None:
    """The bell wakes them, and they look for parts."""
    threads = montecristo_env.threads.Crew(2)
    games = GameBatch(GAMES, 2, seed=0, threads=1)
    codes, none = np.zeros(GAMES, np.int64), np.zeros((0, 0), np.int8)
    shares = np.zeros((0, 0), np.float32)
    by_helper = 0
    work = crew.work

    def helped(*args: Any) -> int:
        nonlocal by_helper
        found = work(*args)
        if args[1] != crew.LEADER:
            by_helper += 1
        return int(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "work", helped)
        for _ in range(20):
            threads.run(
                crew.Task.SAMPLE,
                games.states,
                np.arange(GAMES),
                codes,
                0,
                codes[:0],
                games.rewards,
                0,
                games.endings,
                False,
                codes[:0],
                none,
                shares,
                none,
            )
            time.sleep(0.01)
    assert by_helper > 0
    assert (games.action_mask()[np.arange(GAMES), codes] == 1).all()


@threaded
def test_a_batch_steps_alone_while_another_thread_has_the_crew() -> None:
    games = [GameBatch(GAMES, 2, seed=seed, threads=2) for seed in range(4)]

    def play_one(one: GameBatch) -> None:
        for _ in range(50):
            one.step(one.sample_actions(), restart=True)

    players = [threading.Thread(target=play_one, args=(one,)) for one in games]
    for player in players:
        player.start()
    for player in players:
        player.join()
    for seed, one in enumerate(games):
        alone = GameBatch(GAMES, 2, seed=seed, threads=1)
        play_one(alone)
        assert same(one, alone)


@threaded
def test_the_leader_does_what_a_helper_who_has_died_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    work = crew.work

    def failing(job: Any, thread: int, *args: Any) -> int:
        if thread != crew.LEADER:
            raise MemoryError("a helper has failed")
        return int(work(job, thread, *args))

    montecristo_env.threads.call_crew.cache_clear()
    games = GameBatch(GAMES, 2, seed=0, threads=2)
    with monkeypatch.context() as patch:
        patch.setattr(crew, "work", failing)
        for _ in range(3):
            games.step(games.sample_actions())
    montecristo_env.threads.call_crew.cache_clear()
    alone = GameBatch(GAMES, 2, seed=0, threads=1)
    for _ in range(3):
        alone.step(alone.sample_actions())
    assert same(games, alone)


def _play_in_child(queue: Any) -> None:
    queue.put(play(2, steps=5).states.tobytes())


@threaded
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_a_crew_of_its_own() -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    here = play(2, steps=5)  # this process has a crew now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_play_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == here.states.tobytes()
    child.join()


@pytest.mark.interpreted
def test_one_thread_alone_does_all_parts_of_every_task() -> None:
    """The same as the calls that it makes, also without compilation; an illegal action is found before anything is."""
    alone, shared = (GameBatch(6, [2, 3, 4, 2, 3, 4], seed=0, threads=1) for _ in range(2))
    job, rows, codes = crew.new_job(4, 1), np.arange(6), np.zeros(6, np.int64)
    none = np.full(1, -1)
    seen, masks = np.zeros((6, observation.SIZE), np.int8), np.zeros((6, actions.COUNT), np.int8)
    no_shares = np.zeros((0, 0), np.float32)
    following, expected = np.zeros(6, np.int64), np.zeros(6, np.int64)

    def run(task: crew.Task, steps: int = 0) -> int:
        outputs = shared.rewards, 0, shared.endings, True, following, seen, no_shares, masks
        return int(crew.work(job, 0, 15, 10, int(task), shared.states, rows, codes, steps, none, *outputs))

    for _ in range(5):
        assert run(crew.Task.SAMPLE) == -1
        assert (codes == alone.sample_actions()).all()
        legal, codes[4] = int(codes[4]), np.flatnonzero(alone.action_mask()[4] == 0)[0]
        assert run(crew.Task.STEP) == 4 and same(shared, alone)
        codes[4] = legal
        assert run(crew.Task.STEP) == -1
        alone.step(codes, restart=True, samples=expected)
        assert (following == expected).all()
        assert same(shared, alone) and (seen == alone.observe()).all() and (masks == alone.action_mask()).all()
    assert run(crew.Task.PLAY_RANDOM, 3) == -1
    alone.play_random(3)
    assert same(shared, alone)
