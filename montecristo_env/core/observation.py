"""What a player sees: everything public that bears on the future, from their own seat, as int8 counts.

An observation is a vector of five groups, one after the other: what there is once (`global`), then rows that are alike:
of the players, of the kinds of treasure, of the dungeons, and of pairs of a dungeon and a kind. `entities` gives the
groups, `view` one field, `FIELDS` names them all. What depends on a kind stands in `kinds` or `pairs` and nowhere else,
so to permute kinds is to permute rows (see `montecristo_env.symmetry`).

Player 0 is the observer, then clockwise, also where a row has something of every player; absent players are zero.
Nothing hidden is in it. Which shuffle an unseen card comes from (§10.1) is left out too, though it is public: only the
unseen cards as a whole are given.
"""

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    MAX_PLAYERS,
    MIN_PLAYERS,
    MOST_CARDS_HELD,
    MOST_POINTS_A_ROUND,
    NONE,
    PLACEMENTS_ACTIVE,
    REINFORCEMENTS,
    SIZES,
    TOKEN_TYPES,
    TOKENS,
    TOKENS_DRAWN,
    TREASURE_PLACES,
    ZONES,
    Decision,
)
from montecristo_env.core.jit import (
    copy_bytes,
    dot_bytes,
    dot_two,
    inlined,
    kernel,
    load_bytes,
    mark_equal_bytes,
    store_bytes,
)
from montecristo_env.core.layout import OFFSET, Row
from montecristo_env.errors import InvalidArgument


class Field(NamedTuple):
    """A part of the observation."""

    group: str
    """`global`, `players`, `kinds`, `dungeons` or `pairs`."""
    columns: slice
    """Where it stands in every row of its group."""
    shape: tuple[int, ...]
    """As `view` gives it: the axes of the group first."""
    highest: int
    """The highest count that can occur."""
    scale: float
    """What a count is multiplied by in float32 observations: about 1 / its standard deviation in ordinary games."""
    meaning: str


class Group(NamedTuple):
    """A part of the observation that consists of rows that are alike."""

    slice: slice
    axes: tuple[int, ...]
    """How many rows there are: (), (players,), (kinds,), (dungeons,) or (dungeons, kinds)."""
    width: int
    """The length of a row."""


class Entities(NamedTuple):
    """The groups of an observation, or of an array of them."""

    global_: Any
    """(..., columns)"""
    players: Any
    """(..., 4, columns), the observer first"""
    kinds: Any
    """(..., 5, columns)"""
    dungeons: Any
    """(..., 6, columns)"""
    pairs: Any
    """(..., 6, 5, columns)"""


MOST_SHOWN = 127  # int8: higher scores and more rounds are shown as this number
_SEATS = MAX_PLAYERS
_AXES: Final = {
    "global": (),
    "players": (_SEATS,),
    "kinds": (KINDS,),
    "dungeons": (DUNGEONS,),
    "pairs": (DUNGEONS, KINDS),
}

