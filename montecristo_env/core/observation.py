"""What a player sees: everything public that bears on the future, from his own seat, as int8.

Seat 0 of every field is the observer, then clockwise; absent seats are zero. `FIELDS` names the parts. Nothing
hidden is in it. Which shuffle an unseen card comes from (§10.1) is left out too, though it is public: only the unseen
cards as a whole are given.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core._jit import copy_bytes, kernel, mark_equal_bytes
from montecristo_env.core.constants import (
    ADVENTURERS,
    BEST_MARKET_VALUE,
    CARD_TYPES,
    CARDS,
    DECISIONS,
    DUNGEONS,
    KINDS,
    LANE_ROOM,
    LANES,
    LAP,
    MAX_PLAYERS,
    MOST_CARDS_HELD,
    MOST_POINTS_A_ROUND,
    NONE,
    PLACEMENTS_ACTIVE,
    REINFORCEMENTS,
    SIZES,
    TOKENS,
    TOKENS_DRAWN,
    TREASURE_PLACES,
    ZONES,
    Decision,
)
from montecristo_env.core.layout import OFFSET, Row
from montecristo_env.core.scoring import gathered_points
from montecristo_env.errors import InvalidArgument


class Field(NamedTuple):
    """A part of the observation."""

    slice: slice
    shape: tuple[int, ...]
    highest: int
    meaning: str


_SEATS = MAX_PLAYERS
_PER_TYPE = (KINDS, SIZES)
_Declaration = tuple[str, tuple[int, ...], int, str]

# Shown as they stand in the state, in the same order.
_board: list[_Declaration] = [
    ("dungeon_tokens", (DUNGEONS, *_PER_TYPE), TREASURE_PLACES, "tokens in each dungeon by kind and value"),
    ("unseen_cards", _PER_TYPE, CARDS, "cards in the pile and among the wild bags"),
    ("card_discard", _PER_TYPE, CARDS, "discarded cards"),
    ("pile_size", (1,), CARDS, "cards in the pile"),
    ("bag", _PER_TYPE, TOKENS, "tokens in the bag"),
    ("token_discard", _PER_TYPE, TOKENS, "discarded tokens"),
    ("offer", _PER_TYPE, MAX_PLAYERS, "Supply: cards drawn and not yet dealt"),
    ("placements_left", (1,), PLACEMENTS_ACTIVE, "Adventurers: placements still open to the player placing"),
    ("zone_used", (1,), 1, "Adventurers: he has used his bonus zone"),
    ("reinforcements_left", (1,), REINFORCEMENTS, "Adventurers: reinforcements still open to him"),
    ("chest_dungeons", (DUNGEONS,), 1, "Treasure chest: dungeons already used"),
]
# Shown as they stand in the state, from the observer's seat on.
_players: list[_Declaration] = [
    ("supply", (_SEATS,), ADVENTURERS, "adventurers in the personal supply"),
    ("marseille", (_SEATS,), ADVENTURERS, "adventurers in the general supply"),
    ("zones", (_SEATS, ZONES), 1, "1 where the player has an adventurer in the bonus zone"),
    ("crew", (_SEATS, DUNGEONS), ADVENTURERS, "adventurers in each dungeon"),
    (
        "places",
        (_SEATS, DUNGEONS, ADVENTURERS),
        _SEATS * ADVENTURERS,
        "their places in the queue, foremost first, counted from 1; 0 for none",
    ),
    ("hands", (_SEATS, *_PER_TYPE), MOST_CARDS_HELD, "face-up cards by kind and bags"),
    ("wilds", (_SEATS,), MOST_CARDS_HELD, "wild bags held"),
    ("left_over_bags", (_SEATS, KINDS), SIZES - 1, "Scoring: bags paid and not used up, by kind"),
]
_derived: list[_Declaration] = [
    ("seated", (_SEATS,), 1, "1 for every seat in the game"),
    ("scores", (_SEATS,), LAP - 1, "points, modulo 128"),
    ("scores_laps", (_SEATS,), LAP - 1, "points divided by 128 (0 with the default target)"),
    ("gathered_points", (_SEATS,), MOST_POINTS_A_ROUND, "points that the tokens gathered in this round will score"),
    ("deciding", (_SEATS,), 1, "who must decide; all 0 when the game is over"),
    ("active", (_SEATS,), 1, "the active player, owner of the marble in use"),
    ("decision", (DECISIONS,), 1, "the kind of decision, in the order of the blocks of actions"),
    ("cylinder", (LANES,), 1, "the current lane"),
    ("rounds_left", (1,), LAP - 1, "rounds after this one until the limit, modulo 128"),
    ("rounds_left_laps", (1,), LAP - 1, "the same divided by 128 (0 with the default limit)"),
    ("marbles", (_SEATS, LANES, LANE_ROOM), 1, "1 where the player has a marble: lane and position, bottom first"),
    ("market", (KINDS, KINDS), 1, "market space of each kind, best first"),
    ("market_values", (KINDS,), BEST_MARKET_VALUE, "what the market gives for each kind"),
    ("recipient", (_SEATS,), 1, "Supply: who gets the next card"),
    ("drawn_tokens", (TOKENS_DRAWN, KINDS), SIZES, "Treasure chest: tokens to place, in order: the value at the kind"),
    ("gather_dungeon", (DUNGEONS,), 1, "Scoring: the dungeon"),
    ("gather_order", (_SEATS,), _SEATS, "Scoring: 1 for the player whose turn it is, 2 for the next …; 0 for none"),
    ("taking", (KINDS,), SIZES, "Scoring: the token being paid for: the value at the kind"),
]


def _lay_out() -> dict[str, Field]:
    fields, start = {}, 0
    for name, shape, highest, meaning in [*_board, *_players, *_derived]:
        size = int(np.prod(shape))
        fields[name] = Field(slice(start, start + size), shape, highest, meaning)
        start += size
    return fields


FIELDS: Final = _lay_out()
"""Name of a field -> its slice of the observation, its shape, its highest value and its meaning."""

SIZE: Final = max(field.slice.stop for field in FIELDS.values())
"""The length of an observation."""

HIGHEST: Final = np.concatenate([np.full(int(np.prod(f.shape)), f.highest, np.int8) for f in FIELDS.values()])
"""The highest value of every entry."""

SCALE: Final = (1 / HIGHEST).astype(np.float32)
"""`observation * SCALE` lies in [0, 1]."""


def view(observations: NDArray[np.generic], name: str) -> NDArray[np.generic]:
    """One field of an observation, or of an array of them, in the field's own shape."""
    if name not in FIELDS:
        raise InvalidArgument(f"no field is called {name!r}: fields are {', '.join(FIELDS)}")
    field = FIELDS[name]
    return observations[..., field.slice].reshape(*observations.shape[:-1], *field.shape)


