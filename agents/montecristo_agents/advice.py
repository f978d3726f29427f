"""What a network may look at besides the observation: how greedy judges the choices, and the outlook of every player.

All of it follows from what everybody can see. A scoring round with its payments is hard to learn and easy to work out.
"""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.greedy import MOST_CHOICES, NOT_JUDGED, SOURCES, greedy_choice, liking
from montecristo_agents.outlook import POINT, all_hands, all_tokens, outlook
from montecristo_env import GameBatch, observation
from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.core.layout import STATE, Row, States
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.threads import ALL_CORES, share

MOST_POINTS = 30  # outlooks are cut off there
BEST_LIKED = 100  # what is as good as the best choice
ROWS_PER_THREAD = 128  # rows that are worth a thread
_OUTLOOKS = 2  # for every player: if a scoring round may come, and if it comes now
_CHOICE = observation.SIZE
_OUTLOOK = _CHOICE + COUNT
_LIKING = _OUTLOOK + _OUTLOOKS * MAX_PLAYERS
SIZE: int = _LIKING + COUNT
"""How long the input of an advised network is: the observation, a one for the choice, the outlooks in points, and how
much greedy likes every legal choice."""
SCALE: NDArray[np.float32] = np.concatenate(
    [observation.SCALE, np.ones(COUNT), np.full(_OUTLOOKS * MAX_PLAYERS, 0.1), np.full(COUNT, 1 / BEST_LIKED)],
    dtype=np.float32,
)
"""What each number is multiplied by; outlooks are seldom more than ten points."""

library = Library("the advice", __file__, *SOURCES)


@kernel
def advise(s: Row, worths: np.ndarray, out: np.ndarray) -> None:
    """Writes the advice for the player on turn behind his observation; his own outlooks come first.

    `worths` is room for MOST_CHOICES numbers.
    """
    out[observation.SIZE :] = 0
    if s.legal == NOTHING:
        return
    worths[:] = NOT_JUDGED
    best = greedy_choice(s, worths)
    first = FIRST[s.decision]
    out[_CHOICE + first + best] = 1
    for choice in range(FIRST[s.decision + 1] - first):
        if s.legal & bit(choice) != NOTHING:
            out[_LIKING + first + choice] = int(BEST_LIKED * liking(worths, best, choice))
    hands, tokens = all_hands(s), all_tokens(s)
    for place in range(s.num_players):
        seat = (int(s.current_player) + place) % s.num_players
        for certain in range(_OUTLOOKS):
            points = outlook(s, hands, tokens, seat, certain == 1) // POINT
            points = max(-MOST_POINTS, min(MOST_POINTS, points))
            out[_OUTLOOK + certain * MAX_PLAYERS + place] = points


@library.entry_point
def advise_rows(states: States, out: np.ndarray, begin: int, end: int) -> None:
    """The advice for every row."""
    worths = np.empty(MOST_CHOICES, np.int64)
    for k in range(begin, end):
        advise(states[k], worths, out[k])


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
