"""Rows are small, and batched play allocates nothing per step."""

import tracemalloc

import numpy as np
import pytest

from montecristo_env import GameBatch, actions, observation
from montecristo_env.core.layout import CACHE_LINE, STATE, aligned_zeros

GAMES = 40_000  # so that even one byte per game would show


def test_a_row_takes_at_most_a_kibibyte_and_whole_cache_lines() -> None:
    assert STATE.itemsize <= 1024
    assert STATE.itemsize % CACHE_LINE == 0


def test_a_million_games_take_at_most_a_gibibyte() -> None:
    games = GameBatch(1000, 2, seed=0)
    arrays = [value for value in vars(games).values() if isinstance(value, np.ndarray)]
    assert 1000 * sum(array.nbytes for array in arrays) <= 2**30


def test_batch_buffers_start_on_a_cache_line() -> None:
    games = GameBatch(100, 3, seed=0)
    buffers = [games.states, games.rewards, games.observe(), games.action_mask(), games.copy().states]
    assert all(buffer.ctypes.data % CACHE_LINE == 0 for buffer in buffers)


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_allocated_per_step(threads: int) -> None:
    games = GameBatch(GAMES, 4, seed=0, threads=threads)
    observations = aligned_zeros((GAMES, observation.SIZE), np.int8)
    masks = aligned_zeros((GAMES, actions.COUNT), np.int8)
    acts = aligned_zeros((GAMES,), np.int64)

    def play(steps: int) -> None:
        for _ in range(steps):
            games.sample_actions(acts)
            games.step(acts)
            games.reset()
            games.observe(observations, masks=masks)
            games.observe(observations, player=1)
            games.action_mask(masks)
        games.play_random(3)

    play(2)
    tracemalloc.start()
    try:
        play(5)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        play(20)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < GAMES // 2
    assert after - before < 4096