_at = {name: field.slice.start for name, field in FIELDS.items()}
_SEATED, _SCORES, _SCORES_LAPS, _POINTS = _at["seated"], _at["scores"], _at["scores_laps"], _at["gathered_points"]
_DECIDING, _ACTIVE, _DECISION, _CYLINDER = _at["deciding"], _at["active"], _at["decision"], _at["cylinder"]
_ROUNDS_LEFT, _ROUNDS_LAPS = _at["rounds_left"], _at["rounds_left_laps"]
_MARBLES, _MARKET, _MARKET_VALUES = _at["marbles"], _at["market"], _at["market_values"]
_RECIPIENT, _DRAWN, _TAKING = _at["recipient"], _at["drawn_tokens"], _at["taking"]
_DUNGEON, _ORDER = _at["gather_dungeon"], _at["gather_order"]


def _copied(fields: list[_Declaration]) -> tuple[int, int]:
    """Where these fields begin in a row, and their length in bytes; they must stand there as they do here."""
    start, first = OFFSET[fields[0][0]], _at[fields[0][0]]
    if any(OFFSET[name] - start != _at[name] - first for name, *_ in fields):
        raise AssertionError("layout.STATE and the observation have these fields in different order")
    return start, FIELDS[fields[-1][0]].slice.stop - first


_BOARD = _at[_board[0][0]]
_BOARD_SOURCE, _BOARD_SIZE = _copied(_board)
_copied(_players)
_AHEAD = OFFSET["supply"] - _at["supply"]  # from a player field's place here to its place in a row
_SUPPLY, _MARSEILLE, _ZONES, _CREW = _at["supply"], _at["marseille"], _at["zones"], _at["crew"]
_LANES_SOURCE, _SLIDE_ROOM = OFFSET["lanes"], LANES * LANE_ROOM
_LAP_BITS = LAP.bit_length() - 1
_PLACES, _HANDS, _WILDS, _LEFT_OVER = _at["places"], _at["hands"], _at["wilds"], _at["left_over_bags"]


