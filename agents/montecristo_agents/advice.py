"""What a network may look at besides the observation: how greedy judges the choices, and what each of them leads to.

All of it follows from what everybody can see. What a scoring round will bring is hard to learn and easy to work out. So
for each choice greedy plays on for all seats, in one line without chance: no card or token is drawn, only what lies on
the table is placed, gathered and moved. On the way the judge says four times what the player may hope for (`LOOKS`).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import judgement
from montecristo_agents.greedy import MOST_CHOICES, NOT_JUDGED, greedy_choice, liking
from montecristo_agents.judgement import FEATURES, judge
from montecristo_agents.outlook import POINT, all_hands, all_tokens, outlook, some_dungeon_holds
from montecristo_env import GameBatch, observation
from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, copy_bytes, kernel
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import lowest_bit
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE, TREASURE_PLACES, Decision, Lane
from montecristo_env.core.layout import STATE, Row, States, aligned_empty
from montecristo_env.core.legal import NOTHING, ask, bit, legal_choices
from montecristo_env.core.rules import apply, enter_lane, move_cylinder, put_used_marble, reach_lane
from montecristo_env.core.scoring import begin_scoring_round
from montecristo_env.threads import ALL_CORES, share

MOST_POINTS = 30  # outlooks are cut off there
BEST_LIKED = 100  # what is as good as the best choice
WORTH = 0.02  # the judge likes a choice that brings so much less of the win half as much
_ROUNDING = 1e-6  # so that what is as good as the best does not seem to be less
ROWS_PER_THREAD = 32  # rows that are worth a thread
LOOKS = (
    "when the action is done",
    "if a scoring round came then",
    "when the next round begins",
    "when the round after it begins",
)
"""When the judge looks at what a choice has led to."""
_DONE, _SCORED, _NEXT_ROUND = range(3)
ROOM = 2
"""How many games `advise` needs room for."""
_ROW_BYTES = STATE.itemsize
_TIMES = 2  # of outlooks: if a scoring round may come, and if it comes now
OUTLOOKS: int = _TIMES * MAX_PLAYERS
"""How many outlooks there are."""
_CHOICE = observation.SIZE
_OUTLOOK = _CHOICE + COUNT
_LIKING = _OUTLOOK + OUTLOOKS
_JUDGED = _LIKING + COUNT
_HOPE = _JUDGED + len(LOOKS) * COUNT
SIZE: int = _HOPE + len(LOOKS)
"""How long the input of an advised network is: the observation, a one for greedy's choice, the outlooks in points, how
much greedy likes every legal choice; for each of `LOOKS`, how much the judge likes every legal choice; and for each of
them what share of the win the best choice leaves to the player, in percent."""
LAYOUT = f"{_CHOICE} {_OUTLOOK} {_LIKING} {_JUDGED} {_HOPE} {SIZE}"
"""Where the parts begin, for the header of model files."""
SCALE: NDArray[np.float32] = np.concatenate(
    [
        observation.SCALE,
        np.ones(COUNT),
        np.full(OUTLOOKS, 0.1),
        np.full((1 + len(LOOKS)) * COUNT + len(LOOKS), 1 / BEST_LIKED),
    ],
    dtype=np.float32,
)
"""What each number is multiplied by; outlooks are seldom more than ten points."""

Room: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

SOURCES = (__file__, *judgement.SOURCES)
"""The files that the advice is made from: a library that uses its kernels must name them."""
library = Library("the advice", *SOURCES)


@kernel
def room_for_advice() -> Room:
    """Arrays for `advise` to work in: worths of choices, their shares, features of the judge, and values of players."""
    shares = np.empty((len(LOOKS), MOST_CHOICES))
    return np.empty(MOST_CHOICES, np.int64), shares, np.empty(len(FEATURES)), np.empty(MAX_PLAYERS)


@kernel
def advise(s: Row, room: Room, game: Row, other: Row, out: np.ndarray) -> None:
    """Writes the advice for the player on turn behind his observation; his own outlooks come first.

    `game` and `other` are room for games, in which choices are tried out.
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
            _look_ahead(s, choice, room, game, other)
    for look in range(len(LOOKS)):
        _let_judge(s, room[1][look], out[_JUDGED + look * COUNT + first :], out[_HOPE + look :])
    hands, tokens = all_hands(s), all_tokens(s)
    for place in range(s.num_players):
        seat = (int(s.current_player) + place) % s.num_players
        for certain in range(_TIMES):
            points = outlook(s, hands, tokens, seat, certain == 1) // POINT
            points = max(-MOST_POINTS, min(MOST_POINTS, points))
            out[_OUTLOOK + certain * MAX_PLAYERS + place] = points


