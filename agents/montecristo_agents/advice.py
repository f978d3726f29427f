"""What a network may look at besides the observation: how greedy judges the choices, and the outlook of every player.

All of it follows from what everybody can see. A scoring round with its payments is hard to learn and easy to work out.
So, for each choice from the first token of a chest to the last payment of the scoring round that may follow, greedy
plays until all that is over, and the judge says what it led to; no card or token is drawn in that time.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.greedy import MOST_CHOICES, NOT_JUDGED, greedy_choice, liking
from montecristo_agents.judgement import FEATURES, SOURCES, judge
from montecristo_agents.outlook import POINT, all_hands, all_tokens, outlook
from montecristo_env import GameBatch, observation
from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, copy_bytes, kernel
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import lowest_bit
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, Decision
from montecristo_env.core.layout import STATE, Row, States, aligned_empty
from montecristo_env.core.legal import NOTHING, bit, legal_choices
from montecristo_env.core.rules import apply
from montecristo_env.threads import ALL_CORES, share

MOST_POINTS = 30  # outlooks are cut off there
BEST_LIKED = 100  # what is as good as the best choice
WORTH = 0.02  # the judge likes a choice that brings so much less of the win half as much
ROWS_PER_THREAD = 128  # rows that are worth a thread
_ROW_BYTES = STATE.itemsize
_OUTLOOKS = 2  # for every player: if a scoring round may come, and if it comes now
_CHOICE = observation.SIZE
_OUTLOOK = _CHOICE + COUNT
_LIKING = _OUTLOOK + _OUTLOOKS * MAX_PLAYERS
JUDGED = range(FIRST[Decision.PUT_TOKEN], FIRST[Decision.PAY + 1])
"""The actions that the judge looks at: putting, taking and paying."""
_JUDGED = _LIKING + COUNT
_FIRST_JUDGED = JUDGED.start
SIZE: int = _JUDGED + len(JUDGED)
"""How long the input of an advised network is: the observation, a one for the choice, the outlooks in points, how much
greedy likes every legal choice, and how much the judge likes those of `JUDGED`."""
LAYOUT = f"{_CHOICE} {_OUTLOOK} {_LIKING} {_JUDGED} {SIZE}"
"""Where the parts begin, for the header of model files."""
SCALE: NDArray[np.float32] = np.concatenate(
    [
        observation.SCALE,
        np.ones(COUNT),
        np.full(_OUTLOOKS * MAX_PLAYERS, 0.1),
        np.full(COUNT + len(JUDGED), 1 / BEST_LIKED),
    ],
    dtype=np.float32,
)
"""What each number is multiplied by; outlooks are seldom more than ten points."""

Room: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

library = Library("the advice", __file__, *SOURCES)


@kernel
def room_for_advice() -> Room:
    """Arrays for `advise` to work in: worths and shares of choices, features of the judge, and values of players."""
    return np.empty(MOST_CHOICES, np.int64), np.empty(MOST_CHOICES), np.empty(len(FEATURES)), np.empty(MAX_PLAYERS)


@kernel
def advise(s: Row, room: Room, game: Row, out: np.ndarray) -> None:
    """Writes the advice for the player on turn behind his observation; his own outlooks come first.

    `game` is room for a game, in which choices are tried out.
    """
    out[observation.SIZE :] = 0
    if s.legal == NOTHING:
        return
    worths = room[0]
    worths[:] = NOT_JUDGED
    best = greedy_choice(s, worths)
    first = FIRST[s.decision]
    out[_CHOICE + first + best] = 1
    for choice in range(FIRST[s.decision + 1] - first):
        if s.legal & bit(choice) != NOTHING:
            out[_LIKING + first + choice] = int(BEST_LIKED * liking(worths, best, choice))
    if _is_judged(s):
        _let_judge(s, room, game, out[_JUDGED + first - _FIRST_JUDGED :])
    hands, tokens = all_hands(s), all_tokens(s)
    for place in range(s.num_players):
        seat = (int(s.current_player) + place) % s.num_players
        for certain in range(_OUTLOOKS):
            points = outlook(s, hands, tokens, seat, certain == 1) // POINT
            points = max(-MOST_POINTS, min(MOST_POINTS, points))
            out[_OUTLOOK + certain * MAX_PLAYERS + place] = points


@kernel
def _is_judged(s: Row) -> bool:
    """Whether it is a decision of a chest or of a scoring round."""
    return bool(Decision.PUT_TOKEN <= s.decision <= Decision.PAY)


@kernel
def _let_judge(s: Row, room: Room, game: Row, out: np.ndarray) -> None:
    """How much the judge likes each choice, by the share of the win that is left to the player in each case."""
    _, shares, features, values = room
    best = 0.0
    for choice in range(MOST_CHOICES):
        if s.legal & bit(choice) != NOTHING:
            copy_bytes(game.bytes, 0, s.bytes, 0, _ROW_BYTES)
            apply(game, choice)
            _finish_chest(game)
            judge(game, features, values)
            shares[choice] = values[s.current_player]
            best = max(best, shares[choice])
    for choice in range(MOST_CHOICES):
        if s.legal & bit(choice) != NOTHING:
            out[choice] = int(BEST_LIKED * WORTH / (WORTH + (best - shares[choice])))


@kernel
def _finish_chest(s: Row) -> None:
    """Greedy puts the tokens that are left, and plays all seats of the scoring round that may follow."""
    s.legal = legal_choices(s)
    while _is_judged(s):
        forced = lowest_bit(s.legal)
        apply(s, forced if s.legal == bit(forced) else greedy_choice(s, None))
        s.legal = legal_choices(s)


@library.entry_point
def advise_rows(states: States, games: States, out: np.ndarray, begin: int, end: int) -> None:
    """The advice for every row; `games` is room for as many games."""
    room = room_for_advice()
    for k in range(begin, end):
        advise(states[k], room, games[begin], out[k])


def observe_with_advice(
    games: PublicView | GameBatch, rows: NDArray[np.int64] | None = None, masks: NDArray[np.int8] | None = None
) -> NDArray[np.int8]:
    """What the players on turn see, and advice for them, (K, SIZE); `masks` as for `GameBatch.observe`."""
    library.compile_once(_call_every_entry_point)
    positions = games.public_rows(rows)
    seen = np.empty((positions.size, SIZE), np.int8)
    seen[:, : observation.SIZE] = games.observe(rows=rows, masks=masks)
    tried = aligned_empty(positions.size, STATE)
    share(advise_rows, positions, tried, seen, size=positions.size, threads=ALL_CORES, least=ROWS_PER_THREAD)
    return seen


def _call_every_entry_point() -> None:
    states = np.zeros(1, STATE)
    states["num_players"] = MIN_PLAYERS
    advise_rows(states, states.copy(), np.zeros((1, SIZE), np.int8), 0, 1)