@kernel
def observe(s: Row, observer: int, out: np.ndarray) -> None:
    """Writes what the observer sees."""
    out[:] = 0
    copy_bytes(out, _BOARD, s.bytes, _BOARD_SOURCE, _BOARD_SIZE)
    seat = observer
    for ego in range(s.num_players):
        _observe_player(s, seat, ego, out)
        seat = seat + 1 if seat + 1 < s.num_players else 0
    _observe_turn(s, observer, out)
    _observe_market(s, out)
    _observe_phase(s, observer, out)


@kernel
def _observe_player(s: Row, seat: int, ego: int, out: np.ndarray) -> None:
    out[_SEATED + ego] = 1
    out[_SCORES + ego] = s.score[seat] & (LAP - 1)
    out[_SCORES_LAPS + ego] = s.score[seat] >> _LAP_BITS
    if s.gather_dungeon != NONE:
        out[_POINTS + ego] = gathered_points(s, seat)
    _copy_seat(s, seat, ego, out, _SUPPLY, 1)
    _copy_seat(s, seat, ego, out, _MARSEILLE, 1)
    _copy_seat(s, seat, ego, out, _ZONES, ZONES)
    _copy_seat(s, seat, ego, out, _CREW, DUNGEONS)
    _copy_seat(s, seat, ego, out, _PLACES, DUNGEONS * ADVENTURERS)
    _copy_seat(s, seat, ego, out, _HANDS, CARD_TYPES)
    _copy_seat(s, seat, ego, out, _WILDS, 1)
    _copy_seat(s, seat, ego, out, _LEFT_OVER, KINDS)
    mark_equal_bytes(out, _MARBLES + ego * _SLIDE_ROOM, s.bytes, _LANES_SOURCE, _SLIDE_ROOM, seat + 1)


@kernel
def _copy_seat(s: Row, seat: int, ego: int, out: np.ndarray, at: int, width: int) -> None:
    """Copies one player's part of a field that has so many bytes per player."""
    copy_bytes(out, at + ego * width, s.bytes, _AHEAD + at + seat * width, width)


@kernel
def _ego(s: Row, seat: int, observer: int) -> int:
    """A seat as the observer counts, from himself clockwise."""
    ego = int(seat) - int(observer)
    return ego if ego >= 0 else ego + int(s.num_players)


@kernel
def _observe_turn(s: Row, observer: int, out: np.ndarray) -> None:
    if s.decision != Decision.OVER:
        out[_DECIDING + _ego(s, s.current_player, observer)] = 1
        out[_DECISION + int(s.decision)] = 1
    out[_ACTIVE + _ego(s, s.active_player, observer)] = 1
    out[_CYLINDER + int(s.cylinder)] = 1
    rounds_left = int(s.round_limit) - int(s.round_number)
    out[_ROUNDS_LEFT] = rounds_left & (LAP - 1)
    out[_ROUNDS_LAPS] = rounds_left >> _LAP_BITS


@kernel
def _observe_market(s: Row, out: np.ndarray) -> None:
    for space in range(KINDS):
        kind = int(s.market[space])
        out[_MARKET + kind * KINDS + space] = 1
        out[_MARKET_VALUES + kind] = s.market_values[space]


@kernel
def _observe_phase(s: Row, observer: int, out: np.ndarray) -> None:
    if s.recipient != NONE:
        out[_RECIPIENT + _ego(s, s.recipient, observer)] = 1
    match s.decision:
        case Decision.PUT_TOKEN:
            for i in range(TOKENS_DRAWN):
                token = int(s.drawn_tokens[i])
                if token != NONE:
                    out[_DRAWN + i * KINDS + token // SIZES] = token % SIZES + 1
        case Decision.TAKE | Decision.PAY:
            out[_DUNGEON + int(s.gather_dungeon)] = 1
            for turn in range(MAX_PLAYERS):
                if s.gather_order[turn] != NONE:
                    out[_ORDER + _ego(s, s.gather_order[turn], observer)] = turn + 1
            if s.taking != NONE:
                out[_TAKING + int(s.taking) // SIZES] = s.taking % SIZES + 1
