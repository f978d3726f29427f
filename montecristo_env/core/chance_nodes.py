"""Play in which chance is a player: whatever is drawn is an explicit outcome, chosen from outside.

Games stand still wherever something is about to be turned up: the setup (§2), each supply card (§4.1), each treasure
token (§6.1). There `scratch` holds how likely each outcome is, as whole numbers; the distribution is exact, given all
that the players know (§10.1). Wild bags are drawn unseen, so what they are is decided when they come back as cards.
Outcomes of which only one is possible are not asked, as decisions are not (§11.4).
"""

from enum import IntEnum
from itertools import permutations

import numpy as np

from montecristo_env.core.chance import (
    draw_card,
    draw_token,
    fill_bag,
    lowest_bit,
    shuffle_discards_under_pile,
)
from montecristo_env.core.constants import (
    CARD_TYPES,
    DUNGEONS,
    HIDDEN_SLOTS,
    KINDS,
    LANE_ROOM,
    LANES,
    MARBLES,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NONE,
    TOKEN_TYPES,
    TOKENS_DRAWN,
    Decision,
    Lane,
)
from montecristo_env.core.jit import copy_bytes, entry_point, kernel
from montecristo_env.core.layout import STATE, Float64s, Row, States
from montecristo_env.core.legal import NOTHING, legal_choices
from montecristo_env.core.rules import (
    apply,
    enter_lane,
    finish_drawing_tokens,
    move_cylinder,
    put_used_marble,
    reach_lane,
)
from montecristo_env.core.scoring import tokens_in, write_rewards
from montecristo_env.core.setup import set_up


class Draw(IntEnum):
    """What chance decides."""

    LANE = 0  # the marbles of the next lane: an index of `LANE_ORDERS`
    MARKET = 1  # the kind on the next space of the market, best first
    DUNGEON = 2  # the token that the next dungeon starts with
    CARD = 3  # the next supply card
    TOKEN = 4  # the next token of a treasure chest


_PER_LANE = MARBLES[MIN_PLAYERS] * MIN_PLAYERS // LANES  # with two players
LANE_ORDERS: dict[int, list[tuple[int, ...]]] = {
    # One colour is alone; which one, then its place.
    MIN_PLAYERS: [
        tuple(alone if place == position else 1 - alone for place in range(_PER_LANE))
        for alone in range(MIN_PLAYERS)
        for position in range(_PER_LANE)
    ],
    **{players: list(permutations(range(players))) for players in range(MIN_PLAYERS + 1, MAX_PLAYERS + 1)},
}
"""By number of players, the orders in which the marbles of a lane can lie at the start, seats bottom first (§2.1)."""

OUTCOMES = max(CARD_TYPES, TOKEN_TYPES, *map(len, LANE_ORDERS.values()))
"""More than the highest outcome."""

_ORDERS = np.zeros((MAX_PLAYERS + 1, OUTCOMES, LANE_ROOM), np.int8)  # seat + 1, as in rows
for _players, _found in LANE_ORDERS.items():
    for _order, _seats in enumerate(_found):
        _ORDERS[_players, _order, : len(_seats)] = np.array(_seats) + 1
_ORDER_COUNT = np.array([len(LANE_ORDERS.get(players, [])) for players in range(MAX_PLAYERS + 1)])
_LANES_ALIKE = LANES // MIN_PLAYERS  # with two players, each colour is alone in this number of lanes
_ROW_BYTES = STATE.itemsize
_ONE = np.uint64(1)


# --- where chance is asked


@kernel
def next_draw(s: Row) -> Draw:
    """What is drawn in a game that waits for chance; round 0 is its setup."""
    if s.round_number == 0:
        if s.lane_size[LANES - 1] == 0:
            return Draw.LANE
        return Draw.MARKET if s.market[KINDS - 1] == NONE else Draw.DUNGEON
    return Draw.CARD if s.cylinder == Lane.SUPPLY else Draw.TOKEN


@kernel
def proceed(s: Row) -> None:
    """Goes on until a player or chance has a choice, or to the end."""
    s.legal = NOTHING
    while s.decision != Decision.OVER:
        if s.current_player == NONE:
            outcome = weigh(s)
            if outcome == NONE:
                return
            draw(s, outcome)
        else:
            legal = legal_choices(s)
            if legal & (legal - _ONE) != NOTHING:
                s.legal = legal
                return
            decide(s, lowest_bit(legal))


