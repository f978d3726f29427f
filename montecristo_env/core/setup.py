"""Setup of a game (§2), from its seed."""

import numpy as np

from montecristo_env.core.chance import (
    advance,
    below,
    draw_token,
    fill_bag,
    permute,
    shuffle_discards_under_pile,
    stream,
)
from montecristo_env.core.constants import (
    ADVENTURERS,
    CARD_TYPES,
    DUNGEONS,
    HIDDEN_SLOTS,
    KINDS,
    LANES,
    MARBLES,
    MAX_PLAYERS,
    MOST_CARDS_HELD,
    NONE,
    STARTING_SUPPLY,
    TOKEN_TYPES,
    TOKENS_DRAWN,
    Lane,
)
from montecristo_env.core.jit import kernel
from montecristo_env.core.layout import OFFSET, Row

_MARBLES_2 = MARBLES[2]
_SETUP, _CARDS, _TOKENS, _PLAY, _NEXT = range(5)  # the streams of a game
_SETTINGS = OFFSET["num_players"]  # everything before is of one game, the rest is kept
_SEED_SHIFT = np.uint64(64 - 53)  # seeds that we make fit in a float, so every JSON reader keeps them


@kernel
def set_up(s: Row, seed: np.uint64) -> None:
    """Lays out a new game with the settings and the number of players of the row, before its first decision."""
    clear(s)
    s.seed = seed
    s.cards_key = stream(seed, _CARDS)
    s.tokens_key = stream(seed, _TOKENS)
    s.play_key = stream(seed, _PLAY)
    state = stream(seed, _SETUP)
    if s.num_players == 2:
        fill_lanes_for_two(s, state)
    else:
        fill_lanes(s, state)
    for kind in range(KINDS):  # §2.4
        s.market[kind] = kind
    permute(s.market, KINDS, stream(state, 0))
    for card in range(CARD_TYPES):
        s.card_discard[card] = s.deck[card]
    shuffle_discards_under_pile(s)
    for token in range(TOKEN_TYPES):
        s.token_discard[token] = s.tokens[token]
    fill_bag(s)
    for dungeon in range(DUNGEONS):  # §2.3
        s.dungeon_tokens[dungeon, draw_token(s)] += 1
    for player in range(s.num_players):  # §2.5
        s.supply[player] = STARTING_SUPPLY
        s.marseille[player] = ADVENTURERS - STARTING_SUPPLY
    s.round_number = 1
    s.cylinder = Lane.SUPPLY  # §2.2


@kernel
def next_seed(seed: np.uint64) -> np.uint64:
    """The seed of the game that follows in the same row."""
    return stream(seed, _NEXT) >> _SEED_SHIFT


@kernel
def fill_lanes(s: Row, state: np.uint64) -> None:
    """3 or 4 players: every lane is a random permutation of the colours (§2.1)."""
    for lane in range(LANES):
        s.lane_size[lane] = s.num_players
        for player in range(s.num_players):
            s.lanes[lane, player] = player + 1
        permute(s.lanes[lane], s.num_players, stream(state, lane + 1))


@kernel
def fill_lanes_for_two(s: Row, state: np.uint64) -> None:
    """2 players: two lanes hold two reds and one blue, two lanes one red and two blues (§2.1)."""
    marbles = 2 * _MARBLES_2 // LANES
    for lane in range(LANES):
        s.scratch[lane] = lane % 2  # which colour is alone in the lane
        s.lane_size[lane] = marbles
    permute(s.scratch, LANES, stream(state, 1))
    state = stream(state, 2)
    for lane in range(LANES):
        alone = int(s.scratch[lane])
        for position in range(marbles):
            s.lanes[lane, position] = (1 - alone) + 1
        state = advance(state)
        s.lanes[lane, below(state, marbles)] = alone + 1


@kernel
def clear(s: Row) -> None:
    """Empties the row but for the settings."""
    for byte in range(_SETTINGS):
        s.bytes[byte] = 0
    s.active_player = NONE
    s.recipient = NONE
    s.gather_dungeon = NONE
    s.taking = NONE
    for player in range(MAX_PLAYERS):
        s.gather_order[player] = NONE
        for i in range(MOST_CARDS_HELD):
            s.wild_slots[player, i] = NONE
    for i in range(TOKENS_DRAWN):
        s.drawn_tokens[i] = NONE
    for slot in range(HIDDEN_SLOTS):
        s.slot_shuffle[slot] = NONE
