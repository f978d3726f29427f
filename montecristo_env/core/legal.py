"""Which actions are legal (§11): for every kind of decision the set of choices in its block, as bits of one word."""

import numpy as np

from montecristo_env.core.actions import (
    FIRST_MOVE,
    KEEP_ORDER,
    MOVE_MARKER,
    MOVES_PER_LANE,
    STOP_PLACING,
    STOP_REINFORCING,
    STOP_TAKING,
    VISIT,
)
from montecristo_env.core.constants import (
    CARD_TYPES,
    DUNGEONS,
    KINDS,
    LANE_COLOUR_ROOM,
    LANE_ROOM,
    LANES,
    LONGEST_MOVE,
    SIZES,
    TOKEN_TYPES,
    WILD_BAG,
    ZONES,
    Decision,
)
from montecristo_env.core.jit import kernel, nonzero_bytes
from montecristo_env.core.layout import OFFSET, Row

NOTHING = np.uint64(0)
_ONE = np.uint64(1)
_ALL_DUNGEONS, _ALL_ZONES, _ALL_TYPES = (np.uint64((1 << size) - 1) for size in (DUNGEONS, ZONES, CARD_TYPES))
_HANDS, _ZONES, _CHEST = OFFSET["hands"], OFFSET["zones"], OFFSET["chest_dungeons"]
_TOKENS, _OFFER = OFFSET["dungeon_tokens"], OFFSET["offer"]


@kernel
def bit(choice: int) -> np.uint64:
    """The set that holds one choice."""
    return _ONE << np.uint64(choice)


@kernel
def legal_choices(s: Row) -> np.uint64:
    """The legal choices of the decision at hand; nothing when the game is over."""
    match s.decision:
        case Decision.DEAL:
            return present(s, _OFFER)  # §11.3: equal cards are one action
        case Decision.DISCARD:
            return discardable(s)
        case Decision.PLACE:
            return placeable(s)
        case Decision.REINFORCE:
            return _ALL_DUNGEONS | bit(STOP_REINFORCING)  # §5.6
        case Decision.PUT_TOKEN:
            return unused_dungeons(s)
        case Decision.TAKE:
            return takeable(s) | bit(STOP_TAKING)  # §8.3
        case Decision.PAY:
            return payable(s)
        case Decision.REARRANGE:
            return rearrangeable(s)
        case Decision.RETURN_MARBLE:
            return open_lanes(s)
    return NOTHING


@kernel
def present(s: Row, start: int) -> np.uint64:
    """The cards or tokens of which there is at least one, where their numbers begin at this place in the row."""
    return nonzero_bytes(s.bytes, start) & _ALL_TYPES


@kernel
def discardable(s: Row) -> np.uint64:
    """Any card of the hand; wild bags are alike (§4.5, §4.6)."""
    player = int(s.current_player)
    return present(s, _HANDS + player * CARD_TYPES) | np.uint64(s.wilds[player] > 0) << np.uint64(WILD_BAG)


@kernel
def placeable(s: Row) -> np.uint64:
    """Any dungeon; a bonus zone without an own adventurer, once per action (§5.1, §5.2)."""
    choices = _ALL_DUNGEONS | bit(STOP_PLACING)
    if not s.zone_used:
        used = nonzero_bytes(s.bytes, _ZONES + int(s.current_player) * ZONES)
        choices |= (~used & _ALL_ZONES) << np.uint64(VISIT)
    return choices


@kernel
def unused_dungeons(s: Row) -> np.uint64:
    """The three tokens of a chest go into different dungeons (§6.1)."""
    return ~nonzero_bytes(s.bytes, _CHEST) & _ALL_DUNGEONS


@kernel
def takeable(s: Row) -> np.uint64:
    """The tokens of the dungeon that the player whose turn it is can pay in full (§8.3, §11.2)."""
    player = s.gather_order[0]
    dungeon = int(s.gather_dungeon)
    if s.crew[player, dungeon] == 0:
        return NOTHING
    affordable = NOTHING
    for kind in range(KINDS):
        values = bit(min(bags_of(s, player, kind), SIZES)) - _ONE
        affordable |= values << np.uint64(kind * SIZES)
    return affordable & present(s, _TOKENS + dungeon * TOKEN_TYPES)


@kernel
def bags_of(s: Row, player: int, kind: int) -> int:
    """All that a player could pay for a token of this kind: left-over bags, wild bags and cards (§8.3, §8.4)."""
    bags = int(s.left_over_bags[player, kind]) + int(s.wilds[player])
    for size in range(SIZES):
        bags += (size + 1) * int(s.hands[player, kind * SIZES + size])
    return bags


@kernel
def payable(s: Row) -> np.uint64:
    """Any card of the token's kind, or a wild bag (§11.2)."""
    player = s.current_player
    first = s.taking // SIZES * SIZES
    choices = np.uint64(s.wilds[player] > 0) << np.uint64(WILD_BAG)
    for card in range(first, first + SIZES):
        choices |= np.uint64(s.hands[player, card] > 0) << np.uint64(card)
    return choices


@kernel
def rearrangeable(s: Row) -> np.uint64:
    """Own marbles with room below, market markers with room above, or nothing (§7.1)."""
    choices = bit(KEEP_ORDER)
    for lane in range(LANES):
        for position in range(1, s.lane_size[lane]):
            if s.lanes[lane, position] == s.current_player + 1:
                ways = np.uint64(3 if position >= LONGEST_MOVE else 1)
                choices |= ways << np.uint64(lane * MOVES_PER_LANE + FIRST_MOVE[position])
    for space in range(1, KINDS):
        ways = np.uint64(3 if space >= LONGEST_MOVE else 1)
        choices |= ways << np.uint64(MOVE_MARKER + s.market[space] * LONGEST_MOVE)
    return choices


@kernel
def open_lanes(s: Row) -> np.uint64:
    """Another lane with room for a marble, and for one of this colour (§3.2, §3.3)."""
    choices = NOTHING
    for lane in range(LANES):
        if lane != s.cylinder and s.lane_size[lane] < LANE_ROOM:
            alike = 0
            for position in range(LANE_ROOM):
                alike += s.lanes[lane, position] == s.active_player + 1
            choices |= np.uint64(alike < LANE_COLOUR_ROOM) << np.uint64(lane)
    return choices


@kernel
def ask(s: Row, player: int, decision: int) -> None:
    """The next decision is this player's."""
    s.current_player = player
    s.decision = decision
