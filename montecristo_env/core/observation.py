"""What a player sees: everything public that bears on the future, from his own seat, as int8.

Seat 0 of every field is the observer, then clockwise; absent seats are zero. `FIELDS` names the parts. Nothing
hidden is in it. Which shuffle an unseen card comes from (§10.1) is left out too, though it is public: only the unseen
cards as a whole are given.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core._jit import kernel
from montecristo_env.core.constants import (
    ADVENTURERS,
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
    TOKEN_TYPES,
    TOKENS,
    TOKENS_DRAWN,
    TREASURE_PLACES,
    ZONES,
    Decision,
)
from montecristo_env.core.layout import Row
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
_declared: list[tuple[str, tuple[int, ...], int, str]] = [
    ("seated", (_SEATS,), 1, "1 for every seat in the game"),
    ("deciding", (_SEATS,), 1, "who must decide; all 0 when the game is over"),
    ("active", (_SEATS,), 1, "the active player, owner of the marble in use"),
    ("decision", (DECISIONS,), 1, "the kind of decision, in the order of the blocks of actions"),
    ("cylinder", (LANES,), 1, "the current lane"),
    ("rounds_left", (1,), LAP - 1, "rounds after this one until the limit, modulo 128"),
    ("rounds_left_laps", (1,), LAP - 1, "the same divided by 128"),
    ("scores", (_SEATS,), LAP - 1, "points, modulo 128"),
    ("scores_laps", (_SEATS,), LAP - 1, "points divided by 128 (0 with the default target)"),
    ("gathered_points", (_SEATS,), MOST_POINTS_A_ROUND, "points that the tokens gathered in this round will score"),
    ("supply", (_SEATS,), ADVENTURERS, "adventurers in the personal supply"),
    ("marseille", (_SEATS,), ADVENTURERS, "adventurers in the general supply"),
    ("wilds", (_SEATS,), MOST_CARDS_HELD, "wild bags held"),
    ("zones", (_SEATS, ZONES), 1, "1 where the player has an adventurer in the bonus zone"),
    ("hands", (_SEATS, *_PER_TYPE), MOST_CARDS_HELD, "face-up cards by kind and bags"),
    ("crew", (_SEATS, DUNGEONS), ADVENTURERS, "adventurers in each dungeon"),
    (
        "places",
        (_SEATS, DUNGEONS, ADVENTURERS),
        _SEATS * ADVENTURERS,
        "their places in the queue, foremost first, counted from 1; 0 for none",
    ),
    ("lanes", (LANES, LANE_ROOM, _SEATS), 1, "owner of the marble at each position, bottom first"),
    ("market", (KINDS, KINDS), 1, "market space of each kind, best first"),
    ("market_values", (KINDS,), 3, "what the market gives for each kind"),
    ("dungeon_tokens", (DUNGEONS, *_PER_TYPE), TREASURE_PLACES, "tokens in each dungeon by kind and value"),
    ("unseen_cards", _PER_TYPE, CARDS, "cards in the pile and among the wild bags"),
    ("card_discard", _PER_TYPE, CARDS, "discarded cards"),
    ("pile_size", (1,), CARDS, "cards in the pile"),
    ("bag", _PER_TYPE, TOKENS, "tokens in the bag"),
    ("token_discard", _PER_TYPE, TOKENS, "discarded tokens"),
    ("offer", _PER_TYPE, MAX_PLAYERS, "Supply: cards drawn and not yet dealt"),
    ("recipient", (_SEATS,), 1, "Supply: who gets the next card"),
    ("placements_left", (1,), PLACEMENTS_ACTIVE, "Adventurers: placements still open to the player placing"),
    ("zone_used", (1,), 1, "Adventurers: he has used his bonus zone"),
    ("reinforcements_left", (1,), REINFORCEMENTS, "Adventurers: reinforcements still open to him"),
    ("drawn_tokens", (TOKENS_DRAWN, KINDS), SIZES, "Treasure chest: tokens to place, in order: the value at the kind"),
    ("chest_dungeons", (DUNGEONS,), 1, "Treasure chest: dungeons already used"),
    ("gather_dungeon", (DUNGEONS,), 1, "Scoring: the dungeon"),
    ("gather_order", (_SEATS,), _SEATS, "Scoring: 1 for the player whose turn it is, 2 for the next …; 0 for none"),
    ("taking", (KINDS,), SIZES, "Scoring: the token being paid for: the value at the kind"),
    ("left_over_bags", (KINDS,), SIZES - 1, "Scoring: bags paid in this turn and not used up, by kind"),
]


def _lay_out() -> dict[str, Field]:
    fields, start = {}, 0
    for name, shape, highest, meaning in _declared:
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
_SEATED, _DECIDING, _ACTIVE, _DECISION = _at["seated"], _at["deciding"], _at["active"], _at["decision"]
_CYLINDER, _ROUNDS_LEFT, _ROUNDS_LAPS = _at["cylinder"], _at["rounds_left"], _at["rounds_left_laps"]
_SCORES, _SCORES_LAPS, _POINTS = _at["scores"], _at["scores_laps"], _at["gathered_points"]
_SUPPLY, _MARSEILLE, _WILDS, _ZONES = _at["supply"], _at["marseille"], _at["wilds"], _at["zones"]
_HANDS, _CREW, _PLACES, _LANES = _at["hands"], _at["crew"], _at["places"], _at["lanes"]
_MARKET, _MARKET_VALUES, _DUNGEON_TOKENS = _at["market"], _at["market_values"], _at["dungeon_tokens"]
_UNSEEN, _CARD_DISCARD, _PILE_SIZE = _at["unseen_cards"], _at["card_discard"], _at["pile_size"]
_BAG, _TOKEN_DISCARD, _OFFER, _RECIPIENT = _at["bag"], _at["token_discard"], _at["offer"], _at["recipient"]
_PLACEMENTS, _ZONE_USED, _REINFORCEMENTS = _at["placements_left"], _at["zone_used"], _at["reinforcements_left"]
_DRAWN, _CHEST, _DUNGEON, _ORDER = (
    _at["drawn_tokens"],
    _at["chest_dungeons"],
    _at["gather_dungeon"],
    _at["gather_order"],
)
_TAKING, _LEFT_OVER = _at["taking"], _at["left_over_bags"]


@kernel
def observe(s: Row, observer: int, out: np.ndarray) -> None:
    """Writes what the observer sees."""
    out[:] = 0
    _observe_turn(s, observer, out)
    for ego in range(s.num_players):
        _observe_seat(s, (observer + ego) % s.num_players, ego, out)
    _observe_board(s, observer, out)
    _observe_phase(s, observer, out)


@kernel
def _ego(s: Row, seat: int, observer: int) -> int:
    """A seat as the observer counts, from himself clockwise."""
    ego = int(seat) - int(observer)
    return ego if ego >= 0 else ego + int(s.num_players)


@kernel
def _observe_turn(s: Row, observer: int, out: np.ndarray) -> None:
    if s.decision != Decision.OVER:
        out[_DECIDING + _ego(s, s.current_player, observer)] = 1
        out[_DECISION + s.decision] = 1
    out[_ACTIVE + _ego(s, s.active_player, observer)] = 1
    out[_CYLINDER + s.cylinder] = 1
    rounds_left = int(s.round_limit) - int(s.round_number)
    out[_ROUNDS_LEFT] = rounds_left % LAP
    out[_ROUNDS_LAPS] = rounds_left // LAP


@kernel
def _observe_seat(s: Row, seat: int, ego: int, out: np.ndarray) -> None:
    out[_SEATED + ego] = 1
    out[_SCORES + ego] = s.score[seat] % LAP
    out[_SCORES_LAPS + ego] = s.score[seat] // LAP
    if s.gather_dungeon != NONE:
        out[_POINTS + ego] = gathered_points(s, seat)
    out[_SUPPLY + ego] = s.supply[seat]
    out[_MARSEILLE + ego] = s.marseille[seat]
    out[_WILDS + ego] = s.wilds[seat]
    for zone in range(ZONES):
        out[_ZONES + ego * ZONES + zone] = s.zones[seat, zone]
    for card in range(CARD_TYPES):
        out[_HANDS + ego * CARD_TYPES + card] = s.hands[seat, card]
    for dungeon in range(DUNGEONS):
        out[_CREW + ego * DUNGEONS + dungeon] = s.crew[seat, dungeon]
        for i in range(ADVENTURERS):
            out[_PLACES + (ego * DUNGEONS + dungeon) * ADVENTURERS + i] = s.places[seat, dungeon, i]


@kernel
def _observe_board(s: Row, observer: int, out: np.ndarray) -> None:
    for lane in range(LANES):
        for position in range(s.lane_size[lane]):
            ego = _ego(s, s.lanes[lane, position] - 1, observer)
            out[_LANES + (lane * LANE_ROOM + position) * MAX_PLAYERS + ego] = 1
    for space in range(KINDS):
        out[_MARKET + s.market[space] * KINDS + space] = 1
        out[_MARKET_VALUES + s.market[space]] = s.market_values[space]
    for dungeon in range(DUNGEONS):
        for token in range(TOKEN_TYPES):
            out[_DUNGEON_TOKENS + dungeon * TOKEN_TYPES + token] = s.dungeon_tokens[dungeon, token]
    for card in range(CARD_TYPES):
        out[_UNSEEN + card] = s.unseen[card]
        out[_CARD_DISCARD + card] = s.card_discard[card]
    out[_PILE_SIZE] = s.pile_size
    for token in range(TOKEN_TYPES):
        out[_BAG + token] = s.bag_count[token]
        out[_TOKEN_DISCARD + token] = s.token_discard[token]


@kernel
def _observe_phase(s: Row, observer: int, out: np.ndarray) -> None:
    match s.decision:
        case Decision.DEAL:
            for card in range(CARD_TYPES):
                out[_OFFER + card] = s.offer[card]
            out[_RECIPIENT + _ego(s, s.recipient, observer)] = 1
        case Decision.PUT_TOKEN:
            for i in range(TOKENS_DRAWN):
                if s.drawn_tokens[i] != NONE:
                    out[_DRAWN + i * KINDS + s.drawn_tokens[i] // SIZES] = s.drawn_tokens[i] % SIZES + 1
            for dungeon in range(DUNGEONS):
                out[_CHEST + dungeon] = s.chest_dungeons[dungeon]
        case Decision.TAKE | Decision.PAY:
            out[_DUNGEON + s.gather_dungeon] = 1
            for turn in range(MAX_PLAYERS):
                if s.gather_order[turn] != NONE:
                    out[_ORDER + _ego(s, s.gather_order[turn], observer)] = turn + 1
            if s.taking != NONE:
                out[_TAKING + s.taking // SIZES] = s.taking % SIZES + 1
            for kind in range(KINDS):
                out[_LEFT_OVER + kind] = s.left_over[kind]
        case _:
            out[_PLACEMENTS] = s.placements_left
            out[_ZONE_USED] = s.zone_used
            out[_REINFORCEMENTS] = s.reinforcements_left