@kernel
def decide(s: Row, choice: int) -> None:
    """One decision, forced or not; where the rules would then draw, chance is asked instead."""
    if s.decision != Decision.RETURN_MARBLE:
        apply(s, choice)
        return
    put_used_marble(s, choice)
    if not move_cylinder(s) or not reach_lane(s):
        return
    match s.cylinder:
        case Lane.SUPPLY:
            ask_for_card(s)
        case Lane.CHEST:
            if s.bag_size < TOKENS_DRAWN:  # §6.2
                fill_bag(s)
            s.current_player = NONE
        case _:
            enter_lane(s)


@kernel
def ask_for_card(s: Row) -> None:
    """Asks chance for the next card of the supply, or begins the deal when no more is to come (§4.1, §4.4)."""
    if s.pile_size == 0 and s.offer_size < s.num_players:  # §4.3
        shuffle_discards_under_pile(s)
    if s.pile_size == 0 or s.offer_size == s.num_players:
        enter_lane(s)
    else:
        s.current_player = NONE


# --- what may come


@kernel
def weigh(s: Row) -> int:
    """Writes how likely every outcome is into `scratch`; returns the only possible one, or NONE if several are."""
    for outcome in range(HIDDEN_SLOTS):
        s.scratch[outcome] = 0
    match next_draw(s):
        case Draw.LANE:
            weigh_orders(s)
        case Draw.MARKET:
            for kind in range(KINDS):
                s.scratch[kind] = 1
            for space in range(KINDS):
                if s.market[space] != NONE:
                    s.scratch[s.market[space]] = 0
        case Draw.CARD:  # all hidden cards of the shuffle of the top one are equally likely
            shuffle = s.slot_shuffle[s.pile[s.pile_top]]
            for slot in range(HIDDEN_SLOTS):
                if s.slot_shuffle[slot] == shuffle:
                    s.scratch[s.slot_card[slot]] += 1
        case _:
            for token in range(TOKEN_TYPES):
                s.scratch[token] = s.bag[token]
    only, found = NONE, 0
    for outcome in range(OUTCOMES):
        if s.scratch[outcome] > 0:
            only = outcome
            found += 1
    return only if found == 1 else NONE


@kernel
def weigh_orders(s: Row) -> None:
    """Any order, as long as all lanes together can be filled as they must be (§2.1)."""
    for order in range(_ORDER_COUNT[s.num_players]):
        s.scratch[order] = 1 if s.num_players > MIN_PLAYERS else _LANES_ALIKE
    if s.num_players == MIN_PLAYERS:
        for lane in range(LANES):
            if s.lane_size[lane] > 0:
                alone = alone_in(s, lane)
                for position in range(_PER_LANE):
                    s.scratch[alone * _PER_LANE + position] -= 1


@kernel
def alone_in(s: Row, lane: int) -> int:
    """With two players: whose marble is alone in a lane at the start."""
    blue = 0
    for position in range(_PER_LANE):
        blue += s.lanes[lane, position] - 1
    return 1 if blue == 1 else 0


# --- drawing


@kernel
def draw(s: Row, outcome: int) -> None:
    """This outcome, which must be possible, happens."""
    match next_draw(s):
        case Draw.LANE:
            lane = 0
            while s.lane_size[lane] > 0:
                lane += 1
            for position in range(LANE_ROOM):
                s.lanes[lane, position] = _ORDERS[s.num_players, outcome, position]
                s.lane_size[lane] += s.lanes[lane, position] > 0
        case Draw.MARKET:
            space = 0
            while s.market[space] != NONE:
                space += 1
            s.market[space] = outcome
        case Draw.DUNGEON:
            dungeon = 0
            while tokens_in(s, dungeon) > 0:
                dungeon += 1
            s.dungeon_tokens[dungeon, draw_this_token(s, outcome)] += 1
            if dungeon == DUNGEONS - 1:
                s.round_number = 1
                reach_lane(s)
                ask_for_card(s)
        case Draw.CARD:
            s.offer[draw_this_card(s, outcome)] += 1
            s.offer_size += 1
            ask_for_card(s)
        case _:
            place = 0
            while s.drawn_tokens[place] != NONE:
                place += 1
            s.drawn_tokens[place] = draw_this_token(s, outcome)
            if place == TOKENS_DRAWN - 1:
                finish_drawing_tokens(s)


