"""Rollouts of many games at once, cut into one trajectory per seat and game."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core.constants import MAX_PLAYERS

Columns = dict[str, NDArray[Any]]


@dataclass
class Trajectory:
    """Successive decisions of one seat in one game."""

    game: int
    seat: int
    columns: Columns
    """What there is of each decision, (K, ...); where the game goes on, of one more: their next one."""
    rewards: NDArray[np.float32]
    """What the seat got from each decision until the next one or the end, (K,)."""
    ended: bool
    """Whether the game is over."""


class SeatTrajectories:
    """Cuts rollouts into trajectories; a decision whose outcome is not known yet waits for the next rollout."""

    def __init__(self) -> None:
        self._waiting: Columns = {}

    def cut(
        self,
        seats: NDArray[np.int64],
        paid: NDArray[np.float32],
        ended: NDArray[np.bool_],
        columns: Columns,
    ) -> Iterator[Trajectory]:
        """The trajectories that the rollout completes or lengthens.

        Args:
            seats: who decided, (T, N).
            paid: what every seat got after the decision and before the next one in the rollout, (T, N, 4).
            ended: whether the game ended before the next one, (T, N).
            columns: what else there is of each decision, (T, N, ...).
        """
        steps, games = seats.shape
        games_over: NDArray[np.int64] = np.cumsum(ended, axis=0)  # at each table, after each step
        flat: Columns = {name: values.reshape(-1, *values.shape[2:]) for name, values in columns.items()}
        flat["game"] = np.tile(np.arange(games), steps)
        flat["seat"] = seats.ravel()
        flat["time"] = np.repeat(np.arange(steps), games)
        flat["owed"] = np.zeros(steps * games, np.float32)  # rewards of earlier rollouts
        flat["number"] = (games_over - ended.astype(np.int64)).ravel()  # of the game at this table in this rollout
        if self._waiting:
            flat = {name: np.concatenate([self._waiting[name], values]) for name, values in flat.items()}

        key = (flat["game"] * (steps + 1) + flat["number"]) * MAX_PLAYERS + flat["seat"]
        order = np.argsort(key, kind="stable")  # by game and seat, and within these by time
        flat, key = {name: values[order] for name, values in flat.items()}, key[order]
        game, seat, time = flat["game"], flat["seat"], flat["time"]
        last = np.append(key[1:] != key[:-1], True)  # of its trajectory
        over = flat["number"] < games_over[-1, game]
        until = np.where(last, steps, np.append(time[1:], 0))
        finished = last & over
        until[finished] = (games_over[:, game[finished]] > flat["number"][finished]).argmax(axis=0) + 1
        total = np.concatenate([np.zeros((1, games, MAX_PLAYERS), np.float32), np.cumsum(paid, axis=0)])
        rewards = (flat["owed"] + total[until, game, seat] - total[time, game, seat]).astype(np.float32)

        waiting = last & ~over
        self._waiting = {name: values[waiting] for name, values in flat.items()}
        self._waiting["owed"] = rewards[waiting]
        self._waiting["time"] = np.zeros(waiting.sum(), np.int64)
        self._waiting["number"] = np.zeros(waiting.sum(), np.int64)

        begin = 0
        for end in (np.flatnonzero(last) + 1).tolist():
            decided = end if over[begin] else end - 1
            if decided > begin:
                yield Trajectory(
                    int(game[begin]),
                    int(seat[begin]),
                    {name: flat[name][begin:end] for name in columns},
                    rewards[begin:decided],
                    bool(over[begin]),
                )
            begin = end
