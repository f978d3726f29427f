"""Every state can be asked whether it is sane: conservation, ranges, and a legal set that is empty only at the end."""

import numpy as np

from montecristo_env.core.chance import count_bits
from montecristo_env.core.constants import (
    ADVENTURERS,
    CARD_TYPES,
    DUNGEONS,
    HAND_LIMIT,
    HIDDEN_SLOTS,
    KINDS,
    LANE_COLOUR_ROOM,
    LANE_ROOM,
    LANES,
    MARBLES,
    NONE,
    TOKEN_TYPES,
    TREASURE_PLACES,
    ZONES,
    Decision,
    Lane,
)
from montecristo_env.core.jit import entry_point, kernel
from montecristo_env.core.layout import Int64s, Row, States
from montecristo_env.core.legal import legal_choices
from montecristo_env.core.scoring import tokens_in

_CHECKS = (
    "adventurers",  # §1.5: 9 of each player, the queue of a dungeon numbered without gaps
    "marbles",  # §1.4, §3.3
    "cards",  # §1.6: every copy is in exactly one place, and what is unseen is known
    "tokens",  # §1.7
    "hands",  # §4.5
    "market",  # a permutation
    "decision",  # a real choice exactly while the game lives
)
_ADVENTURERS, _MARBLES, _CARDS, _TOKENS, _HANDS, _MARKET, _DECISION = (1 << i for i in range(len(_CHECKS)))
_MARBLES_2, _MARBLES_MORE = MARBLES[2], MARBLES[4]


def describe(violations: int) -> list[str]:
    """The names of the checks that failed."""
    return [name for i, name in enumerate(_CHECKS) if violations >> i & 1]


@entry_point
def find_violations(states: States, rows: Int64s, out: Int64s, begin: int, end: int) -> None:
    """The failed checks of every game."""
    for k in range(begin, end):
        out[k] = violations(states[rows[k]])


@kernel
def violations(s: Row) -> int:
    """The checks that a state fails, as bits; 0 for a sane state."""
    failed = 0
    if not _adventurers_are_sane(s):
        failed |= _ADVENTURERS
    if not _marbles_are_sane(s):
        failed |= _MARBLES
    if not _cards_are_sane(s):
        failed |= _CARDS
    if not _tokens_are_sane(s):
        failed |= _TOKENS
    if not _hands_are_sane(s):
        failed |= _HANDS
    if not _market_is_sane(s):
        failed |= _MARKET
    if not _decision_is_sane(s):
        failed |= _DECISION
    return failed


@kernel
def _adventurers_are_sane(s: Row) -> bool:
    for player in range(s.num_players):
        total = int(s.supply[player]) + int(s.marseille[player])
        for zone in range(ZONES):
            total += s.zones[player, zone]
        for dungeon in range(DUNGEONS):
            total += s.crew[player, dungeon]
        if total != ADVENTURERS or s.supply[player] < 0 or s.marseille[player] < 0:
            return False
    for dungeon in range(DUNGEONS):
        taken = np.uint64(0)
        total = 0
        for player in range(s.num_players):
            for i in range(ADVENTURERS):
                place = int(s.places[player, dungeon, i])
                if (place > 0) != (i < s.crew[player, dungeon]):
                    return False
                if i > 0 and place > 0 and place <= s.places[player, dungeon, i - 1]:
                    return False
                if place > 0:
                    taken |= np.uint64(1) << np.uint64(place - 1)
            total += s.crew[player, dungeon]
        if total != s.queue_length[dungeon] or taken != (np.uint64(1) << np.uint64(total)) - np.uint64(1):
            return False
    return True


@kernel
def _marbles_are_sane(s: Row) -> bool:
    for player in range(s.num_players):
        total = 0
        for lane in range(LANES):
            alike = 0
            for position in range(LANE_ROOM):
                if (s.lanes[lane, position] != 0) != (position < s.lane_size[lane]):
                    return False
                alike += s.lanes[lane, position] == player + 1
            if alike > LANE_COLOUR_ROOM:
                return False
            total += alike
        if total != (_MARBLES_2 if s.num_players == 2 else _MARBLES_MORE):
            return False
    return True


@kernel
def _cards_are_sane(s: Row) -> bool:
    used = np.uint64(0)  # slots of pile and wild bags
    for i in range(s.pile_size):
        used |= np.uint64(1) << np.uint64(s.pile[(s.pile_top + i) % HIDDEN_SLOTS])
    hidden = int(s.pile_size)
    for player in range(s.num_players):
        for i in range(s.wilds[player]):
            used |= np.uint64(1) << np.uint64(s.wild_slots[player, i])
        hidden += s.wilds[player]
    if count_bits(used) != hidden:
        return False
    for card in range(CARD_TYPES):
        unseen = 0
        for slot in range(HIDDEN_SLOTS):
            in_use = (used >> np.uint64(slot)) & np.uint64(1) == np.uint64(1)
            if in_use == (s.slot_shuffle[slot] == NONE):
                return False
            unseen += in_use and s.slot_card[slot] == card
        total = unseen + int(s.card_discard[card]) + int(s.offer[card])
        for player in range(s.num_players):
            total += s.hands[player, card]
        if total != s.deck[card] or unseen != s.unseen_cards[card]:
            return False
    return True


@kernel
def _tokens_are_sane(s: Row) -> bool:
    for token in range(TOKEN_TYPES):
        in_bag = 0
        for i in range(s.bag_size):
            in_bag += s.bag_order[i] == token
        total = in_bag + int(s.token_discard[token])
        for drawn in s.drawn_tokens:
            total += drawn == token
        for dungeon in range(DUNGEONS):
            total += s.dungeon_tokens[dungeon, token]
        for player in range(s.num_players):
            total += s.gathered[player, token]
        if total != s.tokens[token] or in_bag != s.bag[token]:
            return False
    for dungeon in range(DUNGEONS):  # noqa: SIM110 (a generator would not compile)
        if tokens_in(s, dungeon) > TREASURE_PLACES:
            return False
    return True


@kernel
def _hands_are_sane(s: Row) -> bool:
    for player in range(s.num_players):
        total = int(s.wilds[player])
        for card in range(CARD_TYPES):
            total += s.hands[player, card]
        over_limit = (
            s.decision == Decision.DEAL or s.decision == Decision.DISCARD
            if s.discard_after_deal
            else s.decision == Decision.DISCARD and player == s.current_player
        )
        if total != s.hand_size[player] or total > HAND_LIMIT + over_limit:
            return False
    return True


@kernel
def _market_is_sane(s: Row) -> bool:
    seen = 0
    for kind in s.market:
        seen |= 1 << kind
    return seen == (1 << KINDS) - 1


@kernel
def _decision_is_sane(s: Row) -> bool:
    if s.legal != legal_choices(s):
        return False
    if s.decision == Decision.OVER:
        return bool(s.terminated != s.truncated and s.current_player == NONE and s.legal == np.uint64(0))
    if s.terminated or s.truncated or count_bits(s.legal) < 2:
        return False
    lane = s.cylinder
    return bool(Lane.SUPPLY <= lane <= Lane.REARRANGE and 0 <= s.current_player < s.num_players)