@kernel
def draw_this_card(s: Row, card: int) -> int:
    """Draws a card after exchanging hidden cards of one shuffle so that it lies on top (§10.1)."""
    top = s.pile[s.pile_top]
    other = top
    if s.slot_card[top] != card:
        other = 0
        while s.slot_shuffle[other] != s.slot_shuffle[top] or s.slot_card[other] != card:
            other += 1
    s.slot_card[other] = s.slot_card[top]
    s.slot_card[top] = card
    return draw_card(s)


@kernel
def draw_this_token(s: Row, token: int) -> int:
    """Draws a token after reordering the bag so that it comes next."""
    top = s.bag_size - 1
    other = top
    while s.bag_order[other] != token:
        other -= 1
    s.bag_order[other] = s.bag_order[top]
    s.bag_order[top] = token
    return draw_token(s)


@kernel
def begin(s: Row, seed: np.uint64) -> None:
    """A new game whose setup is left to chance; the seed only says what `dealt` answers."""
    set_up(s, seed)
    for dungeon in range(DUNGEONS - 1, -1, -1):  # back into the bag, in the order drawn
        for token in range(TOKEN_TYPES):
            if s.dungeon_tokens[dungeon, token] > 0:
                s.dungeon_tokens[dungeon, token] = 0
                s.bag[token] += 1
                s.bag_order[s.bag_size] = token
                s.bag_size += 1
    for lane in range(LANES):
        s.lane_size[lane] = 0
        for position in range(LANE_ROOM):
            s.lanes[lane, position] = 0
    for space in range(KINDS):
        s.market[space] = NONE
    s.round_number = 0
    s.current_player = NONE


@kernel
def dealt(s: Row, spare: Row) -> int:
    """The outcome that the game of this seed has here, if it has come here by such outcomes and the same decisions."""
    match next_draw(s):
        case Draw.CARD:
            return int(s.slot_card[s.pile[s.pile_top]])
        case Draw.DUNGEON | Draw.TOKEN:
            return int(s.bag_order[s.bag_size - 1])
    copy_bytes(spare.bytes, 0, s.bytes, 0, _ROW_BYTES)
    set_up(spare, s.seed)
    place = 0
    if next_draw(s) == Draw.MARKET:
        while s.market[place] != NONE:
            place += 1
        return int(spare.market[place])
    while s.lane_size[place] > 0:
        place += 1
    order = 0
    while not same_order(spare, place, order):
        order += 1
    return order


@kernel
def same_order(s: Row, lane: int, order: int) -> bool:
    """Whether the marbles of a lane lie in this order."""
    for position in range(LANE_ROOM):  # noqa: SIM110 (a generator would not compile)
        if s.lanes[lane, position] != _ORDERS[s.num_players, order, position]:
            return False
    return True


# --- the entry points, for one row each


@entry_point
def begin_game(states: States, row: int, seed: np.uint64) -> None:
    """See `begin`."""
    begin(states[row], seed)
    proceed(states[row])


@entry_point
def play_decision(states: States, row: int, choice: int) -> None:
    """A legal decision of the current player, and everything up to the next choice of a player or of chance."""
    s = states[row]
    s.decisions += 1
    decide(s, choice)
    proceed(s)


@entry_point
def play_outcome(states: States, row: int, outcome: int) -> None:
    """A possible outcome of chance, and everything up to the next choice of a player or of chance."""
    draw(states[row], outcome)
    proceed(states[row])


@entry_point
def what_is_drawn(states: States, row: int) -> int:
    """See `next_draw`."""
    return int(next_draw(states[row]).value)


@entry_point
def dealt_outcome(states: States, row: int, spare: States) -> int:
    """See `dealt`; `spare` has room for one row."""
    return dealt(states[row], spare[0])


@entry_point
def write_returns(states: States, row: int, reward: int, out: Float64s) -> None:
    """The rewards of a game that is over."""
    write_rewards(states[row], reward, out)