# Name, shape in a row, the highest count, scale, and meaning.
_declared: dict[str, list[tuple[str, tuple[int, ...], int, float, str]]] = {
    "global": [
        ("decision", (DECISIONS,), 1, 2, "the kind of decision, in the order of the blocks of actions"),
        ("cylinder", (LANES,), 1, 2, "the current lane"),
        ("rounds_left", (1,), MOST_SHOWN, 1 / 64, "rounds after this one until the limit, at most 127"),
        ("pile_size", (1,), CARDS, 1 / 8, "cards in the pile"),
        ("nearly_full", (1,), DUNGEONS, 1, "dungeons that lack one token"),
        ("placements_left", (1,), PLACEMENTS_ACTIVE, 1, "Adventurers: placements still open to the player placing"),
        ("zone_used", (1,), 1, 2, "Adventurers: they have used their bonus zone"),
        ("reinforcements_left", (1,), REINFORCEMENTS, 2, "Adventurers: reinforcements still open to them"),
    ],
    "players": [
        ("present", (), 1, 1, "1 for every player of the game"),
        ("deciding", (), 1, 1, "who must decide; all 0 when the game is over"),
        ("active", (), 1, 2, "the active player, owner of the marble in use"),
        ("recipient", (), 1, 2, "Supply: who gets the next card"),
        ("gather_order", (), _SEATS, 1, "Scoring: 4 for the player whose turn it is, 3 for the next …; 0 for none"),
        ("scores", (), MOST_SHOWN, 1 / 12, "points, at most 127"),
        ("gathered_points", (), MOST_POINTS_A_ROUND, 1 / 4, "points that the tokens gathered in this round will score"),
        ("supply", (), ADVENTURERS, 1 / 2, "adventurers in the personal supply"),
        ("marseille", (), ADVENTURERS, 1 / 2, "adventurers in the general supply"),
        ("hand_size", (), MOST_CARDS_HELD, 1 / 2, "cards held, wild bags included"),
        ("wilds", (), MOST_CARDS_HELD, 2, "wild bags held"),
        ("zones", (ZONES,), 1, 2, "1 where the player has an adventurer in the bonus zone"),
        ("marbles", (LANES, LANE_ROOM), 1, 3, "1 where the player has a marble: lane and position, bottom first"),
    ],
    "kinds": [
        ("hands", (_SEATS, SIZES), MOST_CARDS_HELD, 2, "face-up cards of each player by bags"),
        ("unseen_cards", (SIZES,), CARDS, 1, "cards in the pile and among the wild bags, by bags"),
        ("card_discard", (SIZES,), CARDS, 1, "discarded cards, by bags"),
        ("offer", (SIZES,), MAX_PLAYERS, 4, "Supply: cards drawn and not yet dealt, by bags"),
        ("bag", (SIZES,), TOKENS, 1, "tokens in the bag, by value"),
        ("token_discard", (SIZES,), TOKENS, 1, "discarded tokens, by value"),
        ("bags", (_SEATS,), MOST_CARDS_HELD * SIZES, 1 / 2, "bags on the face-up cards of each player"),
        ("left_over_bags", (_SEATS,), SIZES - 1, 2, "Scoring: bags paid and not used up, by player"),
        ("drawn_tokens", (TOKENS_DRAWN,), SIZES, 2, "Treasure chest: values of the tokens to place, in order"),
        ("taking", (), SIZES, 2, "Scoring: value of the token being paid for"),
        ("owed", (), SIZES, 2, "Scoring: bags still to be paid for it"),
        ("market_values", (), BEST_MARKET_VALUE, 1, "what the market gives for the kind"),
        ("market", (KINDS,), 1, 2, "the market space of the kind, best first"),
    ],
    "dungeons": [
        (
            "queue_positions",
            (_SEATS, ADVENTURERS),
            _SEATS * ADVENTURERS,
            1 / 2,
            "positions of each player's adventurers in the queue, foremost first, counted from 1; 0 for none",
        ),
        ("adventurers", (_SEATS,), ADVENTURERS, 1, "adventurers of each player"),
        (
            "within_reach",
            (_SEATS,),
            TREASURE_PLACES * SIZES * BEST_MARKET_VALUE,
            1 / 4,
            "points for the tokens that each player's bags and wild bags can pay, each on its own",
        ),
        ("tokens", (), TREASURE_PLACES, 1, "tokens in the dungeon"),
        ("chest_dungeons", (), 1, 4, "Treasure chest: 1 where this chest has put a token"),
        ("gather_dungeon", (), 1, 4, "Scoring: 1 for the dungeon where tokens are gathered"),
        ("to_gather", (), 1, 2, "Scoring: 1 for this dungeon and those after it"),
    ],
    "pairs": [("dungeon_tokens", (SIZES,), TREASURE_PLACES, 3, "tokens of the kind in the dungeon, by value")],
}


