"""Flat Monte Carlo: every choice is rolled out in the same games, in which what is hidden is redrawn."""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.heuristic_value import FEATURES, evaluate
from montecristo_agents.mcts import roll_out
from montecristo_agents.search_agent import whole_number
from montecristo_agents.tree import canonicalize_hidden, determinize
from montecristo_env.agent import PublicView
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import stream
from montecristo_env.core.constants import MAX_PLAYERS, NONE
from montecristo_env.core.jit import copy_bytes, entry_point, local_array
from montecristo_env.core.layout import STATE, Float32Table, States, UInt64s, aligned_empty
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.util.threads import ALL_CORES, PARTS_PER_THREAD, parallel_for

_ROW_BYTES = STATE.itemsize

ROLLOUTS = 8
MOST_ROLLOUTS = 100_000
ROUNDS = 1  # of a rollout


class FlatMonteCarloAgent:
    """Makes the choice that does best in so many rollouts of each, with the same redraws for all: `flat-mc:8`.

    Args:
        settings: the number of rollouts of every choice.
    """

    def __init__(self, settings: str = str(ROLLOUTS)) -> None:
        self.rollouts = whole_number("the number of rollouts", settings, 1, MOST_ROLLOUTS)
        self.name = f"flat-mc:{self.rollouts}"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        shares = np.where(games.action_mask(rows=rows), rollout_values(games, rows, self.rollouts, ROUNDS), NONE)
        best: NDArray[np.int64] = shares.argmax(axis=1)
        return best


def rollout_values(games: PublicView, rows: NDArray[np.int64], rollouts: int, rounds: int) -> NDArray[np.float32]:
    """The share of the win that each legal action brings the player on turn, 0 for others, (K, actions.COUNT).

    Every action is played in so many games with redrawn hidden parts, the same for all; the greedy player plays on for
    all seats, for so many rounds of the slide, and the heuristic value of the position counts.
    """
    keys = games.random_keys(rows)
    roots = games.resample_hidden(keys, rows).states
    out = np.zeros((roots.size, COUNT), np.float32)
    parts = min(ALL_CORES * PARTS_PER_THREAD, roots.size)
    parallel_for(
        rollout_choices,
        roots,
        keys,
        rollouts,
        rounds,
        aligned_empty(2 * parts, STATE),
        out,
        size=parts,
        threads=ALL_CORES,
    )
    return out


@entry_point
def rollout_choices(
    roots: States, keys: UInt64s, rollouts: int, rounds: int, games: States, out: Float32Table, begin: int, end: int
) -> None:
    """Adds to zeros the value of every choice of every root. A part of the work is every so many-th root."""
    parts = len(games) // 2
    values, features = local_array(MAX_PLAYERS, np.float64), local_array(len(FEATURES), np.float64)
    for part in range(begin, end):
        start, s = games[2 * part], games[2 * part + 1]
        for k in range(part, len(roots), parts):
            root = roots[k]
            if root.legal == NOTHING:
                continue
            canonicalize_hidden(root)
            player, first = int(root.current_player), int(FIRST[root.decision])
            choices = int(FIRST[root.decision + 1]) - first
            for rollout in range(rollouts):
                determinize(root, stream(keys[k], rollout), start)
                for choice in range(choices):
                    if root.legal & bit(choice) != NOTHING:
                        copy_bytes(s.bytes, 0, start.bytes, 0, _ROW_BYTES)
                        play(s, choice)
                        roll_out(s, True, int(s.round_number) + rounds)
                        evaluate(s, features, values)
                        out[k, first + choice] += values[player] / rollouts