@kernel
def _let_judge(s: Row, shares: np.ndarray, liked: np.ndarray, hope: np.ndarray) -> None:
    """How much the judge likes each choice, by the share of the win that it leaves to the player; the best share."""
    best = 0.0
    for choice in range(MOST_CHOICES):
        if s.legal & bit(choice) != NOTHING:
            best = max(best, shares[choice])
    for choice in range(MOST_CHOICES):
        if s.legal & bit(choice) != NOTHING:
            liked[choice] = int(BEST_LIKED * WORTH / (WORTH + (best - shares[choice])) + _ROUNDING)
    hope[0] = int(BEST_LIKED * best + _ROUNDING)


@kernel
def _look_ahead(s: Row, choice: int, room: Room, game: Row, other: Row) -> None:
    """What share of the win the player may hope for after a choice, at each look."""
    _, shares, features, values = room
    player = int(s.current_player)
    copy_bytes(game.bytes, 0, s.bytes, 0, _ROW_BYTES)
    play_without_chance(game, choice)
    if s.decision == Decision.RETURN_MARBLE:
        _finish_scoring_round(game)
    else:
        _finish_action(game)
    judge(game, features, values)
    shares[_DONE, choice] = values[player]
    if s.cylinder != Lane.CHEST and game.legal != NOTHING:  # after a chest it came, or did not
        copy_bytes(other.bytes, 0, game.bytes, 0, _ROW_BYTES)
        begin_scoring_round(other)
        other.legal = legal_choices(other)
        _finish_scoring_round(other)
        judge(other, features, values)
    shares[_SCORED, choice] = values[player]
    for look in range(_NEXT_ROUND, len(LOOKS)):
        last_round = int(s.round_number) + 1 + look - _NEXT_ROUND
        while game.legal != NOTHING and game.round_number < last_round:
            play_without_chance(game, _greedy_or_forced(game))
        judge(game, features, values)
        shares[look, choice] = values[player]


@kernel
def play_without_chance(s: Row, choice: int) -> None:
    """Carries out a decision. Where cards or tokens would be drawn, none are.

    A chest that would be opened brings a scoring round if a dungeon lacks just one token.
    """
    if s.decision == Decision.RETURN_MARBLE:
        put_used_marble(s, choice)
        if move_cylinder(s) and reach_lane(s):
            if s.cylinder == Lane.CHEST and some_dungeon_holds(all_tokens(s), TREASURE_PLACES - 1):
                begin_scoring_round(s)
            elif s.cylinder == Lane.CHEST or s.cylinder == Lane.SUPPLY:
                ask(s, s.active_player, Decision.RETURN_MARBLE)
            else:
                enter_lane(s)
    else:
        apply(s, choice)
    s.legal = legal_choices(s)


@kernel
def _greedy_or_forced(s: Row) -> int:
    forced = lowest_bit(s.legal)
    return forced if s.legal == bit(forced) else greedy_choice(s, None)


@kernel
def _finish_action(s: Row) -> None:
    """Greedy plays for all until the marble of the lane has been used, or the game is over."""
    while s.legal != NOTHING and s.decision != Decision.RETURN_MARBLE:
        play_without_chance(s, _greedy_or_forced(s))


@kernel
def _finish_scoring_round(s: Row) -> None:
    """Greedy plays for all until no token is left to be taken."""
    while s.gather_dungeon != NONE:
        play_without_chance(s, _greedy_or_forced(s))


@library.entry_point
def advise_rows(states: States, games: States, out: np.ndarray, begin: int, end: int) -> None:
    """The advice for every row; `games` is room for `ROOM` times as many games."""
    room = room_for_advice()
    for k in range(begin, end):
        advise(states[k], room, games[ROOM * begin], games[ROOM * begin + 1], out[k])


def observe_with_advice(
    games: PublicView | GameBatch, rows: NDArray[np.int64] | None = None, masks: NDArray[np.int8] | None = None
) -> NDArray[np.int8]:
    """What the players on turn see, and advice for them, (K, SIZE); `masks` as for `GameBatch.observe`."""
    library.compile_once(_call_every_entry_point)
    positions = games.public_rows(rows)
    seen = np.empty((positions.size, SIZE), np.int8)
    seen[:, : observation.SIZE] = games.observe(rows=rows, masks=masks)
    tried = aligned_empty(ROOM * positions.size, STATE)
    share(advise_rows, positions, tried, seen, size=positions.size, threads=ALL_CORES, least=ROWS_PER_THREAD)
    return seen


def judged(seen: NDArray[np.int8], look: int) -> NDArray[np.int8]:
    """The part of what `observe_with_advice` gives that says how much the judge likes each choice at one of `LOOKS`."""
    begin = _JUDGED + look * COUNT
    return seen[:, begin : begin + COUNT]


def _call_every_entry_point() -> None:
    states = np.zeros(1, STATE)
    states["num_players"] = MIN_PLAYERS
    advise_rows(states, np.zeros(ROOM, STATE), np.zeros((1, SIZE), np.int8), 0, 1)