def _lay_out() -> tuple[dict[str, Field], dict[str, Group]]:
    fields, groups, start = {}, {}, 0
    for group, axes in _AXES.items():
        width = 0
        for name, shape, highest, scale, meaning in _declared[group]:
            columns = slice(width, width + math.prod(shape))
            fields[name] = Field(group, columns, (*axes, *shape), highest, scale, meaning)
            width = columns.stop
        size = math.prod(axes) * width
        groups[group] = Group(slice(start, start + size), axes, width)
        start += size
    return fields, groups


_fields, _groups = _lay_out()

FIELDS: Final = _fields
"""Name of a field -> its group, columns, shape, highest count, scale and meaning."""

GROUPS: Final = _groups
"""Name of a group -> its slice of the observation, its axes and the width of its rows."""

SIZE: Final = GROUPS["pairs"].slice.stop
"""The length of an observation."""


def _group(observations: Any, name: str) -> Any:
    group = GROUPS[name]
    return observations[..., group.slice].reshape(*observations.shape[:-1], *group.axes, group.width)


def entities(observations: Any) -> Entities:
    """The five groups of an observation, or of an array or a tensor of them: views in the shapes of the groups."""
    _check_length(observations)
    return Entities(*(_group(observations, name) for name in GROUPS))


def view(observations: NDArray[np.generic], name: str) -> NDArray[np.generic]:
    """One field of an observation, or of an array of them, as a view in the field's own shape."""
    if name not in FIELDS:
        raise InvalidArgument(f"no field is called {name!r}: fields are {', '.join(FIELDS)}")
    _check_length(observations)
    field = FIELDS[name]
    found: NDArray[np.generic] = _group(observations, field.group)[..., field.columns].reshape(
        *observations.shape[:-1], *field.shape
    )
    return found


def _check_length(observations: Any) -> None:
    if observations.ndim == 0 or observations.shape[-1] != SIZE:
        raise InvalidArgument(f"observations must have {SIZE} entries each, but the shape is {observations.shape}")


def _for_every_entry(values: dict[str, float], dtype: type) -> NDArray[Any]:
    entries = np.zeros(SIZE, dtype)
    for name, value in values.items():
        view(entries, name)[...] = value
    entries.flags.writeable = False
    return entries


HIGHEST: Final = _for_every_entry({name: field.highest for name, field in FIELDS.items()}, np.int8)
"""The highest count of every entry."""

SCALE: Final = _for_every_entry({name: field.scale for name, field in FIELDS.items()}, np.float32)
"""`counts * SCALE` are float32 observations; they are seldom above 4, and at most `HIGHEST * SCALE`."""


# --- where things stand: the first entry of a field, and from there the steps to the next row and the next player

_at = {name: GROUPS[field.group].slice.start + field.columns.start for name, field in FIELDS.items()}
_PLAYER, _KIND, _ROOM = (GROUPS[name].width for name in ("players", "kinds", "dungeons"))  # the lengths of rows

_DECISION, _CYLINDER, _ROUNDS_LEFT = _at["decision"], _at["cylinder"], _at["rounds_left"]
_PILE_SIZE, _NEARLY_FULL, _PLACEMENTS = _at["pile_size"], _at["nearly_full"], _at["placements_left"]
_ZONE_USED, _REINFORCEMENTS = _at["zone_used"], _at["reinforcements_left"]
_ORDER = _at["gather_order"]
_PRESENT, _DECIDING, _ACTIVE, _RECIPIENT = _at["present"], _at["deciding"], _at["active"], _at["recipient"]
_SCORES, _POINTS, _SUPPLY, _MARSEILLE = _at["scores"], _at["gathered_points"], _at["supply"], _at["marseille"]
_HAND_SIZE, _WILDS, _ZONES, _MARBLES = _at["hand_size"], _at["wilds"], _at["zones"], _at["marbles"]
_MARKET, _MARKET_VALUES, _HANDS, _BAGS = _at["market"], _at["market_values"], _at["hands"], _at["bags"]
_LEFT_OVER, _DRAWN, _TAKING, _OWED = _at["left_over_bags"], _at["drawn_tokens"], _at["taking"], _at["owed"]
_UNSEEN, _CARD_DISCARD, _OFFER = _at["unseen_cards"], _at["card_discard"], _at["offer"]
_BAG, _TOKEN_DISCARD = _at["bag"], _at["token_discard"]
_ADVENTURERS, _QUEUE, _REACH = _at["adventurers"], _at["queue_positions"], _at["within_reach"]
_TOKENS, _CHEST, _DUNGEON, _TO_GATHER = _at["tokens"], _at["chest_dungeons"], _at["gather_dungeon"], _at["to_gather"]
_DUNGEON_TOKENS = _at["dungeon_tokens"]

