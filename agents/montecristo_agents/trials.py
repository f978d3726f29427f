"""What every choice is worth, found by trying it out: all of them in the same imagined games."""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import mcts
from montecristo_agents.judgement import FEATURES, judge
from montecristo_agents.mcts import roll_out, whole_number
from montecristo_agents.tree import forget_hidden, imagine
from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, copy_bytes
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import stream
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE
from montecristo_env.core.layout import STATE, States, aligned_empty, aligned_zeros
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.threads import ALL_CORES, PARTS_PER_THREAD, share

_ROW_BYTES = STATE.itemsize

TRIES = 8
MOST_TRIES = 100_000
ROUNDS = 1  # that are played on

library = Library("trials", __file__, *mcts.SOURCES)


class TrialsAgent:
    """Tries every choice in so many imagined games, the same for all, and makes the one that does best: `trials:8`.

    Args:
        settings: the number of tries of every choice.
    """

    def __init__(self, settings: str = str(TRIES)) -> None:
        self.tries = whole_number("the number of tries", settings, 1, MOST_TRIES)
        self.name = f"trials:{self.tries}"
        library.compile_once(_call_every_entry_point)

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        shares = np.where(games.action_mask(rows=rows), try_out(games, rows, self.tries, ROUNDS), NONE)
        best: NDArray[np.int64] = shares.argmax(axis=1)
        return best


def try_out(games: PublicView, rows: NDArray[np.int64], tries: int, rounds: int) -> NDArray[np.float32]:
    """The share of the win that each legal action brings the player on turn, 0 for others, (K, actions.COUNT).

    Every action is tried in so many imagined games, the same for all; the greedy player plays on for all seats, for so
    many rounds of the slide, and the position is judged as in the search.
    """
    library.compile_once(_call_every_entry_point)
    keys = games.random_keys(rows)
    roots = games.resample_hidden(keys, rows).states
    out = np.zeros((roots.size, COUNT), np.float32)
    parts = min(ALL_CORES * PARTS_PER_THREAD, roots.size)
    share(try_choices, roots, keys, tries, rounds, aligned_empty(2 * parts, STATE), out, size=parts, threads=ALL_CORES)
    return out


@library.entry_point
def try_choices(
    roots: States, keys: np.ndarray, tries: int, rounds: int, games: States, out: np.ndarray, begin: int, end: int
) -> None:
    """Adds to zeros what every choice of every root is worth. A part of the work is every so many-th root."""
    parts = len(games) // 2
    values, features = np.empty(MAX_PLAYERS), np.empty(len(FEATURES))
    for part in range(begin, end):
        start, s = games[2 * part], games[2 * part + 1]
        for k in range(part, len(roots), parts):
            root = roots[k]
            if root.legal == NOTHING:
                continue
            forget_hidden(root)
            player, first = int(root.current_player), int(FIRST[root.decision])
            choices = int(FIRST[root.decision + 1]) - first
            for attempt in range(tries):
                imagine(root, stream(keys[k], attempt), start)
                for choice in range(choices):
                    if root.legal & bit(choice) != NOTHING:
                        copy_bytes(s.bytes, 0, start.bytes, 0, _ROW_BYTES)
                        play(s, choice)
                        roll_out(s, True, int(s.round_number) + rounds)
                        judge(s, features, values)
                        out[k, first + choice] += values[player] / tries


def _call_every_entry_point() -> None:
    roots = aligned_zeros(1, STATE)
    roots["num_players"] = MIN_PLAYERS
    try_choices(roots, np.zeros(1, np.uint64), 0, 0, aligned_zeros(2, STATE), np.zeros((1, COUNT), np.float32), 0, 1)
