"""Credit by seat: what every decision of every player is worth, checked against examples worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from gymnasium.spaces import Discrete

from montecristo_env import actions
from montecristo_env.util.spaces import observation_box
from montecristo_train.seat_gae import SeatRolloutBuffer, SeatStep, seat_advantages

NOBODY = [0.0, 0.0, 0.0, 0.0]


def advantages(
    seats: list[int],
    rewards: list[list[float]],
    ended: list[bool],
    values: list[float],
    next_seat: int,
    next_value: float,
    gamma: float = 1.0,
    gae_lambda: float = 1.0,
) -> list[float]:
    """Of one game."""
    found = seat_advantages(
        np.array(seats)[:, None],
        np.array(rewards, np.float32)[:, None],
        np.array(ended)[:, None],
        np.array(values, np.float32)[:, None],
        np.array([next_seat]),
        np.array([next_value], np.float32),
        gamma,
        gae_lambda,
    )
    return [round(float(value), 5) for value in found[:, 0]]


def test_the_end_of_a_game_pays_every_player_at_their_own_last_decision() -> None:
    """Seat 0 decides, then twice seat 1, whose second decision ends the game; then a new game begins."""
    found = advantages(
        seats=[0, 1, 1, 0],
        rewards=[NOBODY, NOBODY, [-1.0, 1.0, 0.0, 0.0], NOBODY],
        ended=[False, False, True, False],
        values=[0.2, 0.3, 0.5, 0.1],
        next_seat=0,
        next_value=0.4,
    )
    assert found == [-1.2, 0.7, 0.5, 0.3]


def test_advantages_run_along_the_decisions_of_the_same_player() -> None:
    """With a lambda below 1, each adds the next one of the same seat, whatever others do in between."""
    found = advantages(
        seats=[0, 1, 0, 1, 0],
        rewards=[NOBODY] * 5,
        ended=[False] * 5,
        values=[0.1, -0.1, 0.3, -0.5, 0.4],
        next_seat=0,
        next_value=0.8,
        gamma=0.9,
        gae_lambda=0.5,
    )
    last = 0.9 * 0.8 - 0.4
    middle = 0.9 * 0.4 - 0.3 + 0.45 * last
    first = 0.9 * 0.3 - 0.1 + 0.45 * middle
    other_last = 0.0  # what follows it is not known yet
    other_first = 0.9 * -0.5 + 0.1 + 0.45 * other_last
    assert found == [round(value, 5) for value in (first, other_first, middle, other_last, last)]


def test_rewards_on_the_way_go_to_the_decision_before_them_of_that_seat() -> None:
    found = advantages(
        seats=[0, 1, 1],
        rewards=[[0.0, 0.5, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [0.25, 0.125, 0.0, 0.0]],
        ended=[False, False, False],
        values=[0.0, 0.0, 0.0],
        next_seat=2,
        next_value=9.0,
    )
    assert found == [2.25, 0.125, 0.125]  # the half for seat 1 belongs to a decision before the rollout


def test_a_game_that_ends_on_a_turn_of_the_pool_ends_for_all_seats() -> None:
    """Three players; the seat that decided first gets nothing of the next game's values."""
    found = advantages(
        seats=[2, 0, 2],
        rewards=[NOBODY, [-0.5, 1.0, -0.5, 0.0], NOBODY],
        ended=[False, True, False],
        values=[0.5, 0.25, 0.75],
        next_seat=2,
        next_value=1.0,
    )
    assert found == [-1.0, -0.75, 0.25]


def test_columns_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(0)
    steps, games = 20, 5
    seats = rng.integers(0, 4, (steps, games))
    rewards = rng.normal(size=(steps, games, 4)).astype(np.float32)
    ended = rng.random((steps, games)) < 0.2
    values = rng.normal(size=(steps, games)).astype(np.float32)
    next_seats, next_values = rng.integers(0, 4, games), rng.normal(size=games).astype(np.float32)
    together = seat_advantages(seats, rewards, ended, values, next_seats, next_values, 0.99, 0.9)
    for game in range(games):
        part = slice(game, game + 1)
        alone = seat_advantages(
            seats[:, part],
            rewards[:, part],
            ended[:, part],
            values[:, part],
            next_seats[part],
            next_values[part],
            0.99,
            0.9,
        )
        np.testing.assert_allclose(together[:, part], alone, rtol=1e-6)


def test_with_a_lambda_of_1_an_advantage_is_the_return_minus_the_value() -> None:
    """A long game of three, played to its end: each decision gets its seat's final reward."""
    rng = np.random.default_rng(1)
    seats = rng.integers(0, 3, 50)
    final = np.array([1.0, -0.5, -0.5, 0.0], np.float32)
    rewards = np.zeros((50, 4), np.float32)
    rewards[-1] = final
    ended = np.zeros(50, np.bool_)
    ended[-1] = True
    values = rng.normal(size=50).astype(np.float32)
    found = seat_advantages(
        seats[:, None],
        rewards[:, None],
        ended[:, None],
        values[:, None],
        np.array([0]),
        np.zeros(1, np.float32),
        1.0,
        1.0,
    )
    np.testing.assert_allclose(found[:, 0], final[seats] - values, atol=1e-5)


def test_the_buffer_credits_every_row_with_the_step_that_was_noted_before_it_was_added() -> None:
    rng = np.random.default_rng(2)
    steps, games = 12, 5
    space: Discrete[np.int64] = Discrete(actions.COUNT)
    buffer = SeatRolloutBuffer(steps, observation_box("int8"), space, "cpu", gae_lambda=0.9, gamma=0.99, n_envs=games)
    for _ in range(2):  # the second time after a reset
        buffer.reset()
        seats = rng.integers(0, 4, (steps + 1, games))
        rewards = rng.normal(size=(steps, games, 4)).astype(np.float32)
        ended = rng.random((steps, games)) < 0.2
        values = rng.normal(size=(steps + 1, games)).astype(np.float32)
        seen, nothing = np.zeros((games, *buffer.obs_shape), np.int8), np.zeros(games, np.float32)
        for step in range(steps):
            buffer.note(SeatStep(seats[step], rewards[step], ended[step], seats[step + 1]))
            estimated = torch.from_numpy(values[step])
            buffer.add(seen, np.zeros((games, 1)), nothing, nothing, estimated, torch.zeros(games))
        buffer.compute_returns_and_advantage(torch.from_numpy(values[steps])[:, None], np.zeros(games, np.bool_))
        expected = seat_advantages(seats[:-1], rewards, ended, values[:-1], seats[-1], values[-1], 0.99, 0.9)
        np.testing.assert_allclose(buffer.advantages, expected, atol=1e-6)
        np.testing.assert_allclose(buffer.returns, expected + values[:-1], atol=1e-6)