_FROM_LANES, _FROM_ZONES, _FROM_QUEUES = OFFSET["lanes"], OFFSET["zones"], OFFSET["places"]
_FROM_HANDS, _FROM_TOKENS, _FROM_UNSEEN = OFFSET["hands"], OFFSET["dungeon_tokens"], OFFSET["unseen_cards"]
_FROM_CARD_DISCARD, _FROM_OFFER = OFFSET["card_discard"], OFFSET["offer"]
_FROM_BAG, _FROM_TOKEN_DISCARD = OFFSET["bag"], OFFSET["token_discard"]
_FROM_SUPPLY, _FROM_MARSEILLE = OFFSET["supply"], OFFSET["marseille"]
_FROM_SCORES, _FROM_GATHERED = OFFSET["score"], OFFSET["gathered"]
_FROM_HAND_SIZE, _FROM_WILDS = OFFSET["hand_size"], OFFSET["wilds"]
_FROM_CREW, _FROM_CHEST = OFFSET["crew"], OFFSET["chest_dungeons"]
_ALL_TOKENS, _ALL_QUEUES = DUNGEONS * TOKEN_TYPES, DUNGEONS * ADVENTURERS
_VECTOR = 16  # bytes that a processor handles at once; two such cover the lanes, and overlap; one the kinds of tokens
_LANES_REST = LANES * LANE_ROOM - _VECTOR
# Words of bytes. Four are copied where three are wanted, in the order in which they stand: the next field goes over the
# fourth, or else it must be 0.
_COUNTS, _WORD = (1 << 8 * SIZES) - 1, 4
_TIMES_BAGS, _BAGS_AT = 0x010203, 16  # the third byte of this product is first + 2 * second + 3 * third
_TIMES_ONE, _SUM_AT, _SEVEN = 0x0101010101010101, 56, (1 << 56) - 1  # the eighth byte of this one is the sum of all
_BYTE, _LONG = 0xFF, 8
_VALUES = 0x030201  # of tokens
_PAYABLE = _DUNGEON_TOKENS  # points for each token that a player can pay, by player, until the tokens are copied here
_WORTH = _PAYABLE + MAX_PLAYERS * _VECTOR  # points for each token, likewise


@kernel
def observe(s: Row, observer: int, out: np.ndarray) -> None:
    """Writes what the observer sees."""
    out[:] = 0
    n, first = int(s.num_players), int(observer)
    second = first + 1 if first + 1 < n else 0
    if n == MIN_PLAYERS:  # a tuple of seats for each number of players: Numba compiles loops over them without a loop
        _observe_all(s, (first, second), out)
    else:
        third = second + 1 if second + 1 < n else 0
        if n < MAX_PLAYERS:
            _observe_all(s, (first, second, third), out)
        else:
            _observe_all(s, (first, second, third, third + 1 if third + 1 < n else 0), out)


@inlined
def _observe_all(s: Row, seats: tuple[int, ...], out: np.ndarray) -> None:
    _observe_game(s, seats[0], out)
    _observe_market(s, out)
    for kind in range(KINDS):
        _observe_kind(s, seats, kind, kind * _KIND, out)
    for ego in range(len(seats)):
        _observe_player(s, seats[ego], ego * _PLAYER, out)
    nearly_full = 0
    for dungeon in range(DUNGEONS):
        nearly_full += _observe_dungeon(s, seats, dungeon, dungeon * _ROOM, out) == TREASURE_PLACES - 1
    out[_NEARLY_FULL] = nearly_full
    copy_bytes(out, _DUNGEON_TOKENS, s.bytes, _FROM_TOKENS, _ALL_TOKENS)
    _observe_phase(s, seats[0], out)


