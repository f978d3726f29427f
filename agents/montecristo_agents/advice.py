"""What a network may look at besides the observation: the greedy player's choice, and the outlook of every player.

All of it follows from what everybody can see. A scoring round with its payments is hard to learn and easy to work out.
"""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.greedy import SOURCES, greedy_choice
from montecristo_agents.outlook import POINT, all_hands, all_tokens, outlook
from montecristo_env import GameBatch, observation
from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.core.layout import STATE, Row, States
from montecristo_env.core.legal import NOTHING
from montecristo_env.threads import ALL_CORES, share

MOST_POINTS = 30  # outlooks are cut off there
ROWS_PER_THREAD = 512  # rows that are worth a thread
_OUTLOOKS = 2  # for every player: if a scoring round may come, and if it comes now
SIZE: int = observation.SIZE + COUNT + _OUTLOOKS * MAX_PLAYERS
"""How long the input of an advised network is: the observation, a one for the choice, the outlooks in points."""
SCALE: NDArray[np.float32] = np.concatenate(
    [observation.SCALE, np.ones(COUNT), np.full(_OUTLOOKS * MAX_PLAYERS, 0.1)], dtype=np.float32
)
"""What each number is multiplied by; outlooks are seldom more than ten points."""

library = Library("the advice", __file__, *SOURCES)


@kernel
def advise(s: Row, out: np.ndarray) -> None:
    """Writes the advice for the player on turn behind his observation; his own outlooks come first."""
    out[observation.SIZE :] = 0
    if s.legal == NOTHING:
        return
    out[observation.SIZE + FIRST[s.decision] + greedy_choice(s)] = 1
    hands, tokens = all_hands(s), all_tokens(s)
    for place in range(s.num_players):
        seat = (int(s.current_player) + place) % s.num_players
        for certain in range(_OUTLOOKS):
            points = outlook(s, hands, tokens, seat, certain == 1) // POINT
            points = max(-MOST_POINTS, min(MOST_POINTS, points))
            out[observation.SIZE + COUNT + certain * MAX_PLAYERS + place] = points


@library.entry_point
def advise_rows(states: States, out: np.ndarray, begin: int, end: int) -> None:
    """The advice for every row."""
    for k in range(begin, end):
        advise(states[k], out[k])


def observe_with_advice(
    games: PublicView | GameBatch, rows: NDArray[np.int64] | None = None, masks: NDArray[np.int8] | None = None
) -> NDArray[np.int8]:
    """What the players on turn see, and advice for them, (K, SIZE); `masks` as for `GameBatch.observe`."""
    library.compile_once(_call_every_entry_point)
    positions = games.public_rows(rows)
    seen = np.empty((positions.size, SIZE), np.int8)
    seen[:, : observation.SIZE] = games.observe(rows=rows, masks=masks)
    share(advise_rows, positions, seen, size=positions.size, threads=ALL_CORES, least=ROWS_PER_THREAD)
    return seen


def _call_every_entry_point() -> None:
    states = np.zeros(1, STATE)
    states["num_players"] = MIN_PLAYERS
    advise_rows(states, np.zeros((1, SIZE), np.int8), 0, 1)
