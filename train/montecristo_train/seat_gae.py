"""Generalised advantages per seat: rollouts of games of several players, each credited with their own rewards alone.

A column of the rollout is a game, and every row of it one decision, by whichever learner's turn it was. So the next
decision of the same player comes some rows later, or after others' turns never, if the game ends on them.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer

from montecristo_env.core.constants import MAX_PLAYERS

Floats = NDArray[np.float32]


def seat_advantages(
    seats: NDArray[np.int64],
    rewards: Floats,
    ended: NDArray[np.bool_],
    values: Floats,
    next_seats: NDArray[np.int64],
    next_values: Floats,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """The generalised advantage of every decision, along the decisions of the same player in the same game, (T, N).

    The last decision of a player in the rollout is followed by their next one if that is the very next in the game;
    else by nothing known yet, and it is taken to have gone as expected: its advantage is that of its rewards.

    Args:
        seats: who decided, (T, N).
        rewards: what every seat got after the decision and before the next one in the rollout, (T, N, 4).
        ended: whether the game ended before the next one, (T, N).
        values: what the decider expected, (T, N).
        next_seats: who decides after the rollout, (N,).
        next_values: what they expect, (N,).
        gamma: the discount of later rewards, per decision of the same player.
        gae_lambda: lambda of the generalised advantage estimate.
    """
    steps, games = seats.shape
    columns = np.arange(games)
    owed = np.zeros((games, MAX_PLAYERS), np.float32)  # rewards since the decision that comes next, going backwards
    following = np.zeros((games, MAX_PLAYERS), np.float32)  # the value there
    advantage = np.zeros((games, MAX_PLAYERS), np.float32)  # and the advantage
    known = np.zeros((games, MAX_PLAYERS), np.bool_)  # whether there is such a decision, or the end
    following[columns, next_seats] = next_values
    known[columns, next_seats] = True
    advantages = np.empty_like(values)
    for step in range(steps - 1, -1, -1):
        over = ended[step]
        owed[over] = following[over] = advantage[over] = 0.0
        known[over] = True
        owed += rewards[step]
        at = columns, seats[step]
        expected = np.where(known[at], gamma * following[at], values[step])
        gained = owed[at] + expected - values[step] + gamma * gae_lambda * advantage[at]
        advantages[step] = advantage[at] = gained
        owed[at], following[at], known[at] = 0.0, values[step], True
    return advantages


class SeatStep(NamedTuple):
    """One step of all games, seat by seat."""

    seats: NDArray[np.int64]
    """Who decided in each game, (N,)."""
    rewards: Floats
    """What every seat got after that and before the learner's next decision, (N, 4)."""
    ended: NDArray[np.bool_]
    """Whether the game ended meanwhile, (N,)."""
    next_seats: NDArray[np.int64]
    """Who decides next, (N,)."""


class SeatRolloutBuffer(MaskableRolloutBuffer):
    """The rollout buffer of `MaskablePPO` with advantages per seat."""

    next_seats: NDArray[np.int64]

    def reset(self) -> None:
        """Empties the rollout."""
        shape = self.buffer_size, self.n_envs
        self.seats = np.zeros(shape, np.int64)
        self.seat_rewards = np.zeros((*shape, MAX_PLAYERS), np.float32)
        self.ended = np.zeros(shape, np.bool_)
        super().reset()

    def note(self, step: SeatStep) -> None:
        """Keeps what belongs to the row that is added next."""
        self.seats[self.pos], self.seat_rewards[self.pos], self.ended[self.pos] = step[:3]
        self.next_seats = step.next_seats

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: NDArray[np.bool_]) -> None:
        """Fills in advantages and returns, player by player."""
        self.advantages = seat_advantages(
            self.seats,
            self.seat_rewards,
            self.ended,
            self.values,
            self.next_seats,
            last_values.numpy().flatten(),
            self.gamma,
            self.gae_lambda,
        )
        self.returns = self.advantages + self.values
