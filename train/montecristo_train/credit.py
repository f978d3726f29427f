"""Who gets credit for what: the rollouts of several players at one table, each credited with his own rewards alone.

A column of the rollout is a game, and every row of it one decision, by whichever learner's turn it was. So the next
decision of the same player comes some rows later, or after others' turns never, if the game ends on them.
"""

from typing import Any, Protocol

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
    discount: float,
    decay: float,
) -> Floats:
    """The generalised advantage of every decision, along the decisions of the same player in the same game, (T, N).

    The last decision of a player in the rollout is followed by his next one if that is the very next in the game;
    else by nothing known yet, and it is taken to have gone as expected: its advantage is that of its rewards.

    Args:
        seats: who decided, (T, N).
        rewards: what every seat got after the decision and before the next one in the rollout, (T, N, 4).
        ended: whether the game ended before the next one, (T, N).
        values: what the decider expected, (T, N).
        next_seats: who decides after the rollout, (N,).
        next_values: what he expects, (N,).
        discount: of later rewards, per decision of the same player.
        decay: lambda of the generalised advantage estimate.
    """
    steps, games = seats.shape
    columns = np.arange(games)
    owed = np.zeros((games, MAX_PLAYERS), np.float32)  # rewards since the decision that comes next, going backwards
    following = np.zeros((games, MAX_PLAYERS), np.float32)  # his value there
    advantage = np.zeros((games, MAX_PLAYERS), np.float32)  # and his advantage
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
        expected = np.where(known[at], discount * following[at], values[step])
        gained = owed[at] + expected - values[step] + discount * decay * advantage[at]
        advantages[step] = advantage[at] = gained
        owed[at], following[at], known[at] = 0.0, values[step], True
    return advantages


class Table(Protocol):
    """What a rollout must know of the games besides what Stable-Baselines3 tells it."""

    acted: NDArray[np.int64]  # who made the last decision in each game, (N,)
    paid: Floats  # what every seat got since, (N, 4)
    ended: NDArray[np.bool_]  # whether the game ended since, (N,)
    deciders: NDArray[np.int64]  # who must decide now, (N,)


class SeatRolloutBuffer(MaskableRolloutBuffer):
    """The rollout buffer of `MaskablePPO` with credit by seat; it looks at the table whenever a row is added."""

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        self.table = table
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        """Empties the rollout."""
        shape = self.buffer_size, self.n_envs
        self.seats = np.zeros(shape, np.int64)
        self.paid = np.zeros((*shape, MAX_PLAYERS), np.float32)
        self.ended = np.zeros(shape, np.bool_)
        super().reset()

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Adds one decision of every game, which the table has made already."""
        self.seats[self.pos] = self.table.acted
        self.paid[self.pos] = self.table.paid
        self.ended[self.pos] = self.table.ended
        super().add(*args, **kwargs)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: NDArray[np.bool_]) -> None:
        """Fills in advantages and returns, player by player."""
        self.advantages = seat_advantages(
            self.seats,
            self.paid,
            self.ended,
            self.values,
            self.table.deciders,
            last_values.numpy().flatten(),
            self.gamma,
            self.gae_lambda,
        )
        self.returns = self.advantages + self.values