@inlined
def _ego(s: Row, seat: int, observer: int) -> int:
    """A seat as the observer counts, from their own clockwise."""
    ego = int(seat) - int(observer)
    return ego if ego >= 0 else ego + int(s.num_players)


@inlined
def _observe_game(s: Row, observer: int, out: np.ndarray) -> None:
    if s.decision != Decision.OVER:
        store_bytes(out, _DECISION + int(s.decision), 1, 1)
        store_bytes(out, _DECIDING + _ego(s, s.current_player, observer) * _PLAYER, 1, 1)
    store_bytes(out, _ACTIVE + _ego(s, s.active_player, observer) * _PLAYER, 1, 1)
    store_bytes(out, _CYLINDER + int(s.cylinder), 1, 1)
    out[_ROUNDS_LEFT] = min(int(s.round_limit) - int(s.round_number), MOST_SHOWN)
    out[_PILE_SIZE] = s.pile_size
    out[_PLACEMENTS] = s.placements_left
    out[_ZONE_USED] = s.zone_used
    out[_REINFORCEMENTS] = s.reinforcements_left


@inlined
def _observe_player(s: Row, seat: int, row: int, out: np.ndarray) -> None:
    store_bytes(out, _PRESENT + row, 1, 1)
    store_bytes(out, _SCORES + row, 1, min(load_bytes(s.bytes, _FROM_SCORES + 2 * seat, 2), MOST_SHOWN))
    store_bytes(out, _POINTS + row, 1, dot_bytes(s.bytes, _FROM_GATHERED + seat * TOKEN_TYPES, out, _WORTH))
    copy_bytes(out, _SUPPLY + row, s.bytes, _FROM_SUPPLY + seat, 1)
    copy_bytes(out, _MARSEILLE + row, s.bytes, _FROM_MARSEILLE + seat, 1)
    copy_bytes(out, _HAND_SIZE + row, s.bytes, _FROM_HAND_SIZE + seat, 1)
    copy_bytes(out, _WILDS + row, s.bytes, _FROM_WILDS + seat, 1)
    copy_bytes(out, _ZONES + row, s.bytes, _FROM_ZONES + seat * ZONES, ZONES)
    mark_equal_bytes(out, _MARBLES + row, s.bytes, _FROM_LANES, _VECTOR, seat + 1)
    mark_equal_bytes(out, _MARBLES + row + _LANES_REST, s.bytes, _FROM_LANES + _LANES_REST, _VECTOR, seat + 1)


@inlined
def _observe_kind(s: Row, seats: tuple[int, ...], kind: int, row: int, out: np.ndarray) -> None:
    sizes = kind * SIZES
    worth = load_bytes(out, _MARKET_VALUES + row, 1) * _VALUES
    store_bytes(out, _WORTH + sizes, _WORD, worth)
    bags = 0
    for ego in range(len(seats)):
        cards = load_bytes(s.bytes, _FROM_HANDS + seats[ego] * CARD_TYPES + sizes, _WORD)
        store_bytes(out, _HANDS + row + ego * SIZES, _WORD, cards if ego + 1 < len(seats) else cards & _COUNTS)
        held = cards * _TIMES_BAGS >> _BAGS_AT & _BYTE
        bags |= held << 8 * ego
        price = min(held + load_bytes(s.bytes, _FROM_WILDS + seats[ego], 1), SIZES)  # the highest that they can pay
        store_bytes(out, _PAYABLE + ego * _VECTOR + sizes, _WORD, worth & (1 << 8 * price) - 1)
    copy_bytes(out, _UNSEEN + row, s.bytes, _FROM_UNSEEN + sizes, _WORD)
    copy_bytes(out, _CARD_DISCARD + row, s.bytes, _FROM_CARD_DISCARD + sizes, _WORD)
    copy_bytes(out, _OFFER + row, s.bytes, _FROM_OFFER + sizes, _WORD)
    copy_bytes(out, _BAG + row, s.bytes, _FROM_BAG + sizes, _WORD)
    copy_bytes(out, _TOKEN_DISCARD + row, s.bytes, _FROM_TOKEN_DISCARD + sizes, _WORD)
    store_bytes(out, _BAGS + row, _WORD, bags)


