"""Rows are small, and batched play allocates nothing per step."""

import tracemalloc

import numpy as np
import pytest

import montecristo_env.games
from montecristo_env import GameBatch, actions, observation
from montecristo_env.core.layout import CACHE_LINE, STATE, aligned_zeros

GAMES = 40_000  # so that even one byte per game would show
TRIES = 8


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
    peaks, kept = [], []
    tracemalloc.start()
    try:
        play(2)
        for _ in range(TRIES):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            play(4)
            after, peak = tracemalloc.get_traced_memory()
            peaks.append(peak - before)
            kept.append(after - before)
    finally:
        tracemalloc.stop()
    # What a step allocates shows in every try. What Python allocates for a thread that starts or wakes late does not.
    assert min(peaks) < GAMES // 2
    assert min(kept) < 4096


def test_more_games_than_memory_holds_are_refused_before_seeds_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(shape: object, dtype: object) -> None:
        raise MemoryError

    drawn = []
    monkeypatch.setattr(montecristo_env.games, "aligned_zeros", full)
    monkeypatch.setattr(montecristo_env.games, "_seeds", lambda *args: drawn.append(args))
    gibibytes = f"{10**8 * STATE.itemsize / 2**30:.1f}"
    with pytest.raises(MemoryError, match=rf"100000000 games need {gibibytes} GiB of memory"):
        GameBatch(10**8)
    assert drawn == []
