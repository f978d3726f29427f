"""Stepping, restarting, observing and masking in one pass does what the calls one after the other do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helpers import share_small_batches
from montecristo_env import GameBatch, GameRecord, IllegalAction, InvalidArgument, Ruleset, actions, observation
from montecristo_env.agent import PublicView
from montecristo_env.core.batch import StepStatus
from montecristo_env.core.jit import INTERPRETED
from montecristo_env.single_agent import SingleAgentGames

pytestmark = pytest.mark.engine
interpreted = pytest.mark.interpreted

GAMES, STEPS = (4, 60) if INTERPRETED else (60, 400)
PLAYERS = [2, 3, 4, 2] * (GAMES // 4)
SHORT = Ruleset(target=6, round_limit=4)


def buffers(dtype: type = np.int8, games: int = GAMES) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((games, observation.SIZE), dtype), np.zeros((games, actions.COUNT), np.int8)


@interpreted
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_one_pass_equals_the_calls_one_by_one(monkeypatch: pytest.MonkeyPatch, dtype: type, threads: int) -> None:
    share_small_batches(monkeypatch, 2)
    single = GameBatch(GAMES, PLAYERS, seed=0, ruleset=SHORT, threads=threads)
    fused = GameBatch(GAMES, PLAYERS, seed=0, ruleset=SHORT, threads=threads)
    single._alone = fused._alone = threads == 1 or INTERPRETED
    seen, masks = buffers(dtype)
    step_status = set()
    sampled = fused.sample_actions()
    for _ in range(STEPS):
        acts = single.sample_actions()
        np.testing.assert_array_equal(sampled, acts)
        single.step(acts)
        fused.step(sampled, autoreset=True, observations=seen, masks=masks, samples=sampled)
        np.testing.assert_array_equal(fused.rewards, single.rewards)
        expected = np.where(
            single.truncated, StepStatus.TRUNCATED, np.where(single.terminated, StepStatus.TERMINATED, 0)
        )
        np.testing.assert_array_equal(fused.step_status, expected)
        np.testing.assert_array_equal(single.step_status, expected)
        step_status |= set(expected.tolist())
        single.reset()
        after = single.copy()
        np.testing.assert_array_equal(sampled, after.sample_actions())
        assert after.states.tobytes() == fused.states.tobytes()
        np.testing.assert_array_equal(seen, single.observe(np.zeros_like(seen)))
        np.testing.assert_array_equal(masks, single.action_mask())
    assert INTERPRETED or step_status == set(StepStatus)


@interpreted
def test_float32_observations_are_counts_times_scale() -> None:
    games = GameBatch(GAMES, PLAYERS, seed=1)
    games.play_random(40)
    rows = [1, 3]
    shares = games.observe(np.zeros((2, observation.SIZE), np.float32), player=1, rows=rows)
    np.testing.assert_array_equal(shares, games.observe(player=1, rows=rows) * observation.SCALE)


def test_without_restart_an_ended_game_stays_and_its_ending_is_told_once() -> None:
    games = GameBatch(GAMES, PLAYERS, seed=0, ruleset=SHORT)
    told = np.zeros(GAMES, np.int64)
    while not games.over.all():
        games.step(games.sample_actions())
        told += games.step_status > 0
    games.step(games.sample_actions())
    assert (told == 1).all() and not games.step_status.any()
    copies = games.copy()
    games.step_status[:] = 1
    assert not copies.step_status.any()


def test_only_the_given_rows_are_stepped_observed_and_restarted() -> None:
    games = GameBatch(GAMES, PLAYERS, seed=0, ruleset=SHORT)
    other = games.copy()
    rows = np.arange(0, GAMES, 3)
    seen, masks = buffers(games=rows.size)
    for _ in range(STEPS):
        acts = games.sample_actions(rows=rows)
        games.step(acts, rows, autoreset=True, observations=seen, masks=masks)
    rest = np.setdiff1d(np.arange(GAMES), rows)
    assert games.states[rest].tobytes() == other.states[rest].tobytes()
    np.testing.assert_array_equal(seen, games.observe(rows=rows))
    assert not games.over[rows].any()


def test_an_illegal_action_changes_nothing_in_the_arrays_either() -> None:
    games = GameBatch(GAMES, PLAYERS, seed=0)
    seen, masks = buffers()
    acts = games.sample_actions()
    acts[2] = actions.COUNT
    before, wanted = games.states.tobytes(), acts.copy()
    with pytest.raises(IllegalAction, match="game 2"):
        games.step(acts, autoreset=True, observations=seen, masks=masks, samples=acts)
    assert games.states.tobytes() == before
    assert not seen.any() and not masks.any()
    np.testing.assert_array_equal(acts, wanted)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"observations": np.zeros((GAMES, 3), np.int8)}, "must be an array of int8 of shape"),
        ({"observations": np.zeros((GAMES, observation.SIZE), np.float64)}, "must be an array of int8"),
        ({"masks": np.zeros((GAMES, actions.COUNT), bool)}, "must be an array of int8"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(wrong: dict[str, np.ndarray], complaint: str) -> None:
    games = GameBatch(GAMES, PLAYERS, seed=0)
    before = games.states.tobytes()
    with pytest.raises(InvalidArgument, match=complaint):
        games.step(games.copy().sample_actions(), **wrong)
    assert games.states.tobytes() == before


def test_a_record_ends_where_its_game_is_restarted() -> None:
    games = GameBatch(2, 2, seed=0, ruleset=SHORT)
    record = GameRecord.record(games, 1)
    for _ in range(STEPS):
        games.step(games.sample_actions(), autoreset=True)
    assert not games.has_listeners
    *_, last = record.replay()
    assert last.games.over[0]


def test_a_step_of_no_rows_does_nothing() -> None:
    games = GameBatch(2, 2, seed=0)
    before = games.states.tobytes()
    games.step([], rows=[])
    assert games.states.tobytes() == before


def test_a_truth_value_is_no_seat_and_a_batch_has_its_limit() -> None:
    with pytest.raises(InvalidArgument, match="player must be a seat"):
        GameBatch(2).observe(player=True)
    with pytest.raises(InvalidArgument, match="num_games must be a whole number from 1 to"):
        GameBatch(2**80)


class PlainRandom:
    """Plays as `random` does, but does not say so: the engine cannot play its turns at once."""

    name = "plain"

    def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
        return games.sample_actions(rows)


@interpreted
@pytest.mark.parametrize("num_players", [2, 4])
def test_learners_and_random_opponents_in_one_pass_play_as_one_by_one(num_players: int) -> None:
    fast = SingleAgentGames(GAMES, "random", num_players, ruleset=SHORT)
    slow = SingleAgentGames(GAMES, PlainRandom(), num_players, ruleset=SHORT)
    everyone = np.arange(GAMES)
    for table in (fast, slow):
        table.start(everyone, list(range(GAMES)))
    ended = 0
    for step in range(STEPS):
        acts = fast.games.sample_actions()
        assert (slow.games.sample_actions() == acts).all()
        if step % 10 == 3:
            acts[step % GAMES] = actions.COUNT - 1 - acts[step % GAMES]  # mostly illegal
        for table in (fast, slow):
            table.step(acts)
        for name in ("seats", "steps", "illegal", "over", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
        np.testing.assert_array_equal(fast.rewards(), slow.rewards())
        np.testing.assert_array_equal(fast.observe(), slow.observe())
        np.testing.assert_array_equal(fast.masks(), slow.masks())
        over = np.flatnonzero(fast.over)
        for values, others in zip(fast.outcome(over).values(), slow.outcome(over).values(), strict=True):
            np.testing.assert_array_equal(values, others)
        ended += over.size
        for table in (fast, slow):
            table.start(over)
    assert ended > 0 and fast.games.states.tobytes() == slow.games.states.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_that_share_memory_with_inputs_or_each_other_are_refused(threads: int) -> None:
    games = GameBatch(GAMES, PLAYERS, seed=0, threads=threads)
    n = GAMES - 1
    numbers = np.arange(4 * GAMES)
    acts = games.sample_actions()
    memory = bytearray(8 * GAMES)
    raw, again = np.frombuffer(memory, np.int64), np.frombuffer(memory, np.int64)
    raw[:] = acts
    both = np.zeros(GAMES * (observation.SIZE + actions.COUNT), np.int8)
    seen = both[: GAMES * observation.SIZE].reshape(GAMES, -1)
    masks, overlapping = (both[at : at + GAMES * actions.COUNT].reshape(GAMES, -1) for at in (seen.size, seen.size - 1))
    room = np.arange(observation.SIZE)
    two, around_two = room[:2], room.view(np.int8)[: 2 * observation.SIZE].reshape(2, -1)
    before = games.states.tobytes(), numbers.tobytes()
    bad: list[Callable[[], object]] = [
        lambda: games.step(acts[:n], rows=numbers[:n], samples=numbers[1 : n + 1]),
        lambda: games.step(acts[:n], rows=numbers[:n], samples=numbers[:n]),
        lambda: games.step(acts[:n], rows=np.arange(n), samples=acts[1:]),
        lambda: games.step(raw[:n], rows=np.arange(n), samples=again[1:]),
        lambda: games.step(acts, observations=seen, masks=overlapping),
        lambda: games.observe(seen, masks=overlapping),
        lambda: games.observe(around_two, rows=two),
        lambda: games.observe(around_two, player=two, rows=[0, 1]),
        lambda: games.sample_actions(numbers[1 : n + 1], rows=numbers[:n]),
    ]
    for call in bad:
        with pytest.raises(InvalidArgument, match="must not share memory"):
            call()
        assert (games.states.tobytes(), numbers.tobytes()) == before
    games.step(acts, observations=seen, masks=masks, samples=acts)  # parts of one buffer that lie apart are fine
    games.step(acts, samples=acts[:])  # as good as the actions themselves
    raw[:] = acts
    games.step(raw, samples=again)
    games.sample_actions(numbers[n : 2 * n], rows=numbers[:n])