@inlined
def _observe_market(s: Row, out: np.ndarray) -> None:
    for space in range(KINDS):
        row = int(s.market[space]) * _KIND
        store_bytes(out, _MARKET + row + space, 1, 1)
        store_bytes(out, _MARKET_VALUES + row, 1, int(s.market_values[space]))


@inlined
def _observe_dungeon(s: Row, seats: tuple[int, ...], dungeon: int, row: int, out: np.ndarray) -> int:
    """Returns how many tokens there are."""
    start = _FROM_TOKENS + dungeon * TOKEN_TYPES
    tokens = load_bytes(s.bytes, start, _LONG) + (load_bytes(s.bytes, start + _LONG, _LONG) & _SEVEN)
    tokens = tokens * _TIMES_ONE >> _SUM_AT & _BYTE
    adventurers = reach = 0
    for ego in range(len(seats)):
        queue = _FROM_QUEUES + seats[ego] * _ALL_QUEUES + dungeon * ADVENTURERS
        copy_bytes(out, _QUEUE + row + ego * ADVENTURERS, s.bytes, queue, ADVENTURERS)
        adventurers |= load_bytes(s.bytes, _FROM_CREW + seats[ego] * DUNGEONS + dungeon, 1) << 8 * ego
    for ego in range(0, len(seats), 2):
        reach |= dot_two(s.bytes, start, out, _PAYABLE + ego * _VECTOR) << 8 * ego
    store_bytes(out, _ADVENTURERS + row, _WORD, adventurers)
    store_bytes(out, _REACH + row, _WORD, reach)
    store_bytes(out, _TOKENS + row, 1, tokens)
    copy_bytes(out, _CHEST + row, s.bytes, _FROM_CHEST + dungeon, 1)
    return tokens


@inlined
def _observe_phase(s: Row, observer: int, out: np.ndarray) -> None:
    if s.recipient != NONE:
        out[_RECIPIENT + _ego(s, s.recipient, observer) * _PLAYER] = 1
    match s.decision:
        case Decision.PUT_TOKEN:
            for i in range(TOKENS_DRAWN):
                token = int(s.drawn_tokens[i])
                if token != NONE:
                    out[_DRAWN + token // SIZES * _KIND + i] = token % SIZES + 1
        case Decision.TAKE | Decision.PAY:
            _observe_scoring(s, observer, out)


@inlined
def _observe_scoring(s: Row, observer: int, out: np.ndarray) -> None:
    out[_DUNGEON + int(s.gather_dungeon) * _ROOM] = 1
    for dungeon in range(int(s.gather_dungeon), DUNGEONS):
        out[_TO_GATHER + dungeon * _ROOM] = 1
    for turn in range(MAX_PLAYERS):
        if s.gather_order[turn] != NONE:
            out[_ORDER + _ego(s, s.gather_order[turn], observer) * _PLAYER] = MAX_PLAYERS - turn
    for player in range(s.num_players):
        ego = _ego(s, player, observer)
        for kind in range(KINDS):
            out[_LEFT_OVER + kind * _KIND + ego] = s.left_over_bags[player, kind]
    if s.taking != NONE:
        kind, value = int(s.taking) // SIZES, int(s.taking) % SIZES + 1
        out[_TAKING + kind * _KIND] = value
        out[_OWED + kind * _KIND] = value - int(s.left_over_bags[s.current_player, kind])
